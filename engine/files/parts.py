"""Tables of several files: those of one form are one part, which DataFusion reads as a whole; a
table of several parts is the union of them, by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import CsvReadOptions, DataFrame, Expr, functions, lit

from blendfusion.datafusion.arrow_types import is_text
from blendfusion.errors import QueryError
from blendfusion.files.csv_lines import CsvFile
from blendfusion.files.links import link_files
from blendfusion.files.united_types import united_schema
from blendfusion.places.folders import File, Listing, file_url, has_pattern
from blendfusion.places.partitions import types_of
from blendfusion.udfs.declare.arguments import quoted_name

_MOST_PARTS = 200
_ARGUMENTS = ("schema", "has_header", "delimiter", "file_extension", "file_compression_type")


@dataclass(frozen=True)
class Form:
    """How files are read: those of one form are read as one."""

    kind: str
    """The name of DataFusion's reader: csv, json, arrow, parquet."""
    extension: str
    compression: str | None = None
    schema: pa.Schema | None = None
    """The columns in the files; None: DataFusion finds them."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The columns of the table that have another name in the files, with this name."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the reader."""
    is_table: bool = True
    """Whether the files have all columns of the table, in its order."""
    null_texts: str | None = None
    """The pattern of texts that stand for NULL in columns, which are read as text."""

    def arguments(self, partitions: Mapping[str, pa.DataType]) -> dict[str, Any]:
        """The arguments of DataFusion's reader."""
        columns = list(partitions.items())
        if self.kind == "csv":
            made = SniffedOptions(
                schema=self.schema,
                file_extension=self.extension,
                file_compression_type=self.compression or "",
                table_partition_cols=columns,
                **self.options,
            )
            return {"options": made}
        own: dict[str, Any] = {"file_extension": self.extension}
        own |= {} if self.schema is None else {"schema": self.schema}
        if self.kind == "json":
            own |= {"file_compression_type": self.compression} | dict(self.options)
        return own | ({"table_partition_cols": columns} if columns else {})


class SniffedOptions(CsvReadOptions):
    """Options of CSV files that were looked at already."""

    @property
    def are_plain(self) -> bool:
        """Whether ``as_arguments`` has every option that is not at its default."""
        usual = vars(CsvReadOptions())
        kept = {*_ARGUMENTS, "newlines_in_values"}
        return all(value == usual[name] for name, value in vars(self).items() if name not in kept)

    def as_arguments(self) -> dict[str, Any]:
        """The options that DataFusion's method takes as arguments."""
        found = {name: getattr(self, name) for name in _ARGUMENTS}
        return found | {"file_compression_type": self.file_compression_type or None}


@dataclass(frozen=True)
class Part:
    """Files of one form, and the values that their folders give them and that DataFusion cannot
    read from there."""

    form: Form
    files: tuple[File, ...]
    constants: Mapping[str, str | None] = field(default_factory=dict)


def parts_of(
    listing: Listing, files: Sequence[File], form_of: Callable[[File], tuple[Hashable, Form]]
) -> list[Part]:
    """The ``files`` of ``listing``, or their copies, by their forms, which have a key each, and by
    what DataFusion cannot read from the names of their folders."""
    found: dict[Hashable, tuple[Form, dict[str, str | None], list[File]]] = {}
    forms = [form_of(file) for file in files]
    plains = [all(partition.is_plain for partition in file.partitions) for file in files]
    # Of objects, DataFusion reads the folders only if it lists all of them itself.
    listed = "://" not in listing.base or (
        all(plains) and len({key for key, _ in forms}) == 1 and _is_all(listing, files, forms[0][1])
    )
    for file, (key, form), is_plain in zip(files, forms, plains, strict=True):
        partitions, plain = file.partitions, is_plain and (listed or not file.partitions)
        constants = {} if plain else {p.name: p.value for p in partitions}
        names = tuple(p.name for p in partitions)
        whole = (key, names, tuple(constants.items()))
        found.setdefault(whole, (form, constants, []))[2].append(file)
    return [Part(form, tuple(files), constants) for form, constants, files in found.values()]


@dataclass(frozen=True)
class Table:
    """A table of files."""

    listing: Listing
    parts: Sequence[Part]
    schema: pa.Schema | None
    """The columns, without those of partitions; None where DataFusion finds them."""
    new_folder: Callable[[], Path]
    """Makes a folder that lasts as long as the table."""
    texts: tuple[CsvFile, ...] = ()
    """Where the records of CSV files are found again."""

    def register(self, catalog: Any, name: str) -> None:
        """Register the table as ``name``."""
        self._note_texts(catalog, name.strip('"'))
        partitions = self._partitions()
        if len(self.parts) == 1 and self._is_whole(self.parts[0], partitions):
            part = self.parts[0]
            place, arguments = self._place(part), part.form.arguments(partitions)
            getattr(catalog, f"register_{part.form.kind}")(name, place, **arguments)
        else:
            catalog.register_view(name, self._union(catalog, partitions))

    @property
    def is_plain(self) -> bool:
        """Whether DataFusion reads the files, where they are, as one table."""
        part = self.parts[0]
        copied = {file.url for file in part.files} - {file.url for file in self.listing.files}
        return len(self.parts) == 1 and self._is_whole(part, self._partitions()) and not copied

    def frame(self, catalog: Any) -> DataFrame:
        """The rows of the table."""
        self._note_texts(catalog, self.listing.place)
        partitions = self._partitions()
        if len(self.parts) == 1 and self._is_whole(self.parts[0], partitions):
            return self._read(catalog, self.parts[0], partitions)
        return self._union(catalog, partitions)

    def _note_texts(self, catalog: Any, name: str) -> None:
        known = getattr(catalog, "csv_texts", None)
        if known is not None and self.texts:
            known[name] = self.texts

    def _partitions(self) -> dict[str, pa.DataType]:
        """The columns of partitions that the files have no columns for."""
        own = set() if self.schema is None else {name.lower() for name in self.schema.names}
        found = types_of(file.partitions for part in self.parts for file in part.files)
        return {name: kind for name, kind in found.items() if name.lower() not in own}

    def _is_whole(self, part: Part, partitions: Mapping[str, pa.DataType]) -> bool:
        """Whether DataFusion reads a part as it is in the table."""
        folders = [p.name for p in part.files[0].partitions]
        one_place = part.form.kind == "csv" or isinstance(self._place(part), str)
        fits = not part.constants and part.form.is_table and list(partitions) == folders
        return fits and one_place

    def _read(self, catalog: Any, part: Part, partitions: Mapping[str, pa.DataType]) -> DataFrame:
        folders = [] if part.constants else [p.name for p in part.files[0].partitions]
        read = {name: partitions.get(name, pa.string()) for name in folders}
        # A column of the files goes before that of a folder of its name.
        hidden = {name for name in read if name not in partitions}
        arguments = part.form.arguments({k: v for k, v in read.items() if k not in hidden})
        if hidden:
            part = Part(part.form, tuple(File(f.url, f.size) for f in part.files))
        if part.form.kind == "arrow" and "table_partition_cols" in arguments:
            arguments["file_partition_cols"] = arguments.pop("table_partition_cols")
        reader, place = getattr(catalog, f"read_{part.form.kind}"), self._place(part)
        apart = place if isinstance(place, list) and part.form.kind != "csv" else [place]
        _check_number(len(apart), self.listing)
        frames: list[DataFrame] = [reader(one, **arguments) for one in apart]
        return reduce(lambda above, below: above.union(below), frames)

    def _union(self, catalog: Any, partitions: Mapping[str, pa.DataType]) -> DataFrame:
        _check_number(len(self.parts), self.listing)
        frames = [self._read(catalog, part, partitions) for part in self.parts]
        schema = self.schema or _unite(frame.schema() for frame in frames)
        wanted = {f.name: f.type for f in schema if f.name not in partitions} | dict(partitions)
        shaped = [
            _shape(frame, part, wanted) for frame, part in zip(frames, self.parts, strict=True)
        ]
        return reduce(lambda above, below: above.union(below), shaped)

    def _place(self, part: Part) -> str | list[str]:
        """The place at which DataFusion finds the files of a part, and nothing else."""
        files = part.files
        if "://" in files[0].url:
            if _is_all(self.listing, files, part.form) and not part.constants:
                return f"{self.listing.base}/"
            return files[0].url if len(files) == 1 else [file.url for file in files]
        if len(files) == 1 and not files[0].partitions:
            return file_url(files[0].url) if has_pattern(files[0].url) else files[0].url
        base = self.listing.base
        if _is_all(self.listing, files, part.form) and Path(base).is_dir():
            return f"{file_url(base)}/" if has_pattern(base) else base
        folder = self.new_folder()
        shown = files if not part.constants else tuple(File(f.url, f.size) for f in files)
        link_files(shown, folder, part.form.extension)
        return str(folder)


def _is_all(listing: Listing, files: Sequence[File], form: Form) -> bool:
    """Whether ``files`` are all that DataFusion finds in the folder of ``listing``."""
    there = {path for path in listing.passed if path.endswith(form.extension)}
    return bool(there) and there == {"/".join((*file.folders, file.name)) for file in files}


def _check_number(count: int, listing: Listing) -> None:
    """Raises QueryError for more pieces than a plan can have."""
    if count > _MOST_PARTS:
        raise QueryError(
            f"'{listing.place}' stands for {count:,} pieces that are read one by one",
            hint="Name a whole folder, or files with the same columns, such as '…/folder/'.",
        )


def _shape(frame: DataFrame, part: Part, wanted: Mapping[str, pa.DataType]) -> DataFrame:
    """The rows of a part with the columns of the table."""
    has = {field.name: field.type for field in frame.schema()}

    def column(name: str, kind: pa.DataType) -> Expr:
        own = part.form.names.get(name, name)
        if pa.types.is_null(kind):
            return lit(None).alias(name)
        if own not in has:
            return lit(part.constants.get(name)).cast(kind).alias(name)
        held = Expr.column(quoted_name(own))
        if part.form.null_texts is not None:
            held = _without_nulls(held, part.form.null_texts, is_text(kind))
        return (held if has[own] == kind else held.cast(kind)).alias(name)

    return frame.select(*(column(name, kind) for name, kind in wanted.items()))


def _without_nulls(text: Expr, null_texts: str, is_text: bool) -> Expr:
    """The text, or NULL for one of ``null_texts``; an empty one is no value of another type."""
    known = functions.regexp_like(text, lit(null_texts))
    known = known if is_text else known | (text == lit(""))
    return functions.when(known, lit(None).cast(pa.string())).otherwise(text)


def _unite(schemas: Iterable[pa.Schema]) -> pa.Schema:
    def refuse(name: str, *_: int) -> QueryError:
        return QueryError(
            f"column '{name}' has values of several kinds in the files",
            hint="Read them as two tables, or write them again with one kind of value.",
        )

    return united_schema(list(schemas), refuse)
