"""What people get to see of the data and of keys, outside of results: no more than was asked
for."""

from __future__ import annotations

import io
import logging
import re
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet
import pytest
from hostile import CHARACTERS
from loopback import Reply, serving
from scripts import Counted

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.redaction import WITHHELD, Redaction, in_quotes, printable, without_secrets

SECRET = "Ann Lee, 4111 1111 1111 1111"
KEY = "sk-very-secret-key-0123456789"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


_DRAWN = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=port=)\d+|(?<=query\.id=)\w+|(?<=query\.id': ')\w+")


def everything(logged: pytest.LogCaptureFixture) -> str:
    """All that was logged, with every attribute of its records but times, threads and what is drawn
    by chance (ports, the ids of queries), in which any few digits may stand."""
    said = []
    for record in logged.records:
        words = {
            k: v for k, v in vars(record).items() if k != "thread" and not isinstance(v, float)
        }
        said.append(_DRAWN.sub("", f"{record.getMessage()} {words}"))
    return "\n".join(said)


def refused(call: bf.Request) -> object:
    return f"It says {call.values[0]}"


def messages(**options: object) -> str:
    """The warning and the errors of a query whose answers are not valid."""
    db = Counted(refused, **options).add("t", {"x": [SECRET], "n": [1]})
    said = []
    with pytest.warns(bf.AnswerWarning) as caught:
        db.rows("SELECT llm_int('How many?', x) FROM t")
    said += [str(warning.message) for warning in caught]
    for query in (
        "SELECT llm_int('How many?', x, on_error => 'raise') FROM t",
        "SELECT CAST(x AS INT) FROM t",
        "SELECT CAST(x AS INT) + llm_int('How many?', x) FROM t",
    ):
        with pytest.raises(bf.BlendFusionError) as failed:
            db.rows(query)
        said.append("".join(traceback.format_exception(failed.value, chain=True)))
    return "\n".join(said)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_values_show_where_a_person_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECRET not in messages()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert messages().count(SECRET) >= 4


def test_the_library_of_kernels_makes_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    assert SECRET not in messages()
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    assert SECRET in messages()


def test_values_show_always_or_never_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECRET in messages(show_values="on")
    monkeypatch.setattr(sys, "stderr", Terminal())
    hidden = messages(show_values="off")
    assert "4111" not in hidden
    assert "Ann" not in hidden
    assert "answered …, which is not integer" in hidden
    assert "Values are withheld here: show_values='on', or --show-values on, shows them." in hidden


def test_redact_sees_all_that_is_shown() -> None:
    seen = []

    def redact(text: str) -> str:
        seen.append(text)
        return text.replace("4111 1111 1111 1111", "[card]").replace("Ann Lee", "[name]")

    shown = messages(show_values="on", redact=redact)
    assert "4111" not in shown
    assert "[name], [card]" in shown
    assert SECRET in seen


def test_a_redact_that_fails_lets_nothing_through() -> None:
    def broken(text: str) -> str:
        raise ValueError(text)

    shown = messages(show_values="on", redact=broken)
    assert "4111" not in shown
    assert "(redact failed: ValueError)" in shown


def test_redact_goes_before_cutting() -> None:
    def redact(text: str) -> str:
        return text.replace("4" * 16, "[card]")

    assert Redaction("on", redact).quote("x" * 70 + "4" * 16) == repr("x" * 70 + "[card]")


def test_redact_is_a_function_of_the_program() -> None:
    with pytest.raises(bf.OptionError, match="redact"):
        bf.connect(redact="str.upper")
    db = Counted(redact=str.upper)
    with pytest.raises(bf.OptionError, match="redact"):
        db.session.sql("SET blendfusion.redact = 'none'")
    with pytest.raises(bf.OptionError, match="show_values"):
        bf.connect(show_values="sometimes")


@pytest.mark.parametrize("text", CHARACTERS, ids=ascii)
def test_nothing_shown_moves_a_cursor(text: str) -> None:
    for shown in (
        in_quotes(text),
        Redaction("on").row((text, None)),
        printable(text).replace("\n", ""),
    ):
        assert shown.isprintable()
    assert Redaction("on").reason(f"answered {text!r}, {text}").replace("\n", "").isprintable()


@pytest.mark.parametrize("text", [c for c in CHARACTERS if c.strip()], ids=ascii)
def test_the_command_prints_nothing_that_a_terminal_obeys(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({f"a{text}".replace("\0", ""): [text]}), file)
    assert main(["query", "SELECT * FROM t", "--table", f"t={file}", "--cache", "off"]) == 0
    main(["query", f"SELECT '{text}' FROM nosuch", "--table", f"t={file}", "--cache", "off"])
    out, err = capsys.readouterr()
    assert out.replace("\n", "").isprintable()
    assert err.replace("\n", "").isprintable()


def test_logs_hold_no_values_prompts_or_keys(
    logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    replies = iter([Reply(status=503, error=f"busy with {SECRET} {KEY}")] + [Reply("7")] * 9)
    with (
        serving(lambda body: next(replies)) as server,
        bf.connect(f"openai:tiny@{server.url}", cache=tmp_path / "answers") as session,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", bf.AnswerWarning)
        session.from_pydict({"x": [SECRET], "y": ["b"]}, name="t")
        frame = session.sql("SELECT llm_int('How secret is this question?', x, y) FROM t")
        frame.collect()
        for query in (
            "SELECT CAST(x AS INT) FROM t",
            "CREATE a.b.c TABLE 'How secret is this question?'",
        ):
            with pytest.raises(bf.BlendFusionError):
                session.sql(query).collect()
        shown = [
            repr(session.model),
            repr(frame.trace),
            repr(session.options),
            str(session.model.info),
        ]
    for text in (everything(logged), *shown):
        assert KEY not in text
        assert SECRET not in text
        assert "4111" not in text
        assert "How secret" not in text


def test_a_key_shows_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = []
    statuses = {400: "Bad", 401: "No", 403: "No", 404: "No", 413: "Too", 500: "Oh", 200: "fine"}
    for status, word in statuses.items():

        def script(body: object, status: int = status, word: str = word) -> Reply:
            return Reply(word, status=status, error=f"{word}: {KEY} in Bearer {KEY}")

        with serving(script) as server:
            store, url = tmp_path / f"answers-{status}", f"openai:tiny@{server.url}"
            with bf.connect(url, cache=store, show_values="on", timeout_seconds=2) as session:
                session.from_pydict({"x": ["a"]}, name="t")
                frame = session.sql("SELECT llm_text('q', x, on_error => 'raise') FROM t")
                try:
                    frame.collect()
                except bf.BlendFusionError as error:
                    said.append("".join(traceback.format_exception(error)))
                page = tmp_path / f"page-{status}.html"
                frame.trace.to_html(page)
                said += [
                    str(frame.trace.calls.to_pylist()),
                    repr(session.model),
                    page.read_text("utf-8"),
                ]
                said += [repr(session), repr(session.options)]
            for file in tmp_path.glob(f"answers-{status}*"):
                assert KEY.encode() not in file.read_bytes()
    assert len(said) > 20
    for text in (*said, everything(logged)):
        assert KEY not in text


def test_the_file_of_answers_holds_no_questions_and_values(tmp_path: Path) -> None:
    model = bf.ScriptedModel(lambda call: 7, fingerprint="seven")
    with bf.connect(model, cache=tmp_path / "answers") as session:
        session.from_pydict({"x": [SECRET]}, name="t")
        session.sql("SELECT llm_int('How secret is this?', x) FROM t").collect()
    held = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert not [name for name, content in held.items() if b"4111" in content]
    asked = {name for name, content in held.items() if b"How secret" in content}
    assert asked <= {name for name in held if ".usage." in name}  # it counts by question
    assert sqlite3.connect(tmp_path / "answers").execute("SELECT count(*) FROM sqlite_master")


def test_the_book_of_usage_holds_no_questions_where_values_are_withheld(tmp_path: Path) -> None:
    model = bf.ScriptedModel(lambda call: 7, fingerprint="seven")
    with bf.connect(model, cache=tmp_path / "answers", show_values="off") as session:
        session.from_pydict({"x": [SECRET]}, name="t")
        session.sql("SELECT llm_int('How secret is this?', x) FROM t").collect()
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"4111" not in held
    assert b"How secret" not in held


def test_a_page_holds_what_redact_leaves(tmp_path: Path) -> None:
    for show, mark in (("on", "[card]"), ("off", WITHHELD)):
        db = Counted(lambda call: 7, show_values=show, redact=lambda t: t.replace("4111", "[card]"))
        db.add("t", {"x": [SECRET]})
        frame = db.session.sql("SELECT llm_int('How many?', x) FROM t")
        frame.collect()
        frame.trace.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "4111" not in page
        assert mark in page


def test_errors_hold_nothing_that_a_terminal_obeys() -> None:
    assert str(bf.QueryError("a\x1b[1m", hint="b\x07")) == "a\\x1b[1m\nHint: b\\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"wrong key {KEY}", "wrong key …"),
        ("Authorization: Basic bWU6cHc=", "Authorization: Basic …"),
        ("HTTPS://me:p%40w@host:8/v1", "HTTPS://…@host:8/v1"),
        ("'/v1?api-key=abc&v=1/chat' is no path", "'/v1?api-key=…&v=…' is no path"),
        ("postgres://u@[::1]/x?a[b]=c#d", "postgres://…@[::1]/x?a[b]=…#d"),
        ("is a = b? no & c=d", "is a = b? no & c=d"),
    ],
)
def test_secrets_of_urls_and_headers_are_cut(text: str, shown: str) -> None:
    assert without_secrets(text, KEY, None, "") == shown


def test_a_key_is_cut_as_it_stands_in_a_url() -> None:
    assert without_secrets("?q=a%2Fb%2Bc or a/b+c", "a/b+c") == "?q=… or …"
