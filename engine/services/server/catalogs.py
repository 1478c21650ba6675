"""The catalogs, schemas and tables of a session as the tables of Flight SQL."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from blendfusion.session import Session
from blendfusion.udfs.declare.arguments import quoted_name

_TEXT = pa.string()
CATALOGS = pa.schema([pa.field("catalog_name", _TEXT, nullable=False)])
SCHEMAS = pa.schema(
    [pa.field("catalog_name", _TEXT), pa.field("db_schema_name", _TEXT, nullable=False)]
)
TYPES = pa.schema([pa.field("table_type", _TEXT, nullable=False)])
KEYS = pa.schema(
    [
        pa.field("catalog_name", _TEXT),
        pa.field("db_schema_name", _TEXT),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("column_name", _TEXT, nullable=False),
        pa.field("key_name", _TEXT),
        pa.field("key_sequence", pa.int32(), nullable=False),
    ]
)


def tables_of(session: Session) -> list[dict[str, str]]:
    """The tables of a session: table_catalog, table_schema, table_name, table_type."""
    return session.sql(
        "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables "
        "WHERE table_schema <> 'information_schema' ORDER BY 1, 2, 3",
        read_only=True,
    ).to_pylist()


def catalogs(session: Session) -> pa.Table:
    """The catalogs."""
    names = sorted({row["table_catalog"] for row in tables_of(session)} | {"datafusion"})
    return pa.Table.from_pydict({"catalog_name": names}, schema=CATALOGS)


def schemas(session: Session, wanted: Any) -> pa.Table:
    """The schemas that a command wants."""
    found = sorted({(row["table_catalog"], row["table_schema"]) for row in tables_of(session)})
    rows = [
        {"catalog_name": catalog, "db_schema_name": schema}
        for catalog, schema in found
        if _fits(wanted, "catalog", catalog, exact=True)
        and _fits(wanted, "db_schema_filter_pattern", schema)
    ]
    return pa.Table.from_pylist(rows, SCHEMAS)


def tables_schema(*, with_schema: bool) -> pa.Schema:
    """The columns of the list of tables."""
    fields = [
        pa.field("catalog_name", _TEXT),
        pa.field("db_schema_name", _TEXT),
        pa.field("table_name", _TEXT, nullable=False),
        pa.field("table_type", _TEXT, nullable=False),
    ]
    return pa.schema(
        [*fields, *([pa.field("table_schema", pa.binary(), nullable=False)] * with_schema)]
    )


def tables(session: Session, wanted: Any) -> pa.Table:
    """The tables that a command wants, with their schemas if it does."""
    rows = []
    for row in tables_of(session):
        catalog, schema, name, kind = row.values()
        kind = "VIEW" if kind == "VIEW" else "TABLE"
        if not (
            _fits(wanted, "catalog", catalog, exact=True)
            and _fits(wanted, "db_schema_filter_pattern", schema)
            and _fits(wanted, "table_name_filter_pattern", name)
            and (not wanted.table_types or kind in wanted.table_types)
        ):
            continue
        found = dict(
            zip(tables_schema(with_schema=False).names, (catalog, schema, name, kind), strict=True)
        )
        if wanted.include_schema:
            path = ".".join(map(quoted_name, (catalog, schema, name)))
            found["table_schema"] = session.table(path).schema().serialize().to_pybytes()
        rows.append(found)
    return pa.Table.from_pylist(rows, tables_schema(with_schema=wanted.include_schema))


def _fits(wanted: Any, field: str, name: str, *, exact: bool = False) -> bool:
    """Whether a name meets a filter: the name itself, or a pattern with % and _."""
    if not wanted.HasField(field):
        return True
    pattern = getattr(wanted, field)
    if exact:
        return bool(name == pattern)
    glob = (
        re.sub(r"[\[\]*?]", lambda found: f"[{found[0]}]", pattern)
        .replace("%", "*")
        .replace("_", "?")
    )
    return fnmatch.fnmatchcase(name, glob)


_VALUES = pa.dense_union(
    [
        pa.field("string_value", _TEXT),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(_TEXT)),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ]
)
INFO = pa.schema(
    [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", _VALUES, nullable=False)]
)


def server_info(wanted: Sequence[int]) -> pa.Table:
    """The server's description of itself: its name, its versions, and that it only reads."""
    known: dict[int, str | bool] = {
        0: "BlendFusion",
        1: version("blendfusion"),
        2: pa.__version__,
        3: True,
    }
    chosen = {number: known[number] for number in (wanted or known) if number in known}
    texts = [value for value in chosen.values() if isinstance(value, str)]
    flags = [value for value in chosen.values() if isinstance(value, bool)]
    kinds = [int(isinstance(value, bool)) for value in chosen.values()]
    offsets = [kinds[:at].count(kind) for at, kind in enumerate(kinds)]
    children = [pa.array(texts, _TEXT), pa.array(flags, pa.bool_())]
    children += [pa.array([], field.type) for field in list(_VALUES)[2:]]
    values = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()),
        pa.array(offsets, pa.int32()),
        children,
        [field.name for field in _VALUES],
    )
    names = pa.array(list(chosen), pa.uint32())
    return pa.Table.from_arrays([names, values.cast(_VALUES)], schema=INFO)
