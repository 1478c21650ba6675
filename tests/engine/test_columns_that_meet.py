"""Results of calls over several columns that meet in a comparison or a UNION ALL are of one column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import col

import blendfusion as bf
from blendfusion.models.embedders.embedder import Vectors, normalise

OURS = ["IBM", "Apple Inc.", "Oracle", "IBM"]
THEIRS = ["IBM Corporation Ltd", "Apple", "Sun", None]
PAIRS = {("Apple Inc.", "Apple"), ("IBM", "IBM Corporation Ltd")}


def by_first_word(request: bf.Request) -> object:
    if request.task.ingredient == "llm_filter":
        return "apple" in str(request.values[0]).lower()
    words = [str(value).removeprefix("- ").split()[0].lower() for value in request.values]
    if request.task.ingredient == "llm_group":
        options = request.constraint.options
        return words[0] if not options or words[0] in options else "other"
    return words[0] == words[1]


class ByWord:
    name = fingerprint = "by word"
    batch_size = 64

    def embed(self, texts: list[str]) -> Vectors:
        first = [text.split()[0] for text in texts]
        return normalise([[word == "IBM", word == "Apple", word == "Sun", 0.1] for word in first])

    def close(self) -> None:
        pass


def connected() -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(by_first_word)
    session = bf.connect(model, cache=None, embedder=ByWord())
    session.from_pydict({"x": OURS}, name="a")
    session.from_pydict({"y": THEIRS}, name="b")
    return session, model


BOTH = """both_lists AS (
    SELECT 'ours' AS list, x AS name FROM a UNION ALL SELECT 'theirs', y FROM b),
    e AS (SELECT list, name, llm_same(name) AS entity FROM both_lists)"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT x, y FROM a JOIN b ON llm_same(x) = llm_same(y)", PAIRS),
        ("SELECT x, y FROM a, b WHERE llm_same(x) = llm_same(y)", PAIRS),
        (
            "SELECT x, y FROM a LEFT JOIN b ON llm_same(x) = llm_same(y)",
            {*PAIRS, ("Oracle", None)},
        ),
        (
            "SELECT x, y FROM (SELECT x, llm_same(x) AS e FROM a) "
            "JOIN (SELECT y, llm_same(y) AS f FROM b) ON lower(e) = lower(f)",
            PAIRS,
        ),
        (
            "SELECT x FROM a WHERE llm_same(x) IN (SELECT llm_same(y) FROM b)",
            {("Apple Inc.",), ("IBM",)},
        ),
        (
            "SELECT x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE llm_same(y) = llm_same(x))",
            {("Oracle",)},
        ),
        (
            "SELECT e, count(*) FROM (SELECT llm_same(x) AS e FROM a UNION ALL SELECT llm_same(y) FROM b) "
            "GROUP BY e",
            {(None, 1), ("Apple Inc.", 2), ("IBM Corporation Ltd", 3), ("Oracle", 1), ("Sun", 1)},
        ),
        (
            "SELECT llm_same(x) FROM a INTERSECT SELECT llm_same(y) FROM b",
            {("Apple Inc.",), ("IBM Corporation Ltd",)},
        ),
        # DataFusion applies each predicate below its call.
        (
            f"WITH {BOTH} SELECT o.name AS x, t.name AS y FROM e AS o JOIN e AS t ON o.entity = t.entity "
            "WHERE o.list = 'ours' AND t.list = 'theirs'",
            PAIRS,
        ),
        # Both need the answers of another call.
        (
            "SELECT x, y FROM (SELECT x FROM a WHERE llm_filter('apple', x)) "
            "JOIN b ON llm_same(x) = llm_same(y)",
            {("Apple Inc.", "Apple")},
        ),
        ("SELECT x, y FROM a JOIN b ON llm_group(x, into => 4) = llm_group(y, into => 4)", PAIRS),
    ],
)
def test_results_that_meet_are_of_one_column(query: str, expected: set[object]) -> None:
    session, model = connected()
    frame = session.sql(query)
    assert {tuple(row.values()) for row in frame.to_pylist()} == expected
    pairs = [frozenset(map(str, call.values)) for call in model.calls if len(call.values) == 2]
    assert len(pairs) == len(set(pairs)) <= 3 * 6
    assert frame.estimate().total.values == 0


def test_columns_of_other_types_and_names_meet_too() -> None:
    session, _ = connected()
    ours = pa.array(["IBM x", "Sun"], pa.large_string()).dictionary_encode()
    session.from_arrow(pa.table({"x": ours}), name="c")
    session.from_arrow(pa.table({"x": pa.array(["IBM y", "Sun"], pa.string_view())}), name="d")
    query = "SELECT c.x AS p, d.x AS q FROM c JOIN d ON llm_same(c.x, name => 'n') = llm_same(d.x, name => 'n')"
    rows = session.sql(query).to_pylist()
    assert {(row["p"], row["q"]) for row in rows} == {("IBM x", "IBM y"), ("Sun", "Sun")}
    assert len(session.entities["n"].names) == 2


def test_frames_that_are_joined_meet() -> None:
    session, _ = connected()
    ours = session.table("a").with_column("e", bf.llm_same("x"))
    theirs = session.table("b").with_column("f", bf.llm_same("y"))
    rows = ours.join(theirs, left_on="e", right_on="f").select(col("x"), col("y")).to_pylist()
    assert {(row["x"], row["y"]) for row in rows} == PAIRS


def test_columns_that_do_not_meet_stay_apart() -> None:
    session, model = connected()
    query = (
        "SELECT count(DISTINCT llm_same(x)) AS n, (SELECT count(DISTINCT llm_same(y)) FROM b) AS m "
        "FROM a"
    )
    assert session.sql(query).to_pylist() == [{"n": 3, "m": 3}]
    assert all(
        {*map(str, call.values)} <= {*OURS} or {*map(str, call.values)} <= {*map(str, THEIRS)}
        for call in model.calls
    )
    query = "SELECT x FROM a JOIN b ON llm_same(x) = llm_same(y, by => 'one owner')"
    assert session.sql(query).to_pylist() == []
