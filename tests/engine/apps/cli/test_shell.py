"""The shell: statements, commands, scripts, and what is typed at its prompt."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import blendfusion as bf
from blendfusion.apps.cli import main as cli
from blendfusion.apps.cli.completion import SqlCompleter
from blendfusion.apps.cli.main import main
from blendfusion.apps.cli.shell import (
    COMMANDS,
    Shell,
    _continuation,
    _history,
    _prompt,
    is_complete,
)
from blendfusion.apps.scripts import Statement, script, split


@pytest.fixture
def session() -> Iterator[bf.Session]:
    model = bf.ScriptedModel(lambda call: "bad" in call.values[0])
    with bf.connect(model, cache=None, progress="off") as made:
        made.from_pydict({"id": [1, 2], "text": ["bad", "good"]}, name="reviews")
        yield made


@pytest.fixture
def shell(session: bf.Session, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("COLUMNS", "160")
    return Shell(session)


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT ';' AS \";\" -- ;\n; SELECT 2", ["SELECT ';' AS \";\" -- ;"], "SELECT 2"),
        ("SELECT /* ; */ 1; ;; SELECT 2;", ["SELECT /* ; */ 1", "SELECT 2"], ""),
        ("SELECT 'it", [], "SELECT 'it"),
        ("SELECT 1; -- the end", ["SELECT 1"], ""),
        ("", [], ""),
    ],
)
def test_statements_end_at_semicolons(text: str, statements: list[str], rest: str) -> None:
    found, left = split(text)
    assert ([s.text for s in found], left) == (statements, rest)
    assert is_complete(text) is (bool(statements) and not rest)


def test_a_script_knows_the_lines_of_its_statements() -> None:
    text = "-- first\nSELECT 1;\n\nSELECT\n  2;\nSELECT 3"
    assert script(text) == [
        Statement("SELECT 1", 2, 9),
        Statement("SELECT\n  2", 4, 20),
        Statement("SELECT 3", 6, 32),
    ]


def test_a_query_is_shown(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("SELECT id FROM reviews WHERE llm_filter('Is it bad?', text)")
    assert "1 row" in capsys.readouterr().out
    assert shell.last is not None
    assert shell.last.trace.usage.values == 2


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("\\?", "\\explain QUERY"),
        ("\\d", "reviews"),
        ("\\d reviews", "text"),
        ("\\df llm_fi", "llm_filter"),
        ("\\explain SELECT id FROM reviews WHERE llm_filter('Bad?', text);", "ask llm_filter"),
        ("\\analyze SELECT id FROM reviews WHERE llm_filter('Bad?', text);", "2 values"),
        ("\\estimate SELECT id FROM reviews WHERE llm_filter('Bad?', text)", "2 values of 2 rows"),
        ("\\dialect suql", "suql"),
        ("\\timing", "timing is on"),
        ("\\x", "cells are whole"),
        ("EXPLAIN SELECT id FROM reviews WHERE llm_filter('Bad?', text)", "Stage 1"),
    ],
)
def test_commands(
    command: str, shown: str, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run(command)
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("\\explian SELECT 1", r"no command \\explian"),
        ("\\explain", "needs a query"),
        ("\\trace", "no query was run"),
        (".tables", r"no command .tables"),
        ("\\table nothing.csv", "no file"),
        ("\\o a.docx", "how to write"),
        ("\\i nothing.sql", "cannot read"),
        ("\\dialect klingon", "not possible"),
        ("SELECT * FROM nothing", "nothing"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(command: str, problem: str, shell: Shell) -> None:
    with pytest.raises(bf.BlendFusionError, match=problem):
        shell.run(command)


def test_results_and_traces_go_to_files(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run(f"\\o {tmp_path / 'bad.csv'}")
    shell.run("SELECT id FROM reviews WHERE llm_filter('Is it bad?', text)")
    assert (tmp_path / "bad.csv").read_text("utf-8") == '"id"\n1\n'
    shell.run(f"\\trace {tmp_path / 'trace.html'}")
    assert "llm_filter" in (tmp_path / "trace.html").read_text("utf-8")
    shell.run("\\trace")
    assert "Is it bad?" in capsys.readouterr().out
    shell.run(f"\\table more={tmp_path / 'bad.csv'}")
    shell.run("SELECT count(*) FROM more")
    assert "more: id" in capsys.readouterr().out


def test_a_script_ends_at_its_first_error_with_the_line(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "-- a script\nSELECT 1 AS one;\n\\timing\nSELECT\n nothing FROM reviews;\nSELECT 3 AS three;"
    with pytest.raises(bf.QueryError, match=r"s\.sql, line 4: .*nothing"):
        shell.run_script(text, "s.sql")
    shown = capsys.readouterr().out
    assert "one" in shown
    assert "timing is on" in shown
    assert "three" not in shown


@pytest.mark.parametrize("alone", [True, False])
def test_a_script_on_the_command_line(
    alone: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,age\nAda,36\n", encoding="utf-8")
    text = "SELECT name FROM people;\n\\d people\nSELECT age + 1 AS next FROM people"
    if alone:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["--table", str(file), "--cache", "off"]) == 0
    else:
        (tmp_path / "s.sql").write_text(text, encoding="utf-8")
        given = ["shell", "-f", str(tmp_path / "s.sql"), "--table", str(file), "--cache", "off"]
        assert main(given) == 0
    shown = capsys.readouterr().out
    assert "Ada" in shown
    assert "37" in shown


def test_an_error_in_a_script_is_the_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1;\nSELECT * FROM nowhere;"))
    assert main(["--cache", "off"]) == cli.EXIT_ERROR
    assert "standard input, line 2: " in capsys.readouterr().err


def typed(shell: Shell, keys: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blendfusion.apps.cli.shell.cache_folder", lambda: folder)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        shell.interactive = True
        assert _prompt(shell) == 0


def test_the_prompt_goes_on_until_a_semicolon_and_after_an_error(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keys = (
        "SELECT id\rFROM reviews WHERE id = 2;\rSELECT oops;\r\\timing\rSELECT 7 AS seven;\r\\q\r"
    )
    typed(shell, keys, tmp_path, monkeypatch)
    shown = capsys.readouterr()
    assert "1 row" in shown.out
    assert "seven" in shown.out
    assert "error: unknown column 'oops'" in shown.err
    history = tmp_path / "history"
    assert "SELECT 7 AS seven;" in history.read_text("utf-8")
    assert history.stat().st_mode & 0o077 == 0


def test_an_interrupt_in_the_shell_names_the_answers_of_the_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str | None] = []

    def answer(call: bf.Request) -> bool:
        asked.append(call.values[0])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return True

    with bf.connect(bf.ScriptedModel(answer), cache=None, progress="off") as session:
        session.from_pydict({"x": ["a", "b", "c", "d"]}, name="t")
        query = "SELECT x FROM t WHERE llm_filter('Is it red?', x);\r"
        typed(Shell(session), f"{query}{query}\x04", tmp_path, monkeypatch)
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == (
        "interrupted: 2 values asked; their answers are kept: run it again to go on from there."
    )
    assert asked == ["a", "b", "c", "c", "d"]


@pytest.mark.parametrize("word", ["exit", "quit", "QUIT;"])
def test_words_that_other_shells_know_are_commands(
    word: str,
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed(shell, f".tables\rhelp\r{word}\r", tmp_path, monkeypatch)
    shown = capsys.readouterr()
    assert "\\explain QUERY" in shown.out
    assert "Commands begin with a backslash" in shown.err
    assert shell.done


def test_the_prompt_ends_with_the_input(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(shell, "\x04", tmp_path, monkeypatch)


def completions(session: bf.Session, text: str) -> list[str]:
    completer = SqlCompleter(session, COMMANDS)
    found = completer.get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("SELECT * FROM rev", "reviews"),
        ("SELECT te", "text"),
        ("SELECT reviews.te", "text"),
        ("SELECT llm_fil", "llm_filter"),
        ("SELECT llm_filter('q', text, conf", "confidence => "),
        ("SEL", "SELECT"),
        ("\\exp", "\\explain"),
    ],
)
def test_completion(text: str, offered: str, session: bf.Session) -> None:
    assert offered in completions(session, text)


def test_completion_of_nothing_and_of_aliases_offers_nothing(session: bf.Session) -> None:
    assert completions(session, "SELECT ") == []
    assert completions(session, "SELECT r.te") == []


def test_semicolons_and_comments_alone_are_complete() -> None:
    for text in (";", "; ;", "-- a remark", "/* a */", "SELECT 1; -- a remark"):
        assert is_complete(text), text
    for text in ("SELECT 1", "SELECT ';", "SELECT 1; SELECT 2", "/* open"):
        assert not is_complete(text), text


def test_a_shell_without_a_place_for_its_history_opens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        "blendfusion.apps.cli.shell.cache_folder", lambda: tmp_path / "file" / "folder"
    )
    assert _history() is None


@pytest.fixture
def many(shell: Shell) -> Shell:
    shell.session.from_pydict({"n": list(range(100))}, name="many")
    return shell


def test_more_shows_the_rows_that_follow(
    many: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LINES", "26")
    keys = "SELECT n FROM many ORDER BY n;\r\\more\r\\q\r"
    typed(many, keys, tmp_path, monkeypatch)
    shown = capsys.readouterr().out
    assert [int(n) for n in re.findall(r"^ *(\d+)$", shown, re.MULTILINE)] == list(range(40))
    assert "… 80 more rows (\\more shows them, \\o FILE keeps all)" in shown
    assert "rows 21 to 40; … 60 more rows" in shown
    with pytest.raises(bf.QueryError, match=r"\\more 7"):
        many.run("\\more 7")
    monkeypatch.setattr(Shell, "show", lambda self, text: print(text))
    many.run("\\more all")
    assert "rows 41 to 100" in capsys.readouterr().out
    with pytest.raises(bf.QueryError, match="no more rows"):
        many.run("\\more")


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("csv", '"n"\n0\n'),
        ("tsv", "n\n0\n"),
        ("json", '{"n": 0}\n'),
        ("markdown", "| n |\n| ---: |\n| 0 |\n"),
        ("html", "<tr><td>0</td></tr>"),
        ("line", "n = 0\n"),
    ],
)
def test_modes(mode: str, shown: str, many: Shell, capfdbinary: Any) -> None:
    many.run(f".mode {mode}")
    many.run("SELECT n FROM many WHERE n = 0")
    assert shown in capfdbinary.readouterr().out.decode()
    with pytest.raises(bf.QueryError, match="no mode 'cvs'") as caught:
        many.run("\\mode cvs")
    assert caught.value.hint == "Did you mean 'csv'?"


def test_an_editor_gets_the_last_statement_and_gives_the_next(
    many: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys; p = sys.argv[1]; t = open(p).read()\nopen(p, 'w').write(t.replace('7', '42'))"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    typed(many, "SELECT 7 AS n;\r\\e\r\r\\q\r", tmp_path, monkeypatch)
    assert re.findall(r"^ *(\d+)$", capsys.readouterr().out, re.MULTILINE) == ["7", "42"]
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(bf.QueryError, match="cannot run the editor"):
        many.run("\\e")


def test_an_open_quote_shows_itself_and_has_a_way_out(
    many: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _continuation("SELECT 'it\n", 0).strip() == "quote>"
    assert _continuation("SELECT 1\n", 0).strip() == "...>"
    typed(many, "SELECT 'it;\r\\c\rSELECT 5 AS n;\r\\q\r", tmp_path, monkeypatch)
    shown = capsys.readouterr()
    assert re.findall(r"^ *(\d+)$", shown.out, re.MULTILINE) == ["5"]
    assert shown.err == ""


def test_a_mistake_on_a_terminal_has_a_caret(
    many: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    typed(many, "SELECT n,\r  oops FROM many;\r\\q\r", tmp_path, monkeypatch)
    assert "\n  oops FROM many\n  ^^^^\n" in capsys.readouterr().err
