"""Values that are equally similar: a few are all compared, ties are broken by each value and not by
position, and a warning says where matches may be missed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping, Sequence

import pytest

import blendfusion as bf

FORMS = ("company {}", "Model A{:02}", "{:03}", "item no. {}", "Branch {} of the bank")


def _entities(
    of: Mapping[str, object], names: Sequence[str], **options: int
) -> tuple[set[frozenset[str]], int, list[str]]:
    """(the groups of names, the pairs asked, the warnings)"""
    model = bf.ScriptedModel(lambda call: of[str(call.values[0])] == of[str(call.values[1])])
    session = bf.connect(model, cache=None, progress="off")
    session.from_pydict({"x": list(names)}, "t")
    more = "".join(f", {name} => {value}" for name, value in options.items())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        frame = session.sql(f"SELECT llm_same(x{more}) AS e, x FROM t")
        rows = frame.to_pylist()
    groups: dict[str, set[str]] = {}
    for row in rows:
        groups.setdefault(row["e"], set()).add(row["x"])
    assert frame.trace is not None
    return {*map(frozenset, groups.values())}, frame.trace.values, [str(w.message) for w in warned]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(8))
def test_up_to_twelve_values_are_all_compared(form: str, seed: int) -> None:
    chance = random.Random(seed)
    names = [form.format(i) for i in range(chance.randint(2, 12))]
    of = {name: chance.randint(0, 4) for name in names}
    chance.shuffle(names)
    groups, pairs, warned = _entities(of, names)
    assert groups == {frozenset(x for x in names if of[x] == e) for e in of.values()}
    assert pairs <= len(names) * (len(names) - 1) // 2
    assert warned == []


def test_three_entities_of_nine_values_take_nine_pairs() -> None:
    names = [f"company {i}" for i in range(9)]
    groups, pairs, warned = _entities({x: i // 3 for i, x in enumerate(names)}, names)
    assert len(groups) == 3
    assert pairs == 9
    assert warned == []


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    names = [f"Model A{i:02}" for i in range(30)]
    of = {x: i // 3 for i, x in enumerate(names)}
    shuffled = random.Random(seed).sample(names, len(names))
    found = _entities(of, shuffled)
    assert found == _entities(of, names)
    groups, pairs, warned = found
    assert len(groups) == 10
    assert pairs == 62 <= 0.6 * 5 * 30
    assert warned == []


def test_a_number_of_candidates_is_obeyed_and_what_it_misses_is_said() -> None:
    names = [f"Model A{i:02}" for i in range(30)]
    groups, pairs, warned = _entities({x: i % 10 for i, x in enumerate(names)}, names, k=2)
    assert len(groups) > 10
    assert pairs <= 0.6 * 2 * 30
    assert warned == [
        "llm_same(x, k => 2): 30 values may have further matches: other texts are as similar as those "
        "that llm_same compared. A larger k => n compares more of them."
    ]


def test_values_without_equals_warn_of_nothing() -> None:
    names = [
        f"{a}{b}"
        for a in ("red", "blue", "green", "black")
        for b in ("wood", "stone", "iron", "sand")
    ]
    groups, _, warned = _entities({x: x for x in names}, names)
    assert len(groups) == 16
    assert warned == []


def _joined(
    left: Sequence[str], right: Sequence[str], options: str = ""
) -> tuple[set[tuple[str, str]], list[str]]:
    """(the pairs of a join in which the number in a text is that of its match, the warnings)"""

    def chosen(call: bf.Request) -> object:
        value, candidates = map(str, call.values)
        number = value.split()[-1]
        lines = [line.split(". ", 1)[-1] for line in candidates.splitlines()]
        place = next((i for i, text in enumerate(lines, 1) if text.split()[-1] == number), None)
        return "none" if place is None else str(place)

    session = bf.connect(bf.ScriptedModel(chosen), cache=None, progress="off")
    session.from_pydict({"x": list(left)}, "a")
    session.from_pydict({"y": list(right)}, "b")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        frame = session.sql(f"SELECT x, y FROM a JOIN b ON llm_join(a.x, b.y{options})")
        rows = {(row["x"], row["y"]) for row in frame.to_pylist()}
    return rows, [str(w.message) for w in warned]


def test_up_to_twelve_texts_are_all_candidates_of_a_join() -> None:
    left = [f"the office {i}" for i in range(1, 13)]
    right = [f"our branch {i}" for i in range(1, 13)]
    rows, warned = _joined(left, right)
    assert rows == {*zip(left, right, strict=True)}
    assert warned == []


def test_ties_of_a_join_go_to_the_next_in_the_alphabet_and_what_it_misses_is_said() -> None:
    right = [f"office {i:03}" for i in range(200, 300)]
    rows, warned = _joined(["office x 205"], right, ", k => 3")
    assert rows == {("office x 205", "office 205")}
    assert warned == []
    _, warned = _joined(["office"], right, ", k => 3")
    assert warned == [
        "llm_join(…, …, k => 3): 1 value may have further matches: other texts are as "
        "similar as those that llm_join compared. A larger k => n compares more of them."
    ]
