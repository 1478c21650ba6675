"""A DataFusion context that belongs to its process, and knows which functions its user brought."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NoReturn, ParamSpec

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
from blendfusion.datafusion.substrait_io import batches_of
from blendfusion.errors import OptionError

P = ParamSpec("P")


def _no_copy(inherited: Callable[P, SessionContext]) -> Callable[P, NoReturn]:
    """A method of SessionContext that makes another context of one: it would have no model."""

    def refused(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        raise OptionError(
            f"session.{inherited.__name__} would make a context without the session's model",
            hint="Call it on a plain datafusion.SessionContext, and bf.register(context) after that.",
        )

    return update_wrapper(refused, inherited)


class OwnContext(WithoutMetadata):
    """A ``datafusion.SessionContext`` that cannot be copied, pickled or used in a fork, and reads
    no file by its path in a query."""

    def __init__(self, config: SessionConfig | None, runtime: RuntimeEnvBuilder | None) -> None:
        self._process = this_process()
        super().__init__(config, runtime)
        self.functions: list[ScalarUDF] = []
        self.own_names: set[str] = set()
        """Of functions and aggregates that were registered by ``register_udf`` and
        ``register_udaf``."""
        self.table_functions: set[str] = set()

    @property
    def ctx(self) -> Any:
        """DataFusion's own context, through which everything goes. Raises ProcessError in a
        fork."""
        self.check_process()
        return self._ctx

    @ctx.setter
    def ctx(self, ctx: Any) -> None:
        self._ctx = ctx

    def check_process(self) -> None:
        """Raise ProcessError in a fork of the process in which this was opened."""
        check_process(self._process)

    def __reduce__(self) -> NoReturn:
        no_pickle("session")

    def register_udf(self, udf: ScalarUDF) -> None:
        super().register_udf(udf)
        self.functions.append(udf)
        self.own_names.add(udf.name)

    def register_udaf(self, udaf: AggregateUDF) -> None:
        super().register_udaf(udaf)
        self.own_names.add(udaf.name)

    def register_udtf(self, func: TableFunction) -> None:
        super().register_udtf(func)
        # A table function tells its name only so.
        self.table_functions.add(repr(func._udtf).partition("(")[2].removesuffix(")"))

    def enable_url_table(self) -> SessionContext:
        """Not possible: a session reads tables that were registered, never a path in a query."""
        raise OptionError(
            "a session cannot read files by their paths in a query",
            hint="Register the file: session.register_csv('name', path), register_parquet, …",
        )

    def plain_frame(self, table: pa.Table) -> DataFrame:
        """A DataFusion frame over ``table``."""
        return SessionContext.read_batches(self, batches_of(table))

    with_extensions = _no_copy(SessionContext.with_extensions)
    with_python_udf_inlining = _no_copy(SessionContext.with_python_udf_inlining)
    with_logical_extension_codec = _no_copy(SessionContext.with_logical_extension_codec)
    with_physical_extension_codec = _no_copy(SessionContext.with_physical_extension_codec)
