"""The methods of DataFusion's SessionContext that build a DataFrame; here they build a Frame."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import pyarrow as pa
from datafusion import CsvReadOptions, DataFrame, SessionContext

from blendfusion.datafusion.context import OwnContext
from blendfusion.datafusion.schema_metadata import reader_of
from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import ArgumentError, half_a_pair
from blendfusion.files.foreign_tables import (
    check_types,
    is_hub_dataset,
    table_of_columns,
    table_of_pandas,
)
from blendfusion.prepare.verbs.placement import in_place_of
from blendfusion.run.hooks import BaseSession

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from datafusion import SQLOptions

    from blendfusion.budget import Budget
    from blendfusion.datafusion.named_tables import NamedTables
    from blendfusion.files.parts import Table
    from blendfusion.files.query_files import QueryFiles
    from blendfusion.frame import Frame
    from blendfusion.run.hooks import Origin

P = ParamSpec("P")
T = TypeVar("T")


def _source(
    inherited: Callable[Concatenate[FrameSources, P], DataFrame],
) -> Callable[Concatenate[FrameSources, P], Frame]:
    """Wraps a method of SessionContext that builds a DataFrame, so that it builds a Frame."""

    def source(self: FrameSources, /, *args: P.args, **kwargs: P.kwargs) -> Frame:
        from blendfusion.frame import Frame

        try:
            made = inherited(self, *args, **kwargs)
        except UnicodeEncodeError as problem:
            raise half_a_pair(problem) from problem
        return made if isinstance(made, Frame) else self.new_frame(made)

    return update_wrapper(source, inherited)


def _reader(
    inherited: Callable[Concatenate[FrameSources, P], DataFrame],
) -> Callable[Concatenate[FrameSources, P], Frame]:
    """As ``_source``, for a method whose DataFrame reads a table without a name."""

    def reader(self: FrameSources, /, *args: P.args, **kwargs: P.kwargs) -> Frame:
        return self.new_unnamed(inherited(self, *args, **kwargs))

    return update_wrapper(reader, inherited)


def _reads(kind: str, inherited: Callable[P, DataFrame]) -> Callable[P, DataFrame]:
    """Wraps a method that reads files of a kind, so that it reads whole records, all keys of JSON,
    and columns by name."""

    def read(*args: P.args, **kwargs: P.kwargs) -> DataFrame:
        from blendfusion.files.parts import Table

        given, found = _file_source(kind, inherited, args, kwargs)
        if isinstance(found, Table):
            return found.frame(given["self"])
        again: Callable[..., DataFrame] = inherited
        return again(**(given | found))

    return update_wrapper(read, inherited)


def _registers(kind: str, inherited: Callable[P, None]) -> Callable[P, None]:
    """Wraps a method that registers files of a kind as ``_reads`` does one that reads them."""

    def register(*args: P.args, **kwargs: P.kwargs) -> None:
        from blendfusion.files.parts import Table

        given, found = _file_source(kind, inherited, args, kwargs)
        options = given.get("options")
        if isinstance(found, Table):
            found.register(given["self"], given["name"])
        elif found.get("options") is options or given.get("object_store") is not None:
            again: Callable[..., None] = inherited
            again(**(given | found))
        else:
            given["self"].register_csv(given["name"], given["path"], **found)

    return update_wrapper(register, inherited)


def _file_source(
    kind: str, inherited: Callable[..., object], args: Any, kwargs: Any
) -> tuple[dict[str, Any], dict[str, Any] | Table]:
    """The arguments of a method that reads files of a kind, csv, json or arrow, and the table or
    the changed arguments that these mean. Those that are options of CSV are in ``options``."""
    from blendfusion.files.conversions import folder_of
    from blendfusion.files.csv_doors import prepare_csv
    from blendfusion.files.parts import Table

    given = inspect.signature(inherited).bind(*args, **kwargs).arguments
    given["self"].check_process()  # before a file is looked at
    new_folder = partial(folder_of, given["self"])
    if kind != "csv":
        from blendfusion.files.file_doors import prepare_files

        return given, prepare_files(kind, given, new_folder)
    if given.get("options") is None:
        names = inspect.signature(CsvReadOptions).parameters.keys() & given.keys()
        known = {name: given.pop(name) for name in names}
        known["file_compression_type"] = known.get("file_compression_type") or ""
        given["options"] = CsvReadOptions(**known)
    found = prepare_csv(given["path"], given["options"], new_folder)
    return given, found if isinstance(found, Table) else {"options": found}


def _check_types(inherited: Callable[P, T]) -> Callable[P, T]:
    """Wraps ``from_arrow``, so that it refuses frames of Polars with types that Arrow lacks."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for given in (*args, *kwargs.values()):
            check_types(given)
        return inherited(*args, **kwargs)

    return update_wrapper(call, inherited)


class FrameSources(BaseSession):
    """A context whose tables, files and data come as frames."""

    if TYPE_CHECKING:  # what ``Session`` has

        @cached_property
        def information(self) -> NamedTables: ...
        @cached_property
        def query_files(self) -> QueryFiles: ...
        def change_option(self, name: str, text: str) -> Frame: ...
        def sql(
            self,
            query: str,
            options: SQLOptions | None = None,
            param_values: dict[str, Any] | Sequence[Any] | None = None,
            *,
            dialect: str | None = None,
            budget: Budget | None = None,
            read_only: bool = False,
            **named_params: Any,
        ) -> Frame: ...
        def table(self, name: str) -> Frame: ...

    def new_frame(
        self, df: DataFrame, origin: Origin | None = None, budget: Budget | None = None
    ) -> Frame:
        """A frame of this session over a frame of DataFusion."""
        from blendfusion.frame import Frame

        return Frame(df.df, self, origin, budget)

    def new_table(self, table: pa.Table) -> Frame:
        """A frame over ``table``, which is not registered."""
        return self.new_unnamed(self.plain_frame(table))

    def new_unnamed(self, df: DataFrame) -> Frame:
        """A frame over a frame of DataFusion that reads a table without a name."""
        table = UnnamedTable(self, df, "frame")
        frame = self.new_frame(SessionContext.table(self, table.name))
        frame.unnamed_table = table
        return frame

    def as_frame(self, value: object) -> object:
        """A table of pandas, Polars or Arrow as a frame; any other value as it is."""
        if hasattr(value, "collect") and not isinstance(value, DataFrame):
            value = value.collect()  # a lazy frame of Polars
        if isinstance(value, DataFrame):
            return value
        if is_hub_dataset(value):
            value = cast("Any", value).with_format("arrow")[:]
        foreign = self.foreign_table(value)
        if foreign is not None:
            return self.read_table(foreign)
        if not hasattr(value, "__arrow_c_stream__"):
            return value
        if hasattr(value, "iloc"):
            return self.new_table(
                table_of_pandas(cast("pd.DataFrame", value), preserve_index=False)
            )
        check_types(value)
        return self.new_table(reader_of(value).read_all())

    @in_place_of(_source(SessionContext.sql_with_options))  # type: ignore[arg-type]
    def sql_with_options(self) -> None: ...

    @in_place_of(_source(SessionContext.execute_logical_plan))
    def execute_logical_plan(self) -> None: ...

    @in_place_of(_source(OwnContext.create_dataframe))
    def create_dataframe(self) -> None: ...

    @in_place_of(_source(SessionContext.create_dataframe_from_logical_plan))
    def create_dataframe_from_logical_plan(self) -> None: ...

    @in_place_of(_source(_check_types(OwnContext.from_arrow)))
    def from_arrow(self) -> None: ...

    def from_pylist(self, data: list[dict[str, Any]], name: str | None = None) -> Frame:
        """A frame of rows, registered as the table ``name``. Its columns are the keys of all rows,
        in the order in which they come; a key that a row lacks is NULL. Raises ArgumentError as
        ``from_pydict`` does."""
        wrong = next((row for row in data if not isinstance(row, Mapping)), None)
        if wrong is not None:
            raise ArgumentError(
                f"a row is a dict, not {type(wrong).__name__}",
                hint="For example [{'id': 1, 'text': 'x'}, …]; from_pydict takes a dict of columns.",
            )
        keys = dict.fromkeys(key for row in data for key in row)
        return self.from_pydict({key: [row.get(key) for row in data] for key in keys}, name)

    def from_pydict(self, data: dict[str, list[Any]], name: str | None = None) -> Frame:
        """A frame of columns, registered as the table ``name``. Raises ArgumentError for columns of
        different lengths, and for a column with values of several types."""
        return self.from_arrow(table_of_columns(data), name)

    def from_pandas(self, data: pd.DataFrame, name: str | None = None) -> Frame:
        """A frame of a pandas table, registered as the table ``name``. An index with a name becomes
        a column; one without is left out."""
        names = getattr(getattr(data, "index", None), "names", [])
        kept = any(label is not None for label in names)
        return self.from_arrow(table_of_pandas(data, preserve_index=kept), name)

    def from_polars(self, data: pl.DataFrame | pl.LazyFrame, name: str | None = None) -> Frame:
        """A frame of a Polars table, registered as the table ``name``; a lazy one is collected."""
        collected: Any = data.collect() if hasattr(data, "collect") else data
        if not hasattr(collected, "to_arrow"):
            hint = "session.from_pandas, from_arrow, from_pylist and from_pydict take others."
            raise ArgumentError(f"a {type(data).__name__} is no Polars frame", hint=hint)
        check_types(collected)  # to_arrow passes on the addresses of objects
        return self.from_arrow(collected.to_arrow(), name)

    @in_place_of(_reader(OwnContext.read_batch))
    def read_batch(self) -> None: ...

    @in_place_of(_reader(OwnContext.read_batches))
    def read_batches(self) -> None: ...

    @in_place_of(_reader(_reads("json", SessionContext.read_json)))
    def read_json(self) -> None: ...

    register_json = _registers("json", SessionContext.register_json)

    @in_place_of(_reader(_reads("csv", SessionContext.read_csv)))
    def read_csv(self) -> None: ...

    register_csv = _registers("csv", SessionContext.register_csv)

    @in_place_of(_reader(OwnContext.read_parquet))
    def read_parquet(self) -> None: ...

    @in_place_of(_reader(SessionContext.read_avro))
    def read_avro(self) -> None: ...

    @in_place_of(_reader(_reads("arrow", SessionContext.read_arrow)))
    def read_arrow(self) -> None: ...

    register_arrow = _registers("arrow", SessionContext.register_arrow)

    @in_place_of(_source(SessionContext.read_empty))
    def read_empty(self) -> None: ...

    @in_place_of(_reader(SessionContext.read_table))
    def read_table(self) -> None: ...

    @in_place_of(_source(SessionContext.empty_table))
    def empty_table(self) -> None: ...
