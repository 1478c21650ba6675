"""Drafts a query for a question: candidates, checks, repair, and the choice by agreement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.budget import Budget
from blendfusion.errors import QueryError
from blendfusion.estimates.estimate import Estimate
from blendfusion.redaction import Redaction
from blendfusion.reports.trace import Trace
from blendfusion.text_to_sql.advice import advice
from blendfusion.text_to_sql.catalog import read_catalog
from blendfusion.text_to_sql.check import FAILS, GIVES_ROWS, Attempt, Checked, check
from blendfusion.text_to_sql.links import ValueIndex
from blendfusion.text_to_sql.literals import shown
from blendfusion.text_to_sql.names import pattern_of
from blendfusion.text_to_sql.prompt import drafting, values_of
from blendfusion.text_to_sql.searched import searched
from blendfusion.types import Usage
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.session import Session

_FENCED = re.compile(r"```\w*\s(.*?)```", re.DOTALL)
_QUERY = re.compile(r"^\s*(SELECT|WITH)\b.*", re.DOTALL | re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A query for a question. Nothing of it has run on a model, except the drafting itself.

    ``print`` shows the query and its ``notes``, with literals as the option ``show_values`` says.
    ``sql`` has the literals."""

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

    @property
    def searched(self) -> str:
        """One sentence, made of the plan, that states what is searched and asked. After ``run`` it
        has the counts of the run."""
        return shown(searched(self.frame, self.sql, self.estimate), self._redaction)

    def run(self) -> pa.Table:
        """The rows of the query. Asks the model what ``estimate`` expects."""
        return self.frame.to_arrow_table()

    @property
    def notes(self) -> str:
        """The tables and predicates searched, the expected cost, the agreement, and the failed
        drafts."""
        lines = [self.searched, *self.estimate.lines()]
        if self.agreement:
            lines.append(self.agreement)
        failed = [attempt for attempt in self.tried if attempt.sql != self.sql]
        if failed:
            lines += ["", "Tried before:", *_lines(failed, self._redaction)]
        return "\n".join(lines)

    @property
    def _redaction(self) -> Redaction:
        return self.frame.session.options.redaction

    def __str__(self) -> str:
        return f"{shown(self.sql, self._redaction)}\n\n{self.notes}"

    __repr__ = __str__


def draft(
    session: Session,
    question: str,
    tables: Sequence[str] | None = None,
    *,
    candidates: int = 1,
    rounds: int = 2,
    budget: Budget | None = None,
) -> Draft:
    """A query that answers ``question`` from ``tables``: see ``Session.ask``."""
    if not question.strip():
        raise QueryError("the question is empty")
    if candidates < 1 or rounds < 0:
        raise QueryError("ask: candidates is at least 1, and rounds at least 0")
    writer = _Writer(session, question, tables, budget)
    tried = [writer.draft(variant) for variant in range(candidates)]
    best = _best(tried)
    for _ in range(rounds):
        if best.attempt.rank == GIVES_ROWS:
            break
        latest = [c.attempt for c in tried if c.attempt.rank == best.attempt.rank][-1]
        repaired = writer.repaired(latest)
        if repaired.attempt in [checked.attempt for checked in tried]:
            break  # the model keeps to it
        tried.append(repaired)
        best = _best(tried)
    if best.frame is None:
        redaction = session.options.redaction
        drafts = "\n".join(_lines([checked.attempt for checked in tried], redaction))
        raise QueryError(
            f"no query was found for the question {redaction.quoted(question)}; tried:\n{drafts}",
            hint="Name the tables that it is about (tables=[…]), ask in other words, or use a larger model.",
        )
    attempts = tuple(dict.fromkeys(checked.attempt for checked in tried))
    agreement = _agreement(best, tried) if candidates > 1 else ""
    usage = writer.trace.usage
    return Draft(question, best.attempt.sql, best.frame, attempts, agreement, usage, best.estimate)


def _lines(failed: Sequence[Attempt], redaction: Redaction) -> list[str]:
    """Drafts that failed, with their problems; nothing of them if values are hidden, as where a
    literal of a wrong query ends is not certain."""
    if redaction.shows_all:
        return list(map(str, failed))
    return list(dict.fromkeys(redaction.passed(str(attempt)) for attempt in failed))


class _Writer:
    """Asks the session's model for queries about one question."""

    def __init__(
        self,
        session: Session,
        question: str,
        tables: Sequence[str] | None,
        budget: Budget | None,
    ) -> None:
        self._session = session
        self._question = question
        self._budget = budget
        self._catalog = read_catalog(session, tables)
        self._index = ValueIndex(self._catalog)
        self._links = self._index.links(question)
        self.trace = Trace(redaction=session.options.redaction)
        self._asker = session.asker(self.trace, budget)

    def draft(self, variant: int) -> Checked:
        """A free draft; each variant is asked in another way."""
        return self._checked(None, None, None, variant)

    def repaired(self, failed: Attempt) -> Checked:
        """A draft that sees a failed one and its problem. A local model writes known names only."""
        pattern = None
        if self._asker.model.abilities.scores_options:
            pattern = pattern_of(self._catalog, known_ingredients().values())
        facts = advice(failed, self._catalog, self._index)
        problem = " ".join(filter(None, (f"{failed.problem}.", failed.hint, *facts)))
        return self._checked(pattern, failed.sql, problem, 0)

    def _checked(
        self, pattern: str | None, query: str | None, problem: str | None, variant: int
    ) -> Checked:
        window = self._asker.model.info.window
        values = values_of(self._catalog, self._links, self._question, window, query, problem)
        answer = self._asker.ask(drafting(pattern, variant), [values])[0]
        if answer.text is None:
            reason = self._session.options.redaction.reason(answer.error or "no answer")
            return Checked(Attempt("", f"the model gave no query: {reason}", "", FAILS))
        names = [table.name for table in self._catalog.tables]
        return check(self._session, query_in(answer.text), names, self._budget)


def query_in(reply: str) -> str:
    """The query in a reply, without fences, words before it and the semicolon.

    >>> query_in("Here it is:\\n```sql\\nSELECT 1;\\n```")
    'SELECT 1'
    """
    fenced = _FENCED.search(reply)
    text = fenced[1] if fenced else reply
    found = _QUERY.search(text)
    return (found[0] if found else text).strip().rstrip(";").strip()


def _best(tried: Sequence[Checked]) -> Checked:
    """The draft of the highest rank; among equals the one whose rows most others give, then the
    first."""
    votes = Counter(_result(checked) for checked in tried)
    return max(tried, key=lambda c: (c.attempt.rank, votes[_result(c)]))


def _result(checked: Checked) -> tuple[str, ...]:
    return checked.rows if checked.rows is not None else (checked.attempt.sql.casefold(),)


def _agreement(best: Checked, tried: Sequence[Checked]) -> str:
    same = sum(_result(checked) == _result(best) for checked in tried)
    return f"{same} of {len(tried)} drafts give this result."
