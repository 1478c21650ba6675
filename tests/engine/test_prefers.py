"""llm_prefers: ranks by comparisons of pairs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import chain, combinations
from math import log2

import pytest
from datafusion import col
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.udfs.services.columns.both_orders import BothOrders
from blendfusion.udfs.services.columns.ranking import most_pairs, ranking

LENGTHS = [3, 9, 1, 14, 6, 12, 2, 8, 11, 5, 4, 13, 7, 10]
TEXTS = ["a" * length for length in LENGTHS]
QUESTION = "Of the two texts, which is longer: the first or the second?"


def longer(request: bf.Request) -> object:
    if len(request.values) == 1:
        return 5 if request.constraint.kind == "score" else "b" not in str(request.values[0])
    first, second = map(str, request.values)
    return "first" if len(first) > len(second) else "second"


def connected(
    texts: list[str | None], answer: Callable[[bf.Request], object] = longer
) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None)
    session.from_pydict({"id": [*range(len(texts))], "x": texts}, name="t")
    return session, model


def pairs_of(model: bf.ScriptedModel) -> Counter[frozenset[object]]:
    return Counter(frozenset(call.values) for call in model.calls)


@given(st.permutations(range(30)), st.integers(1, 30), st.booleans())
def test_a_total_order_is_exact_with_few_pairs(order: list[int], k: int, last: bool) -> None:
    n, asked = len(order), []

    def judge(pairs: list[tuple[int, int]]) -> list[float]:
        asked.extend(map(frozenset, pairs))
        return [float(order[a] < order[b]) for a, b in pairs]

    found = ranking(n, judge, -k if last else k)
    right = sorted(range(n), key=lambda place: order[place], reverse=last)[:k]
    assert found.places == right
    assert len(asked) == len(set(asked)) == found.pairs <= n + 2 * k * log2(n)
    assert not found.contradicted


@given(st.permutations(range(12)), st.sets(st.integers(0, 65), max_size=20))
def test_any_answers_give_an_order_and_each_pair_is_asked_once(
    order: list[int], wrong: set[int]
) -> None:
    numbers = {pair: i for i, pair in enumerate(combinations(range(12), 2))}
    asked = []

    def judge(pairs: list[tuple[int, int]]) -> list[float]:
        asked.extend(map(frozenset, pairs))
        return [float((order[a] < order[b]) != (numbers[a, b] in wrong)) for a, b in pairs]

    for k in (3, 12):
        asked.clear()
        found = ranking(12, judge, k)
        assert len(set(found.places)) == k
        assert len(asked) == len(set(asked)) <= most_pairs(12, k)


@pytest.mark.parametrize(
    ("query", "expected", "most"),
    [
        ("SELECT x FROM t ORDER BY {} LIMIT 2", [14, 13], 14 + 4 * log2(14)),
        ("SELECT x FROM t ORDER BY {} DESC LIMIT 2", [1, 2], 14 + 4 * log2(14)),
        ("SELECT x FROM t ORDER BY {} LIMIT 1 OFFSET 1", [13], 14 + 4 * log2(14)),
        ("SELECT x FROM t WHERE id < 5 ORDER BY {}, id LIMIT 1", [14], 5 + 2 * log2(5)),
        ("SELECT x FROM t WHERE id IN (0, 1, 2) ORDER BY {}", [9, 3, 1], 3 + 6 * log2(3)),
        (
            "SELECT x FROM (SELECT x, {} AS r FROM t) WHERE r <= 2 ORDER BY r",
            [14, 13],
            14 + 4 * log2(14),
        ),
    ],
)
def test_places_of_a_query(query: str, expected: list[int], most: float) -> None:
    session, model = connected([*TEXTS, TEXTS[0]][:14])
    rows = session.sql(query.format("llm_prefers('which is longer', x)")).to_pylist()
    assert [len(row["x"]) for row in rows] == expected
    assert len(model.calls) <= most
    assert {call.question for call in model.calls} == {QUESTION}


NUMBERED = "(SELECT x, id, row_number() OVER (ORDER BY {}) AS n FROM t)"
WITH_RANK = "(SELECT x, id, {} AS r FROM t)"


@pytest.mark.parametrize(
    ("query", "ranks"),
    [
        (f"SELECT x, n FROM {NUMBERED} WHERE n <= 2", 2),
        (f"SELECT x, n FROM {NUMBERED} WHERE 3 > n AND id > 2", 2),
        (f"SELECT x, n FROM {NUMBERED} WHERE n BETWEEN 2 AND 3", 3),
        (f"SELECT x, n FROM {NUMBERED} WHERE n IN (1, 3)", 3),
        (f"SELECT x, n FROM {NUMBERED.replace('{}', '{} DESC')} WHERE n = 2", 2),
        ("SELECT x FROM t QUALIFY rank() OVER (ORDER BY {}) <= 2", 2),
        ("SELECT x FROM t QUALIFY dense_rank() OVER (ORDER BY {}, id) < 3", 2),
        (f"SELECT x, r FROM {WITH_RANK} WHERE r = 3", 3),
        ("SELECT x FROM t WHERE {} <= 2", 2),
        (
            f"SELECT x, r, n FROM (SELECT x, r, row_number() OVER (ORDER BY r) AS n FROM {WITH_RANK}) "
            "WHERE n < 3",
            2,
        ),
        # Others' ranks matter here: those of a mean, of a disjunction, of last rows.
        (
            f"SELECT x, m FROM (SELECT x, r, avg(r) OVER () AS m FROM {WITH_RANK}) WHERE r <= 2",
            None,
        ),
        (
            "SELECT x, n FROM (SELECT x, r, row_number() OVER (ORDER BY r DESC) AS n FROM "
            f"{WITH_RANK}) WHERE r <= 2",
            None,
        ),
        (f"SELECT x, r FROM {WITH_RANK} WHERE r <= 2 OR id = 2", None),
        (f"SELECT x, r FROM {WITH_RANK} WHERE r >= 12", None),
        (
            f"SELECT x, m FROM (SELECT x, r, avg(r) OVER () AS m FROM {WITH_RANK}) ORDER BY r LIMIT 2",
            None,
        ),
    ],
)
def test_a_filter_on_ranks_wants_the_first_ones_alone(query: str, ranks: int | None) -> None:
    query = query.format("llm_prefers('which is longer', x)")
    session, model = connected([*TEXTS])
    rows = session.sql(query).to_pylist()
    plain, other = connected([*TEXTS])
    plain.sql("SET blendfusion.rules_off = 'ranked_limits'")
    assert sorted(map(repr, rows)) == sorted(map(repr, plain.sql(query).to_pylist()))
    assert rows
    if ranks is None:
        assert len(model.calls) == len(other.calls)
    else:
        assert len(model.calls) <= 14 + 2 * ranks * log2(14) < len(other.calls)
        shown = session.sql(query).explain_text()
        assert f"k => {-ranks if 'DESC' in query else ranks})" in shown


IN_PARTITIONS = "SELECT id, x FROM (SELECT id, x, {} AS n FROM t) WHERE n <= 2"


@pytest.mark.parametrize(
    ("window", "partitions"),
    [
        ("row_number() OVER (PARTITION BY id % 3 ORDER BY {})", 3),
        ("rank() OVER (PARTITION BY id % 3 ORDER BY {}, id)", 3),
        ("dense_rank() OVER (PARTITION BY id % 3 ORDER BY {} DESC)", 3),
        ("row_number() OVER (PARTITION BY nullif(id % 3, 0) ORDER BY {})", 3),
        ("row_number() OVER (PARTITION BY id % 2, id > 6 ORDER BY {})", 4),
        ("row_number() OVER (PARTITION BY CAST(id % 2 AS DOUBLE) * -1 ORDER BY {})", 2),
        ("row_number() OVER (PARTITION BY [id % 2] ORDER BY {})", 2),
        ("row_number() OVER (PARTITION BY 1 ORDER BY {})", 1),
    ],
)
def test_each_partition_is_ranked_by_itself(window: str, partitions: int) -> None:
    query = IN_PARTITIONS.format(window.format("llm_prefers('which is longer', x)"))
    session, model = connected([*TEXTS])
    rows = session.sql(query).to_pylist()
    plain, other = connected([*TEXTS])
    plain.sql("SET blendfusion.rules_off = 'ranked_limits, ranked_partitions'")
    assert sorted(map(repr, rows)) == sorted(map(repr, plain.sql(query).to_pylist()))
    assert len(rows) == 2 * partitions
    n = 14 / partitions
    assert len(model.calls) <= partitions * (n + 4 * log2(n)) + partitions  # pairs, and turned ones
    assert len(model.calls) < len(other.calls)


def test_sixty_texts_in_four_partitions_take_a_quarter_of_the_pairs() -> None:
    lengths = random.Random(3).sample(range(1, 500), 60)
    session, model = connected(["a" * length for length in lengths])
    query = IN_PARTITIONS.format(
        "row_number() OVER (PARTITION BY id % 4 ORDER BY llm_prefers('which is longer', x))"
    )
    frame = session.sql(query)
    right = [sorted(lengths[part::4], reverse=True)[:2] for part in range(4)]
    assert sorted(len(row["x"]) for row in frame.to_pylist()) == sorted(chain(*right))
    assert len(model.calls) <= 111  # all 60 in one order: 313
    assert "4 groups, of the largest:" in frame.explain_text(analyze=True)


def test_a_value_of_several_partitions_is_ranked_in_each() -> None:
    session, model = connected(["a", "aaa", "aa", "aaa", None, "a"])
    query = (
        "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY id < 3 "
        "ORDER BY llm_prefers('which is longer', x), id) = 1"
    )
    assert sorted(row["id"] for row in session.sql(query).to_pylist()) == [1, 3]
    assert max(pairs_of(model).values()) <= 2  # in both orders


def test_model_predicates_come_before_the_ranks_of_partitions() -> None:
    session, model = connected([*TEXTS, "b" * 30, "b" * 40])
    query = (
        "SELECT x FROM t WHERE id > 3 AND llm_filter('q', x) "
        "QUALIFY row_number() OVER (PARTITION BY id % 2 ORDER BY llm_prefers('which is longer', x)) = 1"
    )
    frame = session.sql(query)
    assert sorted(len(row["x"]) for row in frame.to_pylist()) == [11, 13]
    compared = {value for pair in pairs_of(model) if len(pair) == 2 for value in pair}
    assert not any("b" in str(value) for value in compared)
    assert "k => 1) among the values of stage 2 with equal t.id % 2" in frame.explain_text()


@pytest.mark.parametrize(
    "query",
    [
        # The ranks are shown, or read by another column, a condition or another window.
        "SELECT x, r FROM (SELECT x, r, row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n FROM R) WHERE n = 1",
        "SELECT x, s FROM (SELECT x, r + 1 AS s, row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n FROM R) WHERE n = 1",
        "SELECT x FROM (SELECT x, r, row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n FROM R) WHERE n = 1 AND r < 5",
        "SELECT x, m FROM (SELECT x, max(r) OVER (PARTITION BY id % 2) AS m, "
        "row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n FROM R) WHERE n = 1",
        "SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n, "
        "row_number() OVER (PARTITION BY id % 3 ORDER BY r) AS m FROM R) WHERE n = 1 AND m = 1",
        "SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY r % 2 ORDER BY r) AS n FROM R) WHERE n = 1",
        # Last rows, and a disjunction.
        "SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n FROM R) WHERE n > 6",
        "SELECT x FROM (SELECT x, id, row_number() OVER (PARTITION BY id % 2 ORDER BY r) AS n FROM R) WHERE n = 1 OR id = 2",
    ],
)
def test_partitions_whose_ranks_matter_elsewhere_are_one_column(query: str) -> None:
    query = query.replace("FROM R", f"FROM {WITH_RANK}".format("llm_prefers('which is longer', x)"))
    session, model = connected([*TEXTS])
    rows = session.sql(query).to_pylist()
    plain, other = connected([*TEXTS])
    plain.sql("SET blendfusion.rules_off = 'ranked_limits, ranked_partitions'")
    assert sorted(map(repr, rows)) == sorted(map(repr, plain.sql(query).to_pylist()))
    assert rows
    assert len(model.calls) == len(other.calls)
    assert "with equal" not in session.sql(query).explain_text()


def test_equal_values_are_one_and_blank_ones_have_no_rank() -> None:
    session, model = connected(["a", "aaa", "aaa", None, " ", "aa"])
    frame = session.sql("SELECT id, llm_prefers('which is longer', x) AS r FROM t ORDER BY r, id")
    assert [(row["id"], row["r"]) for row in frame.to_pylist()] == [
        *((1, 1), (2, 1), (5, 2), (0, 3), (3, None), (4, None))
    ]
    assert set(pairs_of(model)) <= {frozenset(p) for p in combinations(("a", "aa", "aaa"), 2)}


def test_model_predicates_come_first() -> None:
    session, model = connected([*TEXTS, "b" * 30, "b" * 40])
    query = (
        "SELECT x FROM t WHERE id > 3 AND llm_filter('q', x) "
        "ORDER BY llm_prefers('which is longer', x) LIMIT 1"
    )
    frame = session.sql(query)
    assert frame.to_pylist() == [{"x": "a" * 13}]
    compared = {value for pair in pairs_of(model) if len(pair) == 2 for value in pair}
    assert not any("b" in str(value) for value in compared)
    assert "llm_prefers('which is longer', t.x, k => 1)" in frame.explain_text()


def test_data_frames_take_the_same_call() -> None:
    session, model = connected([*TEXTS])
    rank = bf.llm_prefers("which is longer", "x")
    frame = session.table("t").sort(rank.sort(ascending=True)).limit(2).select(col("x"))
    assert [len(row["x"]) for row in frame.to_pylist()] == [14, 13]
    assert len(model.calls) <= 14 + 4 * log2(14)


def test_order_of_rows_and_runs_changes_nothing() -> None:
    def found(texts: list[str | None]) -> tuple[object, Counter[frozenset[object]]]:
        session, model = connected(texts)
        query = "SELECT x FROM t ORDER BY llm_prefers('which is longer', x) LIMIT 3"
        rows = session.sql(query).to_pylist()
        asked = len(model.calls)
        assert session.sql(query).to_pylist() == rows
        assert len(model.calls) == asked  # remembered
        return rows, pairs_of(model)

    usual = found([*TEXTS])
    assert found(random.Random(1).sample(TEXTS, len(TEXTS))) == usual


def test_a_model_with_a_favourite_position_is_asked_in_both_orders() -> None:
    def biased(request: bf.Request) -> dict[str, float]:
        lead = len(str(request.values[0])) - len(str(request.values[1]))
        first = min(0.98, max(0.02, 0.8 + 0.1 * lead))  # the first wins but for a clear lead
        return {"first": first, "second": 1 - first}

    session, model = connected([*TEXTS], biased)
    frame = session.sql("SELECT x FROM t ORDER BY llm_prefers('which is longer', x) LIMIT 3")
    assert [len(row["x"]) for row in frame.to_pylist()] == [14, 13, 12]
    assert set(pairs_of(model).values()) == {2}
    assert "so all are asked in both" in frame.explain_text(analyze=True)


def test_both_orders_are_asked_of_a_sample_alone_without_a_favourite() -> None:
    judge = BothOrders(lambda pairs: [float(a < b) for a, b in pairs], 4)
    assert judge([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]) == [1.0] * 5
    assert judge([(0, 2)]) == [1.0]
    assert (judge.sampled, judge.turned, judge.questions) == (4, 0, 10)


def test_cyclic_answers_are_reported() -> None:
    beats = {("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")}
    session, _ = connected(
        ["rock", "paper", "scissors"],
        lambda request: "first" if tuple(map(str, request.values)) in beats else "second",
    )
    frame = session.sql("SELECT x, llm_prefers('which wins', x, check => 3) AS r FROM t")
    assert sorted(row["r"] for row in frame.to_pylist()) == [1, 2, 3]
    assert "1 of 1 implied pairs checked is cyclic" in frame.explain_text(analyze=True)


def test_scores_decide_where_comparisons_do_not() -> None:
    def answer(request: bf.Request) -> object:
        return len(str(request.values[0])) if request.constraint.kind == "score" else None

    session, model = connected(["aaa", "a", "aa"], answer)
    query = "SELECT x FROM t ORDER BY llm_prefers('q', x, scores => 'How long is it?') LIMIT 1"
    frame = session.sql(query)
    with pytest.warns(bf.AnswerWarning):
        assert frame.to_pylist() == [{"x": "aaa"}]
    assert [c.values for c in model.calls if c.constraint.kind == "score"] == [
        *(("a",), ("aa",), ("aaa",))
    ]
    with pytest.warns(bf.AnswerWarning):
        assert "2 undecided" in frame.explain_text(analyze=True)


def test_estimates_and_budgets_count_pairs() -> None:
    session, model = connected([*TEXTS])
    query = "SELECT x FROM t ORDER BY llm_prefers('which is longer', x) LIMIT 1"
    assert 13 <= session.sql(query).estimate().total.values <= 2 * (14 + 2 * log2(14))
    assert not model.calls
    with pytest.raises(bf.BudgetExceeded):
        session.sql(query, budget=bf.Budget(values=5)).to_pylist()
    assert len(model.calls) <= 5


def test_wrong_options_say_what_to_write() -> None:
    session, _ = connected([*TEXTS])
    with pytest.raises(bf.ArgumentError, match="first ranks"):
        session.sql("SELECT llm_prefers('q', x, k => 0) FROM t")


@pytest.mark.long
@pytest.mark.local
def test_the_packaged_model_ranks() -> None:
    session = bf.connect(cache=None)
    texts = ["I am furious, never again!", "Fine, thank you.", "It is a bit late."]
    session.from_pydict({"x": texts}, name="t")
    query = "SELECT x FROM t ORDER BY llm_prefers('which is angrier', x)"
    assert {row["x"] for row in session.sql(query).to_pylist()} == {*texts}
