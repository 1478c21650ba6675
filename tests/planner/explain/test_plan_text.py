"""Expressions and plans as text: what DataFusion writes reads as the SQL that a person would
write."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext, substrait
from scripts import Counted, hashed

from blendfusion.datafusion.substrait.read import read
from blendfusion.planner.explain.plan_text import changed_trees, lines, names_of
from blendfusion.planner.explain.truncate import cut, list_items


@pytest.fixture(scope="module")
def context() -> SessionContext:
    context = SessionContext()
    t = {"id": [1, 2], "x": ["a", "b"], "f": [1.5, 2.5], "b": [True, False], "l": [[1], [2]]}
    context.from_pydict(t, name="t")
    context.from_pydict({"uid": [1, 2], "my col": ["a", "b"]}, name="u")
    return context


def tree(sql: str, context: SessionContext, *, full: bool = False) -> list[str]:
    plan = context.sql(sql).optimized_logical_plan()
    encoded = substrait.Producer.to_substrait_plan(plan, context).encode()
    return list(lines(read(encoded).plan, {}, full=full))


def column(text: str, context: SessionContext) -> str:
    plan = context.sql(f"SELECT {text} AS c, id FROM t").optimized_logical_plan()
    encoded = substrait.Producer.to_substrait_plan(plan, context).encode()
    return names_of(read(encoded).plan, {})[0].replace("t.", "")


LITERALS = {
    "1::TINYINT": "1",
    "-1::SMALLINT": "-1",
    "1::INT": "1",
    "4000000000::INT UNSIGNED": "4000000000",
    "18446744073709551615::BIGINT UNSIGNED": "18446744073709551615",
    "0.1::FLOAT": "0.1",
    "0.1": "0.1",
    "-2.0": "-2.0",
    "1e300": "1e+300",
    "3e38::FLOAT": "3e+38",
    "'NaN'::DOUBLE": "CAST('nan' AS DOUBLE)",
    "'-inf'::FLOAT": "CAST('-inf' AS FLOAT)",
    "0.06::DECIMAL(10, 2)": "0.06",
    "'-12345678901234567890.5'::DECIMAL(30, 3)": "-12345678901234567890.500",
    "100::DECIMAL(5, 0)": "100",
    "'it''s'": "'it''s'",
    "arrow_cast('a', 'Utf8View')": "'a'",
    "x'00ff'": "X'00FF'",
    "arrow_cast(x'00ff', 'FixedSizeBinary(2)')": "X'00FF'",
    "TRUE": "TRUE",
    "FALSE": "FALSE",
    "NULL": "NULL",
    "NULL::DATE": "NULL",
    "DATE '2024-10-01'": "DATE '2024-10-01'",
    "DATE '0001-01-01'": "DATE '0001-01-01'",
    "arrow_cast(2932897, 'Date32')": "DATE '1970-01-01' + INTERVAL '2932897 days'",
    "TIME '02:34:56.5'": "TIME '02:34:56.5'",
    "arrow_cast('12:34:56', 'Time32(Second)')": "TIME '12:34:56'",
    "TIMESTAMP '2024-10-01T01:02:03'": "TIMESTAMP '2024-10-01 01:02:03'",
    "TIMESTAMP '1969-12-31T23:59:59.25'": "TIMESTAMP '1969-12-31 23:59:59.25'",
    "TIMESTAMP '2024-10-01T01:02:03.123456789'": "TIMESTAMP '2024-10-01 01:02:03.123456789'",
    "arrow_cast(253402300800, 'Timestamp(Second, None)')": (
        "TIMESTAMP '1970-01-01 00:00:00' + INTERVAL '253402300800 seconds'"
    ),
    "arrow_cast('2024-10-01T01:00:00Z', 'Timestamp(Second, Some(\"Asia/Tokyo\"))')": (
        "TIMESTAMP '2024-10-01 01:00:00+00:00'"
    ),
    "INTERVAL '1 month'": "INTERVAL '1 month'",
    "INTERVAL '14 months -3 days'": "INTERVAL '1 year 2 months -3 days'",
    "INTERVAL '2 hours 1.5 seconds'": "INTERVAL '2 hours 1.5 seconds'",
    "INTERVAL '-90 minutes'": "INTERVAL '-1 hour -30 minutes'",
    "INTERVAL '0 days'": "INTERVAL '0 days'",
    "arrow_cast('3 days', 'Interval(DayTime)')": "INTERVAL '3 days'",
    "arrow_cast('1 month', 'Interval(YearMonth)')": "INTERVAL '1 month'",
    "[1, 2]": "[1, 2]",
    "['a', NULL]": "['a', NULL]",
    "make_array()": "[]",
    "struct(1, 'b')": "struct(1, 'b')",
    "MAP {'a': 1, 'b': 2}": "MAP {'a': 1, 'b': 2}",
}


@pytest.mark.parametrize("written", LITERALS)
def test_literals(written: str, context: SessionContext) -> None:
    assert column(written, context) == LITERALS[written]


@pytest.mark.parametrize(
    "written",
    [text for text in LITERALS.values() if "1970" not in text and text not in ("[]", "NULL")],
)
def test_literals_are_sql_that_reads_back_as_themselves(
    written: str, context: SessionContext
) -> None:
    assert column(column(written, context), context) == column(written, context)


EXPRESSIONS = {
    "id + 1": "id + 1",
    "(id + 2) * 3": "(id + 2) * 3",
    "id + 2 * 3 % id": "id + 6 % id",
    "id - (id - 1)": "id - (id - 1)",
    "-(id + 1)": "-(id + 1)",
    "-id": "-id",
    "(id & 1) + (id << 2)": "(id & 1) + (id << 2)",
    "x || 'a' || x": "x || 'a' || x",
    "x || 'a' = 'b'": "x || 'a' = 'b'",
    "b AND id > 1 OR id IS NULL": "(b AND id > 1) OR id IS NULL",
    "b AND (id > 1 OR id < 0)": "b AND (id > 1 OR id < 0)",
    "(b AND id > 1) IS TRUE": "(b AND id > 1) IS TRUE",
    "(id > 1) = b": "(id > 1) = b",
    "b IS UNKNOWN": "b IS UNKNOWN",
    "id IS DISTINCT FROM 3": "id IS DISTINCT FROM 3",
    "NOT b": "NOT b",
    "NOT nullif(b, id > 1)": "NOT nullif(b, id > 1)",
    "id NOT IN (1, 2, 3, 4)": "id NOT IN (1, 2, 3, 4)",
    "id IN (1, 2, 3, 4)": "id IN (1, 2, 3, 4)",
    "x LIKE 'a%b'": "x LIKE 'a%b'",
    "x NOT ILIKE 'a_b'": "x NOT ILIKE 'a_b'",
    "x LIKE 'a!_c%d' ESCAPE '!'": "x LIKE 'a!_c%d' ESCAPE '!'",
    "x ~ '[a-c]+'": "x ~ '[a-c]+'",
    "x !~* '[a-c]+'": "x !~* '[a-c]+'",
    "CASE WHEN id = 1 THEN 'a' END": "CASE WHEN id = 1 THEN 'a' END",
    "CASE x WHEN 'a' THEN 1 ELSE 2 END": "CASE WHEN x = 'a' THEN 1 ELSE 2 END",
    "nullif(x, 'a')": "nullif(x, 'a')",
    "l[1]": "l[1]",
    "[id, 2]": "[id, 2]",
    "CAST(id AS TEXT)": "CAST(id AS TEXT)",
    "TRY_CAST(x AS INT)": "TRY_CAST(x AS INT)",
    "CAST(id AS DECIMAL(10, 2))": "CAST(id AS DECIMAL(10, 2))",
    "CAST(x AS TIMESTAMP)": "CAST(x AS TIMESTAMP)",
    "CAST(x AS DATE)": "CAST(x AS DATE)",
    "CAST(x AS TIME)": "CAST(x AS TIME)",
    "CAST(x AS INTERVAL)": "CAST(x AS INTERVAL)",
    "arrow_cast(x, 'Timestamp(Second, Some(\"UTC\"))')": "CAST(x AS TIMESTAMP WITH TIME ZONE)",
    "arrow_cast(id, 'UInt8')": "CAST(id AS TINYINT UNSIGNED)",
    "arrow_cast(id, 'Duration(Second)')": "CAST(id AS DURATION)",
    "arrow_cast(l, 'LargeList(Float32)')": "CAST(l AS FLOAT[])",
    "CAST(x AS DATE) + INTERVAL '1 day'": "CAST(x AS DATE) + INTERVAL '1 day'",
}


@pytest.mark.parametrize("written", EXPRESSIONS)
def test_expressions(written: str, context: SessionContext) -> None:
    assert column(written, context) == EXPRESSIONS[written]


@pytest.mark.parametrize(
    "window",
    [
        "row_number() OVER (PARTITION BY x ORDER BY id DESC)",
        "row_number() OVER (ORDER BY f NULLS FIRST, id DESC NULLS LAST)",
        "sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING)",
        "sum(id) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "count(*) OVER ()",
        "sum(id) OVER (PARTITION BY b)",
        "lag(id, 1) OVER (ORDER BY f)",
    ],
)
def test_windows(window: str, context: SessionContext) -> None:
    assert column(window, context) == window


@pytest.mark.parametrize(
    "aggregate",
    [
        "count(*)",
        "sum(id)",
        "array_agg(x ORDER BY f DESC NULLS LAST, id)",
        "array_agg(DISTINCT x ORDER BY x) FILTER (WHERE b)",
        "string_agg(x, ',' ORDER BY id)",
        "max(CAST(id AS TEXT))",
    ],
)
def test_aggregates(aggregate: str, context: SessionContext) -> None:
    # With a second one beside it, for DataFusion rewrites some that stand alone.
    line = tree(f"SELECT {aggregate}, count(id) FROM t GROUP BY b", context)[1].strip()
    assert line.replace("t.", "") == f"aggregate [{aggregate}, count(id)] by [b]"


def test_grouping_sets_and_distinct(context: SessionContext) -> None:
    sets = tree("SELECT x, sum(id) FROM t GROUP BY ROLLUP (x, b)", context)
    assert sets[1] == "  aggregate [sum(t.id)] by each of [(t.x, t.b), (t.x), ()]"
    assert tree("SELECT DISTINCT x FROM t", context) == ["distinct [t.x]", "  scan t [x]"]


def test_operators(context: SessionContext) -> None:
    sql = "SELECT t.id, f, uid FROM t FULL JOIN u ON id = uid ORDER BY f DESC, t.id NULLS FIRST LIMIT 3"
    assert tree(sql, context) == [
        "limit 3",
        "  sort by t.f DESC, t.id NULLS FIRST",
        "    full join on t.id = u.uid",
        "      scan t [id, f]",
        "      scan u [uid]",
    ]
    assert tree("SELECT id FROM t CROSS JOIN (SELECT uid FROM u)", context) == [
        "cross join",
        "  scan t [id]",
        "  scan u, no columns",
    ]


def test_names_that_are_no_words_stand_in_quotes(context: SessionContext) -> None:
    assert tree("""SELECT uid FROM u WHERE "my col" = 'a'""", context)[-2:] == [
        """  filter u."my col" = 'a'""",
        """    scan u [uid, "my col"]""",
    ]


def test_subqueries_stand_below_their_operator(context: SessionContext) -> None:
    sql = """
        SELECT id, (SELECT max(uid) FROM u) FROM t
        WHERE id > (SELECT min(uid) FROM u) AND f < (SELECT avg(f) FROM t)"""
    assert tree(sql, context) == [
        "project [t.id, (subquery)]",
        "  subquery:",
        "    aggregate [max(u.uid)]",
        "      scan u [uid]",
        "  filter t.id > (subquery 1) AND t.f < (subquery 2)",
        "    subquery 1:",
        "      aggregate [min(u.uid)]",
        "        scan u [uid]",
        "    subquery 2:",
        "      aggregate [avg(t.f)]",
        "        scan t [f]",
        "    scan t [id, f]",
    ]


def test_marks_have_names(context: SessionContext) -> None:
    sql = (
        "SELECT x FROM t WHERE id IN (SELECT uid FROM u) OR EXISTS (SELECT 1 FROM u WHERE uid > 1)"
    )
    text = "\n".join(tree(sql, context))
    assert "filter mark 1 OR mark 2" in text
    assert "left mark join on t.id = u.uid as mark 1" in text
    assert "left mark join on TRUE as mark 2" in text


def test_columns_of_the_same_name_say_their_side_of_a_join(context: SessionContext) -> None:
    sql = "SELECT t.id FROM t JOIN t AS other ON t.id = other.id AND t.f < other.f JOIN u ON t.id = uid"
    joins = [line.strip() for line in tree(sql, context) if "join" in line]
    assert joins == [
        "inner join on t.id = u.uid",
        "inner join on left.t.id = right.t.id AND left.t.f < right.t.f",
    ]


def test_projections_one_above_the_other_are_one(context: SessionContext) -> None:
    sql = "SELECT sum(id) OVER (PARTITION BY x) FROM t"
    assert tree(sql, context) == ["project [sum(t.id) OVER (PARTITION BY t.x)]", "  scan t [id, x]"]
    encoded = substrait.Producer.to_substrait_plan(
        context.sql(sql).optimized_logical_plan(), context
    ).encode()
    apart, _ = changed_trees(read(encoded).plan, read(encoded).plan.inputs[0])
    assert [line.split()[0] for line in apart] == ["project", "project"]


def test_long_lines_are_cut() -> None:
    assert cut("a\n   b", full=True) == "a b"
    assert cut("x" * 120, full=False) == "x" * 120
    text = "llm_filter('" + "word " * 40 + "?', t.x)"
    assert len(cut(text, full=False)) <= 120
    assert cut(text, full=False).startswith("llm_filter('word word ")
    assert cut(text, full=False).endswith(" word ?', t.x)")


def test_long_lists_are_cut() -> None:
    columns = [f"a_column_{i:02d}" for i in range(40)]
    assert list_items(columns, full=True) == ", ".join(columns)
    assert list_items(columns, full=False) == ", ".join(columns[:8]) + ", … 32 more"
    assert len(list_items(columns, full=False)) <= 120
    one_long = list_items(["a", "b" * 200, "c"], full=False, separator=" AND ")
    assert one_long.startswith("a AND bbb")
    assert " … b" in one_long
    assert one_long.endswith("bbb AND c")
    assert len(one_long) <= 120
    assert len(list_items(["a" * 200] * 9, full=False)) <= 120
    assert list_items(["a" * 200] * 9, full=False).endswith("a, … 7 more")


def test_names_of_columns_made_of_columns_end(context: SessionContext) -> None:
    sql = "SELECT id AS c FROM t"
    for _ in range(12):
        sql = f"SELECT abs(c) + random() * c AS c FROM ({sql})"
    assert max(map(len, tree(sql, context, full=True))) < 5000


@pytest.fixture
def db() -> Counted:
    return Counted(hashed).add("t", pa.table({"id": range(6), "k": [1] * 6, "x": list("abcabc")}))


def test_calls_of_a_group_are_written_with_order_and_filter(db: Counted) -> None:
    call = "llm_qa('q', t.x, t.k ORDER BY t.id DESC) FILTER (WHERE t.id > 1)"
    text = db.session.sql(f"SELECT {call} FROM t").explain_text(estimates=False)
    assert f"  compute {call}\n    ask {call} → text\n" in text


def test_a_call_of_several_expressions_is_listed_once(db: Counted) -> None:
    sql = "SELECT llm_int('n', x) + 1, CASE WHEN id > 1 THEN llm_int('n', x) END FROM t"
    text = db.session.sql(sql).explain_text(estimates=False)
    assert text.count("ask llm_int('n', t.x)") == 1


@pytest.mark.parametrize("off", ["", "predicate_order"])
def test_analyze_says_in_which_order_predicates_were_tried_and_why(off: str) -> None:
    db = Counted(lambda call: call.question != "none" and call.question != call.values[0])
    db.session.sql(f"SET blendfusion.rules_off = '{off}'")
    db.add("t", {"x": [str(i) for i in range(40)]})
    sql = "SELECT x FROM t WHERE llm_filter('7', x) AND llm_filter('none', x)"
    lines = db.session.sql(sql).explain_text(analyze=True).splitlines()
    tried = [line.strip() for line in lines if "tried" in line or re.search(r"filter \d", line)]
    if off:
        assert tried[0].startswith("tried as written (rank: ")
        assert [line[:9] for line in tried[1:]] == ["filter 1:", "filter 2:"]
    else:
        assert tried[0].startswith("tried from the highest rank on (rank: ")
        assert [line[:9] for line in tried[1:]] == ["filter 2:", "filter 1:"]
        assert ": 100% dropped, " in tried[1]
    assert "tokens a row, rank 0." in tried[1]


def test_analyze_of_predicates_that_no_row_reached_or_that_cost_nothing() -> None:
    db = Counted(lambda call: False).add("t", {"x": ["a", "b"]})
    sql = "SELECT x FROM t WHERE llm_filter('q', x) AND llm_filter('r', x)"
    db.session.sql(sql).count()
    text = db.session.sql(sql).explain_text(analyze=True)
    assert "[rows 2 → 0: 100% dropped, 0.0 tokens a row, all from the cache]" in text
    assert "[no row came here]" in text


def test_verbose_shows_what_scans_have_as_hints(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(6), "x": list("abcabc")}), tmp_path / "f.parquet")
    db = Counted(hashed)
    db.session.register_parquet("f", str(tmp_path / "f.parquet"))
    frame = db.session.sql("SELECT id FROM f WHERE id > 1 AND llm_filter('q', x)")
    text = frame.explain_text(estimates=False, verbose=True)
    assert "scan f [id, x] hint: f.id > 1\n" in text
    assert "hint" not in frame.explain_text(estimates=False)


def test_verbose_cuts_nothing(db: Counted) -> None:
    long = " ".join(["word"] * 40)
    frame = db.session.sql(f"SELECT id FROM t WHERE llm_filter('{long}', x)")
    assert long not in frame.explain_text(estimates=False)
    assert long in frame.explain_text(estimates=False, verbose=True)
