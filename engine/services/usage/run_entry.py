"""Enters a run in the book of usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.redaction import WITHHELD
from blendfusion.services.usage.book import Amounts, UsageBook, UsageRow
from blendfusion.services.usage.daily_limits import amounts_of

if TYPE_CHECKING:
    from blendfusion.run.reports.trace import Trace


def enter_run(book: UsageBook, user: str, trace: Trace, *, hides: bool, counted: bool) -> None:
    """Add the usage of a run. ``hides``: without the words of its questions; ``counted``: a budget
    over days has its spending already. Raises ExecutionError."""
    ledger = trace.ledger
    rows = []
    for (model, question), used in trace.by_question_and_model.items():
        price = None if ledger is None else ledger.prices.of(model)
        rows.append(
            UsageRow(
                model,
                WITHHELD if hides else question,
                used.values,
                used.cached,
                used.failed,
                used.calls,
                used.prompt_tokens,
                used.completion_tokens,
                used.seconds,
                None if price is None else price.of(used),
            )
        )
    spent = Amounts()
    if ledger is not None and not counted:
        spent = amounts_of(ledger.usage, ledger.cost)
    book.enter(user, rows, spent)
