"""The command: what it prints where, and its exit status. The model is scripted."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import blendfusion as bf
from blendfusion.apps.cli import demo, query
from blendfusion.apps.cli.main import main
from blendfusion.models.prompts.canonical import Value
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.types import Request

EXAMPLES = Path(__file__).parents[4] / "examples"
QUERY = "SELECT name FROM fruits WHERE llm_filter('Is it red?', name) ORDER BY name"


def answer(call: Request) -> Value | None:
    """A model that finds cherries and apples red, and has an answer of every kind."""
    text = call.values[0] or ""
    if call.constraint.kind == "boolean":
        return text in ("apple", "cherry") or "stopped" in text
    if call.constraint.kind == "choice":
        return call.constraint.options[len(text) % len(call.constraint.options)]
    if call.constraint.kind == "score":
        return len(text) % 11
    return len(text) if call.constraint.kind == "integer" else f"{len(call.values)} texts"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    scripted = ScriptedModel(answer)
    connect = bf.connect

    def connect_scripted(model: str | None = None, **options: Any) -> bf.Session:
        return connect(model=scripted if model is None else model, **options)

    monkeypatch.setattr(bf, "connect", connect_scripted)
    return scripted


@pytest.fixture
def fruits(tmp_path: Path) -> str:
    path = tmp_path / "fruits.csv"
    path.write_text("name,n\napple,1\nbanana,2\ncherry,3\napple,4\n", encoding="utf-8")
    return f"fruits={path}"


def test_a_query_prints_a_table(
    model: ScriptedModel, fruits: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", QUERY, "--table", fruits]) == 0
    shown = capsys.readouterr()
    assert shown.out.split() == ["name", "─" * 6, "apple", "apple", "cherry", "3", "rows"]
    assert shown.err == ""
    assert len(model.calls) == 3


def test_any_option_of_a_session_is_one_of_a_command(
    model: ScriptedModel, fruits: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = ["query", "SHOW blendfusion.rows_per_prompt", "--format", "csv", "--option"]
    assert main([*query, "rows_per_prompt=10"]) == 0
    assert '"10"' in capsys.readouterr().out
    assert main([*query, "rows_per_prmpt=10"]) == 2
    assert "Did you mean 'rows_per_prompt'?" in capsys.readouterr().err


def test_formats(model: ScriptedModel, fruits: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", QUERY, "--table", fruits, "--format", "csv"]) == 0
    assert capsys.readouterr().out == '"name"\n"apple"\n"apple"\n"cherry"\n'
    assert main(["query", QUERY, "--table", fruits, "--format", "json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["apple", "apple", "cherry"]


def test_output_to_a_file(
    model: ScriptedModel, fruits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.parquet"
    assert main(["query", QUERY, "--table", fruits, "--output", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert pyarrow.parquet.read_table(target).num_rows == 3


def test_a_page_of_the_run_is_written_however_it_ends(
    model: ScriptedModel, fruits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, command = tmp_path / "trace.html", ["query", QUERY, "--table", fruits]
    assert main([*command, "--cache", "off", "--trace", str(page)]) == 0
    assert "done in" in page.read_text("utf-8")
    assert main([*command, "--cache", "off", "--trace", str(page), "--budget", "values=0"]) == 3
    assert "BudgetExceeded" in page.read_text("utf-8")
    asked = len(model.calls)
    assert main([*command, "--cache", "off", "--trace", str(tmp_path / "none" / "a.html")]) == 2
    assert "no file can be written there" in capsys.readouterr().err
    assert len(model.calls) == asked


def test_the_query_may_come_from_standard_input(
    model: ScriptedModel,
    fruits: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(QUERY))
    assert main(["query", "-", "--table", fruits, "--format", "csv"]) == 0
    assert "cherry" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("  \n"))
    assert main(["query", "-"]) == 2


def test_explain_asks_nothing_and_analyze_does(
    model: ScriptedModel, fruits: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", QUERY, "--table", fruits, "--explain"]) == 0
    assert "llm_filter" in capsys.readouterr().out
    assert model.calls == []
    assert main(["query", QUERY, "--table", fruits, "--analyze"]) == 0
    assert "llm_filter" in capsys.readouterr().out
    assert len(model.calls) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT 1", "--table", "=nonsense"], "NAME=PATH"),
        (["SELECT 1", "--table", "t=/no/such/file.csv"], "no file"),
        (["SELECT nothing FROM nowhere"], "nowhere"),
        (["SELECT FROM WHERE"], ""),
        (["SELECT llm_fliter('x', 'y')"], "llm_filter"),
        (["SELECT 1", "--format", "parquet"], "--output"),
        ([""], "empty"),
    ],
)
def test_errors_are_one_line_and_a_hint(
    arguments: list[str], said: str, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert said in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (["sales.csv"], "no command 'sales.csv'", "blendfusion --table sales.csv"),
        (["SELECT 1"], "no command 'SELECT 1'", 'blendfusion query "SELECT'),
        (["querry"], "no command 'querry'", "Did you mean 'query'?"),
        (["query", "SELECT 1", "a b.csv"], "no place for 'a b.csv'", "--table 'a b.csv'"),
        (["query", "SELECT 1", "--tabel", "a.csv"], "--tabel", "Did you mean '--table'?"),
        (["query", "SELECT 1", "--format", "foo"], "invalid choice: 'foo'", "query --help"),
        (["query", "--table", "a.csv"], "required: SQL", "query --help"),
        (["serve", "--port", "high"], "'high'", "serve --help"),
        (["cache", "empty"], "'clear'", "cache --help"),
        (["query", "SELECT * FROM sales.csv"], "unknown table 'sales.csv'", "FROM 'sales.csv'"),
        (["query", "SELECT * FROM 2024_sales"], "found: 2024", '"2024_sales"'),
        (["query", "SELECT * FROM sales"], "unknown table 'sales'", "--table sales.csv"),
    ],
)
def test_what_newcomers_type_is_answered_with_what_they_meant(
    arguments: list[str], problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert problem in first
    assert second.startswith("Hint: ")
    assert hint in second


def test_the_help_of_a_command_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ui", "--help"])
    assert "answers in a browser" in capsys.readouterr().out


def test_an_interrupt_ends_quietly(
    model: ScriptedModel,
    fruits: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(call: Request) -> Value:
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "_fn", interrupted)
    assert main(["query", QUERY, "--table", fruits]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupt_names_the_answers_that_are_kept_and_a_second_run_asks_the_others(
    model: ScriptedModel,
    fruits: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def second_is_interrupted(call: Request) -> Value | None:
        if len(model.calls) == 2:
            raise KeyboardInterrupt
        return answer(call)

    monkeypatch.setattr(model, "_lasts", True)  # as a model with a name has it
    run = ["query", QUERY, "--table", fruits, "--cache"]
    stored = [*run, str(tmp_path / "answers.sqlite")]
    for command, then in (
        ([*run, "off"], "lost, as they were in memory only: --cache names a file for them."),
        (stored, "kept: run it again to go on from there."),
    ):
        model.calls.clear()
        monkeypatch.setattr(model, "_fn", second_is_interrupted)
        assert main(command) == 130
        assert capsys.readouterr().err == f"interrupted: 1 value asked; its answer is {then}\n"
    model.calls.clear()
    monkeypatch.setattr(model, "_fn", answer)
    assert main(stored) == 0
    assert len(model.calls) == 2


def test_a_reader_that_leaves_early_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(arguments: object) -> int:
        raise BrokenPipeError

    duplicated: list[tuple[int, int]] = []
    monkeypatch.setattr(query, "_query", leave)
    monkeypatch.setattr("os.dup2", lambda *fds: duplicated.append(fds))
    monkeypatch.setattr("os.open", lambda *a: 99)
    assert main(["query", "SELECT 1"]) == 0
    assert duplicated


def test_failed_values_are_a_warning(
    model: ScriptedModel,
    fruits: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(model, "_fn", lambda call: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [])
        assert main(["query", QUERY, "--table", fruits]) == 0
    assert capsys.readouterr().err.startswith("warning: ")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["query", "--help"]])
def test_help_and_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 0
    assert "blendfusion" in capsys.readouterr().out


def test_the_demo_runs_every_example_from_any_folder(
    model: ScriptedModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # the tables come with the package
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    for example in demo.EXAMPLES:
        assert example.title in shown
        assert example.sql in shown
    assert shown.count("asked ") == len(demo.EXAMPLES)
    assert len(model.calls) < 350  # the ranking asks about each of the 136 reviews


@pytest.mark.long
@pytest.mark.local
def test_the_demo_shows_as_many_mails_as_its_title_says() -> None:
    """The figure of the first example: nobody should believe a demonstration that has drifted."""
    (mails,) = re.findall(r"SmolLM2 picks (\d+) mails", demo.EXAMPLES[1].title)
    session = bf.connect("smollm2", cache=None)
    session.register_file(str(EXAMPLES / "tickets.csv"), "tickets")
    assert session.sql(demo.EXAMPLES[1].sql).count() == int(mails)


def test_the_demo_says_where_its_tables_are(
    model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--examples", str(tmp_path)]) == 2
    assert "--examples DIR" in capsys.readouterr().err


def stubbed(monkeypatch: pytest.MonkeyPatch, run: Callable[[Any], int]) -> None:
    monkeypatch.setattr(query, "_query", run)


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(arguments: Any) -> int:
        raise ZeroDivisionError

    stubbed(monkeypatch, bug)
    with pytest.raises(ZeroDivisionError):
        main(["query", "SELECT 1"])


@pytest.mark.parametrize("shown", ["explain", "analyze"])
@pytest.mark.parametrize("target", ["output", "manifest"])
def test_a_plan_writes_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shown: str, target: str
) -> None:
    """Nothing is asked for rows that would be dropped."""
    file = tmp_path / "rows.csv"
    assert main(["query", "SELECT 1", f"--{shown}", f"--{target}", str(file)]) == 2
    assert f"--{shown} prints the plan and writes no rows to --{target}" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize("statement", ["CREATE TABLE x AS SELECT 1", "COPY (SELECT 1) TO 'x.csv'"])
def test_a_manifest_is_of_a_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    assert main(["query", statement, "--manifest", str(tmp_path / "run.json")]) == 2
    assert "--manifest records a query, and this is C" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
