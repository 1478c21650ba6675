"""Drafts a query for a question: candidates, checks, repair, and the choice by agreement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot import exp

from blendfusion.budget import Budget
from blendfusion.datafusion.error_translation import functions_in
from blendfusion.errors import (
    BlendFusionError,
    BudgetExceeded,
    ModelError,
    QueryError,
    by_surface,
    connect_with,
)
from blendfusion.redaction import Redaction
from blendfusion.run.observe.progress import count_noun, progress
from blendfusion.run.reports.estimate import Estimate
from blendfusion.run.reports.trace import Trace
from blendfusion.services.ask.advice import advice
from blendfusion.services.ask.before import Before
from blendfusion.services.ask.check import (
    FAILS,
    GIVES_ROWS,
    NULLS,
    UNJOINED,
    Attempt,
    CheckedAttempt,
    check,
)
from blendfusion.services.ask.dialect_slips import in_our_words, is_slip
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.doubt_rules import Rule, doubts
from blendfusion.services.ask.doubtful_joins import cross_join
from blendfusion.services.ask.doubtful_spellings import as_stored
from blendfusion.services.ask.grammar.lark import grammar_of
from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.listed_values import find_list_item
from blendfusion.services.ask.literals import shown_query
from blendfusion.services.ask.named_values import omitted_value, unnamed_value
from blendfusion.services.ask.prompt import drafting, has_free_text, values_of
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.rules import by_rule
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.search_summary import summarize_search
from blendfusion.services.ask.shown_tables import TableChoice, VisibleCatalog
from blendfusion.services.ask.similar_questions import similar
from blendfusion.services.ask.where import parse
from blendfusion.types import Constraint, Usage
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.ask.state import AskState

_OWN = Redaction("on")
"""How a person's own words are shown: as they are."""
_SMALL = 1_000_000_000
"""Models with fewer weights write few right queries: benchmarks/lab.md, Questions to queries."""
_MOST_RULES = 4
"""Applications of rules to one draft; each may lead to the next problem."""
_QUERY_PATTERN = r"(SELECT|WITH)[ \n(][^;`]+;?"
"""A free draft: a model in this process writes a query and nothing beside it."""
_FENCED = re.compile(r"```\w*\s(.*?)```", re.DOTALL)
_QUERY = re.compile(r"^\s*(SELECT|WITH)\b.*", re.DOTALL | re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A query for a question. Nothing of it has run on a model, except the drafting itself.

    ``print`` shows the query and its ``notes``, with literals, aliases and comments as the option
    ``show_values`` says: the model that wrote them has seen values. ``sql`` has them unchanged."""

    question: str
    sql: str
    frame: Frame
    """The query's frame: read-only, within the budget of the call."""
    tried: tuple[Attempt, ...]
    """All drafts in order, the chosen one among them, with the problems of the others."""
    agreement: str
    """How many candidates give the same rows, in words; '' for one candidate."""
    usage: Usage
    """The spending of the drafting."""
    estimate: Estimate
    """The expected requests and cost of a run when the query was checked: see ``Frame.estimate``.
    """
    template: str = ""
    """The accepted question that this one repeats with other literals; '' for a query that was
    drafted."""
    caution: str = ""
    """A sentence that warns of the query if its model is too small to write queries; else ''."""
    stopped: str = ""
    """The budget or the error of the model that ended the drafting early, in words; '' if none did.
    """
    names: frozenset[str] = frozenset()
    """The names of the question's tables, of their columns and of functions, in lower case: a
    display that withholds values shows no others."""
    left_out: str = ""
    """A sentence on the tables and columns that did not fit the model's window; '' if all did."""

    @property
    def searched(self) -> str:
        """One sentence, made of the plan, that states what is searched and asked. After ``run`` it
        has the counts of the run."""
        return summarize_search(self.frame, self.sql, self.estimate, self._show)

    def run(self) -> pa.Table:
        """The rows of the query. Asks the model what ``estimate`` expects. Raises QueryError for a
        query that joins every row of a table with every row of another: see ``may_run``."""
        if not self.may_run:
            raise QueryError(
                f"the query is not run: {self.problem.rstrip('.')}",
                hint="draft.frame.to_arrow_table() runs it all the same.",
            )
        return self.frame.to_arrow_table()

    def accept(self) -> None:
        """Keep the pair of question and query for this session. A question that differs in the
        literals only then gets the same query with its own literals, and is not drafted; the draft
        of another question sees the three most similar pairs as examples."""
        cast("AskState", self.frame.session).templates.accept(self.question, self.sql)

    @property
    def problem(self) -> str:
        """The problem of the query although it plans, as far as checks see it and no repair
        mended it: no rows, a column without a value, a value of the question left out, a run beyond
        the budget. '' if nothing is."""
        found = self._attempt
        if found is None or not found.problem:
            return ""
        return found.problem_shown(self._show, self._redaction)

    @property
    def may_run(self) -> bool:
        """Whether a run ends: False for a query that joins every row of a table with every row of
        another."""
        return self._attempt is None or self._attempt.rank != UNJOINED

    @property
    def _attempt(self) -> Attempt | None:
        return next((attempt for attempt in self.tried if attempt.sql == self.sql), None)

    @property
    def doubts(self) -> list[str]:
        """The lines to read before the query is run: its problem, further doubts, what ended the
        drafting early, and the caution."""
        problem = f"Problem: {self.problem}" if self.problem else ""
        return [line for line in (problem, *self._notes, self.stopped, self.caution) if line]

    @property
    def _notes(self) -> list[str]:
        attempt = self._attempt
        if attempt is None:
            return []
        shown = (attempt.text_shown(n, self._show, self._redaction) for n in attempt.notes)
        return [f"Note: {note}" for note in shown]

    @property
    def notes(self) -> str:
        """The doubts, the tables and predicates searched, the expected cost, the agreement, and the
        failed drafts."""
        lines = [*self.doubts, self.searched, *self.estimate.lines()]
        if self.left_out:
            lines.append(self.left_out)
        if self.agreement:
            lines.append(self.agreement)
        if self.template:
            lines.append(f"The query of the accepted question {_OWN.quote(self.template)}.")
        failed = [attempt for attempt in self.tried if attempt.sql != self.sql]
        if failed:
            lines += [
                "",
                "Tried before:",
                *_lines(failed, self._redaction, self.names, self.question),
            ]
        return "\n".join(lines)

    @property
    def _redaction(self) -> Redaction:
        return self.frame.session.options.redaction

    def _show(self, sql: str) -> str:
        return shown_query(sql, self._redaction, self.names, self.question)

    def __str__(self) -> str:
        return f"{self._show(self.sql)}\n\n{self.notes}"

    __repr__ = __str__


def draft(
    session: AskState,
    question: str,
    tables: Sequence[str] | None = None,
    *,
    candidates: int = 1,
    rounds: int = 2,
    budget: Budget | None = None,
    before: Before | None = None,
) -> Draft:
    """A query that answers ``question`` from ``tables``: see ``Session.ask``. ``before``: what came
    before it in a conversation."""
    if not question.strip():
        raise QueryError("the question is empty")
    if candidates < 1 or rounds < 0:
        raise QueryError("ask: candidates is at least 1, and rounds at least 0")
    writer = _Writer(session, question, tables, budget, before)
    known = writer.from_template() if before is None else None
    if known is not None:
        return known
    tried: list[CheckedAttempt] = []
    stopped: BudgetExceeded | ModelError | None = None
    try:
        _write(writer, tried, candidates, rounds)
    except (BudgetExceeded, ModelError) as error:
        stopped = error
        if all(checked.frame is None for checked in tried):
            raise
    best = _best(tried)
    if best.frame is None:
        redaction = session.options.redaction
        failed = [checked.attempt for checked in tried]
        drafts = "\n".join(_lines(failed, redaction, writer.names, question))
        raise QueryError(
            f"no query was found for the question {_OWN.quote(question)}; tried:\n{drafts}",
            hint=f"{by_surface('Name the tables that it is about (tables=[…])', 'Open only the tables that it is about')}"
            f", ask in other words, or use a larger model: {connect_with('openai:NAME@URL')}.",
        )
    attempts = tuple(dict.fromkeys(checked.attempt for checked in tried))
    agreement = _agreement(best, tried) if candidates > 1 and len(tried) > 1 else ""
    return Draft(
        question,
        best.attempt.sql,
        best.frame,
        attempts,
        agreement,
        writer.trace.usage,
        best.estimate,
        caution=writer.caution,
        stopped=""
        if stopped is None
        else _stop_reason(stopped, len(tried), session.options.redaction),
        names=writer.names,
        left_out=writer.left_out,
    )


def _write(writer: _Writer, tried: list[CheckedAttempt], candidates: int, rounds: int) -> None:
    """Add the candidates to ``tried``, and repairs of the best until one has no problem."""
    for variant in range(candidates):
        tried += writer.with_rules(writer.draft(variant))
    for _ in range(rounds):
        best = _best(tried)
        if best.attempt.rank == GIVES_ROWS:
            break
        latest = [c.attempt for c in tried if c.attempt.rank == best.attempt.rank][-1]
        repaired = writer.continue_draft(latest) or writer.repair(latest)
        if repaired.attempt in [checked.attempt for checked in tried]:
            break  # the model keeps to it
        tried += writer.with_rules(repaired)


def _stop_reason(error: BudgetExceeded | ModelError, drafts: int, redaction: Redaction) -> str:
    """Why no more drafts follow, and what to do with the best one."""
    best = f"this is the best of {count_noun(drafts, 'draft')}. Run it as it is, or ask again with"
    if isinstance(error, BudgetExceeded):
        limit = f"{error.limit}={error.allowed:g}"
        return f"The budget ended the drafting ({limit}): {best} a larger one."
    reason = redaction.reason(error.message.rstrip("."))
    return f"The model failed in the drafting ({reason}): {best} one that answers."


def _lines(
    failed: Sequence[Attempt], redaction: Redaction, names: Collection[str], question: str
) -> list[str]:
    """Drafts that failed, with their problems. If values are hidden, without the problems, and with
    no words but those of SQL, ``names`` and ``question``: a draft may hold values."""
    if not redaction.shows:
        drafts = [shown_query(attempt.sql, redaction, names, question) for attempt in failed]
        return [*dict.fromkeys(filter(None, drafts)), redaction.remedy]
    if redaction.shows_all:
        return list(map(str, failed))
    return list(dict.fromkeys(redaction.pass_on(str(attempt)) for attempt in failed))


class _Writer:
    """Asks the session's model for queries about one question."""

    def __init__(
        self,
        session: AskState,
        question: str,
        tables: Sequence[str] | None,
        budget: Budget | None,
        before: Before | None,
    ) -> None:
        self._session = session
        self._before = before
        self._question = question
        self._budget = budget
        self._catalog = read_catalog(session, tables)
        self._tables = [table.name for table in self._catalog.tables]
        self.names = _names(session, self._catalog)
        if before is not None:
            known = (*self._catalog.tables, before.table())
            self._catalog = replace(self._catalog, tables=known)
        self._index = ValueIndex(self._catalog)
        self._links = self._index.links(question)
        accepted = session.templates.pairs
        self._examples = similar(question, accepted, self._tables) if before is None else ()
        self._continued = False
        self.trace = Trace(redaction=session.options.redaction)
        self._dispatcher = session.runs.dispatcher(self.trace, budget)
        self._choice = TableChoice(self._catalog, self._dispatcher.model.info.window)

    def from_template(self) -> Draft | None:
        """The query of an accepted question that differs in literals only. A model is asked for
        literals that the question does not state clearly, and for nothing else."""
        filled = self._session.templates.fill(self._question, self._catalog)
        if filled is None:
            return None
        if filled.sql is not None:
            checked = self._check(filled.sql)
        else:
            checked = self._draft_and_check(
                Constraint("regex", pattern=filled.pattern), None, None, 0
            )
            if not filled.holds(checked.attempt.sql):
                return None  # the question names a value that is not stored
        if checked.frame is None:
            return None
        return Draft(
            self._question,
            checked.attempt.sql,
            checked.frame,
            (checked.attempt,),
            "",
            self.trace.usage,
            checked.estimate,
            filled.template.question,
            names=self.names,
        )

    @property
    def caution(self) -> str:
        """A warning of queries by a model of few weights; '' for one of enough weights, or of
        unknown size."""
        able = self._dispatcher.model.abilities
        if not 0 < able.parameters < _SMALL:
            return ""
        millions = round(able.parameters / 1e6)
        return (
            f"Read the query before you rely on it: {able.name} has {millions:,} million weights, and "
            "models of that size write few right queries (SmolLM2-135M: 0 of 31). Name a larger one: "
            "bf.connect('openai:NAME@URL'), --model openai:NAME@URL."
        )

    def draft(self, variant: int) -> CheckedAttempt:
        """A free draft; each variant is asked in another way."""
        return self._draft_and_check(self._any_query, None, None, variant)

    def with_rules(self, checked: CheckedAttempt) -> list[CheckedAttempt]:
        """The draft, and behind one that does not plan, or has a literal in another letter case
        than the stored value, what rules make of it if that plans."""
        mended = self._in_our_words(checked) if is_slip(checked.attempt) else checked
        for _ in range(_MOST_RULES):
            if mended.attempt.rank == FAILS:
                sql = by_rule(mended.attempt, self._catalog, self._count)
            else:
                sql = as_stored(mended.attempt.sql, self._catalog)
            if sql is None:
                break
            mended = self._with_doubt(self._check(sql))
        return [checked] if mended.attempt.rank == FAILS or mended is checked else [checked, mended]

    def _in_our_words(self, failed: CheckedAttempt) -> CheckedAttempt:
        """The first translation of a draft in another system's SQL that plans; else the draft."""
        for sql in in_our_words(self._session, failed.attempt.sql, self.names):
            found = self._with_doubt(self._check(sql))
            if found.attempt.rank != FAILS:
                return found
        return failed

    @property
    def _follows_grammars(self) -> bool:
        return self._dispatcher.model.abilities.follows_grammars

    @property
    def _any_query(self) -> Constraint:
        """The constraint of a draft that may be any query. A server may not know patterns, and
        would be asked for each form of one."""
        in_process = self._follows_grammars and not self._dispatcher.model.abilities.call_per_value
        return Constraint("regex", pattern=_QUERY_PATTERN) if in_process else Constraint()

    def _count(self, sql: str) -> object:
        counted = f"SELECT count(*) AS n FROM ({sql}) AS counted"
        return self._check(counted).rows

    def _check(self, sql: str) -> CheckedAttempt:
        case = self._case(sql)
        found = cross_join(case) if case is not None else None
        return check(self._session, sql, self._tables, self._budget, found)

    def _case(self, sql: str) -> Case | None:
        tree = parse(sql)
        if tree is None:
            return None
        return Case(self._question, tree, self._catalog, self._has_rows, tuple(self._links))

    def _has_rows(self, sql: str) -> bool | None:
        try:
            frame = self._session.sql(sql, read_only=True)
            return None if frame.prepared.calls else bool(frame.limit(1).to_arrow_table().num_rows)
        except BlendFusionError:
            return None

    def continue_draft(self, failed: Attempt) -> CheckedAttempt | None:
        """The longest beginning of a draft that does not plan, written on under the grammar of the
        catalogue; None if the model follows no grammar, or this was done before."""
        if failed.rank != FAILS or self._continued or not self._follows_grammars:
            return None
        self._continued = True
        grammar = self._grammar(failed.sql)
        return self._draft_and_check(Constraint(grammar=grammar, begun=failed.sql), None, None, 0)

    def _grammar(self, failed: str, problem: str | None = None) -> str:
        """The grammar of the tables that the model sees. Functions are in it only if a column has
        free text or the failed draft calls one: a small model puts them on any column."""
        catalog = self._visible(problem).catalog
        offers = functions_in(failed) or has_free_text(catalog)
        return grammar_of(catalog, known_ingredients().values() if offers else (), self._question)

    def _visible(self, problem: str | None = None) -> VisibleCatalog:
        text = f"{self._question} {problem or ''}"
        if self._before is None:
            return self._choice.visible(text, self._links)
        kept = self._before.tables(self._tables)
        return self._choice.visible(text, self._links, kept, self._before.pairs[-1][1])

    @property
    def left_out(self) -> str:
        """A sentence on the tables and columns that the model did not see; '' if it saw all."""
        return self._visible().left_out

    def repair(self, failed: Attempt) -> CheckedAttempt:
        """A draft that sees a failed one and its problem; under the grammar if the model follows
        one."""
        facts = advice(failed, self._catalog, self._index)
        notes = failed.notes if failed.rank == NULLS else ()
        problem = " ".join(filter(None, (f"{failed.problem}.", failed.hint, *notes, *facts)))
        constraint = (
            Constraint(grammar=self._grammar(failed.sql, problem))
            if self._follows_grammars
            else Constraint()
        )
        return self._draft_and_check(constraint, failed.sql, problem, 0)

    def _draft_and_check(
        self, constraint: Constraint, query: str | None, problem: str | None, variant: int
    ) -> CheckedAttempt:
        catalog = self._visible(problem).catalog
        values = values_of(catalog, self._links, self._question, query, problem, self._examples)
        task = drafting(constraint, variant)
        if self._before is not None:
            task, values = self._before.with_history(task, values)
        with progress(self._session.options.progress) as line:
            line.name("drafting a query" if query is None else "repairing the query")
            answer = self._dispatcher.ask(task, [values])[0]
        if answer.text is None:
            reason = self._session.options.redaction.reason(answer.error or "no answer")
            return CheckedAttempt(Attempt("", f"the model gave no query: {reason}", "", FAILS))
        sql = query_in(answer.text)
        if self._before is not None:
            sql = self._before.standing_alone(sql)
        return self._with_doubt(self._check(sql))

    def _with_doubt(self, checked: CheckedAttempt) -> CheckedAttempt:
        """The draft with a problem that its rows do not show: one to repair, and else one to read.
        Further doubts are its notes."""
        attempt = checked.attempt
        case = self._case(attempt.sql)
        if attempt.rank != GIVES_ROWS or case is None:
            return checked
        found = [doubt for rule, doubt in self._rules(case) if rule.is_strong]
        strong = [*self._of_values(checked), *found]
        weak = [
            *self._unnamed_values(attempt),
            *(d for r, d in self._rules(case) if not r.is_strong),
        ]
        first, *others = [*strong, *weak] or [("", "")]
        notes = tuple(f"{problem}. {hint}".rstrip() for problem, hint in others)
        text = "\n".join((*first, *notes))
        quotes = _fragments(case.tree, text)
        rank = NULLS if strong else GIVES_ROWS
        problem, hint = first
        made = replace(attempt, problem=problem, hint=hint, rank=rank, quotes=quotes, notes=notes)
        return replace(checked, attempt=made)

    def _rules(self, case: Case) -> list[tuple[Rule, Doubt]]:
        """The doubts of the rules. The queries of a conversation keep earlier predicates, and what
        they have need not be in the last message."""
        alone = self._before is None
        return [(rule, doubt) for rule, doubt in doubts(case) if alone or not rule.is_of_whole]

    def _of_values(self, checked: CheckedAttempt) -> Iterator[Doubt]:
        """The doubts of stored values: the draft leaves out one that the question names, takes an
        item of lists for a whole value, or counts nothing for a literal with another spelling."""
        attempt = checked.attempt
        omitted = omitted_value(self._question, attempt.sql, self._links, self._catalog)
        if omitted is not None:
            problem = f"the query leaves out {sql_string(omitted.value)}, which the question names"
            yield problem, f"It is a value of {omitted.column}."
        if (item := find_list_item(attempt.sql, self._catalog)) is not None:
            yield f"{item.column} has lists, and the query compares whole values", item.fact
        facts = advice(attempt, self._catalog, self._index) if checked.counts_nothing else []
        misspelled = next((fact for fact in facts if "is no value" in fact), None)
        if misspelled is not None:
            yield "the query counts nothing", misspelled

    def _unnamed_values(self, attempt: Attempt) -> Iterator[Doubt]:
        """A comparison with a value that the question does not name."""
        if self._before is not None:
            return
        found = unnamed_value(self._question, attempt.sql, self._index, self._catalog)
        if found is not None:
            column, text = found
            problem = f"the question does not name {sql_string(text)}, with which the query compares {column}"
            yield problem, ""


def _fragments(tree: exp.Expr, text: str) -> tuple[str, ...]:
    """The conditions and calls of a query that a text about it repeats, the longest first."""
    parts = {
        node.sql("postgres") for node in tree.walk() if isinstance(node, exp.Binary | exp.Func)
    }
    return tuple(sorted((part for part in parts if part in text), key=len, reverse=True))


def _names(session: AskState, catalog: Catalog) -> frozenset[str]:
    """The names in a query that no model has made up."""
    tables = (name for table in catalog.tables for name in table.name.split("."))
    columns = (column.name for table in catalog.tables for column in table.columns)
    functions = (*session.udfs(), *session.udafs(), *session.udwfs(), *known_ingredients())
    return frozenset(name.lower() for name in (*tables, *columns, *functions))


def query_in(reply: str) -> str:
    """The query in a reply, without fences, words before it and the semicolon.

    >>> query_in("Here it is:\\n```sql\\nSELECT 1;\\n```")
    'SELECT 1'
    """
    fenced = _FENCED.search(reply)
    text = fenced[1] if fenced else reply
    found = _QUERY.search(text)
    return (found[0] if found else text).strip().rstrip(";").strip()


def _best(tried: Sequence[CheckedAttempt]) -> CheckedAttempt:
    """The draft of the highest rank; among equals the one with the fewest doubts, the one whose
    rows most others give, then the first."""
    votes = Counter(_result(checked) for checked in tried)
    return max(tried, key=lambda c: (c.attempt.rank, -len(c.attempt.notes), votes[_result(c)]))


def _result(checked: CheckedAttempt) -> tuple[str, ...]:
    return checked.rows if checked.rows is not None else (checked.attempt.sql.casefold(),)


def _agreement(best: CheckedAttempt, tried: Sequence[CheckedAttempt]) -> str:
    same = sum(_result(checked) == _result(best) for checked in tried)
    if same < 2:
        return f"No two of {len(tried)} drafts give the same rows: read the query before you rely on it."
    return f"{same} of {len(tried)} drafts give this result."
