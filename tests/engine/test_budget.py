"""Budgets hold on every way by which a model is asked, and a run with a larger one goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext, col
from loopback import Body, Reply, serving
from scripts import hashed, spoken

import blendfusion as bf
from blendfusion.apps.cli.main import main

PRICE = bf.Price(prompt=1.0, completion=1.0)
BATCH = 10
TEXTS = [f"text {i:03}" for i in range(100)]
QUERY = "SELECT x FROM t WHERE llm_filter('holds 7', x) ORDER BY x"


def connected(model: bf.Model, **options: object) -> bf.Session:
    session = bf.connect(model, cache=None, progress="off", prices=PRICE, **options)  # type: ignore[arg-type]
    session.from_pydict({"x": TEXTS, "n": list(range(100))}, name="t")
    return session


def scripted(script: object = spoken) -> bf.ScriptedModel:
    return bf.ScriptedModel(script, batch_size=BATCH)  # type: ignore[arg-type]


def asked(model: bf.ScriptedModel) -> int:
    """How many values the model saw; none of them twice."""
    values = [(call.task, call.values) for call in model.calls]
    assert len(values) == len(set(values))
    return len(values)


def rows(frame: bf.Frame) -> list[object]:
    return frame.to_arrow_table().column(0).to_pylist()


RIGHT = [text for text in TEXTS if "7" in text]

# ---------------------------------------------------------------- each limit


def slowly(call: bf.Request) -> object:
    time.sleep(0.001)
    return spoken(call)


# A value takes 4 prompt tokens (2 of the question) and 1 or 2 of the answer; a batch is 10 values.
LIMITS: dict[str, tuple[bf.Budget, Callable[[bf.Trace], float], float]] = {
    "values": (bf.Budget(values=25), lambda t: t.usage.values, 0),
    "calls": (bf.Budget(calls=3), lambda t: t.usage.calls, 0),
    "prompt_tokens": (bf.Budget(prompt_tokens=123), lambda t: t.usage.prompt_tokens, 40),
    "completion_tokens": (bf.Budget(completion_tokens=50), lambda t: t.usage.completion_tokens, 20),
    "cost": (bf.Budget(cost=100e-6), lambda t: t.cost or 0.0, 60e-6),
    "seconds": (bf.Budget(seconds=0.03), lambda t: t.usage.seconds, 10.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_ends_a_query_and_a_larger_budget_goes_on(name: str) -> None:
    budget, measure, batch = LIMITS[name]
    model = scripted(slowly)
    session = connected(model)
    frame = session.sql(QUERY, budget=budget)
    with pytest.raises(bf.BudgetExceeded, match=f"the query's budget is spent: {name}=") as raised:
        frame.collect()
    error, limit = raised.value, getattr(budget, name)
    assert (error.limit, error.allowed) == (name, limit)
    assert limit <= measure(frame.trace) <= limit + batch
    assert 0 < asked(model) < 100
    assert frame.trace.usage.values == error.usage.values == asked(model)
    assert error.pending == 100 - asked(model)
    assert error.cost == frame.trace.cost

    first = asked(model)
    larger = session.sql(QUERY, budget=bf.Budget(values=1_000, seconds=60, cost=1.0))
    assert rows(larger) == RIGHT
    assert asked(model) == 100
    assert larger.trace.usage.cached == first
    assert larger.trace.usage.values == 100 - first
    assert rows(session.sql(QUERY, budget=bf.Budget(values=0, calls=0, cost=0))) == RIGHT


def test_a_budget_that_is_just_enough_is_enough() -> None:
    model = scripted()
    session = connected(model)
    assert rows(session.sql(QUERY, budget=bf.Budget(values=100, calls=10))) == RIGHT
    assert asked(model) == 100


def test_many_small_budgets_come_to_an_end() -> None:
    model = scripted()
    session = connected(model)
    runs = 0
    while True:
        try:
            runs += 1
            assert rows(session.sql(QUERY, budget=bf.Budget(values=7))) == RIGHT
            break
        except bf.BudgetExceeded:
            assert asked(model) == 7 * runs
    assert runs == 15


def test_values_that_fail_count() -> None:
    model = scripted(lambda call: None)
    frame = connected(model).sql(QUERY, budget=bf.Budget(values=25))
    with pytest.raises(bf.BudgetExceeded):
        frame.collect()
    assert frame.trace.usage.failed == 25
    assert frame.trace.errors.num_rows == 25


def test_a_limit_of_rows_needs_no_more_than_before() -> None:
    model = scripted()
    frame = connected(model).sql(
        "SELECT x FROM t WHERE llm_filter('holds 7', x) LIMIT 2", budget=bf.Budget(values=30)
    )
    assert len(rows(frame)) == 2
    assert asked(model) <= 30


# ---------------------------------------------------------------- sessions


def test_a_session_s_budget_is_for_its_life() -> None:
    model = scripted()
    session = connected(model, budget=bf.Budget(values=120))
    assert rows(session.sql(QUERY)) == RIGHT
    other = session.sql("SELECT llm_int('length', x) FROM t")
    with pytest.raises(
        bf.BudgetExceeded, match="the session's budget is spent: values=120"
    ) as raised:
        other.collect()
    assert raised.value.usage.values == 120
    assert raised.value.pending == 80
    assert asked(model) == 120
    assert other.trace.usage.values == 20
    assert session.ledger.usage.values == 120
    assert rows(session.sql(QUERY)) == RIGHT  # what is known costs nothing

    session.budget = bf.Budget(values=200)
    assert len(rows(other)) == 100
    session.budget = None
    assert session.budget == bf.Budget()


def test_both_budgets_hold() -> None:
    session = connected(scripted(), budget=bf.Budget(values=50))
    with pytest.raises(bf.BudgetExceeded, match="the query's"):
        session.sql(QUERY, budget=bf.Budget(values=30)).collect()
    with pytest.raises(bf.BudgetExceeded, match="the session's"):
        session.sql(QUERY, budget=bf.Budget(values=30)).collect()


def test_another_session_goes_on_from_a_file_of_answers(tmp_path: Path) -> None:
    calls = 0
    for most in (40, 100):
        model = bf.ScriptedModel(spoken, batch_size=BATCH, fingerprint="budget test")
        session = bf.connect(
            model, cache=tmp_path / "answers.sqlite", progress="off", budget=bf.Budget(values=most)
        )
        session.from_pydict({"x": TEXTS}, name="t")
        if most == 40:
            with pytest.raises(bf.BudgetExceeded):
                session.sql(QUERY).collect()
        else:
            assert rows(session.sql(QUERY)) == RIGHT
        calls += asked(model)
        session.close()
    assert calls == 100


@pytest.mark.parametrize("given", [100, {"values": 100}, "values=100"])
def test_what_is_no_budget_is_refused_at_once(given: object) -> None:
    with pytest.raises(bf.OptionError, match="is not possible"):
        bf.connect(scripted(), cache=None, budget=given)  # type: ignore[arg-type]
    session = connected(scripted())
    with pytest.raises(bf.OptionError, match="is not possible"):
        session.sql(QUERY, budget=given)  # type: ignore[arg-type]
    with pytest.raises(bf.OptionError, match="is not possible"):
        session.sql(QUERY).with_budget(given)  # type: ignore[arg-type]
    with pytest.raises(bf.OptionError, match="is not possible"):
        session.budget = given  # type: ignore[assignment]


# ---------------------------------------------------------------- frames


def test_a_frame_s_budget_goes_on_to_what_verbs_make_of_it() -> None:
    model = scripted()
    session = connected(model)
    limited = session.table("t").with_budget(bf.Budget(values=25))
    frame = limited.filter(bf.llm_filter("holds 7", col("x"))).select("x").sort("x")
    assert frame.budget == bf.Budget(values=25)
    with pytest.raises(bf.BudgetExceeded):
        frame.collect()
    assert asked(model) == 25
    assert rows(frame.with_budget(None)) == RIGHT


def test_frames_that_are_joined_have_the_lower_limits() -> None:
    session = connected(scripted())
    left = session.table("t").with_budget(bf.Budget(values=25, seconds=60))
    right = session.table("t").with_budget(bf.Budget(values=30, cost=1))
    assert left.union(right).budget == bf.Budget(values=25, seconds=60, cost=1)
    joined = left.join(
        right.select(col("n").alias("m"), col("x").alias("y")), left_on="n", right_on="m"
    )
    assert joined.budget == bf.Budget(values=25, seconds=60, cost=1)
    assert session.table("t").union(session.table("t")).budget is None


def test_each_run_of_a_frame_has_its_whole_budget() -> None:
    model = scripted()
    frame = connected(model).sql(QUERY, budget=bf.Budget(values=60))
    with pytest.raises(bf.BudgetExceeded):
        frame.collect()
    assert rows(frame) == RIGHT
    assert asked(model) == 100


WAYS: dict[str, Callable[[bf.Frame], object]] = {
    "collect": lambda frame: frame.collect(),
    "count": lambda frame: frame.count(),
    "show": lambda frame: frame.show(100),
    "stream": lambda frame: list(frame.execute_stream()),
    "cache": lambda frame: frame.cache(),
    "describe": lambda frame: frame.describe(),
    "csv": lambda frame: frame.write_csv("nowhere"),
    "analyze": lambda frame: frame.explain_text(analyze=True),
    "pandas": lambda frame: frame.to_pandas(),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_get_data_heeds_the_budget(way: str) -> None:
    model = scripted()
    frame = connected(model).sql(QUERY, budget=bf.Budget(values=25))
    with pytest.raises(bf.BudgetExceeded):
        WAYS[way](frame)
    assert asked(model) == 25
    if way not in ("describe",):
        assert frame.trace.usage.values == 25
        assert frame.trace.calls.num_rows == 25


def test_arrow_s_stream_passes_on_the_text_of_the_error() -> None:
    frame = connected(scripted()).sql(QUERY, budget=bf.Budget(values=25))
    with pytest.raises(pa.ArrowInvalid, match="the query's budget is spent: values=25"):
        pa.table(frame)


def test_an_estimate_made_before_says_what_remains_of_the_whole_query() -> None:
    frame = connected(scripted()).sql(
        "SELECT x FROM t WHERE llm_filter('holds 0', x) AND llm_int('length', x) > 3",
        budget=bf.Budget(values=25),
    )
    expected = frame.estimate().total.values
    assert expected > 100
    with pytest.raises(bf.BudgetExceeded, match=rf"about {expected - 25} of the query") as raised:
        frame.collect()
    assert "value(s) of this step" in raised.value.message
    with pytest.raises(bf.BudgetExceeded) as raised:
        frame.collect()
    assert "of the query" not in raised.value.message  # that estimate is spent


# ---------------------------------------------------------------- other ways to ask


def test_plain_queries_heed_the_budget() -> None:
    model = scripted()
    session = connected(model, planner=False)
    frame = session.sql(QUERY, budget=bf.Budget(values=25))
    with pytest.raises(bf.BudgetExceeded, match="values=25"):
        frame.collect()
    assert asked(model) == 25
    assert rows(session.sql(QUERY, budget=bf.Budget(values=75))) == RIGHT
    assert asked(model) == 100


def test_create_table_as_heeds_the_budget() -> None:
    model = scripted()
    session = connected(model)
    create = f"CREATE TABLE made AS {QUERY}"
    with pytest.raises(bf.BudgetExceeded, match="values=25"):
        session.sql(create, budget=bf.Budget(values=25))
    assert asked(model) == 25
    assert not session.table_exist("made")
    session.sql(create, budget=bf.Budget(values=75))
    assert rows(session.table("made").sort("x")) == RIGHT
    assert asked(model) == 100


def test_insert_heeds_the_budget() -> None:
    model = scripted()
    session = connected(model)
    session.sql("CREATE TABLE made (x VARCHAR)")
    insert = f"INSERT INTO made {QUERY}"
    with pytest.raises(bf.BudgetExceeded, match="values=25"):
        session.sql(insert, budget=bf.Budget(values=25)).collect()
    assert asked(model) == 25
    assert rows(session.table("made")) == []


def test_explain_analyze_heeds_the_budget() -> None:
    model = scripted()
    session = connected(model)
    with pytest.raises(bf.BudgetExceeded):
        session.sql(f"EXPLAIN ANALYZE {QUERY}", budget=bf.Budget(values=25))
    assert asked(model) == 25


def test_options_that_a_model_chooses_count() -> None:
    model = scripted(hashed)
    session = connected(model)
    with pytest.raises(bf.BudgetExceeded):
        session.sql(
            "SELECT llm_map('Which?', x, options => (SELECT x FROM t WHERE llm_filter('ok?', x))) FROM t",
            budget=bf.Budget(values=25),
        ).collect()
    assert asked(model) == 25


def test_aggregates_and_notes_count() -> None:
    model = bf.ScriptedModel(lambda call: "note", batch_size=BATCH, window=512)
    session = connected(model)
    session.from_pydict(
        {"g": list("ab"), "x": [" ".join(map(str, range(n, n + 1_000))) for n in (0, 2_000)]},
        name="long",
    )
    with pytest.raises(bf.BudgetExceeded):
        session.sql(
            "SELECT g, llm_summarize(x) FROM long GROUP BY g", budget=bf.Budget(values=3)
        ).collect()
    assert asked(model) == 3


def test_a_user_s_function_counts() -> None:
    @bf.ingredient
    def long(model: bf.UserModel, text: pa.StringArray) -> pa.Int64Array:
        return model.ask("length", text, returns="int")

    model = scripted()
    with pytest.raises(bf.BudgetExceeded):
        connected(model).sql("SELECT long(x) FROM t", budget=bf.Budget(values=25)).collect()
    assert asked(model) == 25


def test_a_join_by_meaning_counts() -> None:
    model = scripted(hashed)
    session = connected(model)
    session.from_pydict({"y": [f"other {i}" for i in range(20)]}, name="u")
    frame = session.sql("SELECT x, y FROM t JOIN u ON llm_join(x, y)", budget=bf.Budget(values=7))
    with pytest.raises(bf.BudgetExceeded):
        frame.collect()
    assert asked(model) == 7


def test_registered_functions_have_one_budget_for_good() -> None:
    model = scripted()
    context = SessionContext()
    context.from_pydict({"x": TEXTS}, name="t")
    budget, prices = bf.Budget(values=25, cost=1.0), {"scripted": PRICE}
    bf.register(context, model, cache=None, budget=budget, prices=prices)
    for _ in range(2):
        with pytest.raises(Exception, match="the context's budget is spent: values=25"):
            context.sql(QUERY).collect()
        assert asked(model) == 25


def test_a_server_gets_no_more_requests_than_calls_allow() -> None:
    def script(body: Body) -> Reply:
        return Reply(json.dumps({"answer": "Yes"}))

    with serving(script) as server:
        session = bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off")
        session.from_pydict({"x": TEXTS}, name="t")
        frame = session.sql(
            "SELECT x FROM t WHERE llm_filter('ok?', x)", budget=bf.Budget(calls=37)
        )
        with pytest.raises(bf.BudgetExceeded, match=r"calls=37\. Used: values=37, calls=37"):
            frame.collect()
        assert len(server.bodies) == 37
        tokens = session.sql(
            "SELECT x FROM t WHERE llm_filter('good?', x)", budget=bf.Budget(prompt_tokens=1_000)
        )
        with pytest.raises(bf.BudgetExceeded, match=r"prompt_tokens=1000\. Used: values=50"):
            tokens.collect()


@pytest.mark.parametrize("limits", [{"prompt_tokens": 100}, {"cost": 0.0001}])
def test_the_first_batch_of_a_session_keeps_a_budget_as_the_later_ones_do(
    limits: dict[str, float],
) -> None:
    with serving(lambda body: Reply(json.dumps({"answer": "Yes"}))) as server:
        session = bf.connect(
            f"openai:tiny@{server.url}",
            cache=None,
            progress="off",
            prices=bf.Price(prompt=1.0, completion=0.0),
            budget=bf.Budget(**limits),  # type: ignore[arg-type]  # five values of 20 tokens
        )
        session.from_pydict({"x": TEXTS}, name="t")
        with pytest.raises(bf.BudgetExceeded, match=r"Used: values=5,"):
            session.sql("SELECT x FROM t WHERE llm_filter('ok?', x)").collect()


def test_a_server_without_a_price_is_not_asked_under_a_budget_of_cost() -> None:
    with serving(lambda body: Reply("yes")) as server:
        session = bf.connect(
            f"openai:tiny@{server.url}",
            cache=None,
            progress="off",
            budget=bf.Budget(cost=1.0),
            prices={"openai:tini": PRICE},
        )
        session.from_pydict({"x": TEXTS}, name="t")
        with pytest.raises(bf.OptionError, match="needs the price of the model 'openai:tiny@"):
            session.sql("SELECT x FROM t WHERE llm_filter('ok?', x)").collect()
        assert server.connections == 0


# ---------------------------------------------------------------- cost, shown


def test_cost_is_shown_where_prices_are_known() -> None:
    session = connected(scripted())
    frame = session.sql("SELECT llm_int('length', x) FROM t")
    expected = frame.estimate()
    assert expected.cost == pytest.approx(PRICE.of(expected.total))
    assert "Expected: 100 values, 400 prompt tokens, 200 completion tokens, cost 0.0006;" in str(
        expected
    )
    text = frame.explain_text(analyze=True)
    assert frame.trace.cost == pytest.approx(PRICE.of(frame.trace.usage))
    assert text.endswith(" s, cost 0.0005")
    assert session.ledger.cost == frame.trace.cost


def test_cost_is_unknown_without_prices() -> None:
    session = bf.connect(scripted(), cache=None, progress="off")
    session.from_pydict({"x": TEXTS}, name="t")
    frame = session.sql("SELECT llm_int('length', x) FROM t")
    assert frame.trace.cost == 0.0
    assert frame.estimate().cost is None
    assert "cost" not in frame.explain_text(analyze=True)
    assert frame.trace.cost is None


# ---------------------------------------------------------------- the command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[bf.ScriptedModel, list[str]]:
    model = scripted()
    connect = bf.connect

    def connect_scripted(model_: object = None, **options: object) -> bf.Session:
        return connect(**{**options, "model": model})  # type: ignore[arg-type]

    monkeypatch.setattr(bf, "connect", connect_scripted)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x", *TEXTS]), encoding="utf-8")
    return model, ["query", QUERY, "--table", f"t={path}", "--cache", "off"]


def test_the_command_takes_a_budget(
    command: tuple[bf.ScriptedModel, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    model, arguments = command
    assert main([*arguments, "--budget", "values=25,seconds=60"]) == 3
    assert "error: the query's budget is spent: values=25." in capsys.readouterr().err
    assert asked(model) == 25
    assert main([*arguments, "--budget", "cost=1"]) == 2
    assert "--price prompt=…,completion=…" in capsys.readouterr().err
    assert main([*arguments, "--budget", "cost=1", "--price", "prompt=1,completion=1"]) == 0
    assert main([*arguments, "--budget", "dollars=1"]) == 2
    assert "unknown part 'dollars' of the budget" in capsys.readouterr().err


def test_the_command_confirms(
    command: tuple[bf.ScriptedModel, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    model, arguments = command
    assert main([*arguments, "--confirm-above", "99"]) == 2
    assert "confirm_above=99 requires a yes before this query" in capsys.readouterr().err
    assert asked(model) == 0
    assert main([*arguments, "--confirm-above", "100"]) == 0
