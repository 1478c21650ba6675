"""What a result shows, and what that costs: first rows, widths, pages, modes, and pipes."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from seconds import least_seconds

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.apps.cli.results import Format, format_for, page_of, write
from blendfusion.apps.cli.screens import KEPT_ROWS, first_screen
from blendfusion.apps.cli.text_tables import draw_table
from blendfusion.apps.cli.typed_text import excerpt
from blendfusion.apps.page_writers import PAGE_WRITERS


@pytest.fixture
def session() -> Iterator[bf.Session]:
    with bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off") as made:
        yield made


@pytest.mark.parametrize(
    ("rows", "most", "line"),
    [
        (0, 40, "0 rows"),
        (1, 40, "1 row"),
        (40, 40, "40 rows"),
        (41, 40, "… 1 more row (\\more)"),
        (5_000, 40, "… 4,960 more rows (\\more)"),
        (5_000, 0, "5,000 rows"),
        (300_000, 40, "… more than N more rows (\\more)"),
    ],
)
def test_the_line_below_says_how_many_rows_follow(
    rows: int, most: int, line: str, session: bf.Session
) -> None:
    session.from_pydict({"n": list(range(rows))}, "t") if rows else session.sql(
        "CREATE TABLE t AS SELECT 1 AS n WHERE false"
    )
    shown: list[pa.Table] = []
    screens = first_screen(session.sql("SELECT n FROM t ORDER BY n"), most, shown.append)
    assert [part["n"].to_pylist() for part in shown] == [list(range(min(rows, most or rows)))]
    assert re.sub(r"\d\d,\d{3}", "N", screens.following("\\more")) == line
    assert screens.whole is (rows <= KEPT_ROWS)


def test_the_first_rows_are_shown_before_the_others_are_asked(session: bf.Session) -> None:
    session.from_pydict({"x": [f"v{i}" for i in range(500)]}, "t")
    asked: list[int] = []
    frame = session.sql("SELECT x FROM t WHERE llm_filter('Is it good?', x)")
    screens = first_screen(frame, 5, lambda part: asked.append(frame.trace.usage.values))
    assert asked[0] < 500
    assert frame.trace.usage.values == 500
    assert screens.following("…") == "… 495 more rows (…)"
    assert screens.next(1_000)["x"].to_pylist() == [f"v{i}" for i in range(5, 500)]


def test_the_cost_of_a_screen_is_that_of_its_rows(session: bf.Session) -> None:
    """The work of this thread: reading goes on in DataFusion's."""
    few = pa.table({"id": range(40), "text": ["a broken lamp and a late parcel"] * 40})
    session.from_arrow(few, "few")
    for name, rows in (("many", 20_000), ("most", 1_000_000)):
        text = pa.array(["a broken lamp and a late parcel"] * rows)
        session.from_arrow(pa.table({"id": pa.array(range(rows)), "text": text}), name)

    def draw(name: str) -> None:
        first_screen(session.table(name), 40, lambda part: page_of(part) and None)

    draw("few")
    bound = max(1.2 * least_seconds(lambda: draw("few"), 0), 0.02)
    for name in ("many", "most"):
        assert least_seconds(lambda name=name: draw(name), bound) < bound  # type: ignore[misc]


def test_a_whole_table_is_drawn_in_little_time() -> None:
    table = pa.table({f"c{i}": [f"value {n}" for n in range(20_000)] for i in range(4)})
    assert least_seconds(lambda: page_of(table), 3.0, time.thread_time) < 3.0


def drawn(table: pa.Table, width: int, most: int | None = 60) -> str:
    from rich.console import Console

    text = io.StringIO()
    draw_table(table, Console(file=text, width=width), most)
    return text.getvalue()


def test_numbers_stand_at_the_right_and_wide_letters_count_twice() -> None:
    table = pa.table({"text": ["a", "日本", None], "n": [1, 20, None]})
    assert drawn(table, 80) == ("text      n\n───────────\na         1\n日本     20\nNULL   NULL\n")


def test_no_line_is_longer_than_the_screen_and_no_text_is_lost() -> None:
    words = " ".join(f"word{i}" for i in range(12))
    table = pa.table({"id": [1], "first": [words], "second": [words]})
    page = drawn(table, 60, None)
    assert max(map(len, page.splitlines())) <= 60
    assert sorted(re.findall(r"word\d+", page)) == sorted(words.split() * 2)


def test_a_wide_table_of_many_rows_stands_in_pages_of_columns() -> None:
    names = [f"column_{i}" for i in range(9)]
    wide = pa.table({name: [f"{name} of row {n}" for n in range(20)] for name in names})
    page = drawn(wide, 60)
    heads = re.findall(r"^columns (\d)–(\d) of 9", page, re.MULTILINE)
    assert [int(stop) + 1 for _, stop in heads[:-1]] == [int(first) for first, _ in heads[1:]]
    assert (heads[0][0], heads[-1][1]) == ("1", "9")
    shown = [re.findall(rf"^{name}|   {name}", page, re.MULTILINE) for name in names]
    assert all(shown)
    assert max(map(len, page.splitlines())) <= 60


ODD = pa.table({
    "n": [1, None],
    "a | b": ["<b>&amp;*x*\r\nline", "\x1b[2J"],
    "list": [[1, 2], None],
})  # fmt: skip

PAGES = {
    "markdown": (
        "| n | a \\| b | list |\n| ---: | --- | --- |\n"
        "| 1 | \\<b>&amp;amp;\\*x\\*<br>line | \\[1, 2\\] |\n|  | \\\\x1b\\[2J |  |\n"
    ),
    "html": (
        '<table>\n<thead><tr><th scope="col">n</th><th scope="col">a | b</th>'
        '<th scope="col">list</th></tr></thead>\n<tbody>\n'
        "<tr><td>1</td><td>&lt;b&gt;&amp;amp;*x*\nline</td><td>[1, 2]</td></tr>\n"
        "<tr><td></td><td>\\x1b[2J</td><td></td></tr>\n</tbody>\n</table>\n"
    ),
    "line": (
        "    n = 1\na | b = <b>&amp;*x* line\n list = [1, 2]\n\n"
        "    n = NULL\na | b = \\x1b[2J\n list = NULL\n"
    ),
}


@pytest.mark.parametrize("style", PAGE_WRITERS)
def test_pages_of_rows(style: Format, tmp_path: Path) -> None:
    write(ODD, style, tmp_path / "page")
    assert (tmp_path / "page").read_bytes().decode() == PAGES[style]


@pytest.mark.parametrize("style", PAGE_WRITERS)
def test_pages_of_no_rows_have_their_heads(style: Format, tmp_path: Path) -> None:
    write(ODD.slice(0, 0), style, tmp_path / "page")
    assert ("a" in (tmp_path / "page").read_text("utf-8")) is (style != "line")


def test_a_pipe_gets_all_rows_whole_and_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": range(100), "text": ["long " * 30] * 100})
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        write(table, format_for(None), None)
    monkeypatch.undo()
    with os.fdopen(reading) as pipe:
        lines = pipe.read().splitlines()
    assert lines[0] == "n\ttext"
    assert lines[1:] == [f"{n}\t{'long ' * 30}" for n in range(100)]


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    pyarrow.parquet.write_table(pa.table({"n": range(100)}), tmp_path / "t.parquet")
    return f"t={tmp_path / 't.parquet'}"


@pytest.mark.parametrize(
    ("given", "rows"), [([], 40), (["--rows", "7"], 7), (["--rows", "0"], 100)]
)
def test_the_command_shows_so_many_rows(
    given: list[str], rows: int, numbers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "SELECT n FROM t", "--table", numbers, *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == rows + 3
    assert lines[-1].startswith(f"… {100 - rows} more rows" if rows < 100 else "100 rows")
    assert main(["query", "SELECT 1", "--rows", "-1"]) == 2


def test_a_written_file_is_one_line_on_standard_error(
    numbers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "o.csv"
    assert main(["query", "SELECT n FROM t", "--table", numbers, "--output", str(file)]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"written: {file}, 100 rows · asked nothing\n")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["SELECT 1"], 0),
        (["SELECT nothing"], 2),
        (["SELECT CAST('x' AS INT)"], 2),
        (["SELECT 1", "--option", "nothing=1"], 2),
        (["SELECT llm_filter('Is it?', 'a')", "--budget", "values=0"], 3),
        (["SELECT llm_filter('Is it?', 'a')", "--model", "openai:m@http://127.0.0.1:9/v1"], 4),
        (["SELECT 1", "--model", "nonsense:x"], 4),
        (["SELECT llm_filter('Is it?', 'a')", "--model", "llama:/no/such.gguf"], 4),
    ],
)
def test_the_exit_status_tells_the_cause(arguments: list[str], status: int) -> None:
    assert main(["query", *arguments, "--cache", "off"]) == status


@pytest.mark.parametrize(
    ("text", "word", "lines"),
    [
        ("SELECT a", "a", ["  SELECT a", "         ^"]),
        ("SELECT 1,\n\tprodcut\nFROM t", "prodcut", ["  prodcut", "  ^^^^^^^"]),
        ("SELECT '日本', x FROM t", "x", ["  SELECT '日本', x FROM t", "                 ^"]),
        (f"SELECT {'a, ' * 90}b", "b", [f"  …{('a, ' * 90)[-60:]}b", "  " + " " * 61 + "^"]),
    ],
)
def test_carets_stand_below_the_mistake(text: str, word: str, lines: list[str]) -> None:
    start = text.rindex(word) if word == "b" else text.index(word, 5)
    assert excerpt(text, start, start + len(word)).splitlines() == lines


def test_a_text_of_json_is_read_back(numbers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "SELECT n FROM t", "--table", numbers, "--format", "json"]) == 0
    assert [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()] == [*range(100)]
