"""One hint for each front end: a remedy is data, and nobody is told what nobody typed."""

from __future__ import annotations

import ast
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from loopback import Body, Reply, serving
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import blendfusion as bf
from blendfusion.apps.cli.completion import SqlCompleter
from blendfusion.apps.cli.main import main
from blendfusion.apps.ui.workspace import Workspace, error_of
from blendfusion.datafusion.error_translation import exists
from blendfusion.errors import (
    BlendFusionError,
    Hint,
    by_surface,
    close_matches,
    connect_with,
    limit_spending,
    table_of,
)
from blendfusion.places.whole_file import replacing
from blendfusion.services.mcp.tables import table_names

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(
    r"\bbf\.(connect|Budget)\(|budget=|session\.(sql|register_file|register_csv)\(|tables=\["
)
"""What the command line cannot do."""


@pytest.mark.parametrize(
    ("part", "python", "command"),
    [
        (connect_with("m"), "bf.connect('m')", "--model m"),
        (connect_with("a", "b"), "bf.connect(['a', 'b'])", "--model a --model b"),
        (connect_with(read_files="local"), "bf.connect(read_files='local')", "--read-files local"),
        (
            connect_with("m", accuracy=0.9),
            "bf.connect('m', accuracy=0.9)",
            "--model m --option accuracy=0.9",
        ),
        (limit_spending(values=9), "budget=bf.Budget(values=9)", "--budget values=9"),
        (table_of("a.csv"), "session.register_file('a.csv')", "--table a.csv"),
        (table_of("a.csv", "t"), "session.register_file('a.csv', 't')", "--table t=a.csv"),
        (by_surface("one", "two"), "one", "two"),
    ],
)
def test_a_remedy_has_the_words_of_each_front_end(part: str, python: str, command: str) -> None:
    error = BlendFusionError("no", hint=f"Try {part}.")
    assert (error.hint, str(error)) == (f"Try {python}.", f"no\nHint: Try {python}.")
    assert error.hint is not None
    assert error.hint.on("command") == f"Try {command}."
    assert error_of(error)["hint"] == f"Try {command}."
    error.reword("still no", error.hint.map(str.upper))
    assert error.hint.on("command") == f"TRY {command.upper()}."
    assert BlendFusionError("again", hint=error.hint).hint.on("command") == error.hint.on("command")  # type: ignore[union-attr]


def test_a_hint_without_such_parts_is_the_same_everywhere() -> None:
    assert Hint.read("Name it.\ue000").on("command") == "Name it.\\ue000"


TALKS_TO_PROGRAMS = {
    "engine/datafusion/method_gate.py",
    "engine/datafusion/process_guard.py",
    "engine/datafusion/user_context.py",
    "engine/datafusion/context.py",
    "engine/files/csv_doors.py",
    "engine/datafusion/parquet_folders.py",
    "engine/files/reading.py",
    "engine/budget.py",
    "engine/entry_points.py",
    "engine/services/plain_functions/register.py",
    "engine/session.py",
    "engine/prepare/caller_tables.py",
    "engine/prepare/session_text.py",
    "engine/services/replay/record.py",
    "engine/services/search/sources.py",
    "engine/datafusion/error_gate.py",
    "udfs/ask/dispatcher.py",
    "udfs/register/expr.py",
    "models/services/llama/image_encoder.py",
    "models/services/llama/first_load.py",
    "engine/services/ask/draft.py",
    "engine/options.py",
    "models/stores/store_names.py",
}
"""Modules whose hints in Python answer calls that only a program makes, or name both ways."""


def spoken(file: Path) -> Iterator[str]:
    """The texts of hints in a module, without those that are given by front end."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            held = {
                id(inner)
                for call in ast.walk(node.value)
                if isinstance(call, ast.Call)
                for argument in call.args
                for inner in ast.walk(argument)
            }
            for text in ast.walk(node.value):
                own = isinstance(text, ast.Constant) and id(text) not in held
                if own and isinstance(text.value, str):
                    yield text.value


def test_no_hint_of_a_query_is_python_alone() -> None:
    found = {
        str(file.relative_to(ROOT))
        for layer in ("engine", "planner", "udfs", "models")
        for file in (ROOT / layer).rglob("*.py")
        if any(PYTHON.search(text) for text in spoken(file))
    }
    assert found <= TALKS_TO_PROGRAMS


SALES = ["--table", "Sales.csv", "--cache", "off"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT * FROM nope"], "--table sales.csv"),
        (["SELECT * FROM sales"], "There is a file Sales.csv: --table Sales.csv"),
        (["SELECT * FROM 'x/a.csv'", "--read-files", "off"], "--table x/a.csv"),
        (["What is new?"], "blendfusion ask"),
        (["SELECT llm_filter('Is it?', 'a')", "--confirm-above", "0", "--model", "a:b"], ""),
        (
            ["SELECT llm_filter('Is it?', a) FROM Sales", *SALES, "--confirm-above", "1"],
            "--budget values=1",
        ),
        (["SELECT llm_group(a) FROM Sales", *SALES, "--embedder", "off"], "--embedder"),
    ],
)
def test_hints_of_the_command_line_are_its_options(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "Sales.csv").write_text("a\nx\ny\nz\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["query", *arguments, "--show-values", "on"]) in (2, 3, 4)
    shown = capsys.readouterr().err
    assert said in shown
    assert not PYTHON.search(shown)


def test_generated_names_are_never_listed() -> None:
    session = bf.connect(None, cache=None)
    session.from_pydict({"a": [1]})
    with pytest.raises(bf.QueryError) as raised:
        session.sql("SELECT * FROM nope")
    assert not re.search(r"c[0-9a-f]{32}", str(raised.value))
    assert close_matches("x", ["c" + "0" * 32]) == ""


def test_variables_that_would_do_are_suggested() -> None:
    session = bf.connect(None, cache=None)
    orders = pa.table({"n": [1]})
    numbers = [1, 2]
    with pytest.raises(bf.QueryError) as raised:
        session.sql("SELECT * FROM ordres")
    assert raised.value.hint == "Did you mean the variable orders?"
    with pytest.raises(bf.QueryError) as raised:
        session.sql("SELECT * FROM numbrs")
    assert "numbers" not in str(raised.value.hint)
    assert (len(orders), len(numbers)) == (1, 2)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from blendfusion.places.whole_file import replacing\n"
        "with replacing(Path(sys.argv[1])) as part: part.write_text('half'); os.kill(os.getpid(), 9)"
    )
    target = tmp_path / "o.csv"
    subprocess.run([sys.executable, "-c", code, str(target)], check=False, cwd=tmp_path)
    (left,) = tmp_path.iterdir()
    other = tmp_path / left.name.replace("o.csv", "other.csv")
    other.write_text("of another file", "utf-8")
    with replacing(target) as mine, replacing(target) as beside:
        mine.write_text("first", "utf-8")
        beside.write_text("second", "utf-8")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([other.name, "o.csv"])


def test_a_program_that_logs_sees_no_line_a_request(caplog: pytest.LogCaptureFixture) -> None:
    def answer(body: Body) -> Reply:
        return Reply('{"answer": "Yes"}')

    caplog.set_level(logging.INFO)
    with serving(answer) as server, bf.connect(f"openai:m@{server.url}", cache=None) as session:
        session.from_pydict({"x": ["a", "b", "c"]}, "t")
        session.sql("SELECT x FROM t WHERE llm_filter('Is it?', x)").collect()
    assert {record.name.split(".")[0] for record in caplog.records} <= {"blendfusion"}


def test_a_name_that_is_taken_has_one_remedy_for_each_front_end() -> None:
    error = exists("Execution error: The table t already exists")
    assert error is not None
    hint = error.hint
    assert hint is not None
    assert hint == "session.deregister_table('t') removes it; another name keeps both."
    assert hint.on("command") == "DROP TABLE t removes it; --table NAME=PATH names another one."


def test_no_surface_lists_names_that_were_generated() -> None:
    """A frame that is registered without a name gets one of DataFusion's, which nobody types."""
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"a": [1]})
    session.from_pydict({"b": [1]}, name="given")
    unnamed = next(n for n in session.catalog().schema().names() if n != "given")
    work = Workspace(session)
    completer = SqlCompleter(session, ())
    listed = {
        "session": repr(session),
        "page": str(work.state()["tables"]),
        "agent": str(table_names(session)),
        "completion": str(
            [
                one.text
                for start in ("g", unnamed[:2])
                for one in completer.get_completions(
                    Document(f"SELECT * FROM {start}"), CompleteEvent()
                )
            ]
        ),
    }
    work.close()
    for surface, text in listed.items():
        assert unnamed not in text, surface
        assert "given" in text, surface
