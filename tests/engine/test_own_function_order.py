"""Users' own functions among predicates: results that are known are free, and those that see fewer
distinct rows come first."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import blendfusion as bf
from blendfusion.udfs.register import user_functions


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    before = dict(user_functions._defined)
    yield
    user_functions._defined.clear()
    user_functions._defined.update(before)


def _begins(name: str, seen: Counter[str], *, deterministic: bool = False) -> None:
    """A function that is true for texts with the prefix, and counts the texts that it sees."""

    @bf.ingredient(name=name, deterministic=deterministic)
    def begins(model: bf.UserModel, prefix: str, text: pa.StringArray) -> pa.BooleanArray:
        seen[name] += len(text)
        return pc.starts_with(text, prefix)


def _session(data: dict[str, list[str]], *, priced: bool = False) -> bf.Session:
    made = bf.connect(
        bf.ScriptedModel(lambda call: None, fingerprint="one"),
        cache=None,
        progress="off",
        prices=bf.Price(prompt=1, completion=1) if priced else None,
    )
    made.from_pydict(data, "t")
    return made


@pytest.mark.parametrize("n", [8, 14, 20, 60, 120, 500])
@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize(
    "where",
    [
        "few('F', account) = TRUE AND many('s', symbol)",
        "many('s', symbol) AND few('F', account)",
    ],
)
def test_a_function_of_few_values_decides_for_one_of_many(
    n: int, where: str, *, priced: bool
) -> None:
    seen: Counter[str] = Counter()
    _begins("few", seen)
    _begins("many", seen)
    data = {
        "account": ["FG"[i % 2] for i in range(n)],
        "symbol": [f"s{i}" for i in range(n)],
    }
    found = _session(data, priced=priced).sql(f"SELECT symbol FROM t WHERE {where}").to_pydict()
    assert found == {"symbol": data["symbol"][::2]}
    assert seen == {"few": 2, "many": n // 2}


def test_what_the_session_has_stored_decides_first() -> None:
    seen: Counter[str] = Counter()
    _begins("known", seen, deterministic=True)
    _begins("new", seen)
    data = {"x": [f"{'ab'[i % 2]}{i}" for i in range(100)], "y": [f"c{i}" for i in range(100)]}
    session = _session(data)
    session.sql("SELECT known('a', x) FROM t").collect()
    session.sql("SELECT x FROM t WHERE new('c', y) AND known('a', x)").collect()
    assert seen == {"known": 100, "new": 50}


def test_explain_says_what_was_computed() -> None:
    seen: Counter[str] = Counter()
    _begins("begins", seen)
    session = _session({"x": ["a", "b"], "y": ["c", "d"]})
    frame = session.sql("SELECT x FROM t WHERE begins('a', x) AND begins('c', y)")
    frame.collect()
    assert "50% dropped, 2 values computed, 0.0 tokens a row, rank" in frame.explain_text(
        analyze=True
    )


@pytest.mark.parametrize("seed", range(20))
def test_no_function_sees_more_than_once_each_and_known_results_are_free(seed: int) -> None:
    """Two functions over columns of random widths: the one with few values sees all of them, the
    other those of rows that pass, but for a first chunk of eight rows."""
    chance = random.Random(seed)
    few, rows = chance.randint(2, 6), chance.randint(20, 200)
    data = {
        "a": [f"{'FG'[i % 2]}{i % few}" for i in range(rows)],
        "b": [f"{chance.choice('st')}{i}" for i in range(rows)],
    }
    seen: Counter[str] = Counter()
    _begins("few", seen)
    _begins("many", seen)
    terms = ["few('F', a)", "many('s', b)"]
    chance.shuffle(terms)
    found = _session(data).sql(f"SELECT b FROM t WHERE {' AND '.join(terms)}").to_pydict()["b"]
    passing = [b for a, b in zip(data["a"], data["b"], strict=True) if a[0] == "F"]
    assert found == [b for b in passing if b[0] == "s"]
    assert seen["few"] == len({*data["a"]})
    assert seen["many"] <= len(passing) + 8
