"""The checks of stored questions: labelled values that a refresh asks before all others.

Labels come one after the other, and are compared with answers for as long as a question lives. So a
share of right answers that must hold is judged by a bet against it. The stake is multiplied by
q / (1 - p) where an answer is wrong, and by (1 - q) / p where it is right; p is that share, and q
a share of wrong answers that is bet on. As long as at least p are right, the stake reaches 100 with
a probability of at most 1/100, however many labels come (Ville's inequality). The mean of several
such bets is one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import AnswerError, QueryError
from blendfusion.language.query_text.stored_calls import StoredCall, stored_names

if TYPE_CHECKING:
    from blendfusion.services.views.registered_tables import RegisteredTables

FALSE_ALARMS = 0.01
"""The most probable share of questions that are as right as they must be, and that ever fail."""
_TIMES = (1.5, 2.0, 3.0, 5.0, 10.0)
"""The shares of wrong answers that are bet on, in shares of those that may be wrong."""


class CheckFailed(AnswerError):
    """The answers to a stored question are not those of its checks."""


def stored_questions(session: RegisteredTables, query: str) -> dict[str, StoredCall]:
    """The stored questions of a query, by name."""
    known = session.texts.questions
    return {name: known[name] for name in stored_names(query) if name in known}


def check_questions(session: RegisteredTables, query: str) -> None:
    """Ask the labelled values of the stored questions of a query. Raises CheckFailed where their
    answers are not right, and QueryError for checks of another form."""
    for name, call in stored_questions(session, query).items():
        if call.checks:
            _check(session, name, call)


def describe(name: str, call: StoredCall) -> str:
    """The question with its version and its owner."""
    owner = f" of {call.owner}" if call.owner else ""
    return f"the stored question {name}, version {call.version}{owner}"


def _check(session: RegisteredTables, name: str, call: StoredCall) -> None:
    rows = session.sql(call.checks, read_only=True).to_arrow_table()
    if rows.num_columns < 2:
        raise QueryError(
            f"the checks of {describe(name, call)} have one column",
            hint="SELECT text, label FROM … gives the values of the call, and then the answer.",
        )
    names = [f"value{n}" for n in range(rows.num_columns - 1)]
    own = session.new_table(
        rows.rename_columns([*names, "label"]).append_column("n", _numbers(rows))
    )
    text = (
        f"SELECT CAST(llm_ask('{name}', {', '.join(names)}) AS VARCHAR) AS answer, "
        f"CAST(label AS VARCHAR) AS label, {', '.join(names)} FROM $rows ORDER BY n"
    )
    first: dict[tuple[object, ...], bool] = {}
    for row in session.sql(text, rows=own).to_pylist():
        key = tuple(row[name] for name in names)
        first.setdefault(key, row["answer"] == row["label"])
    right = [*first.values()]
    if are_too_wrong(right, call.at_least):
        least = "" if call.at_least == 1 else f", less than a share of {call.at_least:g} is right"
        raise CheckFailed(
            f"{describe(name, call)} fails its checks: of {len(right):,} labelled values, "
            f"{right.count(False):,} have another answer than their label{least}",
            hint=f"SELECT *, llm_ask('{name}', …) FROM the labels shows them; correct the wording "
            "as the next version of the question, or the labels.",
        )


def are_too_wrong(right: Sequence[bool], at_least: float) -> bool:
    """Whether answers, in the order of their labels, show that a smaller share than ``at_least`` is
    right.

    >>> are_too_wrong([True] * 99 + [False], 1.0), are_too_wrong([True] * 99 + [False], 0.9)
    (True, False)
    """
    wrong = 1 - at_least
    if at_least in (0, 1):
        return at_least == 1 and not all(right)
    bets = [min(times * wrong, (1 + wrong) / 2) for times in _TIMES]
    stakes = [1 / len(bets)] * len(bets)
    for is_right in right:
        shares = [(1 - q) / at_least if is_right else q / wrong for q in bets]
        stakes = [stake * share for stake, share in zip(stakes, shares, strict=True)]
        if fsum(stakes) >= 1 / FALSE_ALARMS:
            return True
    return False


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.array(range(rows.num_rows), pa.int64())
