"""Names of columns in the verbs of frames, in another letter case than the columns have."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest
from datafusion import Expr, col, lit
from datafusion import functions as f
from datafusion.expr import GroupingSet, Window

import blendfusion as bf
from blendfusion.datafusion.columns import columns_of
from blendfusion.models.prompts.canonical import Value

Named = Callable[[str], str]
"""How a test writes the name of a column."""
Verb = Callable[[bf.Frame, bf.Frame, Named], bf.Frame]


def answered(request: bf.Request) -> Value:
    if request.constraint.options:
        return request.constraint.options[0]
    return "A" in str(request.values) if request.constraint.kind == "boolean" else "ok"


@pytest.fixture(scope="module")
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(answered), cache=None, progress="off")
    made.from_pydict(
        {
            "Name": ["Ada", "Bob", None],
            "Birth Year": [1815, 1920, None],
            "id": [1, 2, 3],
            "Tags": [["x"], ["y", "z"], []],
            "Big": [True, None, False],
        },
        name="people",
    )
    made.from_pydict({"Name": ["Ada", "Zoe"], "Sum": [1.5, float("nan")], "n": [2, 5]}, name="more")
    return made


def _count(name: str) -> Expr:
    return f.count(col(name)).alias("number")


VERBS: dict[str, Verb] = {
    "select": lambda a, b, n: a.select(n("Name"), col(n("id")), f.upper(col(n("Name"))).alias("u")),
    "select of a relation": lambda a, b, n: a.select(col("people." + n("Name")), col("PEOPLE." + n("id"))),
    "an index": lambda a, b, n: a[n("Name")],
    "indexes": lambda a, b, n: a[[n("Name"), n("id")]],
    "select_exprs": lambda a, b, n: a.select_exprs(f"upper({n('Name')}) AS u", f"llm_map('q', {n('Name')}) AS m"),
    "drop": lambda a, b, n: a.drop(n("Name"), n("Tags")),
    "filter": lambda a, b, n: a.filter(col(n("Name")) == lit("Ada"), col(n("Birth Year")) > lit(1)),
    "filter by SQL": lambda a, b, n: a.filter(f"{n('Name')} LIKE 'A%' AND people.{n('Birth Year')} > 1"),
    "sort": lambda a, b, n: a.sort(col(n("Name")).sort(ascending=False, nulls_first=False), n("Birth Year")),
    "sort_by": lambda a, b, n: a.sort_by(n("Name"), col(n("id"))),
    "with_column": lambda a, b, n: a.with_column("Loud", f.upper(col(n("Name")))),
    "with_column by SQL": lambda a, b, n: a.with_column("Loud", f"upper({n('Name')})"),
    "with_columns": lambda a, b, n: a.with_columns([f.lower(col(n("Name"))).alias("l")], up=f.upper(col(n("Name")))),
    "with_column_renamed": lambda a, b, n: a.with_column_renamed(n("Name"), "first"),
    "cast": lambda a, b, n: a.cast({n("Name"): pa.large_string()}),
    "aggregate": lambda a, b, n: a.aggregate([n("Big")], [_count(n("Name")), f.max(col(n("Birth Year"))).alias("m")]),
    "aggregate by one": lambda a, b, n: a.aggregate(n("Name"), _count(n("id"))),
    "aggregate of chosen rows": lambda a, b, n: a.aggregate([], [f.count(col(n("id")), filter=col(n("Big")))]),
    "aggregate in order": lambda a, b, n: a.aggregate([], [f.array_agg(col(n("id")), order_by=[col(n("Name"))])]),
    "rollup": lambda a, b, n: a.aggregate([GroupingSet.rollup(col(n("Name")), col(n("Big")))], [_count(n("id"))]),
    "grouping sets": lambda a, b, n: a.aggregate(
        [GroupingSet.grouping_sets([col(n("Name"))], [col(n("Big"))])], [_count(n("id"))]
    ),
    "window": lambda a, b, n: a.window(
        f.row_number(partition_by=[col(n("Big"))], order_by=[col(n("Name"))]).alias("r"),
        f.sum(col(n("id"))).over(Window(partition_by=[col(n("Big"))], order_by=[col(n("id"))])).alias("s"),
    ),
    "unnest_columns": lambda a, b, n: a.unnest_columns(n("Tags")),
    "distinct_on": lambda a, b, n: a.distinct_on([col(n("Name"))], [col(n("Name"))]),
    "repartition_by_hash": lambda a, b, n: a.repartition_by_hash(n("Name"), num=2),
    "join": lambda a, b, n: a.join(b, n("Name")),
    "join full": lambda a, b, n: a.join(b, on=[n("Name")], how="full"),
    "join semi": lambda a, b, n: a.join(b, on=n("Name"), how="semi"),
    "join of two keys": lambda a, b, n: a.join(b, left_on=[n("Name"), n("id")], right_on=[n("Name"), n("n")]),
    "join with both keys": lambda a, b, n: a.join(b, on=n("Name"), coalesce_duplicate_keys=False),
    "join_on": lambda a, b, n: a.join_on(b, col("people." + n("Name")) == col("more." + n("Name")), how="left"),
    "llm_join": lambda a, b, n: a.llm_join(b, n("Name").strip('"'), n("Name").strip('"'), how="the same"),
    "col": lambda a, b, n: a.select(a.col(n("Name").strip('"')), col(n("id"))),
    "llm_filter": lambda a, b, n: a.filter(bf.llm_filter("Is it A?", n("Name"))),
    "llm_map of an expression": lambda a, b, n: a.select(bf.llm_map("q", f.upper(col(n("Name")))).alias("m")),
    "llm_map of two": lambda a, b, n: a.with_column("m", bf.llm_map("q", n("Name"), n("Birth Year"))),
    "llm_qa": lambda a, b, n: a.aggregate(
        [n("Big")], [bf.llm_qa("q", n("Name"), order_by=n("id"), where=col(n("Big"))).alias("m")]
    ),
    "llm_score": lambda a, b, n: a.sort(bf.llm_score("q", n("Name")).sort(ascending=False)).limit(2),
    "the rest": lambda a, b, n: a.select(
        f.when(col(n("Name")) == lit("Ada"), col(n("id"))).otherwise(col(n("Birth Year"))).alias("a"),
        f.in_list(col(n("Name")), [lit("Ada"), col(n("Name"))]).alias("b"),
        col(n("id")).between(lit(1), col(n("Birth Year"))).alias("c"),
        (~col(n("Big"))).alias("d"),
        col(n("Tags"))[0].alias("e"),
        col(n("Name")).is_null().alias("g"),
        col(n("Birth Year")).try_cast(pa.string()).alias("h"),
        col(n("Name")).cast(pa.string()).is_not_null().alias("i"),
    ),
    "SQL of all kinds": lambda a, b, n: a.select_exprs(
        f"{n('Name')} LIKE 'A%' AS a", f"{n('Name')} ILIKE {n('Name')} AS b", f"-{n('Birth Year')} AS c",
        f"{n('Big')} IS NOT TRUE AS d", f"{n('Name')} ~ 'A' AS e", f"CASE {n('id')} WHEN 1 THEN {n('Name')} END AS g",
    ),
}  # fmt: skip
"""A frame from ``people`` and ``more``, by each verb."""


def exact(name: str) -> str:
    return f'"{name}"'


def spelled(way: Callable[[str], str]) -> Named:
    return lambda name: f'"{way(name)}"' if " " in name else way(name)


@pytest.mark.parametrize("way", [str, str.upper, str.lower, str.swapcase])
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_finds_a_name_in_any_case(
    name: str, way: Callable[[str], str], session: bf.Session
) -> None:
    frames = session.table("people"), session.table("more")
    wanted, got = (VERBS[name](*frames, named) for named in (exact, spelled(way)))
    assert got.schema().names == wanted.schema().names
    assert _plan(got) == _plan(wanted)
    if name != "llm_score":  # equal scores have no order
        rows = [sorted(map(str, frame.to_pylist())) for frame in (wanted, got)]
        assert rows[0] == rows[1]


def _plan(frame: bf.Frame) -> str:
    """The plan without the digests of calls, and without their texts, which stay as written."""
    text = frame.logical_plan().display_indent()
    return re.sub(r"(llm_\w+?)_[0-9a-f]{12}|llm_\w+\('.*?\)", r"\1", text)


@pytest.mark.parametrize("way", [str, str.upper, str.lower])
def test_holes_are_filled_in_columns_in_capitals(way: Named, session: bf.Session) -> None:
    filled = session.table("people").fill_null(0, subset=[way("Birth Year")])
    assert filled.select(way("id"), f'"{way("Birth Year")}"').to_pydict() == {
        "id": [1, 2, 3],
        "Birth Year": [1815, 1920, 0],
    }
    more = session.table("more").fill_nan(0.0, subset=[way("Sum")])
    assert more.collect_column(way("Sum")).to_pylist() == [1.5, 0.0]
    everywhere = session.table("people").drop("tags").fill_null("-")
    assert everywhere.collect_column("name").to_pylist() == ["Ada", "Bob", "-"]


@pytest.mark.parametrize("hole", ["{Name}", "{name}", "{NAME}", "{}"])
def test_a_template_names_a_column_in_any_case(hole: str, session: bf.Session) -> None:
    frame = session.table("people").filter("id = 1")
    for column in ("Name", "name", col("NAME"), frame.col("name"), '"Name"'):
        (row,) = frame.select(bf.llm_map(f"Is {hole} nice?", column).alias("a")).to_pylist()
        assert row == {"a": "ok"}


def test_an_exact_name_goes_first(session: bf.Session) -> None:
    both = session.from_pydict({"a": [1], "A": [2]}, name="both")
    assert both.select("A").to_pylist() == [{"a": 1}]  # as SQL reads it
    assert both.select('"A"').to_pylist() == [{"A": 2}]
    assert both.drop("A").columns == ["A"]
    assert both.col("A").to_variant().name() == "A"
    assert both.filter('A = 1 AND "A" = 2').count() == 1


@pytest.mark.parametrize(
    "verb",
    [
        lambda t: t.select("aa"),
        lambda t: t.drop("AA"),
        lambda t: t.filter("aa > 1"),
        lambda t: t.filter(col("t3.aa") > lit(1)),
        lambda t: t.sort(col("AA").sort()),
        lambda t: t.aggregate("aa", []),
        lambda t: t.join(t.alias("u"), on="aa"),
        lambda t: t.with_column_renamed("aa", "b"),
        lambda t: t.filter(bf.llm_filter("q", "aa")),
        lambda t: t.col("aa"),
    ],
)
def test_two_names_that_are_equal_but_for_case_are_an_error(
    verb: Callable[[bf.Frame], object], session: bf.Session
) -> None:
    table = session.from_pydict({"Aa": [1], "aA": [2]}, name="t3")
    with pytest.raises(bf.QueryError, match=r"(?i)'aa' may be .Aa. or .aA.") as caught:
        verb(table)
    assert caught.value.hint == "Write the one that is meant in double quotes."
    session.deregister_table("t3")


def test_columns_of_two_relations(session: bf.Session) -> None:
    people, more = session.table("people"), session.table("more").alias("M o")
    both = people.join_on(more, people.col("name") == more.col("NAME"))
    found = both.select(col("people.name").alias("a"), col('"M o".NAME').alias("b"))
    assert found.to_pylist() == [{"a": "Ada", "b": "Ada"}]
    with pytest.raises(bf.QueryError, match="ambiguous"):
        both.select("NAME")


def test_a_name_that_no_column_has_is_datafusions_error(session: bf.Session) -> None:
    people = session.table("people")
    for verb in (lambda: people.select("Nothing"), lambda: people.filter(col("Nothing").is_null())):
        with pytest.raises(bf.QueryError, match="unknown column 'nothing'"):
            verb()


def test_drop_and_rename_refuse_a_name_that_no_column_has(session: bf.Session) -> None:
    people = session.table("people")
    for verb in (
        lambda: people.drop("name", "tag"),
        lambda: people.drop('"tag"'),
        lambda: people.drop("people.tag"),
        lambda: people.with_column_renamed("tag", "labels"),
        lambda: people.with_column_renamed("tag", "name"),
    ):
        with pytest.raises(
            bf.QueryError, match=r"unknown column '(people\.)?tag'\nHint: Did you mean 'Tags'"
        ):
            verb()
    assert "Tags" not in people.drop("people.tags", "tags", "tags").columns
    assert people.with_column_renamed("tags", "Tags").columns == people.columns
    assert people.drop().columns == people.columns


def test_a_session_may_keep_datafusions_way(session: bf.Session) -> None:
    session.sql("SET blendfusion.names_in_any_case = false")
    people = session.table("people")
    try:
        for verb in (
            lambda: people.select("Name"),
            lambda: people.filter("Name = 'Ada'"),
            lambda: people.filter(bf.llm_filter("q", "Name")),
        ):
            with pytest.raises(bf.QueryError, match="unknown column 'name'"):
                verb()
        with pytest.raises(bf.QueryError, match="unknown column 'name'"):
            people.drop("Name")
    finally:
        session.sql("SET blendfusion.names_in_any_case = true")


def test_a_literal_is_never_taken_for_a_column(session: bf.Session) -> None:
    """An expression is read as DataFusion writes it: what looks like a column in a text is none."""
    people = session.table("people")
    for text in ("name", "Name", "\n\x04name", "\n\x06\n\x04name", "\x0a\x08\x0a\x06\x0a\x04name"):
        row = people.filter(col("NAME") == lit("Ada")).select(
            lit(text).alias("a"), f.concat(lit(text), col("name")).alias("b")
        )
        assert row.to_pylist() == [{"a": text, "b": text + "Ada"}]


def test_columns_with_any_letters(session: bf.Session) -> None:
    names = ["A, b.", 'q"X', "Ünd", "line\nTwo", "a.b"]
    table = session.from_pydict({name: [at] for at, name in enumerate(names)}, name="odd")
    assert [column.name for column in columns_of(table)] == names
    quoted = [f'"{n.swapcase()}"'.replace('q"', 'q""').replace('Q"', 'Q""') for n in names]
    assert table.select(*quoted).to_pylist() == [dict(zip(names, range(5), strict=True))]
