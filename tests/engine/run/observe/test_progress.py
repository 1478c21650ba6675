"""The progress line: where it shows, what it says, and that it leaves nothing behind."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import blendfusion as bf
from blendfusion.run.observe.progress import NotebookLine, ProgressLine, Reporter, progress, status


def screen(*, terminal: bool) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=terminal, width=100), written


class Clock:
    """A clock that goes when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_pipe_sees_nothing() -> None:
    console, written = screen(terminal=False)
    with progress("auto", console=console) as reporter:
        reporter.update(1, 2, 3, 0)
    assert written.getvalue() == ""
    assert type(reporter) is Reporter


def test_off_is_off_even_on_a_terminal() -> None:
    console, written = screen(terminal=True)
    with progress("off", console=console) as reporter:
        reporter.update(1, 2, 3, 0)
    assert written.getvalue() == ""


def test_a_terminal_sees_a_line_and_on_forces_one() -> None:
    console, _ = screen(terminal=True)
    assert isinstance(progress("auto", console=console), ProgressLine)
    console, _ = screen(terminal=False)
    assert isinstance(progress("on", console=console), ProgressLine)


def test_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("auto") as reporter:
        reporter.update(1, 2, 3, 0)
    assert capsys.readouterr() == ("", "")


def test_short_work_shows_nothing() -> None:
    console, written = screen(terminal=True)
    clock = Clock()
    with ProgressLine(console, clock=clock) as line:
        clock.now += 0.9
        line.update(1, 2, 3, 0)
        assert written.getvalue() == ""
        clock.now += 0.2
        line.update(1, 2, 3, 0)
    assert "1/2 values" in written.getvalue()


@pytest.mark.parametrize("trouble", [None, ValueError, KeyboardInterrupt])
def test_the_line_is_gone_at_the_end_however_it_ends(
    trouble: type[BaseException] | None,
) -> None:
    console, written = screen(terminal=True)
    threads = set(threading.enumerate())

    def work() -> None:
        with ProgressLine(console, patience_seconds=0) as line:
            line.update(5, 10, 100, 2)
            if trouble is not None:
                raise trouble

    if trouble is None:
        work()
    else:
        with pytest.raises(trouble):
            work()
    assert set(threading.enumerate()) <= threads
    shown = written.getvalue()
    assert "5/10 values" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # cursor hidden, shown again
    assert shown.endswith("\x1b[2K")  # the line erased


def test_it_redraws_at_most_ten_times_a_second() -> None:
    console, written = screen(terminal=True)
    clock = Clock()
    with ProgressLine(console, patience_seconds=0, clock=clock) as line:
        for done in range(2000):
            line.update(done, 2000, done, 0)
            clock.now += 1 / 1024
    # Each refresh, and Live.start and stop, which draw what is there.
    assert 18 <= written.getvalue().count("values") <= 22


def test_it_can_be_used_again() -> None:
    console, written = screen(terminal=True)
    line = ProgressLine(console, patience_seconds=0)
    for _ in range(2):
        with line:
            line.update(1, None, 0, 0)
    assert written.getvalue().count("1 values") >= 2


def test_what_the_line_says() -> None:
    assert status(0, 10, 0, 0, 2.0).endswith(" 0/10 values · 2 s")
    assert status(10, 10, 50, 0, 2.0).endswith("10/10 values · 25 tokens/s")
    assert status(1, 1000, 0, 0, 1.0).endswith("· 17 min left")
    assert status(1, 100_000, 0, 0, 1.0).endswith("· 27.8 h left")
    assert status(3, 2, 0, 0, 1.0).startswith("█" * 24 + " 3/2")


def test_the_time_left_is_that_of_answers_without_what_came_before_them() -> None:
    console, written = screen(terminal=True)
    clock = Clock()
    with ProgressLine(console, clock=clock) as line:
        line.update(0, 136, 0, 0)
        clock.now += 16  # a model is loaded, its prior measured
        line.update(1, 136, 0, 0)
        assert " left" not in written.getvalue()
        clock.now += 10
        line.update(51, 136, 0, 0)
    assert "51/136 values · 17 s left" in written.getvalue()


def test_the_line_moves_before_the_first_answer_and_between_answers() -> None:
    console, written = screen(terminal=True)
    with ProgressLine(console, patience_seconds=0.1) as line:
        line.update(0, 136, 0, 0)
        deadline = time.monotonic() + 10
        while "0/136 values" not in written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert "0/136 values" in written.getvalue()


def test_answers_of_one_batch_are_followed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Noted(Reporter):
        shows = True

        def update(self, done: int, known: int | None, tokens: int, cached: int) -> None:
            seen.append(done)

    monkeypatch.setattr("blendfusion.run.frame_run.progress", lambda mode: Noted())
    with bf.connect(bf.ScriptedModel(lambda call: True), cache=None) as session:
        session.from_pydict({"x": [str(i) for i in range(20)]}, name="t")
        session.sql("SELECT count(*) FROM t WHERE llm_filter('q', x)").collect()
    assert seen == [0, *range(1, 21), 20]


def test_a_notebook_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, output: str) -> None:
            shown.append(output)

    def display(output: str, display_id: bool) -> Handle:
        shown.append(output)
        return Handle()

    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    pretty = SimpleNamespace(Pretty=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", pretty)
    reporter = progress("auto")
    assert isinstance(reporter, NotebookLine)
    reporter._patience_seconds = 0
    with reporter:
        reporter.update(1, 4, 0, 0)
    assert "1/4 values" in shown[0]
    assert shown[-1] == "1 value · 0 s", "no output is left empty"


class Noting(Reporter):
    """Notes every report, in order."""

    shows = True

    def __init__(self) -> None:
        self.events: list[tuple[str, float]] = []

    def expect(self, seconds: float) -> None:
        self.events.append(("expect", seconds))

    def update(self, done: int, known: int | None, tokens: int, cached: int) -> None:
        self.events.append(("done", done))


def asked(texts: int, *, shown: bool = True) -> list[tuple[str, float]]:
    """The reports to a line in a new session, whose model takes 20 ms a value."""

    def slow(call: bf.Request) -> bool:
        time.sleep(0.02)
        return True

    with bf.connect(bf.ScriptedModel(slow, fingerprint="slow"), cache=None) as session:
        session.runs.reporter = noting = Noting()
        noting.shows = shown
        session.from_pydict({"x": [f"text {i:04}" for i in range(texts)]}, name="t")
        session.sql("SELECT count(*) FROM t WHERE llm_filter('q', x)").collect()
        return noting.events


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("blendfusion.services.estimates.earlier_rates._LEAST_SECONDS", 0.1)
    return tmp_path / "blendfusion" / "throughput.json"


def test_the_time_left_is_known_before_the_first_answer(rates: Path) -> None:
    assert [event for event, _ in asked(10) if event == "expect"] == []  # nothing is known yet
    events = asked(20)
    expected = [seconds for event, seconds in events if event == "expect"]
    assert len(expected) == 1
    assert 0.2 < expected[0] < 1.2  # 0.4 on a machine that does nothing else
    assert events.index(("expect", expected[0])) < events.index(("done", 1))
    assert "slow" not in rates.read_text("utf-8")


def test_a_run_without_a_line_expects_nothing_but_is_remembered(rates: Path) -> None:
    asked(10, shown=False)
    assert [event for event, _ in asked(10, shown=False) if event == "expect"] == []
    assert [event for event, _ in asked(10) if event == "expect"] == ["expect"]


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff", b'{"x": "y"}', b"[" * 99_999])
def test_a_file_of_rates_that_cannot_be_read_is_none(rates: Path, content: bytes) -> None:
    rates.parent.mkdir()
    rates.write_bytes(content)
    asked(10)
    assert json.loads(rates.read_text("utf-8"))


def test_a_folder_that_cannot_be_written_is_no_error(rates: Path) -> None:
    rates.parent.write_text("a file")
    asked(10)


def test_an_expected_time_is_shown_until_it_has_passed_or_answers_come() -> None:
    console, written = screen(terminal=True)
    clock = Clock()
    with ProgressLine(console, clock=clock) as line:
        line.expect(30.0)
        line.update(0, 136, 0, 0)
        clock.now += 10
        line.update(0, 136, 0, 0)
        assert "0/136 values · about 20 s left" in written.getvalue()
        clock.now += 30
        line.update(0, 136, 0, 0)
        assert "0/136 values · 40 s" in written.getvalue()
        line.update(34, 136, 0, 0)
        clock.now += 10
        line.update(68, 136, 0, 0)
    assert "68/136 values · 20 s left" in written.getvalue()
