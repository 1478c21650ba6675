"""Counts, sums and averages from a sample: the bounds hold, few values are asked, and nothing is
estimated that nobody asked to be."""

from __future__ import annotations

from math import comb

import numpy as np
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.errors import ArgumentError
from blendfusion.services.approximate.bounds import means, shares, size_of_share
from blendfusion.services.approximate.sample import part_before_last, sizes_of_samples

F = "llm_filter('f', x)"
CASE = f"CASE WHEN {F} THEN 1.0 ELSE 0.0 END"
SCORE = "llm_score('s', x)"


def table(rows: int, groups: int, share: float, seed: int = 0) -> tuple[pa.Table, np.ndarray]:
    """(rows of some groups of one size, which of them get a yes)"""
    source = np.random.default_rng(seed)
    ids = np.arange(rows)
    yes = source.random(rows) < share
    columns = {"id": ids, "g": ids % groups, "p": source.integers(0, 50, rows)}
    return pa.table({**columns, "x": [f"{i} {int(y)}" for i, y in zip(ids, yes, strict=True)]}), yes


def answer(call: bf.Request) -> object:
    number, yes = str(call.values[0]).split()
    return yes == "1" if call.constraint.kind == "boolean" else int(number) * 7 % 11


def connected(rows: pa.Table, **options: object) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off", **options)  # type: ignore[arg-type]
    session.from_arrow(rows, name="t")
    return session


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*) FILTER (WHERE {F}) AS v FROM t",
        f"SELECT count(*) AS v FROM t WHERE {F}",
        f"SELECT avg({CASE}) AS v FROM t",
        f"SELECT g, count(*) AS v FROM t WHERE {F} OR p < 25 GROUP BY g",
        f"SELECT g, sum(p) AS v FROM t WHERE {F} GROUP BY g",
        f"SELECT g, avg(p) AS v FROM t WHERE {F} GROUP BY g",
        f"SELECT g, avg({SCORE}) AS v FROM t GROUP BY g",
        f"SELECT g, sum({SCORE}) AS v FROM t GROUP BY g",
    ],
)
def test_bounds_contain_the_results_of_all_answers(sql: str) -> None:
    rows, _ = table(12_000, 2, 0.2)
    exact = connected(rows).sql(sql)
    value = {row.get("g"): row["v"] for row in exact.to_pylist()}
    frame = connected(rows).sql(sql, approximate=bf.Within(0.02, confidence=0.9999))
    found = frame.to_pylist()
    assert frame.schema() == exact.schema()
    assert 0 < frame.trace.usage.values < 12_000
    bounds = {row.get("t.g"): row for row in frame.bounds().to_pylist()}
    assert bounds.keys() == value.keys()
    for row in found:
        own = bounds[row.get("g")]
        assert own["low"] <= value[row.get("g")] <= own["high"]
        assert own["low"] - 0.5 <= row["v"] <= own["high"] + 0.5
        assert 0 < own["asked"] < own["rows"] <= 12_000


def test_the_bounds_of_shares_are_those_of_the_hypergeometric_distribution() -> None:
    source = np.random.default_rng(1)
    for _ in range(200):
        rows = int(source.integers(1, 40))
        sampled = int(source.integers(1, rows + 1))
        found = int(source.hypergeometric(*(lambda k: (k, rows - k))(rows // 3), sampled))
        likely = [
            having
            for having in range(found, rows - sampled + found + 1)
            if _at_most(found, sampled, rows, having) > 0.025
            and _at_most(sampled - found, sampled, rows, rows - having) > 0.025
        ]
        low, high = shares(*(np.array([n]) for n in (found, sampled, rows)), 0.05)
        assert (low[0], high[0]) == (likely[0], likely[-1])


def _at_most(found: int, sampled: int, rows: int, having: int) -> float:
    ways = (comb(having, i) * comb(rows - having, sampled - i) for i in range(found + 1))
    return sum(ways) / comb(rows, sampled)


def test_the_sizes_of_samples_are_those_of_textbooks() -> None:
    def size(share: float, rows: int) -> int:
        half = np.array([0.02 * rows])
        return int(size_of_share(np.array([share]), np.array([rows]), half, 0.05)[0])

    assert 2_401 <= size(0.5, 1_000_000) <= 2_480
    assert 2_017 <= size(0.3, 1_000_000) <= 2_100
    assert 706 <= size(0.5, 1_000) <= 760
    half = np.array([1_200.5])
    low, high = means((half, half, half), *(np.array([n]) for n in (2_401.0, 1e6)), 0.05)
    assert 0.04 < high[0] - low[0] < 0.042


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("rows", [200, 2_000, 20_000])
def test_counts_hold_whatever_their_share_is(rows: int, confidence: float) -> None:
    """The coverage is computed, not drawn: a sample ends at the first size with narrow bounds, and
    which rows come first is independent of how many are found."""
    error, room = 1 - confidence, 0.1 * rows * (1 + 1e-9)
    last = int(
        size_of_share(*(np.array([n]) for n in (0.5, rows, 0.4998 * room)), 0.998 * error)[0]
    )
    having = np.unique(np.r_[:40, np.linspace(0, rows // 2, 120).astype(int)])
    missed, going, before = np.zeros(len(having)), np.ones(21), 0
    for n in (*(n for n in sizes_of_samples(rows) if n < last), last):
        found = np.arange(n + 1)
        if before:  # the probability that a sample with so many found has gone on so far
            earlier = np.arange(before + 1)
            going = _drawn(found[:, None], n, before, earlier) @ going
        alpha = (0.998 if n == last else part_before_last(error)) * error
        low, high = shares(found, *(np.full(n + 1, m) for m in (n, rows)), alpha)
        ends = (high - low <= room) | (n == last)
        wrong = (having[:, None] < low) | (having[:, None] > high)
        missed += (_drawn(having[:, None], rows, n, found) * wrong) @ (going * ends)
        going, before = np.where(ends, 0.0, going), n
    assert missed.max() <= error


def _drawn(having: np.ndarray, rows: int, sampled: int, found: np.ndarray) -> np.ndarray:
    """The probability of so many in a sample."""
    logs = np.r_[0.0, np.cumsum(np.log(np.arange(1, rows + 1)))]

    def ways(n: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.where((k >= 0) & (k <= n), logs[n] - logs[k] - logs[n - k], -np.inf)

    with np.errstate(invalid="ignore"):
        others = ways(rows - having, sampled - found)
    return np.exp(ways(having, found) + others - ways(np.array(rows), np.array(sampled)))


def test_rare_values_need_few_rows() -> None:
    rows, _ = table(40 * 5_000, 40, 0.01)
    sql = f"SELECT g, count(*) FILTER (WHERE {F}) AS n FROM t GROUP BY g"
    frame = connected(rows).sql(sql, approximate=bf.Within(0.02))
    frame.collect()
    assert np.mean(frame.bounds()["asked"].to_numpy()) <= 180  # 95 by the normal distribution


def test_the_bounds_of_means_of_two_values_are_those_of_the_binomial_distribution() -> None:
    for found, n, greatest in ((0, 100, 0.0362), (1, 100, 0.0545), (10, 100, 0.1762)):
        power = np.array([float(found)])
        high = means((power, power, power), np.array([float(n)]), np.array([1e12]), 0.05)[1]
        assert abs(high[0] - greatest) < 0.0006
        low = means((n - power,) * 3, np.array([float(n)]), np.array([1e12]), 0.05)[0]
        assert abs(low[0] - (1 - high[0])) < 1e-12


SKEWED = {
    "scores": (lambda source, n: np.clip(source.normal(5, 2, n), 0, 10), 1.3),
    "low scores": (lambda source, n: np.clip(source.normal(1, 2, n), 0, 10), 1.4),
    "lognormal": (lambda source, n: np.minimum(source.lognormal(0, 1, n), 10), 1.4),
    "a few high": (lambda source, n: np.where(source.random(n) < 0.05, 9.5, 0.5), 1.4),
    "a few low": (lambda source, n: np.where(source.random(n) < 0.05, 0.5, 9.5), 1.4),
}


@pytest.mark.parametrize("kind", SKEWED)
def test_bounds_of_skewed_means_hold_and_ask_hardly_more_than_textbooks(kind: str) -> None:
    drawn, most = SKEWED[kind]
    runs, size = 150, 3_000
    values = drawn(np.random.default_rng(7), runs * size).round(2)
    texts = [f"{i} {value}" for i, value in enumerate(values)]
    rows = pa.table({"g": np.repeat(np.arange(runs), size), "x": texts})
    model = bf.ScriptedModel(lambda call: float(str(call.values[0]).split()[1]))
    session = bf.connect(model, cache=None, progress="off")
    session.from_arrow(rows, name="t")
    frame = session.sql(
        f"SELECT g, avg({SCORE}) AS v FROM t GROUP BY g", approximate=bf.Within(0.02)
    )
    frame.collect()
    bounds = frame.bounds().to_pydict()
    groups = values.reshape(runs, size)[bounds["t.g"]]
    truth = groups.mean(axis=1)
    held = (np.array(bounds["low"]) <= truth) & (truth <= np.array(bounds["high"]))
    assert held.sum() >= 0.9 * runs  # 0.95 on average; the probability of fewer is 1 %
    needed = (1.96 * groups.std(axis=1) / 0.2) ** 2
    needed /= 1 + needed / size
    assert np.sum(bounds["asked"]) <= most * needed.sum()


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_few_of_many_rows_are_asked_about(share: float) -> None:
    rows, yes = table(300_000, 1, share)
    session = connected(rows)
    frame = session.sql(f"SELECT count(*) AS n FROM t WHERE {F}", approximate=bf.Within(0.02))
    (row,) = frame.to_pylist()
    assert frame.trace.usage.values <= 2_500
    assert abs(row["n"] - yes.sum()) < 0.02 * len(yes)


def test_the_bounds_hold_as_often_as_they_say() -> None:
    rows, yes = table(300 * 700, 300, 0.3)
    frame = connected(rows).sql(
        f"SELECT g, count(*) FILTER (WHERE {F}) AS n FROM t GROUP BY g",
        approximate=bf.Within(0.05, confidence=0.9),
    )
    frame.collect()
    counts = np.bincount(np.arange(len(yes)) % 300, weights=yes)
    bounds = frame.bounds().to_pylist()
    held = [row["low"] <= counts[row["t.g"]] <= row["high"] for row in bounds]
    assert len(held) == 300
    assert sum(held) >= 258  # 270 on average; the probability of fewer is 1 %


def test_small_groups_are_exact() -> None:
    rows, yes = table(100, 5, 0.5)
    frame = connected(rows).sql(
        f"SELECT g, count(*) AS n FROM t WHERE {F} GROUP BY g ORDER BY g",
        approximate=bf.Within(0.02),
    )
    counts = np.bincount(np.arange(100) % 5, weights=yes)
    assert [row["n"] for row in frame.to_pylist()] == counts.tolist()
    assert frame.bounds().num_rows == 0


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT max(p) AS v FROM t WHERE {F}",
        f"SELECT count(DISTINCT p) AS v FROM t WHERE {F}",
        f"SELECT g, count(*) AS n, max(id) AS v FROM t WHERE {F} GROUP BY g ORDER BY g",
        f"SELECT id FROM t WHERE {F} ORDER BY id",
        "SELECT g, sum(p) AS v FROM t GROUP BY g ORDER BY g",
        f"SELECT sum(llm_int('i', x)) AS v FROM t WHERE {F} AND id < 0",
    ],
)
def test_other_results_are_exact(sql: str) -> None:
    rows, _ = table(4_000, 2, 0.2)
    approximate = connected(rows).sql(sql, approximate=bf.Within(0.02))
    assert approximate.to_pylist() == connected(rows).sql(sql).to_pylist()


def test_nothing_is_estimated_unless_asked_for() -> None:
    rows, yes = table(5_000, 1, 0.4)
    session = connected(rows)
    sql = f"SELECT count(*) AS n FROM t WHERE {F}"
    assert session.sql(sql).to_pylist() == [{"n": int(yes.sum())}]
    assert "sample" not in session.sql(sql).explain_text()
    session.sql("SET blendfusion.approximate = 0.05")
    assert "a sample of each group, until ± 0.05" in session.sql(sql).explain_text()
    session.sql("SET blendfusion.approximate = 0")
    assert session.sql(sql).to_pylist() == [{"n": int(yes.sum())}]


def test_a_second_run_asks_nothing_and_derived_frames_are_estimates_too() -> None:
    rows, _ = table(20_000, 2, 0.3)
    session = connected(rows)
    sql = f"SELECT g, count(*) AS n FROM t WHERE {F} GROUP BY g ORDER BY g"
    frame = session.sql(sql, approximate=bf.Within(0.03))
    first = frame.to_pylist()
    again = session.sql(sql, approximate=bf.Within(0.03)).limit(1)
    assert again.to_pylist() == first[:1]
    assert again.trace.usage.values == 0


def test_show_and_explain_tell_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = table(40_000, 4, 0.3)
    frame = connected(rows).sql(
        f"SELECT g, count(*) AS n FROM t WHERE {F} GROUP BY g HAVING count(*) > 2500 "
        "ORDER BY n DESC LIMIT 2",
        approximate=bf.Within(0.02),
    )
    frame.show()
    shown = capsys.readouterr().out
    assert "Bounds with confidence 0.95:" in shown
    assert "rows asked)" in shown
    told = frame.explain_text(analyze=True)
    assert "a sample of each group, until ± 0.02 with confidence 0.95: " in told
    assert "HAVING: 4 of 4 groups pass and 0 fail by their whole interval" in told
    assert "LIMIT: " in told


def _shown(sql: str, groups: int, capsys: pytest.CaptureFixture[str], share: float) -> str:
    rows, _ = table(40_000, groups, share)
    connected(rows).sql(sql, approximate=bf.Within(0.02)).show()
    return capsys.readouterr().out.partition("Bounds with confidence 0.95:\n")[2]


def test_groups_that_may_be_missing_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Where all were, nothing stood below "Bounds with confidence"."""
    shown = _shown(f"SELECT g, count(*) AS n FROM t WHERE {F} GROUP BY g", 4, capsys, 0.0)
    assert shown == "  4 groups may be missing: no row of the sample passes\n"


def test_the_certainty_of_a_limit_is_that_of_the_place_in_the_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With OFFSET, a group was called ahead of all others that may be among the skipped ones."""
    ordered = (
        f"SELECT g, count(*) FILTER (WHERE {F}) AS n FROM t GROUP BY g ORDER BY n DESC LIMIT 2"
    )
    shown = _shown(ordered, 4, capsys, 0.3)
    assert shown.endswith("LIMIT: 0 of 2 groups are ahead of all others by their whole interval\n")
    shown = _shown(f"{ordered} OFFSET 1", 4, capsys, 0.3)
    assert shown.endswith(
        "LIMIT: 0 of 2 groups are ahead of all others and behind 1 other by their whole interval\n"
    )
    apart = f"sum(CASE WHEN {F} THEN g + 1 ELSE 0 END)"
    shown = _shown(f"SELECT g, {apart} AS n FROM t GROUP BY g ORDER BY n DESC LIMIT 2 OFFSET 1", 4,
                   capsys, 0.5)  # fmt: skip
    assert shown.endswith(
        "LIMIT: 2 of 2 groups are ahead of all others and behind 1 other by their whole interval\n"
    )


@pytest.mark.parametrize(
    ("rest", "sampled"),
    [
        ("ORDER BY g LIMIT 2", {0, 1}),
        ("ORDER BY g DESC LIMIT 2 OFFSET 1", {5, 6, 7}),
        ("ORDER BY h LIMIT 1", {0, 2, 4, 6}),
        ("ORDER BY n LIMIT 1", set(range(8))),
        ("HAVING count(*) FILTER (WHERE llm_filter('f', x)) > 0 ORDER BY g LIMIT 2", set(range(8))),
    ],
)
def test_only_groups_within_a_limit_are_sampled(rest: str, sampled: set[int]) -> None:
    rows, _ = table(40_000, 8, 0.3)
    asked: set[int] = set()

    def noted(call: bf.Request) -> object:
        asked.add(int(str(call.values[0]).split()[0]) % 8)
        return answer(call)

    session = bf.connect(bf.ScriptedModel(noted), cache=None, progress="off")
    session.from_arrow(rows, name="t")
    sql = f"SELECT g, g % 2 AS h, count(*) FILTER (WHERE {F}) AS n FROM t GROUP BY g, g % 2 {rest}"
    session.sql(sql, approximate=bf.Within(0.02)).collect()
    assert asked == sampled


@pytest.mark.parametrize("share", [0, 1, -0.1, True, "0.02"])
def test_an_accuracy_is_a_share(share: object) -> None:
    with pytest.raises(ArgumentError, match="is not between 0 and 1"):
        bf.Within(share)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="says no accuracy"):
        connected(table(1, 1, 0.5)[0]).sql("SELECT 1", approximate=0.02)
