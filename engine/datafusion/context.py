"""A DataFusion context that belongs to its process, and knows which functions its user brought."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import pyarrow as pa
from datafusion import (
    AggregateUDF,
    DataFrame,
    RuntimeEnvBuilder,
    ScalarUDF,
    SessionConfig,
    SessionContext,
    TableFunction,
)

from blendfusion.datafusion.process_guard import check_process, no_pickle, this_process
from blendfusion.datafusion.schema_metadata import WithoutMetadata
from blendfusion.errors import OptionError, QueryError

if TYPE_CHECKING:
    from blendfusion.datafusion.user_context import UserContext

P = ParamSpec("P")
OFF_CACHES = (
    "datafusion.runtime.list_files_cache_limit",
    "datafusion.runtime.file_statistics_cache_limit",
)
"""With these, a folder has the files of its first query, and a file the statistics of any that had
its size and time of change."""
_STEALS = "datafusion.execution.enable_file_stream_work_stealing"
_TOP_GROUPS = "datafusion.optimizer.enable_topk_aggregation"
"""With it, DataFusion 55 gives a NaN among the first groups several times, or panics."""


def _no_copy(inherited: Callable[P, SessionContext]) -> Callable[P, NoReturn]:
    """A method of SessionContext that makes another context of one: it would have no model."""

    def refuse(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        raise OptionError(
            f"session.{inherited.__name__} would make a context without the session's model",
            hint="Call it on a plain datafusion.SessionContext, and bf.connect(ctx=context) after that.",
        )

    return update_wrapper(refuse, inherited)


class OwnContext(WithoutMetadata):
    """A ``datafusion.SessionContext`` that cannot be copied, pickled or used in a fork, and reads
    no file by its path in a query. ``adopted``: the user's context that it works on, in place of
    a new one."""

    def __init__(
        self,
        config: SessionConfig | None,
        runtime: RuntimeEnvBuilder | None,
        adopted: UserContext | None = None,
    ) -> None:
        self._process = this_process()
        self._adopted = adopted
        self._functions: list[ScalarUDF] = []
        self._names: set[str] = set()
        self._table_functions: set[str] = set()
        if adopted is None:
            # Otherwise the partition that is fastest takes most files: rows have another order in
            # each run, and a limit meets others.
            config = config or SessionConfig().with_information_schema(True)
            super().__init__(config.set(_STEALS, "false").set(_TOP_GROUPS, "false"), runtime)
            for name in OFF_CACHES:
                SessionContext.sql(self, f"SET {name} = '0M'")
        else:
            adopted.claim(self)
            self._ctx = adopted.inner

    def register_parquet(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        """Register a Parquet file, or a folder of such, as the table ``name``. Folders called
        ``name=value`` in it are columns, unless ``table_partition_cols`` says which are; a column
        of several widths has the widest. Raises QueryError for a table of Delta Lake, Iceberg or
        Hudi."""
        from blendfusion.datafusion.parquet_dictionaries import decoding_schema
        from blendfusion.datafusion.parquet_folders import folder_arguments
        from blendfusion.datafusion.parquet_statistics import by_value, read_as_written

        self._check_lake(path, kwargs.get("object_store"))
        hidden = read_as_written(path, kwargs.get("file_extension", ".parquet"))
        kwargs |= folder_arguments(path, args, kwargs)
        if hidden is None or hidden:
            kwargs.pop("object_store", None)
            frame = by_value(self, self._parquet(path, args, kwargs), hidden)
            SessionContext.register_view(self, name, frame)
            return
        super().register_parquet(name, path, *args, **kwargs)
        try:
            schema = decoding_schema(SessionContext.table(self, name).schema(), args, kwargs)
        except QueryError:
            self.deregister_table(name)
            raise
        if schema is not None:
            self.deregister_table(name)
            super().register_parquet(name, path, *args, **kwargs | {"schema": schema})

    def read_parquet(self, path: Any, *args: Any, **kwargs: Any) -> DataFrame:
        """A frame of a Parquet file, or of a folder of such, with the columns and the errors of
        ``register_parquet``."""
        from blendfusion.datafusion.parquet_folders import folder_arguments
        from blendfusion.datafusion.parquet_statistics import by_value, read_as_written

        self._check_lake(path, kwargs.get("object_store"))
        hidden = read_as_written(path, kwargs.get("file_extension", ".parquet"))
        kwargs |= folder_arguments(path, args, kwargs)
        return by_value(self, self._parquet(path, args, kwargs), hidden)

    def _parquet(self, path: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> DataFrame:
        from blendfusion.datafusion.parquet_dictionaries import decoding_schema

        frame = super().read_parquet(path, *args, **kwargs)
        schema = decoding_schema(frame.schema(), args, kwargs)
        if schema is None:
            return frame
        return super().read_parquet(path, *args, **kwargs | {"schema": schema})

    def register_listing_table(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        """Register the files at ``path``, Parquet unless ``file_extension`` says otherwise, as the
        table ``name``. Raises as ``register_parquet`` does."""
        from blendfusion.datafusion.parquet_statistics import by_value, read_as_written

        self._check_lake(path, None)
        super().register_listing_table(name, path, *args, **kwargs)
        extension = kwargs.get("file_extension", args[1] if len(args) > 1 else ".parquet")
        hidden = read_as_written(path, extension) if extension == ".parquet" else set()
        if hidden is None or hidden:
            frame = by_value(self, SessionContext.table(self, name), hidden)
            self.deregister_table(name)
            SessionContext.register_view(self, name, frame)

    def register_dataset(self, name: str, dataset: Any) -> None:
        """Register a dataset of pyarrow as the table ``name``. Raises as ``register_parquet``
        does."""
        from blendfusion.places.lakes import check_folders

        check_folders(
            {os.path.dirname(f) for f in getattr(dataset, "files", ()) if os.path.exists(f)}
        )
        super().register_dataset(name, dataset)

    def _check_lake(self, path: Any, store: object) -> None:
        from blendfusion.places.lakes import check_place

        if store is not None:
            self._register_object_store_for_path(path, store)
        check_place(self, path)

    @property
    def functions(self) -> list[ScalarUDF]:
        """The user's scalar functions."""
        return self._functions + ([] if self._adopted is None else self._adopted.functions())

    @property
    def own_names(self) -> set[str]:
        """The names of the user's functions and aggregates."""
        return self._names | (set() if self._adopted is None else self._adopted.own_names())

    @property
    def table_functions(self) -> set[str]:
        """The names of the user's table functions, each of which can read anything."""
        known = set() if self._adopted is None else self._adopted.table_functions()
        return self._table_functions | known

    @property
    def reads_paths(self) -> bool:
        """Whether a query can read a file by its path: in a user's context with
        ``enable_url_table``."""
        return self._adopted is not None and self._adopted.reads_paths()

    @property
    def ctx(self) -> Any:
        """DataFusion's own context, through which everything goes. Raises ProcessError in a
        fork, and QueryError if its context has a newer session."""
        self.check_process()
        return self._ctx

    @ctx.setter
    def ctx(self, ctx: Any) -> None:
        self._ctx = ctx

    def check_process(self) -> None:
        """Raise ProcessError in a fork of the process in which this was opened, and QueryError if
        its context has a newer session."""
        check_process(self._process)
        if self._adopted is not None:
            self._adopted.check_owner(self)

    def __reduce__(self) -> NoReturn:
        no_pickle("session")

    def register_udf(self, udf: ScalarUDF) -> None:
        super().register_udf(udf)
        self._functions.append(udf)
        self._names.add(udf.name)

    def register_udaf(self, udaf: AggregateUDF) -> None:
        super().register_udaf(udaf)
        self._names.add(udaf.name)

    def register_udtf(self, func: TableFunction) -> None:
        super().register_udtf(func)
        # A table function tells its name only so.
        self._table_functions.add(repr(func._udtf).partition("(")[2].removesuffix(")"))

    def enable_url_table(self) -> SessionContext:
        """Not possible: a session reads tables that were registered, never a path in a query."""
        raise OptionError(
            "a session cannot read files by their paths in a query",
            hint="Register the file: session.register_csv('name', path), register_parquet, …",
        )

    def plain_frame(self, table: pa.Table) -> DataFrame:
        """A DataFusion frame over ``table``."""
        from blendfusion.datafusion.substrait_io import batches_of

        return SessionContext.read_batches(self, batches_of(table))

    with_extensions = _no_copy(SessionContext.with_extensions)
    with_python_udf_inlining = _no_copy(SessionContext.with_python_udf_inlining)
    with_logical_extension_codec = _no_copy(SessionContext.with_logical_extension_codec)
    with_physical_extension_codec = _no_copy(SessionContext.with_physical_extension_codec)
