"""Registers one typed DataFusion UDF per distinct call, and resolves subquery arguments."""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import ScalarUDF, SessionContext, udf

from blendfusion.errors import QueryError
from blendfusion.language.query_text.nesting_limits import check_bounds
from blendfusion.language.query_text.source_map import identity, within
from blendfusion.language.query_text.stored_calls import ASK, with_stored_calls
from blendfusion.language.query_text.typed_query import TypedQuery
from blendfusion.models.wrappers.cascade import targets_in
from blendfusion.planner.run_switches import COMPARISON_STOP
from blendfusion.services import parts
from blendfusion.types import Constraint, Task
from blendfusion.udfs.ask.media import NAME_OF_BYTES
from blendfusion.udfs.declare.call import BYTES, Call
from blendfusion.udfs.declare.call_registry import calls_in
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.user_functions import known_ingredients, names_a_function

if TYPE_CHECKING:
    from blendfusion.datafusion.context import OwnContext
    from blendfusion.run.engine import Engine, Reading, Subqueries
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher
    from blendfusion.udfs.register.udf import DispatcherSource


def plain_dispatcher(engine: Engine) -> DispatcherSource:
    """The source of answers for calls that DataFusion evaluates itself. DataFusion holds it, where
    Python's garbage collector does not look: it must not hold the session."""
    held = weakref.ref(engine.runs)

    def dispatcher() -> Dispatcher:
        runs = held()
        if runs is None:
            raise QueryError(
                "the session of this plan is gone",
                hint="Keep a reference to it as long as its plans.",
            )
        return runs.plain_dispatcher()

    return dispatcher


def ingredients(tables: OwnContext) -> dict[str, Ingredient]:
    """The ingredients by name; a function that the user registered there goes before them."""
    own = tables.own_names
    return {n: i for n, i in known_ingredients().items() if n not in own}


def _columns(tables: OwnContext, table: str) -> Sequence[str] | None:
    """The columns of a table, given its name as SQL; None if there is no such table."""
    try:
        return list(SessionContext.table(tables, table).schema().names)
    except Exception:  # what is wrong with it shows when the query is planned
        return None


class KnownCalls:
    """The calls that a session has met. Every one is a function of DataFusion's, registered once.

    It does not hold the session, which holds it: dropping a session frees its model at once.
    """

    def __init__(self) -> None:
        self._registered: set[str] = set()
        self.granted: Container[str] | None = None
        """The names of the functions that queries may call; None: all."""
        self._name_of_media: ScalarUDF | None = None
        self._subqueries: dict[tuple[str, object], BaseFrame] = {}

    def reading(
        self,
        engine: Engine,
        query: str,
        parameters: Mapping[str, str] | None = None,
        *,
        whole: bool = False,
    ) -> Reading:
        """Parse ``query`` once. The result is a function from the known types of columns, and the
        columns in bytes, to the query with its calls as functions of DataFusion: see
        ``CallReading.type_calls``. ``whole``: ``query`` is not part of a larger query."""
        check_bounds(query)
        if ASK not in query.lower() and not names_a_function(query):  # most queries
            return lambda types=None, in_bytes=None: TypedQuery(identity(query))
        from blendfusion.language.query_text.type_calls import read_calls

        whole = whole and COMPARISON_STOP not in engine.plans.rules_off
        known = ingredients(engine.tables)
        stored = with_stored_calls(query, engine.texts.questions, known)
        columns = partial(_columns, engine.tables)
        try:
            found = read_calls(stored.sql, known, parameters, whole=whole, columns=columns)
        except QueryError as problem:
            raise within(problem, stored) from None

        def type_calls(
            types: Mapping[int, Constraint] | None = None,
            in_bytes: Mapping[int, tuple[int, ...]] | None = None,
        ) -> TypedQuery:
            try:
                ready = found.type_calls(types, in_bytes)
            except QueryError as problem:
                raise within(problem, stored) from None
            self._know(engine, ready.calls)
            return replace(ready, translation=stored.then(ready.translation))

        return type_calls

    def _know(self, engine: Engine, calls: Sequence[Call]) -> None:
        """Register ``calls``, and read what their arguments name: models, and the frames of their
        subqueries."""
        options = engine.options
        for call in calls:
            self._register(engine, call)
            if call.models:
                engine.models.of(call.model_names(targets_in(options)), options)
            if call.task.subqueries:
                self._subqueries |= _subqueries().frames_of(engine, call.task, {})

    def settle(self, engine: Engine, calls: Iterable[Call], dispatcher: Dispatcher) -> None:
        """Read the options, examples and samples that subqueries give to ``calls``; ``dispatcher``
        answers the calls in these subqueries."""
        for task in (call.task for call in calls):
            if task.subqueries and not dispatcher.is_settled(task):
                frames = self.subqueries(engine, task)
                dispatcher.settle(task, _subqueries().settled_task(task, frames, dispatcher))

    def subqueries(self, engine: Engine, task: Task) -> Subqueries:
        """The frames of the subqueries that give ``task`` its options, examples and sample."""
        if not task.subqueries:
            return {}
        found: Subqueries = _subqueries().frames_of(engine, task, self._subqueries)
        return found

    def know(self, engine: Engine, text: str) -> None:
        """Register the calls whose functions are named in ``text``, a part of a plan."""
        for call in calls_in(text):
            self._register(engine, call)

    def name_of_media(self, engine: Engine) -> ScalarUDF:
        """The function of the names of bytes. As the user's own, it is known wherever parts of
        plans run."""
        if self._name_of_media is None:
            made = udf(engine.runs.media.names, [BYTES], pa.string(), "stable", NAME_OF_BYTES)
            engine.tables.register_udf(made)
            self._name_of_media = made
        return self._name_of_media

    def _register(self, engine: Engine, call: Call) -> None:
        """Make the function that stands for ``call`` known to DataFusion. Raises QueryError for one
        that is not granted."""
        if self.granted is not None and call.ingredient.name not in self.granted:
            raise QueryError(
                f"{call.ingredient.name} is not granted to you",
                hint="Whoever runs the server grants functions.",
            )
        if call.name in self._registered:
            return
        from blendfusion.udfs.register.udf import scalar_function

        function = scalar_function(call, plain_dispatcher(engine))
        SessionContext.register_udf(engine.tables, function)
        if call.in_bytes and call.names_bytes:
            self.name_of_media(engine)
        self._registered.add(call.name)


def _subqueries() -> Any:
    """The module of the service that reads subqueries of calls. Raises QueryError."""
    for module in parts("subqueries"):
        return module
    raise QueryError(
        "options, examples or a sample from a subquery need the service "
        "blendfusion/services/subqueries, which is not installed"
    )
