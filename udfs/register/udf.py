"""A call as an ordinary DataFusion function: correct everywhere, though not minimal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from datafusion import ScalarUDF, udf

if TYPE_CHECKING:
    from blendfusion.udfs.ask.dispatcher import Dispatcher
    from blendfusion.udfs.declare.call import Call

DispatcherSource: TypeAlias = "Callable[[], Dispatcher]"


def _evaluate(call: Call, columns: Sequence[pa.Array], dispatcher: Dispatcher) -> pa.Array:
    from blendfusion.udfs.evaluate.evaluate import evaluate

    try:
        return dispatcher.serve(lambda: evaluate(call, columns, dispatcher))
    except Exception as problem:
        dispatcher.error = problem
        raise


def scalar_function(call: Call, dispatcher: DispatcherSource) -> ScalarUDF:
    """The function of a call. ``volatile``: the optimizer must not compute it, not of constants
    either."""

    types = call.value_types

    def run(*columns: pa.Array) -> pa.Array:
        return _evaluate(call, columns, dispatcher())

    return udf(run, list(types), call.type, "volatile", call.name)
