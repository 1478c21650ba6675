"""Ctrl-C: ends within a second wherever the time goes, keeps answers, leaves a clean terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupts import interrupted
from loopback import Body, Reply, serving

from blendfusion.models.sqlite_store import SqliteStore

LIMIT_SECONDS = 1.0

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def kept(cache: Path) -> int:
    store = SqliteStore(cache)
    try:
        return store.stats().entries
    finally:
        store.close()


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
@pytest.mark.parametrize("query", ["filter", "create"])
def test_a_python_function_is_interrupted(query: str, planner: bool, tmp_path: Path) -> None:
    cache = tmp_path / "answers.sqlite"
    for after in (0.3, 0.55):
        before = kept(cache)
        run = interrupted("scripted", query, str(cache), planner=planner, after=after)
        assert run.raised_seconds < LIMIT_SECONDS
        assert run.status == 130, run.said
        # Twenty answers come in a second, and all but the one in flight stay.
        assert before + 2 <= kept(cache) <= before + 20 * (after + run.raised_seconds) + 1


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_requests_to_a_slow_server_are_cancelled(planner: bool, tmp_path: Path) -> None:
    def script(body: Body) -> Reply:
        time.sleep(0.02 if len(server.bodies) < 40 else 2)
        return Reply("Yes")

    with serving(script) as server:
        cache = tmp_path / "answers.sqlite"
        run = interrupted(
            f"openai:tiny@{server.url}", "filter", str(cache), planner=planner, after=1.5
        )
        assert run.raised_seconds < LIMIT_SECONDS
        assert run.status == 130, run.said
        assert kept(cache) >= 10


@pytest.mark.parametrize("after", [0.2, 0.8, 1.3])
def test_what_datafusion_computes_is_interrupted(after: float, tmp_path: Path) -> None:
    run = interrupted("scripted", "scan", str(tmp_path / "c"), planner=True, after=after)
    assert run.raised_seconds < LIMIT_SECONDS
    assert run.status == 130, run.said


@pytest.mark.local
@pytest.mark.parametrize(
    ("query", "planner"),
    [("long", True), ("text", True), ("create", True), ("long", False)],
    ids=["reading", "writing", "create table", "plain"],
)
def test_llama_is_interrupted(query: str, planner: bool, tmp_path: Path) -> None:
    for after in (0.2, 1.1):
        run = interrupted("smollm2", query, str(tmp_path / "c"), planner=planner, after=after)
        assert run.raised_seconds < LIMIT_SECONDS
        assert run.status == 130, run.said


@pytest.mark.local
def test_llama_keeps_the_answers_of_a_batch_that_was_interrupted(tmp_path: Path) -> None:
    cache = tmp_path / "answers.sqlite"
    run = interrupted("smollm2", "filter", str(cache), planner=True, after=2.0)
    assert run.status == 130, run.said
    # One is of the query that loads the model. A batch has 64.
    assert kept(cache) > 1


def test_the_command_leaves_a_clean_terminal(tmp_path: Path) -> None:
    import pty

    rows = tmp_path / "t.csv"
    rows.write_text("x\n" + "".join(f"value {n}\n" for n in range(500)))

    def script(body: Body) -> Reply:
        time.sleep(0.05)
        return Reply("Yes")

    terminal, end = pty.openpty()
    code = "import sys; from blendfusion.cli import main; sys.exit(main(sys.argv[1:]))"
    try:
        with serving(script) as server:
            query = "SELECT x FROM t WHERE llm_filter('Is it good?', x)"
            process = subprocess.Popen(
                [
                    *(sys.executable, "-c", code, "query", query, "--table", f"t={rows}"),
                    *("--model", f"openai:tiny@{server.url}", "--cache", "off"),
                ],
                stderr=end,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
            )
            os.close(end)
            shown = b""
            while b"values" not in shown:  # the progress line
                shown += os.read(terminal, 4096)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            while not shown.endswith(b"interrupted\r\n"):  # it may arrive in pieces
                shown += os.read(terminal, 4096)
            assert time.monotonic() - sent < LIMIT_SECONDS
            assert process.wait(30) == 130
    finally:
        os.close(terminal)
    # The cursor was hidden and is shown, the line was erased before the word.
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") == 1
    line, _, rest = shown.rpartition(b"\x1b[2K")
    assert b"values" in line
    assert b"values" not in rest
    assert rest.replace(b"\x1b[1A", b"").replace(b"\r", b"").endswith(b"interrupted\n")
