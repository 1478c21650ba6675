"""Joins, IN and EXISTS that need no answer come before those that do, in whatever order they are
written: by values asked in natural queries, and by rows over random join trees."""

from __future__ import annotations

from importlib import import_module

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from random_choices import Choices
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

N = 200


def _first_answer(call: bf.Request) -> Value:
    if call.constraint.options:
        return call.constraint.options[0]
    return 1 if call.constraint.kind == "integer" else True


@pytest.fixture(scope="module")
def shop() -> Counted:
    """200 reviews of 10 products, of which 3 are flagged, 20 are of a recalled product, and 190 are
    processed."""
    db = Counted(_first_answer)
    texts, skus = [f"t{i}" for i in range(N)], [f"s{i}" for i in range(N)]
    products = [i % 10 for i in range(N)]
    db.add("reviews", {"id": [*range(N)], "text": texts, "sku": skus, "product": products})
    db.add("flagged", {"review_id": [1, 2, 3]})
    db.add("recalled", {"product": [7]})
    db.add("done", {"text": texts[:-10], "sku": skus[:-10]})
    db.add("departments", {"category": ["a", "b"]})
    db.add("numbers", {"v": [1, 2]})
    return db


LABEL = "llm_classify(r.text, ['a', 'b'])"
BY_LABEL = f"SELECT r.id FROM reviews r JOIN departments d ON {LABEL} = d.category"
IN_NUMBERS = "SELECT id FROM reviews r WHERE llm_int('n', r.text) IN (SELECT v FROM numbers)"

FLAGS = "(SELECT 1 FROM flagged f WHERE llm_filter('q', r.text, f.review_id))"
ANY_FLAG = f"SELECT id FROM reviews r WHERE EXISTS {FLAGS}"
NO_FLAG = f"SELECT id FROM reviews r WHERE NOT EXISTS {FLAGS}"


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (f"{BY_LABEL} WHERE r.id IN (SELECT review_id FROM flagged)", 3),
        (f"{BY_LABEL} WHERE EXISTS (SELECT 1 FROM flagged f WHERE f.review_id = r.id)", 3),
        (f"{BY_LABEL} WHERE NOT EXISTS (SELECT 1 FROM done WHERE done.text = r.text)", 10),
        (f"{BY_LABEL} WHERE r.text NOT IN (SELECT text FROM done)", 10),
        (f"{BY_LABEL} JOIN flagged f ON f.review_id = r.id", 3),
        (f"{BY_LABEL} JOIN recalled c ON c.product = r.product", 20),
        (f"{BY_LABEL} LEFT JOIN done ON done.text = r.text WHERE done.text IS NULL", 10),
        (
            f"SELECT r.id FROM departments d, reviews r, flagged f "
            f"WHERE {LABEL} = d.category AND f.review_id = r.id",
            3,
        ),
        (
            f"SELECT r.id, d.category FROM reviews r LEFT JOIN departments d "
            f"ON {LABEL} = d.category WHERE r.id IN (SELECT review_id FROM flagged)",
            3,
        ),
        (
            "SELECT r.id FROM reviews r JOIN departments d ON llm_join(r.text, d.category) "
            "WHERE r.id IN (SELECT review_id FROM flagged)",
            3,
        ),
        (
            f"SELECT f.review_id FROM flagged f JOIN (SELECT r.id FROM departments d "
            f"JOIN reviews r ON {LABEL} = d.category) AS s ON s.id = f.review_id",
            3,
        ),
        (f"{IN_NUMBERS} AND r.product IN (SELECT product FROM recalled)", 20),
        (f"{IN_NUMBERS} AND r.text NOT IN (SELECT text FROM done)", 10),
        (
            f"{IN_NUMBERS} AND NOT EXISTS (SELECT 1 FROM done WHERE done.sku = r.sku)",
            10,
        ),
        (
            f"{IN_NUMBERS.replace(' IN ', ' NOT IN ')} "
            "AND r.product IN (SELECT product FROM recalled)",
            20,
        ),
        (
            f"{ANY_FLAG} AND r.product IN (SELECT product FROM recalled)",
            20,
        ),  # one pair of each is enough
        (f"{NO_FLAG} AND r.product IN (SELECT product FROM recalled)", 20),
        (f"{ANY_FLAG} AND NOT EXISTS (SELECT 1 FROM done WHERE done.text = r.text)", 10),
        ("SELECT text FROM reviews WHERE llm_filter('q', text) EXCEPT SELECT text FROM done", 10),
    ],
)
def test_cheap_joins_come_first(shop: Counted, sql: str, values: int) -> None:
    assert shop.session.sql(sql).prepared.reason is None
    assert shop.asked(sql) == values


NOT_DONE = "NOT EXISTS (SELECT 1 FROM done d WHERE d.text = r.text)"
LOST = "SELECT r.id FROM reviews r LEFT JOIN done d ON d.text = r.text WHERE d.text IS NULL"


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (f"SELECT id FROM reviews r WHERE {NOT_DONE} AND llm_filter('q', r.text)", 10),
        (f"SELECT id FROM reviews r WHERE llm_filter('q', r.text) AND {NOT_DONE}", 10),
        (f"SELECT id FROM reviews r WHERE {NOT_DONE} AND llm_int('n', r.text) > 0", 10),
        (f"SELECT id FROM reviews r WHERE {NOT_DONE} AND llm_filter('q', r.text) LIMIT 2", 2),
        (f"{LOST} AND llm_filter('q', r.text)", 10),
        (f"{LOST} AND llm_filter('q', r.text) LIMIT 2", 2),
        (
            "SELECT id FROM reviews r WHERE NOT EXISTS (SELECT 1 FROM done d "
            "WHERE d.text = r.text AND d.sku = r.sku) AND llm_filter('q', r.text, r.sku)",
            10,
        ),
        (
            "SELECT id FROM reviews r WHERE NOT EXISTS (SELECT 1 FROM (SELECT DISTINCT text "
            "FROM done) d WHERE d.text = r.text) AND llm_filter('q', r.text)",
            10,
        ),
        (
            "SELECT id FROM reviews r WHERE r.text NOT IN (SELECT text FROM done) "
            "AND llm_filter('q', r.text)",
            10,
        ),
        (f"{IN_NUMBERS} AND {NOT_DONE} AND llm_filter('q', r.text)", 20),  # two questions
    ],
)
def test_what_is_done_is_not_asked_again(shop: Counted, sql: str, values: int) -> None:
    """DataFusion copies the predicate to the other side of the join, where it is not asked."""
    assert shop.session.sql(sql).prepared.reason is None
    asked = shop.asked(sql)
    assert {call.values[0] for call in shop.model.calls} <= {f"t{i}" for i in range(N - 10, N)}
    assert asked == values


# --- random join trees ---------------------------------------------------------------------------

TABLES = 4


def _tables(choices: Choices) -> dict[str, pa.Table]:
    """Tables t0, t1, … of up to 7 rows, with two small numbers and a text each, some NULL."""
    made = {}
    for t in range(TABLES):
        rows = choices.pick([5, 3, 7, 1, 0])
        numbers = [[choices.pick([0, 1, 2, 3, None]) for _ in range(rows)] for _ in "ab"]
        texts = [choices.pick(["u", "v", "w", "a", "b", None]) for _ in range(rows)]
        made[f"t{t}"] = pa.table(
            {
                f"a{t}": pa.array(numbers[0], pa.int64()),
                f"b{t}": pa.array(numbers[1], pa.int64()),
                f"x{t}": pa.array(texts, pa.string()),
            }
        )
    return made


class _Tree:
    """A random query over join trees, in which every column has a name of its own."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.free = list(range(TABLES))

    def sql(self) -> str:
        here, source = self._source(self.choices.pick([2, 3, 2, 1]))
        where = [self._condition(here) for _ in range(self.choices.pick([1, 2, 0, 3]))]
        columns = ", ".join(f"{c}{t}" for t in here for c in self.choices.pick(["a", "abx", "x"]))
        shape = self.choices.weighted(plain=6, distinct=2, group=2)
        text = f"SELECT {'DISTINCT ' if shape == 'distinct' else ''}{columns}"
        text += ", count(*) AS n" if shape == "group" else ""
        text += f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        return text + (f" GROUP BY {columns}" if shape == "group" else "")

    def _source(self, joins: int) -> tuple[list[int], str]:
        here = [self.free.pop(0)]
        text = f"t{here[0]}"
        for _ in range(joins):
            if not self.free:
                break
            there = self.free.pop(0)
            kind = self.choices.weighted(JOIN=6, LEFT=2, RIGHT=1, FULL=1, SEMI=1, ANTI=1)
            kind = {"SEMI": "LEFT SEMI", "ANTI": "LEFT ANTI"}.get(kind, kind)
            on = " AND ".join(self._link(here, there) for _ in range(self.choices.pick([1, 1, 2])))
            text += f" {kind} JOIN t{there} ON {on}".replace("JOIN JOIN", "JOIN")
            if "LEFT SEMI" not in kind and "LEFT ANTI" not in kind:
                here = [*here, there]
        return here, text

    def _link(self, here: list[int], there: int) -> str:
        t, pick = self.choices.pick(here), self.choices.pick
        return pick(
            [
                f"a{t} = a{there}",
                f"llm_map('m', x{t}) = x{there}",
                f"b{t} = a{there}",
                f"llm_map('m', x{t}) = llm_map('m', x{there})",
                f"x{there} = x{t}",
                f"llm_int('i', x{there}) = a{t}",
                f"a{t} < b{there}",
                f"llm_filter('p', x{t}, x{there})",
                f"llm_filter('f', x{there})",
            ]
        )

    def _condition(self, here: list[int]) -> str:
        t, pick = self.choices.pick(here), self.choices.pick
        simple = [
            f"a{t} > 0",
            f"llm_filter('f', x{t})",
            f"x{t} IS NULL",
            f"llm_int('i', x{t}) > a{t}",
        ]
        if not self.free or self.choices.chance(30):
            return pick(simple)
        inner, source = self._source(pick([0, 0, 1]))
        link = self._link([t], inner[0])
        more = f" AND {pick(simple[1:2])}".replace(f"x{t}", f"x{inner[0]}")
        more = more if self.choices.chance(30) else ""
        return pick(
            [
                f"EXISTS (SELECT 1 FROM {source} WHERE {link}{more})",
                f"NOT EXISTS (SELECT 1 FROM {source} WHERE {link}{more})",
                f"b{t} IN (SELECT b{inner[0]} FROM {source})",
                f"llm_int('i', x{t}) IN (SELECT b{inner[0]} FROM {source})",
                f"x{t} NOT IN (SELECT x{inner[0]} FROM {source})",
                f"(EXISTS (SELECT 1 FROM {source} WHERE {link}) OR a{t} = 1)",
            ]
        )


@st.composite
def _cases(draw: st.DrawFn) -> tuple[dict[str, pa.Table], str]:
    choices = Choices.drawn(draw)
    return _tables(choices), _Tree(choices).sql()


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True], ids=["by cost", "predicates last"])
def test_random_join_trees_have_the_rows_of_full_evaluation(
    cases: int, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if always:  # each predicate below a join on answers comes after it
        module = import_module("blendfusion.planner.rules.costly_predicates_last")
        monkeypatch.setattr(module, "_MARGIN", 0.0)

    @settings(max_examples=max(1, cases // 8))
    @given(case=_cases())
    def check(case: tuple[dict[str, pa.Table], str]) -> None:
        tables, sql = case
        plain, planned = Counted(hashed, planner=False), Counted(hashed)
        for db in (plain, planned):
            for name, table in tables.items():
                db.add(name, table)
        try:
            right = unordered(tuples(plain.session.sql(sql).to_arrow_table()))
        except Exception:  # what DataFusion cannot run has nothing to be compared with
            return
        note(sql)
        note({name: table.to_pydict() for name, table in tables.items()})
        frame = planned.session.sql(sql)
        note(frame.explain_text(estimates=False))
        assert unordered(tuples(frame.to_arrow_table())) == right
        asked = [(call.task, call.values) for call in planned.model.calls]
        assert len(asked) == len(set(asked)), "a value was asked twice"

    check()
