"""Asks for confirmation before a run that is expected to ask many values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.prompt import Confirm

from blendfusion.errors import NotConfirmed, by_surface

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame


def confirm(frame: BaseFrame, above: int) -> None:
    """Ask on the terminal if a run of ``frame`` is expected to ask more than ``above`` values, or
    an unknown number.

    Raises NotConfirmed for any answer but yes, and if standard input or standard error is not a
    terminal.
    """
    estimates = [part.estimate() for part in _with_options(frame)]
    known = all(estimate.complete for estimate in estimates)
    if not known or sum(estimate.total.values for estimate in estimates) > above:
        demand("\n".join(estimate.lines()[0] for estimate in estimates), above)


def demand(expected: str, above: int) -> None:
    """Show the ``expected`` questions and return after a yes. Raises NotConfirmed otherwise."""
    # A stream is None in a process without a console.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise NotConfirmed(
            f"confirm_above={above} requires a yes before this query, and there is no terminal. "
            f"{expected}",
            hint=f"Raise {by_surface('confirm_above', '--confirm-above')}, or set it to 0 and limit the "
            f"spending: {by_surface('budget=bf.Budget(…)', f'--budget values={above}')}.",
        )
    console = Console(stderr=True)
    console.print(expected, markup=False, highlight=False, soft_wrap=True)
    try:
        agreed = Confirm.ask("Ask the model?", console=console, default=False)
    except EOFError:
        agreed = False
    if not agreed:
        raise NotConfirmed("the query was not confirmed: no value was asked")


def _with_options(frame: BaseFrame) -> Iterator[BaseFrame]:
    """The frames that a run of ``frame`` runs: first those that its calls take options, examples
    and samples from."""
    known, engine = frame.engine.calls, frame.engine
    tasks = dict.fromkeys(call.task for call in frame.prepared.calls)
    found = {k: inner for task in tasks for k, inner in known.subqueries(engine, task).items()}
    for inner in found.values():
        yield from _with_options(inner)
    if frame.prepared.calls:
        yield frame
