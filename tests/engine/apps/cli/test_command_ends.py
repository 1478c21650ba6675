"""How the command ends where a file, a pipe or a disk does not do what one hopes: one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loopback import Body, Reply, serving
from stored_answers import TASK

from blendfusion.errors import CacheWarning
from blendfusion.models.stores.sqlite import SqliteStore

BLENDFUSION = str(Path(sys.executable).parent / "blendfusion")


def run(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("blendfusion", BLENDFUSION, 1)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("style", ["table", "csv", "json"])
def test_a_reader_that_has_seen_enough_is_no_error(style: str) -> None:
    query = "SELECT repeat('x', 500) AS v FROM generate_series(1, 2000)"  # more than a pipe holds
    done = run(
        f'blendfusion query "{query}" --format {style} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}'
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("style", ["table", "csv", "json"])
def test_what_the_terminal_cannot_show_is_no_error(style: str) -> None:
    query = "SELECT 'größe ✓' AS a"
    done = run(f'blendfusion query "{query}" --format {style}', PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("größe ✓" if style != "table" else r"gr\xf6\xdfe \u2713") in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize(
    "command",
    [
        'blendfusion query "SELECT 1" > /dev/full',
        'blendfusion query "SELECT value FROM generate_series(1, 50000)" --format csv > /dev/full',
        'blendfusion query "SELECT 1" --output /dev/full --format csv',
        'blendfusion query "SELECT 1" --trace /dev/full',
        "blendfusion models > /dev/full",
    ],
)
def test_a_full_disk_is_one_line(command: str) -> None:
    done = run(command)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder /proc")
def test_a_page_that_cannot_be_written_is_one_line() -> None:
    done = run('blendfusion query "SELECT 1" --trace /proc/page.html')
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write '/proc/page.html'")


def test_a_file_of_data_is_no_damaged_cache(tmp_path: Path) -> None:
    """A mistyped --cache must not rename the user's own file."""
    file = tmp_path / "sales.csv"
    file.write_text("text\na\n")
    store = SqliteStore(file)
    with pytest.warns(CacheWarning, match="cannot be used: the file is not a SQLite database"):
        assert store.get_many("m", TASK, [("a",)]) == {}
    store.close()
    assert [f.name for f in tmp_path.iterdir()] == ["sales.csv"]
    assert file.read_text() == "text\na\n"


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_that_ends_the_command_keeps_its_answers(
    tmp_path: Path, name: str, status: int
) -> None:
    rows, cache = tmp_path / "t.csv", tmp_path / "answers.sqlite"
    rows.write_text("x\n" + "".join(f"value {n}\n" for n in range(300)))
    answered = []

    def script(body: Body) -> Reply:
        answered.append(body)
        time.sleep(0.02)
        return Reply("Yes")

    with serving(script) as server:
        query = "SELECT x FROM t WHERE llm_filter('Is it good?', x)"
        files = ["--table", str(rows), "--cache", str(cache), "--output", str(tmp_path / "o.csv")]
        number = getattr(signal, name)
        inherited = signal.signal(number, signal.SIG_DFL)  # below nohup, SIGHUP is ignored
        process = subprocess.Popen(
            [BLENDFUSION, "query", query, "--model", f"openai:tiny@{server.url}", *files],
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(number, inherited)
        while len(answered) < 40:
            time.sleep(0.05)
        process.send_signal(number)
        _, shown = process.communicate(timeout=60)
        assert "their answers are kept: run it again" in " ".join(shown.split())
        assert process.returncode == status
    left = {file.name.split("-")[0] for file in tmp_path.iterdir()}
    assert left - {"answers.usage.sqlite"} == {"t.csv", "answers.sqlite"}
    kept = run(f"blendfusion cache export --path {cache}").stdout.splitlines()
    assert len(kept) >= 20


def test_a_signal_ends_the_page() -> None:
    command = [BLENDFUSION, "ui", "--no-browser", "--model", "openai:tiny@http://127.0.0.1:9/v1"]
    process = subprocess.Popen(
        [*command, "--cache", "off"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "http://127.0.0.1" in process.stdout.readline()
    process.terminate()
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0
