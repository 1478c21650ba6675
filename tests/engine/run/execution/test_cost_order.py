"""Predicates are ordered by what is known before a run: stored answers, which are free, row by row;
how often earlier answers passed; the lengths of values; the prices of models. EXPLAIN says why."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from datafusion import col

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.udfs.declare.arguments import quoted_name

N = 200


def _even(call: bf.Request) -> Value:
    """Whether the number in a value is even; for the question 'rare', whether it ends in 7. The
    last digit is the integer, and b the label of even ones."""
    number = int("".join(filter(str.isdigit, call.values[0] or "")))
    if call.constraint.options:
        return "ab"[number % 2 == 0]
    if call.constraint.kind == "integer":
        return number % 10
    return number % 10 == 7 if call.question == "rare" else number % 2 == 0


class _Shop:
    def __init__(self, **prices: bf.Price) -> None:
        self.model = bf.ScriptedModel(_even, name="dear")
        self.cheap = bf.ScriptedModel(_even, name="cheap")
        self.session = bf.connect(self.model, cache=None, progress="off", prices=prices or None)
        self.session.register_model("cheap", self.cheap)
        data = {
            "id": [*range(N)],
            "x": [f"t{i}" for i in range(N)],
            "long": [f"{i} " + "word " * 40 for i in range(N)],
        }
        self.session.from_pydict(data, "r")

    def asked(self, sql: str) -> dict[str, int]:
        """The values asked, by question."""
        self.model.calls.clear()
        self.cheap.calls.clear()
        self.session.sql(sql).collect()
        calls = [*self.model.calls, *self.cheap.calls]
        return dict(Counter(call.question for call in calls))

    def explained(self, sql: str) -> list[str]:
        """EXPLAIN's lines about the order of predicates."""
        lines = self.session.sql(sql).explain_text().splitlines()
        return [line.strip() for line in lines if "filter " in line or "tried" in line]


def test_a_predicate_that_is_answered_already_is_asked_nothing_first() -> None:
    shop = _Shop()
    assert shop.asked("SELECT id FROM r WHERE llm_filter('dear', long)") == {"dear": N}
    asked = shop.asked("SELECT id FROM r WHERE llm_filter('a', x) AND llm_filter('dear', long)")
    assert asked == {"a": N // 2}


def test_stored_answers_decide_row_by_row() -> None:
    shop = _Shop()
    shop.asked("SELECT id FROM r WHERE llm_filter('b', long) AND id < 100")
    asked = shop.asked(
        "SELECT id FROM r WHERE llm_filter('a', x) AND llm_filter('b', long) AND id < 150"
    )
    # Stored answers leave 50 of the first 100 rows to 'a'. Of the other 50, one predicate sees all,
    # the other those that pass.
    assert sum(asked.values()) == 50 + 50 + 25
    assert asked["b"] <= 50


def test_what_a_run_has_learned_of_one_column_spares_another() -> None:
    shop = _Shop()
    sql = "SELECT id FROM r WHERE llm_filter('a', x) AND llm_filter('b', long)"
    shop.session.sql(f"CREATE VIEW twice AS {sql} UNION ALL {sql}")
    first = shop.asked(sql)
    assert sum(first.values()) <= N + N // 2 + 1
    assert shop.asked("SELECT * FROM twice") == {}


def test_a_predicate_that_passed_few_rows_comes_first() -> None:
    shop = _Shop()
    shop.asked("SELECT id FROM r WHERE llm_filter('rare', x) AND id < 50")
    shop.asked("SELECT id FROM r WHERE llm_filter('even', x) AND id < 50")
    sql = "SELECT id FROM r WHERE llm_filter('even', x) AND llm_filter('rare', x) AND id >= 50"
    lines = shop.explained(sql)
    assert lines[0].startswith("tried at first from the most rows dropped per cost on")
    assert "llm_filter('rare', r.x)" in lines[1]
    assert "about 88% dropped (5 of 50 earlier answers pass)" in lines[1]
    assert "about 50% dropped (25 of 50 earlier answers pass)" in lines[2]
    assert shop.asked(sql) == {"rare": 150, "even": 15}


def test_labels_seen_so_far_tell_how_many_rows_pass() -> None:
    shop = _Shop()
    labels = bf.ScriptedModel(lambda call: "b" if call.values[0] == "t3" else "a")
    shop.session.register_model("labels", labels)
    label = "llm_classify(x, ['a', 'b'], model => 'labels')"
    shop.session.sql(f"SELECT {label} AS l FROM r WHERE id < 30").collect()
    rare, frequent = (
        shop.explained(f"SELECT id FROM r WHERE llm_filter('q', x) AND {label} = '{text}'")
        for text in "ba"
    )
    assert "= 'b'" in rare[1]
    assert "1 of 30 earlier answers pass" in rare[1]
    assert "llm_filter('q', r.x)" in frequent[0], "as written: 'a' drops next to nothing"


def test_short_values_come_before_long_ones() -> None:
    shop = _Shop()
    sql = "SELECT id FROM r WHERE llm_filter('a', long) AND llm_filter('b', x)"
    lines = shop.explained(sql)
    assert "llm_filter('b', r.x)" in lines[1]
    assert "tokens a row" in lines[1]
    assert shop.asked(sql) == {"b": N, "a": N // 2}
    # A small difference leaves what is written.
    assert shop.explained(sql.replace("long", "concat(x, x)"))[0].startswith("filter 1")


def test_the_cheaper_of_two_models_comes_first() -> None:
    dear, cheap = bf.Price(prompt=10, completion=10), bf.Price(prompt=0.1, completion=0.1)
    sql = "SELECT id FROM r WHERE llm_filter('a', x) AND llm_filter('b', x, model => 'cheap')"
    shop = _Shop(dear=dear, cheap=cheap)
    lines = shop.explained(sql)
    assert "llm_filter('b', r.x" in lines[1]
    assert "of money a row" in lines[1]
    assert shop.asked(sql) == {"b": N, "a": N // 2}
    assert _Shop().asked(sql) == {"a": N, "b": N // 2}, "without prices: as written"


LABEL = "llm_classify(r.x, ['a', 'b'])"
BY_LABEL = f"SELECT r.id FROM r JOIN d ON {LABEL} = d.label WHERE llm_filter('q', r.long)"


def _by_label() -> _Shop:
    shop = _Shop()
    shop.session.from_pydict({"label": ["a", "b"]}, "d")
    return shop


def test_a_predicate_comes_before_a_join_with_all_labels() -> None:
    assert _by_label().asked(BY_LABEL) == {"q": N, "": N // 2}


def test_a_join_on_labels_of_short_texts_comes_before_a_predicate_about_long_ones() -> None:
    assert _by_label().asked(f"{BY_LABEL} AND d.label = 'a'") == {"": N, "q": N // 2}


def test_a_join_on_stored_answers_comes_before_a_predicate() -> None:
    shop = _by_label()
    shop.asked(f"SELECT {LABEL} FROM r")
    sql = f"{BY_LABEL} AND d.label = 'a'"  # whose numbers are odd
    assert "100 of 200 earlier answers pass" in "".join(shop.explained(sql))
    assert shop.asked(sql) == {"q": N // 2}


@pytest.mark.parametrize("join", [f"JOIN d ON {LABEL} = d.label", f"WHERE {LABEL} IN (FROM d)"])
def test_a_limit_leaves_that_order(join: str) -> None:
    shop = _by_label()
    shop.session.sql("CREATE VIEW odd AS SELECT label FROM d WHERE label = 'a'")
    join = join.replace("JOIN d", "JOIN odd d").replace("(FROM d)", "(SELECT label FROM odd)")
    shop.asked(f"SELECT {LABEL} FROM r")
    beside = "AND" if "WHERE" in join else "WHERE"
    sql = f"SELECT r.id FROM r {join} {beside} llm_filter('rare', r.long) LIMIT 3"
    assert "100 of 200 earlier answers pass" in "".join(shop.explained(sql))
    # Of the odd numbers, 27 is the 14th, and the third that ends in 7.
    assert 14 <= shop.asked(sql)["rare"] <= 20


def test_a_join_of_stored_answers_of_both_sides_comes_before_a_predicate() -> None:
    shop = _by_label()
    shop.session.from_pydict({"y": ["t1", "t3"]}, "s")
    sql = f"SELECT r.id FROM r JOIN (SELECT * FROM s WHERE y > 't0') s ON {LABEL} = "
    sql += LABEL.replace("r.x", "s.y")
    assert shop.asked(sql) == {"": N}  # the texts of s are among those of r
    sql += " WHERE llm_filter('q', r.long) AND r.id >= 10"
    assert "costly_predicates_last" in shop.session.sql(sql).explain_text(verbose=True)
    # Two values of s are asked as values of s: before, they shared the answers of r within the run.
    assert shop.asked(sql) == {"": 2, "q": (N - 10) // 2}


RARE, ALL = "llm_int('n', r.x) = m.n", f"{LABEL} = d.label"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT r.id FROM r JOIN d ON {ALL} JOIN m ON {RARE}",
        f"SELECT r.id FROM r JOIN m ON {RARE} JOIN d ON {ALL}",
        f"SELECT r.id FROM d, r, m WHERE {ALL} AND {RARE}",
        f"SELECT r.id FROM r JOIN d ON {ALL} WHERE llm_int('n', r.x) IN (SELECT n FROM m)",
        f"SELECT r.id FROM r JOIN m ON {RARE} WHERE {LABEL} IN (SELECT label FROM d)",
    ],
)
def test_two_joins_on_answers_are_in_the_order_of_what_they_drop(query: str) -> None:
    """One keeps a tenth of the rows, the other all: the first rows tell which."""
    shop = _by_label()
    shop.session.from_pydict({"n": [3]}, "m")
    first = shop.asked(query)
    assert first["n"] == N
    assert first[""] <= N // 10 + 16, "those of a first chunk, and the rows that are left"
    shop.session.clear_cache()
    shop.asked("SELECT llm_int('n', x) FROM r WHERE id < 50")
    shop.asked(f"SELECT {LABEL} FROM r WHERE id < 10")
    known = shop.asked(query)
    assert known == {"n": N - 50, "": N // 10 - 1}, "3 has a label"


def test_a_join_on_a_cheap_models_answers_comes_before_a_dear_predicate() -> None:
    dear, cheap = bf.Price(prompt=10, completion=10), bf.Price(prompt=0.1, completion=0.1)
    shop = _Shop(dear=dear, cheap=cheap)
    sql = "SELECT r.id FROM r JOIN flagged f ON llm_int('n', r.x, model => 'cheap') = f.n"
    shop.session.from_pydict({"n": [1]}, "flagged")
    assert shop.asked(f"{sql} WHERE llm_filter('q', r.long)") == {"n": N, "q": N // 10}
    # A limit ends the stages below its join early.
    limited = _Shop(dear=dear, cheap=cheap)
    limited.session.from_pydict({"n": [2]}, "flagged")
    assert limited.asked(f"{sql} WHERE llm_filter('q', r.long) LIMIT 1")["q"] < N // 10


@pytest.mark.parametrize("off", ["", "predicate_order"])
def test_the_written_order_can_be_kept(off: str) -> None:
    shop = _Shop()
    shop.session.sql(f"SET blendfusion.rules_off = '{off}'")
    asked = shop.asked("SELECT id FROM r WHERE llm_filter('a', long) AND llm_filter('b', x)")
    assert asked == ({"a": N, "b": N // 2} if off else {"b": N, "a": N // 2})


NAMES = ["r", "Upper", "two words", "a.b", 'a"b', "r; --"]
SOURCES = [
    *(quoted_name(name) for name in NAMES),
    "(SELECT unnest([id]) AS id, {column} FROM {table})",
    "(SELECT * FROM {table} LIMIT 9)",
    "(SELECT * FROM {table} UNION ALL SELECT * FROM {table})",
    "(WITH RECURSIVE s AS (SELECT * FROM {table} UNION ALL SELECT * FROM s WHERE id < 0) "
    "SELECT * FROM s)",
]


@pytest.mark.parametrize("column", NAMES)
@pytest.mark.parametrize("source", SOURCES)
def test_stored_answers_about_values_of_any_source(source: str, column: str) -> None:
    """The first values of a source, whatever its name and its form, tell what is stored."""
    session = bf.connect(bf.ScriptedModel(_even), cache=None, progress="off")
    texts = [f"t{i}" for i in range(20)]
    table = pa.table(
        {"id": range(20), column: texts, "v": pa.array([[1.0]] * 20, pa.list_(pa.float32(), 1))}
    )
    name = source if source.startswith('"') else quoted_name("r")
    session.from_arrow(table, name)
    quoted = quoted_name(column)
    side = f"SELECT id, llm_classify({quoted}, ['a', 'b']) AS w FROM {source} AS s "
    side = side.format(column=quoted, table=name) + f"WHERE llm_filter('even', {quoted})"
    sql = f"SELECT x.id, y.id AS other FROM ({side}) x JOIN ({side}) y ON x.w = y.w"
    for text in (sql, f"{side} INTERSECT {side}"):
        first, second = (sorted(map(str, session.sql(text).to_pylist())) for _ in range(2))
        assert first == second != []


@pytest.mark.parametrize("column", NAMES)
def test_stored_answers_about_values_of_frames(column: str) -> None:
    session = bf.connect(bf.ScriptedModel(_even), cache=None, progress="off")
    data = {"id": [*range(20)], column: [f"t{i}" for i in range(20)], "l": [[1, 2]] * 20}
    frame = session.from_pydict(data, "r").alias("other").unnest_columns("l")
    value = col(quoted_name(column))
    kept = frame.filter(bf.llm_filter("even", value))
    named = kept.with_column("w", bf.llm_classify(value, ["a", "b"]))
    first, second = (len(named.intersect(named).to_pylist()) for _ in range(2))
    assert first == second == 20
