"""How files became the tables of a session: in the form of a manifest, and made again of it."""

from __future__ import annotations

import base64
import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import CsvReadOptions, SessionContext

from blendfusion.errors import QueryError
from blendfusion.models.protocol.gate import Shape, Unfit, check_shape
from blendfusion.places.folders import list_files
from blendfusion.places.remote import LOCAL, STORES, local_path, scheme_of
from blendfusion.services.replay.indexes import folder_of, index_of

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseSession

METHODS = (
    "register_parquet",
    "register_csv",
    "register_json",
    "register_arrow",
    "register_listing_table",
    "register_documents",
    "register_file",
    "register_lance",
    "register_lake",
)
"""The methods of a session that a replay calls."""
_VERSIONED = ("register_lance", "register_lake", "open_index")
_OWN = ("self", "name", "path", "args", "kwargs")
_SHAPE: Shape = {"method": str, "options": {"...": object}}


class NotEncodable(Exception):
    """A value that the text of a manifest cannot hold."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A call of a session's method that made a table of the files at ``path``, absolute."""

    method: str
    path: str
    options: Mapping[str, Any]
    """The arguments beside the name and the path, as JSON has them."""

    def files(self, session: BaseSession) -> tuple[Path, ...]:
        """The files at the path; those of documents as their service finds them, and none of what
        keeps versions of its rows in a folder."""
        if self.method in _VERSIONED:
            return ()
        if self.method == "register_documents":
            from blendfusion.planner.ir.document_tables import Documents

            own: Any = session  # with the part of that service
            read = Documents(self.path, ocr=bool(self.options.get("ocr")))
            return tuple(map(Path, own._document_files(read)))
        place = self.path.rpartition("#")[0] if _is_sheet(self.path) else self.path
        return tuple(file.path for file in list_files(place).files)


def registration_of(method: str, path: object, arguments: Mapping[str, Any]) -> Registration | None:
    """The registration of the files at ``path``; None where they are not on this machine, or an
    argument cannot be written as text."""
    if not isinstance(path, str | os.PathLike):
        return None
    place = os.fspath(path)
    given = _encode_arguments(arguments)
    if place == "-" or scheme_of(place) not in (None, LOCAL) or given is None:
        return None
    folder = "/" if place.endswith("/") else ""  # DataFusion takes such a path for a folder
    return Registration(method, f"{Path(local_path(place)).expanduser().absolute()}{folder}", given)


def of_objects(method: str, path: object, arguments: Mapping[str, Any]) -> Registration | None:
    """The registration of files in an object store by ``register_file``, which opens the store;
    None for any other."""
    given = _encode_arguments(arguments)
    is_other = method != "register_file" or not isinstance(path, str) or given is None
    if is_other or scheme_of(str(path)) not in STORES:
        return None
    return Registration(method, str(path), given or {})


def _encode_arguments(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments as JSON has them; None where it has not."""
    try:
        return {
            key: encode_argument(value) for key, value in arguments.items() if value is not None
        }
    except NotEncodable:
        return None


def opened_index(session: BaseSession, name: str) -> Registration | None:
    """The registration of an index among the inputs of a manifest; None for any other name."""
    folder = folder_of(name, session)
    if folder is None:
        return None
    return registration_of("open_index", folder, {"index": index_of(name)})


def arguments_of(method: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a session's method, by name, without the name and the path."""
    bound = inspect.signature(method).bind(None, "name", "path", *args, **kwargs)
    return {key: value for key, value in bound.arguments.items() if key not in _OWN}


def encode_argument(value: object) -> object:
    """An argument as JSON has it. Raises NotEncodable."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, pa.Schema):
        return {"schema": _text_of(value)}
    if isinstance(value, CsvReadOptions):
        usual, own = vars(CsvReadOptions()), vars(value)
        return {
            "csv": {key: encode_argument(own[key]) for key in own if own[key] != usual.get(key)}
        }
    if isinstance(value, list | tuple) and all(isinstance(one, tuple | list) for one in value):
        pairs = [tuple(one) for one in value]
        if all(len(p) == 2 and all(isinstance(part, str) for part in p) for p in pairs):
            return {"pairs": [list(pair) for pair in pairs]}
        if all(len(p) == 2 and isinstance(p[1], pa.DataType) for p in pairs):
            return {"columns": _text_of(pa.schema(pairs))}
    raise NotEncodable


def decode_argument(recorded: Any) -> Any:
    """The argument that ``encode_argument`` wrote. Raises Unfit for what it never writes."""
    if not isinstance(recorded, dict):
        return recorded
    kind = next(iter(recorded), "")
    if len(recorded) != 1 or kind not in ("schema", "columns", "pairs", "csv"):
        raise Unfit("an argument of a registration is not possible")
    value: Any = recorded[kind]
    if kind == "pairs":
        check_shape(value, [[str]], "the columns of folders")
        return [tuple(pair) for pair in value]
    if kind == "csv":
        check_shape(value, {"...": object}, "the options of CSV")
        if not value.keys() <= vars(CsvReadOptions()).keys():
            raise Unfit("an option of CSV is not known")
        return CsvReadOptions(**{key: decode_argument(one) for key, one in value.items()})
    schema = _schema_of(value)
    return schema if kind == "schema" else [(f.name, f.type) for f in schema]


def register_again(session: BaseSession, name: str, path: str, recorded: object) -> None:
    """Make what lies at ``path`` the table ``name``, an SQL name, or an index, as before. Raises
    QueryError for a registration that no manifest holds."""
    try:
        check_shape(recorded, _SHAPE, "the registration")
        call: Any = recorded
        if call["method"] == "create_external":
            from blendfusion.services.external_tables.statement import external_table

            # The session of a replay reads only, for the queries of others.
            statement = _statement(call["options"], path)
            SessionContext.sql(session, external_table(session, statement))
            return
        if call["method"] == "open_index":
            check_shape(call["options"], {"index": str}, "the registration")
            own: Any = session  # with the part of that service
            own.open_index(call["options"]["index"], path)
            return
        if call["method"] not in METHODS:
            raise Unfit(f"'{call['method']}' registers no files")
        method = getattr(session, call["method"])
        options = {key: decode_argument(value) for key, value in call["options"].items()}
        of_path = "source" if call["method"] == "register_lake" else "path"
        declared = getattr(SessionContext, call["method"], method)
        known = inspect.signature(declared).parameters.keys() - {"name", of_path, "object_store"}
        if not options.keys() <= known:
            raise Unfit("an argument of a registration is not possible")
    except Unfit as problem:
        raise QueryError(
            f"table {name}: its registration cannot be repeated: {problem}",
            hint=f"Pass its file: --table {name}=PATH.",
        ) from None
    method(**options, **{"name": name, of_path: path})


def _statement(options: Mapping[str, Any], path: str) -> str:
    """The recorded CREATE EXTERNAL TABLE for files at another path. Raises Unfit for any other."""
    from blendfusion.services.external_tables.statement import moved_statement

    check_shape(options, {"statement": str}, "the registration")
    moved = moved_statement(options["statement"], path)
    if moved is None:
        raise Unfit("its statement is no CREATE EXTERNAL TABLE")
    return moved


def fits(path: str, recorded_path: str) -> bool:
    """Whether the files at ``path`` have the extension of the recorded ones."""
    return Path(path).suffix.lower() == Path(recorded_path).suffix.lower()


def paths_from(folder: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of inputs with paths from ``folder`` where they lie in it, so that the folder can
    be moved as a whole."""
    base = folder.expanduser().absolute()

    def relative_path(path: str) -> str:
        return str(Path(path).relative_to(base)) if Path(path).is_relative_to(base) else path

    return {
        name: {**facts, "path": relative_path(facts["path"])} if "path" in facts else facts
        for name, facts in inputs.items()
    }


def is_workbook(path: str) -> bool:
    """Whether a path is that of a workbook, perhaps with the name of a sheet."""
    return path.lower().partition("#")[0].endswith(".xlsx")


def _is_sheet(path: str) -> bool:
    return "#" in path and is_workbook(path) and not Path(path).exists()


def _text_of(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _schema_of(text: object) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(str(text), validate=True)))
    except (ValueError, OSError, pa.ArrowException):
        raise Unfit("a schema is not possible") from None
