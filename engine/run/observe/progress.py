"""Progress lines of long runs, and a summary of their spending."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from blendfusion.budget import money
from blendfusion.options import Progress
from blendfusion.redaction import in_notebook
from blendfusion.types import Usage

_PATIENCE_SECONDS = 1.0
"""Minimum duration of work that shows a line."""
_REFRESH_SECONDS = 0.1
_TICK_SECONDS = 1.0
"""Interval of redrawing without news."""
_BAR_WIDTH = 24


class Reporter:
    """A reporter that shows nothing. All reporters are context managers; ``update`` may come from
    any thread."""

    shows = False
    """Whether the reporter shows anything."""

    def __enter__(self) -> Reporter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the line, before the work ends."""

    def pause(self) -> None:
        """Remove the line until the next news: something else is written to the screen."""

    def expect(self, seconds: float) -> None:
        """Report how long the work is expected to take in all, before its first answers."""

    def name(self, work: str) -> None:
        """Report work that has no values to count, in words."""

    def update(self, done: int, known: int | None, tokens: int, cached: int) -> None:
        """Report totals: values answered, values needed (None if unknown), tokens evaluated,
        answers from the cache."""


class ProgressLine(Reporter):
    """One line that is redrawn in place and removed when the work ends, however it ends.

    It appears after ``patience_seconds``, even before the first answer. It is drawn at each update,
    and once a second by a thread that ends with the work. ``clock``: a monotonic clock in seconds.
    """

    shows = True

    def __init__(
        self,
        console: Console,
        *,
        patience_seconds: float = _PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._patience_seconds = patience_seconds
        self._clock = clock
        self._live: Live | None = None
        self._started = self._drawn = clock()
        self._totals: tuple[int, int | None, int, int] | None = None
        self._work = ""
        self._first = (0, 0.0)
        self._expected: float | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> ProgressLine:
        self._started = self._drawn = self._clock()
        self._totals, self._first, self._expected = None, (0, 0.0), None
        self._ended.clear()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
        self._ticker.start()
        return self

    def close(self) -> None:
        self._ended.set()
        if self._ticker is not None:
            self._ticker.join()
            self._ticker = None
        with self._lock:
            self.clear()

    def pause(self) -> None:
        with self._lock:
            self.clear()

    def expect(self, seconds: float) -> None:
        with self._lock:
            self._expected = seconds

    def name(self, work: str) -> None:
        with self._lock:
            self._work = work
            self._draw(_REFRESH_SECONDS)

    def update(self, done: int, known: int | None, tokens: int, cached: int) -> None:
        with self._lock:
            self._totals = done, known, tokens, cached
            if done and not self._first[0]:
                self._first = done, self._clock() - self._started
            self._draw(_REFRESH_SECONDS)

    def show(self, line: str) -> None:
        """Draw ``line`` in place of the previous one."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _tick(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            with self._lock:
                self._draw(_TICK_SECONDS)

    def _draw(self, at_most_every: float) -> None:
        now = self._clock()
        seconds = now - self._started
        if seconds < self._patience_seconds or self._ended.is_set():
            return
        if self._totals is None and not self._work:
            return
        if self._drawn > self._started and now - self._drawn < at_most_every:
            return
        self._drawn = now
        if self._totals is None:
            self.show(f"{self._work} · {_duration(seconds)}")
        else:
            self.show(status(*self._totals, seconds, self._first, self._expected))


class NotebookLine(ProgressLine):
    """The line as an output of a notebook's cell, which would show the control characters of a
    terminal. An output cannot be removed, so at the end it shows the number of values and the
    time."""

    _output: Any = None

    def pause(self) -> None:
        """Nothing: other output has a place of its own."""

    def show(self, line: str) -> None:
        shown = _ipython()
        if self._output is None:
            self._output = shown.display(shown.Pretty(line), display_id=True)
        else:
            self._output.update(shown.Pretty(line))

    def clear(self) -> None:
        if self._output is not None:
            seconds = self._clock() - self._started
            done = f"{count_noun(self._totals[0], 'value')} · " if self._totals else ""
            self._output.update(_ipython().Pretty(f"{done}{_duration(seconds)}"))
            self._output = None


def _ipython() -> Any:
    """IPython's display, which has no types."""
    return import_module("IPython.display")


def progress(mode: Progress = "auto", *, console: Console | None = None) -> Reporter:
    """A reporter for ``mode``: "auto" shows a line only on a terminal (standard error) or in a
    notebook.

    ``with progress("auto") as reporter: reporter.update(done=3, known=10, tokens=120, cached=1)``
    """
    if mode == "off":
        return Reporter()
    if console is None and in_notebook():
        return NotebookLine(Console(file=io.StringIO()))
    console = console or Console(file=sys.stderr, force_terminal=True if mode == "on" else None)
    return ProgressLine(console) if mode == "on" or console.is_terminal else Reporter()


def status(
    done: int,
    known: int | None,
    tokens: int,
    cached: int,
    seconds: float,
    first: tuple[int, float] = (0, 0.0),
    expected: float | None = None,
) -> str:
    """The text of the line. ``first``: the answers of the first report, and its second. The time
    left is counted from there, without the time that loading a model took; before, it is the
    ``expected`` time less what has passed.

    >>> status(12, 48, 960, 3, 8.0)
    '██████░░░░░░░░░░░░░░░░░░ 12/48 values · 3 cached · 120 tokens/s · 24 s left'
    >>> status(12, None, 0, 0, 8.0)
    '12 values'
    >>> status(31, 61, 0, 0, 22.0, first=(1, 16.0))
    '████████████░░░░░░░░░░░░ 31/61 values · 6 s left'
    >>> status(0, 61, 0, 0, 2.0, expected=14.0)
    '░░░░░░░░░░░░░░░░░░░░░░░░ 0/61 values · about 12 s left'
    """
    parts = []
    since, taken = done - first[0], seconds - first[1]
    if known:
        filled = _BAR_WIDTH * min(done, known) // known
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        parts.append(f"{bar} {done:,}/{known:,} values")
    else:
        parts.append(f"{done:,} values")
    if cached:
        parts.append(f"{cached:,} cached")
    if tokens and seconds > 0:
        parts.append(f"{tokens / seconds:,.0f} tokens/s")
    if not since and (not known or done < known):
        left = 0.0 if expected is None else expected - seconds
        parts.append(f"about {_duration(left)} left" if left >= 1 else _duration(seconds))
    elif known and done < known:
        parts.append(f"{_duration(taken * (known - done) / since)} left")
    return " · ".join(parts)


def spending_line(usage: Usage, cost: float | None = None, vectors: str = "") -> str:
    """A summary of questions and spending in one line; ``vectors``: the sources of the vectors.

    >>> spending_line(Usage(values=40, cached=2, failed=1, calls=3, evaluated_tokens=1200, seconds=4.0))
    'asked 40 values in 3 calls, 2 more from the cache, 1 failed · 1,200 tokens · 4.0 s'
    >>> spending_line(Usage(values=1, calls=1, evaluated_tokens=30, seconds=1.0), cost=0.002)
    'asked 1 value in 1 call · 30 tokens · 1.0 s · cost 0.002'
    >>> spending_line(Usage(values=8, beside=6, calls=3, evaluated_tokens=99, seconds=1.0))
    'asked 8 values in 2 readings and 3 requests · 99 tokens · 1.0 s'
    >>> spending_line(Usage())
    'asked nothing'
    >>> spending_line(Usage(), cost=0.04, vectors="900 embedded (15 requests, 2,000 tokens)")
    'asked nothing · vectors: 900 embedded (15 requests, 2,000 tokens) · cost 0.04'
    """
    more = f" · cost {money(cost)}" if cost else ""
    if vectors:
        more = f" · vectors: {vectors}{more}"
    if not usage.values and not usage.cached:
        return f"asked nothing{more}"
    batches = readings_text(usage) or f" in {count_noun(usage.calls, 'call')}"
    summary = f"asked {count_noun(usage.values, 'value')}{batches}"
    if usage.cached:
        summary += f", {usage.cached:,} more from the cache"
    if usage.failed:
        summary += f", {usage.failed:,} failed"
    tokens = usage.evaluated_tokens + usage.completion_tokens
    return f"{summary} · {count_noun(tokens, 'token')} · {usage.seconds:.1f} s{more}"


def beside_text(usage: Usage) -> str:
    """How many values of one question are answered with another; '' for none."""
    return f", {usage.beside:,} of them beside another question" if usage.beside else ""


def readings_text(usage: Usage) -> str:
    """The readings and requests of the values; '' where each value is a reading of its own."""
    if not usage.beside:
        return ""
    return f" in {count_noun(usage.readings, 'reading')} and {count_noun(usage.calls, 'request')}"


def count_noun(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count_noun(1, "value"), count_noun(1200, "value")
    ('1 value', '1,200 values')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
