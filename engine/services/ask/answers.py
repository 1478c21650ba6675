"""Short answers: a number, a date, a list or a span, from a query or else from reading the rows."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
from sqlglot import exp

from blendfusion.budget import Budget
from blendfusion.errors import QueryError, by_surface
from blendfusion.run.observe.progress import count_noun
from blendfusion.run.reports.trace import Trace
from blendfusion.services.ask.draft import Draft, draft
from blendfusion.services.ask.links import words_of
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.where import parse
from blendfusion.types import Constraint, Task, Usage
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.services.ask.state import AskState

Form: TypeAlias = Literal["number", "date", "list", "span"]

_NUMBER = re.compile(
    r"^(how (many|much|old|long|tall|far|often)\b|(what|which) (is|was|are|were) the "
    r"(\w+ )?(number|total|average|sum|percentage|difference|count|mean)\b|count\b)"
)
_DATE = re.compile(r"^(when\b|(on |in )?(what|which) (year|date|day|month)\b)")
_YEAR = re.compile(r"\byear\b")
_LIST = re.compile(
    r"^(list|name|show|give|find|what are|who are|who were|what were)\b"
    r"|^(which|what) (?!(is|was|has|does)\b)(\w+ )?(?!(is|was|has|does)\b)\w+s\b"
)
_DIGITS = re.compile(r"-?\d[\d,]*(\.\d+)?")
_CHARACTERS_PER_TOKEN = 3
_RESERVED = 300
"""The tokens of the window for the question and its answer."""
_MOST_ROWS = 2_000
_CONSTRAINTS: dict[Form, Constraint] = {
    "number": Constraint("number"),
    "date": Constraint("date"),
    "list": Constraint("list", item=Constraint()),
    "span": Constraint(),
}
_ONE: dict[Form, str] = {"number": "number", "date": "date", "span": "value"}


@dataclass(frozen=True, slots=True)
class Reply:
    """A short answer in the form that the question asks for."""

    question: str
    text: str
    """The answer; items of a list stand behind each other, with ``; `` between them. '' where there
    is a ``problem``."""
    form: Form
    draft: Draft | None
    """The query that gives it; None if rows were read."""
    source: str
    """One sentence that describes the search, or states that rows were read without a query."""
    usage: Usage
    """The spending on drafts and on reading. The query's own is in ``draft.frame.trace``."""
    problem: str = ""
    """Why the rows of the query hold no answer: one value is asked for, and they have several. ''
    where they hold one."""

    def __str__(self) -> str:
        doubts = [] if self.draft is None else self.draft.doubts
        first = f"Problem: {self.problem}." if self.problem else self.text
        return "\n".join((first, "", *doubts, self.source))

    __repr__ = __str__


def form_of(question: str) -> Form:
    """The form of answer that a question in English asks for.

    >>> form_of("How many singers are there?"), form_of("In which year was it?")
    ('number', 'date')
    >>> form_of("Which singers are French?"), form_of("Who sings best?")
    ('list', 'span')
    """
    words = " ".join(question.lower().split())
    for form, pattern in (("number", _NUMBER), ("date", _DATE), ("list", _LIST)):
        if pattern.search(words):
            return form  # type: ignore[return-value]
    return "span"


def answer(
    session: AskState,
    question: str,
    tables: Sequence[str] | None = None,
    *,
    candidates: int = 1,
    rounds: int = 2,
    budget: Budget | None = None,
) -> Reply:
    """A short answer to ``question``: see ``Session.answer``."""
    form = form_of(question)
    begun, spent = session.ledger.usage, Usage()
    try:
        made = draft(session, question, tables, candidates=candidates, rounds=rounds, budget=budget)
    except QueryError as problem:
        if not question.strip() or candidates < 1 or rounds < 0:
            raise
        why = problem.message.partition(";")[0]
    else:
        spent = made.usage
        if not made.may_run:
            return Reply(question, "", form, made, made.searched, spent, made.problem.rstrip("."))
        frame = made.frame.with_budget(_rest_of(budget, begun, session.ledger.usage))
        rows = frame.to_arrow_table()
        if unclear := several(question, form, rows, made.sql):
            return Reply(question, "", form, made, made.searched, spent, unclear)
        text = short(question, form, rows)
        if text:
            return Reply(question, text, form, made, made.searched, spent)
        why = "the query gives no answer"
    left = _rest_of(budget, begun, session.ledger.usage)
    return read_rows(session, question, form, tables, budget=left, spent=spent, why=why)


def _rest_of(budget: Budget | None, begun: Usage, now: Usage) -> Budget | None:
    """The rest of a budget for all parts of an answer; its limit of cost holds for each part."""
    if budget is None:
        return None
    parts = {name: limit for name, limit in budget.limits() if name != "cost"}
    rest = {n: max(0, m - getattr(now, n) + getattr(begun, n)) for n, m in parts.items()}
    return replace(budget, **rest)


def several(question: str, form: Form, rows: pa.Table, sql: str) -> str:
    """The problem of rows with several values where the question asks for one: no row is the
    answer. '' if there is none. Rows without an aggregate may be what a question of how many
    counts."""
    if form == "list" or not rows.num_columns:
        return ""
    cells = {_text(value) for value in rows.column(0).to_pylist() if value is not None}
    numbers = [name for name in rows.column_names if _has_numbers(rows.column(name))]
    one = f"the question asks for one {_ONE[form]}"
    if rows.num_rows == 1 and form == "number" and len(numbers) > 1:
        return f"{one}, and the query gives {len(numbers)}"
    if len(cells) < 2 or (form == "number" and _counts_rows(question) and not _aggregates(sql)):
        return ""
    return f"{one}, and the query gives {count_noun(rows.num_rows, 'row')}: see draft.run()"


def _counts_rows(question: str) -> bool:
    return question.lower().lstrip().startswith("how many")


def _has_numbers(values: pa.ChunkedArray) -> bool:
    return any(_is_number(value) for value in values.slice(0, 1).to_pylist())


def _aggregates(sql: str) -> bool:
    tree = parse(sql)
    return tree is None or tree.find(exp.AggFunc) is not None


def short(question: str, form: Form, rows: pa.Table) -> str:
    """The short answer to ``question`` in the rows of a query, in the given form; '' if they have
    none."""
    cells = (
        [value for value in rows.column(0).to_pylist() if value is not None]
        if rows.num_columns
        else []
    )
    if not cells:
        return ""
    if form == "list":
        return "; ".join(dict.fromkeys(map(_text, cells)))
    first = cells[0]
    if form == "number":
        numbers = [v for v in rows.slice(0, 1).to_pylist()[0].values() if _is_number(v)]
        if rows.num_rows == 1 and numbers:
            return _text(numbers[0])
        counts = _counts_rows(question) and rows.num_rows > 1
        found = _DIGITS.search(_text(first))
        return (
            str(rows.num_rows) if counts else found[0].replace(",", "") if found else _text(first)
        )
    if form == "date" and isinstance(first, datetime.date) and _YEAR.search(question.lower()):
        return str(first.year)
    return _text(first)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(" ")
    return " ".join(str(value).split())


def read_rows(
    session: AskState,
    question: str,
    form: Form,
    tables: Sequence[str] | None = None,
    *,
    budget: Budget | None = None,
    spent: Usage | None = None,
    why: str = "none was wanted",
) -> Reply:
    """Ask the model about the rows themselves: as many as its window holds, those with most words
    of the question first."""
    names = [table.name for table in read_catalog(session, tables).tables]
    trace = Trace(redaction=session.options.redaction)
    dispatcher = session.runs.dispatcher(trace, budget)
    rows = [row for name in names for row in _rows(session, name)]
    mentioned = set(words_of(question))
    ranked = sorted(rows, key=lambda row: -len(mentioned & set(words_of(row))))
    room = max(0, dispatcher.model.info.window - _RESERVED) * _CHARACTERS_PER_TOKEN
    kept: list[str] = []
    for row in ranked:
        room -= len(row) + 3
        if room < 0:
            break
        kept.append(row)
    if not kept:
        raise QueryError(
            f"{why}, and there are no rows to read",
            hint=by_surface("Name the tables: tables=[…].", "Open tables with --table."),
        )
    task = Task("ask", question, _CONSTRAINTS[form], ("row",), aggregate=True)
    found = dispatcher.ask(task, [tuple(kept)])[0]
    if found.text is None:
        raise QueryError(f"{why}, and reading the rows gave no answer: {found.error}")
    source = (
        f"Read {len(kept):,} of {count_noun(len(rows), 'row')} of {', '.join(names)} end to end, without a query: "
        f"{why}."
    )
    return Reply(
        question, _plain(found.text, form), form, None, source, (spent or Usage()) + trace.usage
    )


def _plain(text: str, form: Form) -> str:
    if form != "list":
        return text
    items = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    return "; ".join(dict.fromkeys(items)) or text


def _rows(session: AskState, name: str) -> list[str]:
    frame = session.table(name if "." in name else quoted_name(name))
    if frame.prepared.calls:
        return []
    found = frame.limit(_MOST_ROWS).to_arrow_table().to_pylist()
    return ["; ".join(f"{k}: {_text(v)}" for k, v in row.items() if v is not None) for row in found]
