"""Results that are written as they come: in files, in pipes, and in bounded memory."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import blendfusion as bf
from blendfusion.apps.cli import screens
from blendfusion.apps.cli.main import main
from blendfusion.apps.cli.results import write
from blendfusion.run.observe.progress import Reporter

PLAIN = "SELECT value, repeat('x', 200) AS text FROM generate_series(1, {})"
ASKS = (
    "SELECT llm_map('q', CAST(value % 10 AS TEXT)) AS a, repeat('x', 200) AS text "
    "FROM generate_series(1, {})"
)
MEASURED = """
import resource, sys, blendfusion as bf
from blendfusion.apps.cli.main import main
connect = bf.connect
bf.connect = lambda model, **options: connect(bf.ScriptedModel(lambda call: call.values[0]), **options)
def run(rows):
    query = ["query", sys.argv[1].format(rows), "--cache", "off", "--output", sys.argv[2]]
    assert main(query) == 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = run(1000)
print(run(int(sys.argv[3])) - before)
"""


def grown(query: str, file: Path, rows: int) -> int:
    """The MiB that writing ``rows`` takes beyond those of a thousand, at the peak."""
    command = [sys.executable, "-c", MEASURED, query, str(file), str(rows)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_large_result_takes_no_memory(tmp_path: Path) -> None:
    """600 MB of text: whole, it took 1,300 MiB."""
    assert grown(PLAIN, tmp_path / "o.csv.zst", 3_000_000) < 250
    assert (tmp_path / "o.csv.zst").stat().st_size > 1 << 20


@pytest.mark.long
@pytest.mark.parametrize("name", ["o.csv", "o.tsv.gz", "o.arrow", "o.parquet"])
@pytest.mark.parametrize(("query", "most"), [(PLAIN, 600), (ASKS, 800)], ids=["plain", "asks"])
def test_memory_does_not_grow_with_the_result(
    query: str, most: int, name: str, tmp_path: Path
) -> None:
    """1.7 GB of text. A chunk of 128 MiB is held with copies where a model is asked."""
    assert grown(query, tmp_path / name, 8_000_000) < most


@pytest.mark.long
def test_memory_does_not_grow_with_lines_of_json(tmp_path: Path) -> None:
    assert grown(PLAIN, tmp_path / "o.jsonl", 2_000_000) < 250


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bf.Session:
    monkeypatch.chdir(tmp_path)
    made = bf.connect(bf.ScriptedModel(lambda call: call.values[0]), cache=None, read_files="local")
    made.from_pydict({"t": [f"text {i}" for i in range(40_000)]}, name="t")
    return made


@pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.jsonl", "o.arrow", "o.parquet"])
def test_rows_are_the_same_however_they_come(name: str, session: bf.Session) -> None:
    query = "SELECT t, llm_map('q', t) AS a, [t] AS list FROM t WHERE t <> 'text 7'"
    style: Any = {"jsonl": "json"}.get(name[2:], name[2:])
    assert write(session.sql(query), style, Path(name)) == 39_999
    write(session.sql(query).to_arrow_table(), style, Path(f"whole-{name}"))
    there, whole = (
        session.sql(f"SELECT * FROM '{p}{name}' ORDER BY t").to_pylist() for p in ("", "whole-")
    )
    assert there == whole
    empty = session.sql(f"{query} LIMIT 0")
    assert write(empty, style, Path(name)) == 0
    if style in ("arrow", "parquet"):
        assert session.sql(f"SELECT * FROM '{name}'").columns == ["t", "a", "list"]


def test_a_compressed_file_is_read_again(session: bf.Session) -> None:
    for name in ("o.csv.gz", "o.tsv.zst", "o.jsonl.bz2", "o.json.GZ"):
        assert main(["query", "SELECT 'ä' AS x, 1 AS n", "--output", name]) == 0
        assert session.sql(f"SELECT x, n FROM '{name}'").to_pylist() == [{"x": "ä", "n": 1}]
    content = gzip.decompress(Path("o.json.GZ").read_bytes())
    assert json.loads(content) == {"x": "ä", "n": 1}
    for name in ("o.json.xz", "O.JSON.XZ"):
        Path(name).write_bytes(lzma.compress(b"[" + content.strip() + b"]"))
        assert session.sql(f"SELECT x, n FROM '{name}'").to_pylist() == [{"x": "ä", "n": 1}]


def test_only_text_is_compressed(session: bf.Session, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("o.parquet.gz", "o.xlsx.zst", "o.txt.gz", "o.gz"):
        assert main(["query", "SELECT 1", "--output", name]) == 2
        assert ".csv.gz" in capsys.readouterr().err
    assert main(["query", "SELECT 1", "--output", "o.gz", "--format", "parquet"]) == 2
    assert "Name it o." in capsys.readouterr().err
    assert list(Path().iterdir()) == []
    assert main(["query", "SELECT 1", "--output", "o.gz", "--format", "csv"]) == 0
    assert gzip.decompress(Path("o.gz").read_bytes()) == b'"Int64(1)"\n1\n'


def test_a_query_that_fails_on_its_way_leaves_the_file_as_it_was(session: bf.Session) -> None:
    def late(call: bf.Request) -> str:
        if call.values[0] == "text 39000":
            raise bf.ModelFailed("no more")
        return str(call.values[0])

    failing = bf.connect(bf.ScriptedModel(late), cache=None, on_error="raise", chunk_rows=1000)
    failing.from_arrow(session.table("t").to_arrow_table(), name="t")
    Path("o.csv").write_text("before", "utf-8")
    for name in ("o.csv", "o.parquet", "new.csv.gz"):
        style: Any = "csv" if "csv" in name else "parquet"
        with pytest.raises(bf.AnswerError):
            write(failing.sql("SELECT llm_map('q', t) AS a FROM t"), style, Path(name))
    assert [file.read_text("utf-8") for file in Path().iterdir()] == ["before"]


def test_dictionaries_of_many_batches_are_one_in_a_file(session: bf.Session) -> None:
    batches = [
        pa.record_batch({"d": pa.array([text], pa.string()).dictionary_encode()})
        for text in ("a", "b", "a")
    ]
    session.register_record_batches("d", [batches])
    for name in ("o.arrow", "o.parquet", "o.csv"):
        write(session.sql("SELECT * FROM d"), name[2:], Path(name))  # type: ignore[arg-type]
        found = session.sql(f"SELECT d FROM '{name}' ORDER BY d").to_pydict()
        assert found == {"d": ["a", "a", "b"]}


def test_groups_of_rows_of_parquet_are_large(session: bf.Session) -> None:
    write(session.sql("SELECT value FROM generate_series(1, 200000)"), "parquet", Path("o.parquet"))
    assert pyarrow.parquet.ParquetFile("o.parquet").num_row_groups == 1
    write(session.sql(PLAIN.format(1_000_000)), "parquet", Path("o.parquet"))
    assert 3 <= pyarrow.parquet.ParquetFile("o.parquet").num_row_groups <= 6


SLOW = """
import sys, time, blendfusion as bf
from blendfusion.apps.cli.main import main
connect = bf.connect
def answer(call):
    if call.values[0] == "5":
        open("asked", "w").close()
        time.sleep(1000)
    return call.values[0]
bf.connect = lambda model, **options: connect(bf.ScriptedModel(answer), **options, chunk_rows=2)
sys.exit(main(["query", "SELECT llm_map('q', CAST(value AS TEXT)) AS a FROM generate_series(1, 9)",
               "--cache", "off", "--format", "csv"]))
"""


def test_a_pipe_gets_rows_as_they_come(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as run:
        try:
            assert run.stdout is not None
            assert [next(run.stdout).strip() for _ in range(3)] == ['"a"', '"1"', '"2"']
            assert run.poll() is None
        finally:
            run.kill()


def test_a_reader_that_leaves_ends_the_work(tmp_path: Path) -> None:
    code = SLOW.replace("time.sleep(1000)", "time.sleep(0)").replace("(1, 9)", "(1, 90000)")
    command = f'"{sys.executable}" -c "$0" | head -2; echo ${{PIPESTATUS[0]}}'
    run = subprocess.run(
        ["bash", "-c", command, code], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert run.stdout.splitlines() == ['"a"', '"1"', "0"]
    assert run.stderr == ""


def test_the_line_of_progress_ends_before_a_pipe_gets_rows(
    session: bf.Session, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    seen: list[tuple[str, bytes]] = []

    class Line(Reporter):
        def update(self, done: int, known: int | None, tokens: int, cached: int) -> None:
            seen.append(("update", capsysbinary.readouterr().out[:3]))

        def close(self) -> None:
            seen.append(("close", capsysbinary.readouterr().out[:3]))

    monkeypatch.setattr(screens, "progress", lambda mode: Line())
    assert write(session.sql("SELECT llm_map('q', t) AS a FROM t LIMIT 9"), "csv", None) == 9
    events = [event for event, _ in seen]
    assert events[0] == "update"
    assert events.index("close") < len(events) - 1  # the end of the run closes it again
    assert [written for _, written in seen[: events.index("close") + 1]] == [b""] * (
        events.index("close") + 1
    )
    assert session.runs.reporter is None
