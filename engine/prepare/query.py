"""Turns a query in BlendFusion's SQL into a frame: types its calls, and plans it with
DataFusion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, SessionContext, SQLOptions

from blendfusion.budget import Budget
from blendfusion.datafusion.error_gate import outward
from blendfusion.datafusion.error_translation import functions_in, translate_error, unfit
from blendfusion.datafusion.foreign_words import is_planning
from blendfusion.datafusion.interruptible import LONG_QUERY, Pump, lately_interrupted
from blendfusion.datafusion.settings import setting
from blendfusion.datafusion.sort_keys import check_sort_keys
from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import ExecutionError, QueryError
from blendfusion.language.doubts.plan_warnings import warn_of_doubts
from blendfusion.language.query_text.call_sites import find_sites
from blendfusion.language.query_text.column_coercions import (
    OptimizedText,
    least,
    optimize,
    refused_type,
    types_beside_columns,
)
from blendfusion.language.query_text.doubtful_literals import quoted_names
from blendfusion.language.query_text.error_places import (
    named_place,
    owners,
    syntax_place,
    whole_place,
)
from blendfusion.language.query_text.parameters import spelled_parameters, texts_of
from blendfusion.language.query_text.read_only import READING, check_calls, check_plan
from blendfusion.language.query_text.source_map import (
    Translation,
    identity,
    place_in_source,
    within,
)
from blendfusion.language.query_text.statements import (
    creates,
    creates_table,
    first_word,
    selecting_all,
    selects_into,
)
from blendfusion.language.query_text.text_rules import (
    QUERIES,
    SOURCES,
    check,
    rewrite,
    rewrite_after,
)
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import curly_quotes
from blendfusion.prepare.byte_values import Bytes, values_in_bytes
from blendfusion.prepare.caller_tables import (
    Variables,
    advise,
    with_frames,
    without_hidden_names,
)
from blendfusion.prepare.cast_names import with_named_casts
from blendfusion.prepare.function_registry import ingredients
from blendfusion.prepare.information import with_information
from blendfusion.prepare.result_names import name_columns
from blendfusion.run.hooks import Text
from blendfusion.services import offers, parts
from blendfusion.types import Constraint
from blendfusion.udfs.ask.thread_handoff import Serve, directly
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.language.query_text.lateral import Columns
    from blendfusion.language.query_text.typed_query import TypedQuery
    from blendfusion.prepare.frame_sources import FrameSources
    from blendfusion.run.engine import Reading


_ROUNDS = 8
"""How often a query is planned again because a call has got a type."""
_PASSES = "datafusion.optimizer.max_passes"
"""0 while a statement is prepared: DataFusion would optimize it before its parameters have
values."""
_ORDER = re.compile(r"\border\b", re.IGNORECASE)
_UNKNOWN = re.compile(r"unknown (column|table)|^Field .* not found in struct")


@dataclass(frozen=True, slots=True)
class Query:
    """A text in our words, and what ``Session.sql`` was given with it."""

    text: str
    options: SQLOptions | None = None
    param_values: dict[str, Any] | None = None
    named_params: dict[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    source: Translation | None = None
    """How the text came from one in another dialect."""
    respelled: Translation | None = None
    """How it came from one with names in another letter case, or of frames."""
    variables: Variables | None = None
    """The variables of the program whose frames the text may name."""
    tables: Mapping[str, UnnamedTable] = field(default_factory=dict)
    """The tables that stand for frames in the text, by their names."""

    def plan(self, session: FrameSources) -> Frame:
        """The frame of the query. Raises QueryError for one that cannot be planned.

        A query that DataFusion refuses for a name is planned once more with the names that are
        equal but for letter case; one with two columns of one name, with numbers behind the name;
        one with an ordinal in ORDER BY, with the expression.
        """
        selecting = selecting_all(self.text)
        if selecting is not None:
            return self._plan_respelled(session, selecting, self.named_params, self.tables)
        framed = with_frames(self.text, session, self.named_params, self.variables)
        if framed is None:
            return self._in_its_case(session)
        texts = {n: v for n, v in self.named_params.items() if not isinstance(v, DataFrame)}
        return self._plan_respelled(session, framed[0], texts, framed[1])

    def _plan_respelled(
        self,
        session: FrameSources,
        text: Translation,
        named: dict[str, Any],
        tables: Mapping[str, UnnamedTable],
    ) -> Frame:
        """The frame of this query as ``text`` with ``named`` and ``tables``."""
        whole = self.respelled.then(text) if self.respelled else text
        inner = replace(self, text=text.sql, respelled=whole, named_params=named, tables=tables)
        try:
            return inner._in_its_case(session) if tables else inner.plan(session)
        except QueryError as problem:
            hint = problem.hint and problem.hint.map(without_hidden_names)
            problem.reword(without_hidden_names(problem.message), hint)
            raise within(problem, text) from None

    def _in_its_case(self, session: FrameSources) -> Frame:
        try:
            return self._plan_numbered(session)
        except QueryError as problem:
            problem.span = problem.span or named_place(problem.message, self.text)
            advise(problem, self.variables)
            if curly_quotes(self.text):
                hint = (
                    "Text is written in straight quotes, ', and names in \"; this has curly ones."
                )
                problem.reword(problem.message, hint)
            respelled = self._in_any_case(session) if _UNKNOWN.search(problem.message) else None
            if respelled is None:
                problem.span = problem.span or whole_place(self.text)
                raise
            whole = self.respelled.then(respelled) if self.respelled else respelled
            try:
                return replace(self, text=respelled.sql, respelled=whole)._plan_numbered(session)
            except QueryError as second:
                raise within(second, respelled) from None

    def _plan_numbered(self, session: FrameSources) -> Frame:
        try:
            return self._plan(session)
        except QueryError as problem:
            other = rewrite_after(problem.message, self.text)
            if other is None:
                raise
            try:
                return replace(self, text=other.sql)._plan_numbered(session)
            except QueryError:
                raise problem from None

    def _in_any_case(self, session: FrameSources) -> Translation | None:
        """This text with the names that tables and columns have; None if it has no others."""
        wanted = session.options.names_in_any_case
        hidden = {table.rpartition(".")[2]: table for table in self.tables}
        try:
            found = (n.respell_query(session, self.text, hidden) for n in parts("letter_case"))
            return next(found, None) if wanted else None
        except QueryError as problem:
            raise place_in_source(problem, identity(self.text)) from None

    def _plan(self, session: FrameSources) -> Frame:
        check(self.text)
        known = partial(_columns, session, self.options, "")
        warn_of_doubts(quoted_names(self.text, known), session.plans.warnings)
        parameters = spelled_parameters(self.param_values, self.named_params)
        typed: Reading = session.calls.reading(session.engine, self.text, parameters, whole=True)
        ready = typed()
        warn_of_doubts(ready.doubts, session.plans.warnings)
        frame = self._frame(session, ready, parameters)

        def is_planned(in_bytes: Bytes, text: str) -> bool:
            try:
                read = typed
                if text != self.text:
                    read = session.calls.reading(session.engine, text, parameters, whole=True)
                made = self._frame(session, read(in_bytes=in_bytes), parameters, tried=True)
            except QueryError:
                return False
            return not optimize(made).problem

        if not self._runs_at_once:
            in_bytes = values_in_bytes(frame, self.text, ready, is_planned)
            if in_bytes:
                typed = partial(typed, in_bytes=in_bytes)
                ready = typed()
                frame = self._frame(session, ready, parameters)
        types: dict[int, Constraint] = {}
        waiting = {} if self._runs_at_once else ready.beside_columns

        def with_types(more: Mapping[str, Constraint]) -> dict[int, Constraint]:
            return types | {i: found for name, found in more.items() for i in waiting[name]}

        def plan_with(more: Mapping[str, Constraint]) -> tuple[TypedQuery, Frame]:
            calls = typed(types=with_types(more))
            return calls, self._frame(session, calls, parameters)

        def problem_left(more: Mapping[str, Constraint]) -> str:
            try:
                return optimize(plan_with(more)[1]).problem
            except QueryError as error:
                return error.message

        plan = optimize(frame) if waiting else OptimizedText()
        for _ in range(_ROUNDS):
            more = types_beside_columns(plan, waiting) if waiting else {}
            if len(more) > 1 and plan.problem:
                more = least(more, plan.problem, problem_left)
            if not more:
                break
            calls, another = plan_with(more)
            was, plan = plan, optimize(another)
            if plan.problem and not was.problem and refused_type(plan.problem) is None:
                break  # DataFusion drops a column's name with its cast
            types = with_types(more)
            ready, frame, waiting = calls, another, calls.beside_columns
        return name_columns(frame, self._spellings(ready.written))

    @property
    def _runs_at_once(self) -> bool:
        """To plan the statement is to carry it out."""
        return creates(self.text) or selects_into(self.text)

    def _spellings(self, calls: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """The calls with names as the user wrote them."""
        ours = self.respelled
        if ours is None:
            return calls
        tree = TokenTree(ours.sql)
        sites = find_sites(tree, known_ingredients())
        places = [(s.text, ours.origin(*tree.span(s.start, s.call_stop))) for s in sites]
        spelled = {text: " ".join(ours.source[a:b].split()) for text, (a, b) in places}
        return {
            name: tuple(spelled.get(text, text) for text in texts) for name, texts in calls.items()
        }

    def _frame(
        self,
        session: FrameSources,
        ready: TypedQuery,
        parameters: dict[str, str],
        *,
        tried: bool = False,
    ) -> Frame:
        """The frame of a typed text. ``tried``: it may be no query of the user's, who is not warned
        of it."""
        columns = partial(_columns, session, self.options)
        read_only = self.options is READING
        if read_only:
            check_calls(ready.calls)
        text = ready.sql
        for name, relation in offers("relations").items():
            if name in text.lower():
                text = relation()(text, session, parameters, columns, read_only=read_only)
        text = rewrite(text, SOURCES, columns=columns)
        text = with_information(text, session, lambda: ingredients(session))
        given = self.param_values, self.named_params
        text = rewrite(
            text,
            QUERIES,
            columns=partial(_columns, session, self.options, values=given),
            warn=lambda text: None if tried else warn_of_doubts((text,), session.plans.warnings),
        )

        def carry_out(text: str) -> DataFrame:
            with setting(session, _PASSES, "0") if first_word(text) == "PREPARE" else nullcontext():
                return SessionContext.sql(session, text, self.options, given[0], **given[1])

        try:
            with self._creating(session, ready.calls) as carried_out:
                text, planned = carried_out(partial(with_named_casts, session, text, carry_out))
            if _ORDER.search(text) and not creates(text):
                check_sort_keys(planned)
        except Exception as problem:
            redaction = session.options.redaction
            if creates_table(self.text) and _has_run(str(problem)):
                found = unfit(str(problem), functions_in(self.text))
                failed = found or outward(problem, redaction)
                if isinstance(failed, ExecutionError):
                    failed.span = named_place(failed.message, self.text)
                raise failed from problem
            hidden = texts_of(self.param_values, self.named_params)
            error = translate_error(problem, session, self.text, redaction, hidden)
            if isinstance(error, QueryError):
                ours = ready.translation if text == ready.sql else identity("")
                place = named_place(error.message, self.text) or syntax_place(str(problem), ours)
                error.span = error.span or place
                _list_owners(error, self.text, columns)
            raise error from problem
        if self.options is READING:
            check_plan(planned.logical_plan())
        session.views.note(text, self.tables)
        known = self.options, *given, self.tables
        written = self.respelled.source if self.tables and self.respelled else self.text
        origin = Text(text, *known, written, ready.unread, self.source)
        return session.new_frame(planned, origin, self.budget)

    @contextmanager
    def _creating(self, session: FrameSources, calls: Sequence[Call]) -> Iterator[Serve]:
        """Runs a statement inside the block: CREATE TABLE … AS runs while DataFusion plans it, and
        its calls are answered as in any run."""
        if not calls or not creates_table(self.text):
            takes_time = (
                creates_table(self.text) or len(self.text) > LONG_QUERY or selects_into(self.text)
            )
            pump = Pump()
            yield pump.call if takes_time or lately_interrupted() else directly
            return
        from blendfusion.run.reports.confirmation import demand
        from blendfusion.run.reports.trace import Trace

        options = session.options
        trace = Trace(redaction=options.redaction)
        if options.confirm_above:
            known = "How many values CREATE TABLE … AS asks is not known before it runs."
            demand(known, options.confirm_above)
        dispatcher, pump = session.runs.dispatcher(trace, self.budget), Pump()
        try:
            with (
                trace.begin(session.options, self.text, len(calls)),
                session.runs.answering(dispatcher),
            ):
                session.calls.settle(session.engine, calls, dispatcher)
                with dispatcher.served_by(pump.serve):
                    yield pump.call
        except Exception:
            if dispatcher.error is not None:
                raise dispatcher.error from None
            raise
        trace.warn(dispatcher.outages, dispatcher.compared.differences())


def _has_run(problem: str) -> bool:
    """CREATE TABLE … AS ran before DataFusion met ``problem``."""
    return not is_planning(problem) and "duplicate unqualified field name" not in problem


def _list_owners(error: QueryError, text: str, columns: Columns) -> None:
    """Names the relations of a column that is ambiguous."""
    found = re.match(r"column '(.+)' is ambiguous$", error.message)
    if found is None or error.span is None:
        return
    relations = owners(found[1], error.span[0], text, columns)
    if relations:
        either = " or ".join(f"{relation}.{found[1]}" for relation in relations)
        error.reword(f"{error.message}: {' and '.join(relations)} have it", f"Write {either}.")


def _columns(
    session: FrameSources,
    options: SQLOptions | None,
    common: str,
    relation: str,
    *,
    values: tuple[dict[str, Any] | None, dict[str, Any]] = (None, {}),
) -> list[str] | None:
    """The columns of a relation of a query; None if DataFusion cannot tell by itself."""
    try:
        query = f"{common}SELECT * FROM {relation}"
        schema = SessionContext.sql(session, query, options, values[0], **values[1]).schema()
    except Exception:  # whatever is wrong with it shows when the query is planned
        return None
    return list(schema.names)
