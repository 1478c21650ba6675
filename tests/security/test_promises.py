"""The seven promises of the docs about what others can do to a query, by name: one compact test
each. Their suites are named behind them."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from loopback import Body, Reply, said, serving

import blendfusion as bf

SECRET = "secret-4711"
KEY = "sk-SECRETKEY-1234"
DOCS = Path(__file__).parent.parent.parent / "docs"


def offline(show_values: str = "off") -> bf.Session:
    session = bf.connect(
        bf.ScriptedModel(lambda call: 1), cache=None, show_values=show_values, progress="off"
    )
    session.from_pydict({"y": [SECRET]}, name="p")
    return session


WAYS: dict[str, Callable[[bf.Frame], object]] = {
    "repr": repr,
    "stream": lambda frame: list(frame.execute_stream()),
    "iteration": list,
    "pa.table": pa.table,
    "collect": lambda frame: frame.collect(),
    "explain": lambda frame: frame.explain_text(analyze=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_1_off_shows_values_nowhere(way: str) -> None:
    """security.md, *Disclosure*. Also: test_withheld.py, test_leaks.py."""
    frame = offline().sql("SELECT cast(y AS int) AS n FROM p")
    try:
        shown = str(WAYS[way](frame))
    except bf.BlendFusionError as error:
        shown = f"{error} {error.__cause__} {error.__context__}"
    assert "4711" not in shown


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "query",
    ["SELECT cast(y AS int) AS n FROM p", "SELECT 1 / (octet_length(y) - 11) AS n FROM p"],
)
def test_2_any_text_ends_in_a_result_or_an_error_of_ours(way: str, query: str) -> None:
    """security.md, *Cost of a query*. Also: test_sql_fuzz.py, test_withheld.py."""
    shown = ""
    try:
        WAYS[way](offline("on").sql(query))
    except bf.BlendFusionError as error:
        shown = str(error)
    assert "bug in DataFusion" not in shown


@pytest.mark.parametrize("field", ["content", "refusal", "error"])
def test_3_keys_are_cut_out_of_what_a_server_says(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """security.md, *Disclosure*. Also: test_leaks.py, test_shown.py."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words = f"the key is {KEY}"
    reply = Reply(words, refusal=words if field == "refusal" else None)
    if field == "error":
        reply = Reply(status=400, error=words)
    with serving(lambda body: reply) as server:
        model = f"openai:tiny@{server.url}"
        with bf.connect(model, cache=None, retries=0, show_values="on", progress="off") as session:
            session.from_pydict({"y": ["a"]}, name="p")
            frame = session.sql("SELECT llm_int('q', y) AS n FROM p")
            with pytest.warns(bf.AnswerWarning) as warned:
                frame.collect()
            trace = frame.trace
            shown = [str(warned[0].message), trace.to_html(), repr(trace), trace._repr_html_()]
            shown += [str(trace.errors), str(trace.calls)]
    assert not any("SECRETKEY" in text for text in shown)


def test_4_ctrl_c_within_a_second_also_where_another_process_holds_the_store(
    tmp_path: Path,
) -> None:
    """operations.md, *Lifecycle*. Also: test_interrupt_anywhere.py."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears Ctrl-C")
    file = tmp_path / "answers.sqlite"
    model = bf.ScriptedModel(lambda call: 1, fingerprint="one")
    with (
        bf.connect(model, cache=file, progress="off") as session,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
    ):
        session.from_pydict({"y": ["a", "b"]}, name="p")
        session.sql("SELECT llm_int('first', y) AS n FROM p").collect()
        other.execute("BEGIN IMMEDIATE")
        sent: list[float] = []

        def interrupt() -> None:
            sent.append(time.monotonic())
            signal.raise_signal(signal.SIGINT)

        took: list[float] = []
        while len(took) < 3 and (not took or took[-1] >= 1.0):  # a busy machine may be late
            threading.Timer(0.7, interrupt).start()
            with pytest.raises(KeyboardInterrupt):
                session.sql("SELECT llm_int('second', y) AS n FROM p").collect()
            took.append(time.monotonic() - sent[-1])
        other.execute("ROLLBACK")
        assert min(took) < 1.0, took
        assert session.sql("SELECT llm_int('second', y) AS n FROM p").to_pydict() == {"n": [1, 1]}


@pytest.mark.parametrize("calls", [5, 20, 50])
def test_5_calls_are_never_exceeded_and_begin_with_as_many_as_go_together(calls: int) -> None:
    """operations.md, *Limits*. Also: test_calls_budget.py, test_budget_of_vectors.py."""

    def script(body: Body) -> Reply:
        fails = hash(said(body)) % 3 == 0
        return Reply(status=500, headers={"retry-after": "0"}) if fails else Reply("7")

    with serving(script) as server:
        model = f"openai:tiny@{server.url}"
        with bf.connect(
            model, cache=None, retries=2, concurrency=4, progress="off", on_error="null"
        ) as session:
            session.from_pydict({"y": [f"value {n}" for n in range(60)]}, name="p")
            frame = session.sql("SELECT llm_int('q', y) AS n FROM p", budget=bf.Budget(calls=calls))
            with pytest.raises(bf.BudgetExceeded):
                frame.collect()
        assert len(server.bodies) == frame.trace.usage.calls == calls


@pytest.mark.parametrize("bad", ['{"answer": 1e999999999}', "1e99999999", " " * 200_000 + "x"])
def test_6_what_goes_wrong_with_one_value_is_that_values(bad: str) -> None:
    """operations.md, *Failures of servers*. Also: test_bounded_replies.py."""
    with serving(lambda body: Reply(bad if "value b" in said(body) else "7")) as server:
        model = f"openai:tiny@{server.url}"
        with bf.connect(model, cache=None, retries=0, progress="off", on_error="null") as session:
            session.from_pydict({"y": ["value a", "value b", "value c"]}, name="p")
            start = time.process_time()
            with pytest.warns(bf.AnswerWarning):
                rows = session.sql("SELECT llm_int('q', y) AS n FROM p").to_pydict()["n"]
    assert rows == [7, None, 7]
    assert time.process_time() - start < 3


def test_7_what_is_null_without_a_call_is_what_the_docs_name() -> None:
    """semantics.md, *NULL*."""
    asked: list[str | None] = []

    def script(call: bf.Request) -> object:
        asked.append(call.values[0])
        return True

    session = bf.connect(bf.ScriptedModel(script), cache=None, progress="off")
    blank = ["", "  ", "[]", "[ ]", "[, ]", None]
    session.from_pydict({"y": [*blank, "{}", "[1]", "null"]}, name="p")
    rows = session.sql("SELECT llm_bool('Is it JSON?', y) AS n FROM p").to_pydict()["n"]
    assert rows == [None] * len(blank) + [True] * 3
    assert sorted(map(str, asked)) == ["[1]", "null", "{}"]
    assert "`[]`, `[, ]`" in (DOCS / "semantics.md").read_text(encoding="utf-8")
