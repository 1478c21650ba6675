"""Runs the text of ``Session.sql``: opens files, translates dialects, changes settings, explains
plans and plans queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import DataFrame, SQLOptions

from blendfusion.budget import Budget, checked_budget
from blendfusion.datafusion.foreign_words import without_filters
from blendfusion.errors import ArgumentError, QueryError
from blendfusion.language.query_text.information import as_query, option_shown
from blendfusion.language.query_text.parameters import bound_value, divide_keywords
from blendfusion.language.query_text.read_only import READING, check_text
from blendfusion.language.query_text.select_first import select_first
from blendfusion.language.query_text.source_map import Translation, within
from blendfusion.language.query_text.statements import (
    Explain,
    Setting,
    created_by_into,
    first_word,
    selects_into,
    statement,
    without_into,
)
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import sql_of
from blendfusion.options import declaration
from blendfusion.prepare.caller_tables import Variables
from blendfusion.prepare.queries_in_statements import create_table, with_source
from blendfusion.prepare.query import Query
from blendfusion.prepare.translators import OURS, by_number, dialect_of, translators
from blendfusion.services import offers, parts
from blendfusion.udfs.declare.call_registry import without_digests

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.prepare.frame_sources import FrameSources


_AS_OF = re.compile(r"\bas\s+of\b", re.IGNORECASE)
_SHORT = re.compile(r"\bsummarize\b|\bsample\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SessionText:
    """A text in any dialect (None: by its looks), and how it may run."""

    text: str
    options: SQLOptions | None
    dialect: str | None
    budget: Budget | None
    read_only: bool
    source: Translation | None = None
    """How the text came from one in another dialect."""
    variables: Variables | None = None
    """The variables of the program that wrote the text, whose frames it may name; None: none."""

    def plan(
        self,
        session: FrameSources,
        param_values: dict[str, Any] | Sequence[Any] | None,
        named_params: Mapping[str, object],
    ) -> Frame:
        """The frame of the text. Raises QueryError for one that cannot be planned."""
        if not isinstance(self.text, str):
            raise ArgumentError(
                f"a query is text, not {type(self.text).__name__}",
                hint='For example: session.sql("SELECT * FROM reviews LIMIT 5").',
            )
        text = sql_of(self.text)
        named, bound = divide_keywords({n: session.as_frame(v) for n, v in named_params.items()})
        if not (self.read_only or session.options.read_only):
            session.query_files.open(session, text, session.options.read_files)
        session.update_tables(text)
        dialect = dialect_of(text, self.dialect)
        ordered = None if isinstance(param_values, Mapping) else param_values
        if ordered is not None and dialect != "blendsql":
            param_values, ordered = by_number(ordered), None
        if isinstance(param_values, Mapping):
            bound = {**param_values, **bound}
        by_name = {name: bound_value(value) for name, value in bound.items()}
        if dialect == OURS:
            turned = select_first(text)
            if turned is None:
                return replace(self, text=text)._in_our_words(session, by_name, named)
            source = turned if self.source is None else self.source.then(turned)
            ours = replace(self, text=turned.sql, source=source)
            try:
                return ours._in_our_words(session, by_name, named)
            except QueryError as error:
                raise within(error, turned) from error.__cause__

        def run(ours: Translation, dialect: str) -> Frame:
            inner = replace(self, text=ours.sql, dialect=dialect, source=ours)
            return inner.plan(session, by_name, named)

        return translators().plan(session, text, dialect, run, ordered)

    def _in_our_words(
        self, session: FrameSources, param_values: dict[str, Any] | None, named: dict[str, Any]
    ) -> Frame:
        budget, options = checked_budget(self.budget), self.options
        if _AS_OF.search(self.text):
            for with_versions in parts("versions"):
                text, versions = with_versions(session, self.text)
                self, named = replace(self, text=sql_of(text)), {**named, **versions}
        if _SHORT.search(self.text):
            for spell_out in parts("short_forms"):
                self = replace(self, text=sql_of(spell_out(session, self.text)))
        if self.read_only or session.options.read_only:
            self._check_read_only(session, named)
            options = READING
        else:
            run = _of_services(self.text)
            if run is not None:
                carried_out: Frame = run()(session, self.text)
                return carried_out
            self = replace(self, text=sql_of(_external_table(session, self.text)))
        parsed = statement(self.text)
        if isinstance(parsed, Setting):
            return session.change_option(parsed.name, parsed.value)
        option = option_shown(self.text)
        if option is not None:
            declaration(option)
        query = Query(as_query(self.text), options, param_values, named, budget, self.source)
        if options is not READING:
            query = replace(query, variables=self.variables)
        if not isinstance(parsed, Explain):
            if options is not READING and selects_into(query.text):
                return _created_by_into(session, query)
            frame = _written_elsewhere(session, query) or create_table(session, query)
            frame = frame or with_source(session, query, query.plan(session))
            if options is not READING:
                for external in _external_tables(query.text):
                    external.hide_statistics(session, query.text)
            return frame
        return _explain(session, parsed, query) or query.plan(session)

    def _check_read_only(self, session: FrameSources, named: Mapping[str, object]) -> None:
        if session.reads_paths:
            raise QueryError(
                "read-only: the session's context reads files by their paths",
                hint="Open the session over a context without enable_url_table().",
            )
        inserted = (str(value) for value in named.values() if not isinstance(value, DataFrame))
        check_text(self.text, session.table_functions, inserted)


def _written_elsewhere(session: FrameSources, query: Query) -> Frame | None:
    """The frame of a statement that writes to a table of a service; None for any other."""
    if first_word(query.text) not in ("INSERT", "CREATE", "DROP", "UPDATE", "DELETE"):
        return None
    frames = (module.write_rows(session, query) for module in parts("destinations"))
    found: Frame | None = next((frame for frame in frames if frame is not None), None)
    return found


def _of_services(text: str) -> Callable[[], Any] | None:
    """The function of a service that carries a statement out: that of the most of its first words;
    None for any other statement."""
    offered = offers("statements")
    if first_word(text) not in {name.partition(" ")[0] for name in offered}:
        return None
    words = TokenTree(text).words
    fitting = [name for name in offered if words[: len(name.split())] == name.split()]
    return offered[max(fitting, key=len)] if fitting else None


def _created_by_into(session: FrameSources, query: Query) -> Frame:
    """The frame of SELECT … INTO, carried out as CREATE TABLE … AS."""
    text = created_by_into(query.text)
    created = replace(query, text=text.sql)
    try:
        made = _written_elsewhere(session, created) or create_table(session, created)
        return made or created.plan(session)
    except QueryError as problem:
        raise within(problem, text) from None


def _explain(session: FrameSources, parsed: Explain, query: Query) -> Frame | None:
    """The frame of an EXPLAIN, with the trace of an analysed run; None where DataFusion's own shows
    as much as it should."""
    into = selects_into(parsed.query)
    explained = replace(query, text=without_into(parsed.query) if into else parsed.query)
    inner = with_source(session, explained, explained.plan(session))
    if inner.prepared.calls and parsed.form in ("", "indent"):
        if parsed.analyze and parsed.creates:
            raise QueryError(
                "EXPLAIN ANALYZE of CREATE … AS would create it", hint="EXPLAIN ANALYZE its query."
            )
        text = inner.explain_text(analyze=parsed.analyze, verbose=parsed.verbose)
        frame = session.new_table(pa.table({"plan": text.splitlines()}))
        frame.latest.trace = inner.latest.trace
        return frame
    if first_word(parsed.query) in ("UPDATE", "DELETE") and not inner.prepared.calls:
        if parsed.analyze:
            inner.collect()
        # DataFusion carries the statement out to explain it.
        logical = {"plan_type": ["logical_plan"], "plan": [inner.explain_text()]}
        return session.new_table(pa.table(logical))
    withheld = parsed.analyze and session.options.show_values == "off"
    notes = [] if inner.prepared.calls or parsed.form else session.scan_notes(inner)
    if not withheld and not inner.prepared.calls and not notes:
        return None
    shown = query.plan(session).to_pydict()
    plans = map(without_digests, shown["plan"])
    plan = list(map(without_filters, plans) if withheld else plans)
    if withheld or not notes:
        return session.new_table(pa.table(shown | {"plan": plan}))
    types = [*shown["plan_type"], *["remote_query"] * len(notes)]
    return session.new_table(pa.table({"plan_type": types, "plan": plan + notes}))


def _external_table(session: FrameSources, sql: str) -> str:
    """CREATE EXTERNAL TABLE as a service writes it for DataFusion; any other text as it is."""
    for external in _external_tables(sql):
        return str(external.external_table(session, sql))
    if first_word(sql) != "CREATE" or "EXTERNAL" not in TokenTree(sql).words[:5]:
        return sql
    missing = "needs the service blendfusion/services/external_tables, which is not installed"
    raise QueryError(f"CREATE EXTERNAL TABLE {missing}")


def _external_tables(sql: str) -> list[Any]:
    """The module that reads CREATE EXTERNAL TABLE, for a text that may be one."""
    return parts("external_tables") if "external" in sql.lower() else []
