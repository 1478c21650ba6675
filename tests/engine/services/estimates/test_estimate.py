"""Estimates: exact where nothing has to be assumed, bounded, and without asking or loading a
model."""

from __future__ import annotations

import importlib.util
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from datafusion import lit
from hypothesis import given, note, settings
from hypothesis import strategies as st
from queries import CHEAP_T, SHAPES, T_COLUMNS, U_COLUMNS, Query, tables
from scripts import Counted, spoken

import blendfusion as bf
from blendfusion.errors import ModelNotFound
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.services.estimates.sampling import any_rows, distinct_in_all, first_rows
from blendfusion.types import Task

N = 40
T = pa.table(
    {
        "id": range(N),
        "k": [i % 4 for i in range(N)],
        "x": [None if i % 10 == 0 else f"v{i % 20}" for i in range(N)],
    }
)
U = pa.table({"uid": range(6), "y": ["a", "c", "b", "c", None, "a"]})


@pytest.fixture
def db() -> Counted:
    return Counted(yes).add("t", T).add("u", U)


def yes(call: bf.Request) -> object:
    """True, the first label, or a short answer."""
    if call.constraint.kind == "boolean":
        return True
    if call.constraint.kind in ("integer", "number"):
        return 5
    return call.constraint.options[0] if call.constraint.options else "x"


# --- values --------------------------------------------------------------------------------------

ONE_CALL = [
    "SELECT id FROM t WHERE llm_filter('q', x)",
    "SELECT id FROM t WHERE llm_filter('q', x) AND k = 1",
    "SELECT id FROM t WHERE llm_filter('q', x) OR k = 1",
    "SELECT id FROM t WHERE NOT (k = 1 AND llm_filter('q', x)) OR id < 3",
    "SELECT CASE WHEN k = 2 THEN llm_map('m', x) END FROM t",
    "SELECT COALESCE(x, llm_map('m', id)) FROM t",
    "SELECT llm_map('m', x, k) FROM t",
    "SELECT id FROM t JOIN u ON k = uid WHERE llm_filter('q', x) AND y = 'c'",
    "SELECT id FROM t WHERE llm_filter('q', x) AND k IN (SELECT uid FROM u WHERE y = 'c')",
    "SELECT id, llm_map('m', x) FROM t ORDER BY id DESC LIMIT 3",
    "SELECT llm_int('n', x) AS n FROM t WHERE llm_int('n', x) > 2",
    "SELECT k, llm_qa('w', x) FROM t GROUP BY k HAVING count(*) > 1",
    "SELECT llm_classify(x, ['a', 'b']) AS g, count(*) FROM t GROUP BY g",
    "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.k WHERE llm_filter('q', a.x)",
    "SELECT x FROM t WHERE llm_filter('q', x) UNION SELECT y FROM u",
    "SELECT id FROM t WHERE llm_filter('q', x) AND id > 100",
]


@pytest.mark.parametrize("sql", ONE_CALL)
def test_one_call_over_a_small_source_is_exact(sql: str, db: Counted) -> None:
    frame = db.session.sql(sql)
    estimate = frame.estimate()
    assert db.model.calls == []
    assert estimate.exact
    assert estimate.total.values == db.asked(sql)
    after = db.session.sql(sql).estimate()
    assert (after.total.values, after.total.cached) == (0, estimate.total.values)


def test_a_second_predicate_is_assumed_to_see_half(db: Counted) -> None:
    sql = "SELECT id FROM t WHERE llm_filter('q', x) AND llm_filter('r', id)"
    frame = db.session.sql(sql)
    db.session.sql("SET blendfusion.rules_off = 'predicate_order'")
    first, second = frame.estimate().operators
    assert (first.values, first.rows, first.basis) == (18, 36, "exact")  # of 40, x is NULL in 4
    assert second.values == second.rows == 18
    assert second.basis == "assumed answers"
    assert "Assumed answers: " in str(frame.estimate())


def test_earlier_answers_tell_how_many_pass(db: Counted) -> None:
    db.rows("SELECT llm_filter('q', x) FROM t WHERE id < 11")
    sql = "SELECT llm_map('m', id) FROM t WHERE llm_filter('q', x)"
    passing = {op.call: op for op in db.session.sql(sql).estimate().operators}
    seen = passing["llm_filter('q', t.x)"]
    assert seen.usage is not None
    assert (seen.usage.values, seen.usage.cached, seen.exact) == (9, 9, True)
    shown = passing["llm_map('m', t.id)"]
    assert shown.basis == "earlier answers"
    # Nine answers, all true: ten of eleven are expected to be.
    assert shown.values is not None
    assert 32 <= shown.values <= 36


def test_a_limit_stops_where_enough_rows_pass(db: Counted) -> None:
    sql = "SELECT id FROM t WHERE llm_filter('q', x) AND id % 10 > 0 LIMIT 4"
    (asked,) = db.session.sql(sql).estimate().operators
    assert not asked.exact
    assert asked.values is not None
    assert 6 <= asked.values <= 10
    assert db.asked(sql) == 4


def test_random_rows_are_not_called_exact(db: Counted) -> None:
    sql = "SELECT id FROM t WHERE random() < 2 AND llm_filter('q', x)"
    (asked,) = db.session.sql(sql).estimate().operators
    assert (asked.values, asked.basis) == (18, "one draw of random values")


def test_an_equal_question_counts_once(db: Counted) -> None:
    sql = "SELECT llm_filter('q', x) FROM t UNION ALL SELECT llm_filter('q', x) FROM t WHERE k = 1"
    estimate = db.session.sql(sql).estimate()
    assert estimate.total.values == db.asked(sql) == 18


OF_TWO_COLUMNS = {
    "SELECT llm_map('m', x) FROM t UNION ALL SELECT llm_map('m', z) FROM same": 18,
    "SELECT llm_map('m', x) FROM t UNION ALL SELECT llm_map('m', y) FROM u": 21,
    "SELECT llm_map('m', x), llm_map('m', z) FROM (SELECT x, x || '' AS z FROM t)": 18,
    "SELECT llm_map('m', llm_map('m', x)) FROM t UNION ALL SELECT llm_map('m', z) FROM same": 19,
    "SELECT llm_filter('{}?', z) FROM same UNION ALL SELECT llm_filter('{}?', x) FROM t": 18,
    "SELECT llm_map('{x}', x) FROM t UNION ALL SELECT llm_map('{z}', z) FROM same": 36,
}


@pytest.mark.parametrize("sql", OF_TWO_COLUMNS)
def test_equal_texts_of_two_columns_are_asked_once(sql: str, db: Counted) -> None:
    db.add("same", T.rename_columns(["id", "k", "z"]))
    estimate = db.session.sql(sql).estimate()
    assert db.asked(sql) == OF_TWO_COLUMNS[sql]
    if estimate.exact:
        assert estimate.total.values == OF_TWO_COLUMNS[sql]
    assert estimate.least <= OF_TWO_COLUMNS[sql]
    assert estimate.exact or "llm_map('m', llm_map" in sql
    after = db.session.sql(sql).estimate()
    assert (after.exact, after.total.values) == (True, 0)


def test_guessed_answers_about_texts_of_another_column_are_guesses(db: Counted) -> None:
    db.add("same", T.rename_columns(["id", "k", "z"]))
    sql = (
        "SELECT llm_map('m', x), (SELECT count(llm_map('n', z)) FROM same "
        "WHERE llm_filter('q', z)) FROM t WHERE llm_filter('q', x)"
    )
    operators = {op.call: op for op in db.session.sql(sql).estimate().operators}
    filters = [operators[f"llm_filter('q', {name})"].values for name in ("same.z", "t.x")]
    assert filters == [18, 0]
    for call in ("llm_map('m', t.x)", "llm_map('n', same.z)"):
        assert (operators[call].exact, operators[call].basis) == (False, "assumed answers")


def test_a_stage_above_guessed_answers_is_assumed(db: Counted) -> None:
    sql = "SELECT g, llm_qa('w', x) FROM (SELECT x, llm_classify(x, ['a', 'b']) AS g FROM t) GROUP BY g"
    classify, answer = db.session.sql(sql).estimate().operators
    assert (classify.values, classify.exact) == (18, True)
    assert (answer.stage, answer.exact) == (2, False)
    assert answer.values in (2, 3)  # two labels, and NULL for no text


def test_notes_on_long_contexts_are_counted() -> None:
    model = bf.ScriptedModel(lambda call: "short", window=400)
    session = bf.connect(model, progress="off")
    session.from_pydict({"x": [f"{i} " + "word " * 40 for i in range(40)]}, name="long")
    frame = session.sql("SELECT llm_qa('why', x) FROM long")
    (asked,) = frame.estimate().operators
    assert asked.notes > 0
    assert "notes on long contexts" in str(asked)
    frame.collect()
    assert asked.values == len(model.calls)


def test_a_users_function_is_one_question_a_row_of_values(db: Counted) -> None:
    @bf.ingredient
    def twice(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
        raise AssertionError("an estimate does not run it")

    try:
        (asked,) = db.session.sql("SELECT twice(x) FROM t").estimate().operators
        assert asked.values == 18
        assert asked.basis.startswith("assumed: one question")
    finally:
        from blendfusion.udfs.register import user_functions as define

        define._defined.pop("twice", None)


def test_a_plain_plan_is_unknown(db: Counted) -> None:
    plain = bf.connect(db.model, planner=False, progress="off")
    plain.from_arrow(T, name="t")
    estimate = plain.sql("SELECT id FROM t WHERE llm_filter('q', x)").estimate()
    assert estimate.operators[0].usage is None
    assert not estimate.complete
    assert "unknown: plain plan: the option planner is off" in str(estimate)


def test_a_frame_without_calls_asks_nothing(db: Counted) -> None:
    estimate = db.session.sql("SELECT id FROM t").estimate()
    assert estimate.operators == ()
    assert (estimate.total, estimate.seconds) == (bf.Usage(), 0)


def test_options_from_a_subquery_are_read(db: Counted) -> None:
    sql = "SELECT llm_classify(x, (SELECT y FROM u)) FROM t"
    assert db.session.sql(sql).estimate().total.values == db.asked(sql) == 18


# --- properties ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_called_exact_is_exact(shape: str) -> None:
    @settings(max_examples=8)
    @given(t=tables(T_COLUMNS, "id"), u=tables(U_COLUMNS, "uid"), query=SHAPES[shape])
    def check(t: pa.Table, u: pa.Table, query: Query) -> None:
        db = Counted().add("t", t).add("u", u)
        db.session.sql(
            "CREATE VIEW seen AS SELECT id, a, n, flag, llm_map('t1', a) AS v, "
            "llm_filter('q2', b) AS y FROM t WHERE id % 3 < 2 AND llm_filter('q1', a)"
        )
        db.session.sql("SET blendfusion.rules_off = 'predicate_order'")
        frame = db.session.sql(query.sql)
        estimate = frame.estimate()
        note(f"{query.sql}\n{estimate}")
        assert db.model.calls == []
        assert estimate.complete
        frame.collect()
        if estimate.exact:
            assert estimate.total.values == len(db.model.calls)
        for op in estimate.operators:
            if op.exact and sum(other.task == op.task for other in estimate.operators) == 1:
                told = op.task.in_full
                assert op.values == sum(call.task == told for call in db.model.calls), op.call
        after = db.session.sql(query.sql).estimate()
        note(f"afterwards: {after}")
        assert after.total.values == 0

    check()


@given(
    t=tables(T_COLUMNS, "id"),
    cheap=st.sampled_from(CHEAP_T),
    gate=st.sampled_from(["{0} AND {1}", "{0} OR {1}", "CASE WHEN {0} THEN {1} ELSE {0} END"]),
    call=st.sampled_from(["llm_filter('q', a)", "llm_int('i', b) > 3", "llm_map('m', a, n) = 'x'"]),
)
@settings(max_examples=40)
def test_one_call_behind_a_cheap_gate_is_exact(
    t: pa.Table, cheap: str, gate: str, call: str
) -> None:
    db = Counted().add("t", t)
    sql = f"SELECT id FROM t WHERE {gate.format(cheap, call)}"
    estimate = db.session.sql(sql).estimate()
    assert estimate.exact
    assert estimate.total.values == db.asked(sql)


# --- samples -------------------------------------------------------------------------------------


def test_a_large_source_is_sampled() -> None:
    n = 300_000
    db = Counted(yes).add(
        "big",
        pa.table(
            {
                "few": pa.array([f"v{i % 50}" for i in range(n)]),
                "own": pa.array([f"text {i}" for i in range(n)]),
                "some": pa.array([f"t{v}" for v in random.Random(1).choices(range(5000), k=n)]),
            }
        ),
    )

    def estimated(column: str, tail: str = "") -> bf.OperatorEstimate:
        (op,) = db.session.sql(f"SELECT llm_map('m', {column}) FROM big{tail}").estimate().operators
        assert op.values is not None
        return op

    assert estimated("few").values == 50
    assert estimated("own").values == n
    assert estimated("some").values == pytest.approx(5000, rel=0.05)
    assert estimated("own", " WHERE few < 'v2'").values == pytest.approx(n * 12 / 50, rel=0.05)
    assert estimated("few").basis.startswith("sample of ")
    assert estimated("few").basis.endswith(" of 300,000 rows")
    assert estimated("own", " ORDER BY own LIMIT 7").values == 7
    assert estimated("own", " ORDER BY own LIMIT 7").exact


def batches(rows: int, size: int) -> list[pa.RecordBatch]:
    return [
        pa.record_batch({"i": pa.array(range(start, min(start + size, rows)))})
        for start in range(0, rows, size)
    ]


SCHEMA = pa.schema([("i", pa.int64())])


@given(rows=st.integers(0, 400), size=st.integers(1, 90), most=st.integers(2, 120))
def test_samples_are_bounded_and_complete_where_they_can_be(
    rows: int, size: int, most: int
) -> None:
    some = any_rows(batches(rows, size), SCHEMA, most_rows=most, seconds=60)
    first = first_rows(batches(rows, size), SCHEMA, most)
    assert (some.counted, some.rows) == (True, rows)
    for sample in (some, first):
        assert sample.table.num_rows <= most
        assert sample.complete == (rows <= most)
    assert first.table.column(0).to_pylist() == list(range(min(rows, most)))
    kept = some.table.column(0).to_pylist()
    assert kept == sorted(set(kept))
    assert any_rows(batches(rows, size), SCHEMA, most_rows=most, seconds=60).table == some.table


def test_a_large_stream_is_not_read_to_its_end() -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield batches(100, 100)[0]

    sample = any_rows(endless(), SCHEMA, most_rows=1000, seconds=0.0)  # type: ignore[arg-type]
    assert not sample.counted
    assert sample.rows == 100 * taken == 1100
    assert not first_rows(endless(), SCHEMA, 1000).counted  # type: ignore[arg-type]


def test_the_estimator_is_right_at_its_ends() -> None:
    assert distinct_in_all(1000, 100, 100, 100) == 1000
    assert distinct_in_all(1000, 100, 5, 0) == 5
    assert distinct_in_all(100, 100, 60, 20) == 60
    assert distinct_in_all(0, 0, 0, 0) == 0


# --- tokens and seconds --------------------------------------------------------------------------


def test_tokens_and_seconds_say_what_they_rest_on(db: Counted) -> None:
    frame = db.session.sql("SELECT llm_map('m', x) FROM t")
    (before,) = frame.estimate().operators
    assert (before.tokens_basis, before.seconds_basis) == ("the model's count", "no rate yet")
    assert before.seconds is None
    assert frame.estimate().seconds is None
    assert "no time yet" in str(frame.estimate())
    frame.collect()
    assert before.usage is not None
    assert before.usage.prompt_tokens == frame.trace.usage.prompt_tokens
    db.session.clear_cache()
    (after,) = frame.estimate().operators
    assert after.tokens_basis == after.seconds_basis == "measured on 18 values"
    assert after.usage is not None
    assert after.seconds is not None
    assert after.usage.completion_tokens == frame.trace.usage.completion_tokens
    assert after.seconds == pytest.approx(frame.trace.usage.seconds)
    (other,) = db.session.sql("SELECT llm_map('another', x) FROM t").estimate().operators
    assert other.seconds_basis == "this session's seconds a token"
    assert other.seconds is not None
    assert other.seconds > 0


def test_no_model_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> bf.Model:
        raise ModelNotFound("none is installed")

    monkeypatch.setattr("blendfusion.models.registry.model_names.load", none)
    session = bf.connect(progress="off")
    session.from_arrow(T, name="t")
    frame = session.sql("SELECT id FROM t WHERE llm_filter('q', x)")
    (asked,) = frame.estimate().operators
    assert (asked.values, asked.tokens_basis) == (18, "4 characters a token")
    assert "18 values of 40 rows (exact)" in frame.explain_text()


@pytest.mark.local
@pytest.mark.skipif(
    packaged_weights() is None or importlib.util.find_spec("llama_cpp") is None,
    reason="the packaged model is not installed",
)
def test_no_weights_are_loaded() -> None:
    with bf.connect("smollm2", progress="off") as session:
        session.from_pydict({"x": ["It took 3 days.", "It took 4 days."]}, name="t")
        frame = session.sql("SELECT llm_int('How many days?', x) FROM t")
        assert "2 values of 2 rows (exact)" in frame.explain_text()
        (weights,) = frame.estimate().weights.values()
        assert f"Weights of {session.model.name}: {weights}" in frame.explain_text().splitlines()
        assert not session.model.inner.is_loaded  # type: ignore[attr-defined]
        frame.collect()
        assert session.model.info.settings["weights"] == weights
        session.close()
        assert frame.estimate().total == bf.Usage(cached=2)
        assert not session.model.inner.is_loaded  # type: ignore[attr-defined]


# --- EXPLAIN -------------------------------------------------------------------------------------


class _Copied(bf.ScriptedModel):
    """A model that says which weights answer."""

    @property
    def abilities(self) -> Abilities:
        return replace(super().abilities, weights="F16, made of Q4_1")


@pytest.mark.parametrize("planner", [True, False])
def test_explain_tells_which_weights_answer(planner: bool) -> None:
    small, large = (
        _Copied(lambda call: True, name="small"),
        bf.ScriptedModel(lambda call: True, name="large"),
    )
    session = bf.connect([small, large], cache=None, progress="off", planner=planner)
    session.register_model("another", _Copied(lambda call: True, name="another"))
    session.from_arrow(T, name="t")
    frame = session.sql("SELECT id FROM t WHERE llm_filter('q', x)")
    assert frame.estimate().weights == {"small": "F16, made of Q4_1"}
    assert str(frame.estimate()).endswith("\nWeights of small: F16, made of Q4_1")
    assert frame.explain_text().endswith("\nWeights of small: F16, made of Q4_1")
    assert "Weights of small: F16, made of Q4_1" in frame.explain_text(analyze=True)
    named = session.sql("SELECT id FROM t WHERE llm_filter('q', x, model => ['another', 'large'])")
    assert named.estimate().weights == {"another": "F16, made of Q4_1"}
    assert session.sql("SELECT id FROM t").estimate().weights == {}


class _ByWords(bf.ScriptedModel):
    """A model that says by which words it tells replies apart."""

    @property
    def abilities(self) -> Abilities:
        return replace(super().abilities, scored_by=_words)


def _words(task: Task) -> str | None:
    return "Yes against No" if task.constraint.kind == "boolean" else None


@pytest.mark.parametrize("planner", [True, False])
def test_explain_tells_by_which_words_replies_are_scored(planner: bool) -> None:
    model = _ByWords(lambda call: "true")
    session = bf.connect(model, cache=None, progress="off", planner=planner)
    session.from_arrow(T, name="t")
    frame = session.sql("SELECT llm_map('r', x) FROM t WHERE llm_filter('q', x)")

    asked, *lines = frame.explain_text().split("ask llm_filter")[1].splitlines()

    assert ("[expected: " in asked) is planner
    assert lines[0].strip() == "scored by: Yes against No"
    assert frame.explain_text().count("scored by") == 1
    assert frame.explain_text(analyze=True).count("scored by: Yes against No") == 1
    assert "scored by" not in frame.explain_text(estimates=False)


def test_explain_shows_what_is_expected_and_analyze_what_became_of_it(db: Counted) -> None:
    sql = "SELECT llm_map('m', x) FROM t WHERE k = 1"
    frame = db.session.sql(sql)
    text = frame.explain_text()
    assert "→ text  [expected: 5 values of 10 rows (exact), 10 prompt tokens, " in text
    assert "\nExpected: 5 values, 10 prompt tokens, " in text
    assert "expected" not in frame.explain_text(estimates=False).lower()
    assert db.model.calls == []
    analyzed = frame.explain_text(analyze=True)
    assert "[5 values asked (5 expected), " in analyzed
    assert "Total: 5 values asked (5 expected), " in analyzed


def test_explain_verbose_shows_what_each_rule_did(db: Counted) -> None:
    sql = "SELECT id FROM t JOIN u ON k = uid WHERE llm_filter('q', x) LIMIT 3"
    text = "\n".join(str(row[0]) for row in db.rows(f"EXPLAIN VERBOSE {sql}"))
    lines = [line.strip() for line in text.split("Rules that fired")[1].splitlines()]
    assert "before inner join on t.k = u.uid" in lines
    assert "after  block filter llm_filter('q', t.x) limit 3" in lines
    assert any(line.startswith("push_limit ×1 (") for line in lines)


# --- constants -----------------------------------------------------------------------------------

OF_CONSTANTS = {
    "SELECT llm_map('m', 'a' || 'b') FROM t": 1,
    "SELECT id FROM t WHERE llm_filter('q', upper('a')) AND k = 1": 1,
    "SELECT id FROM t WHERE k = 17 AND llm_filter('q', upper('a'))": 0,
    "SELECT llm_map('m', c) FROM (SELECT 'a' AS c)": 1,
    "SELECT id FROM t WHERE x = (SELECT llm_map('m', c) FROM (SELECT 'a' AS c))": 1,
    "SELECT CASE WHEN 1 = 2 THEN llm_map('m', 'a' || 'b') END FROM t": 0,
    "SELECT id FROM t JOIN u ON k = uid AND llm_filter('q', upper('a')) AND y = 'c'": 1,
}


@pytest.mark.parametrize("sql", OF_CONSTANTS)
def test_a_call_of_constants_is_asked_when_the_query_runs_and_not_before(
    sql: str, db: Counted
) -> None:
    frame = db.session.sql(sql)
    frame.explain_text(estimates=False)
    estimate = frame.estimate()
    str(frame.logical_plan()), str(frame.optimized_logical_plan())
    assert db.model.calls == []
    frame.collect()
    assert len(db.model.calls) == OF_CONSTANTS[sql] == frame.trace.usage.values
    assert (estimate.total.values or 0) >= OF_CONSTANTS[sql]


def test_calls_of_constants_in_frames(db: Counted) -> None:
    frame = db.session.table("t").select(bf.llm_map("m", lit("a")).alias("m"))
    frame.estimate()
    assert db.model.calls == []
    assert set(frame.to_pydict()["m"]) == {"x"}
    assert len(db.model.calls) == 1


def test_an_estimate_does_not_depend_on_which_partition_is_first() -> None:
    """The branches of a union, computed at once, arrive in any order."""
    branches = [
        f"SELECT x || '{n}' AS v FROM t WHERE id < {n} AND llm_filter('q', x || '{n}')"
        for n in range(1, 40)
    ]
    sql = "SELECT v FROM (" + " UNION ALL ".join(branches) + ") WHERE llm_filter('r', v)"
    seen = set()
    for _ in range(4):
        db = Counted(spoken)
        db.add("t", {"id": list(range(40)), "x": [f"text {i % 7}" for i in range(40)]})
        estimate = db.session.sql(sql).estimate()
        seen.add(tuple((op.call, op.rows, op.values) for op in estimate.operators))
    assert len(seen) == 1
