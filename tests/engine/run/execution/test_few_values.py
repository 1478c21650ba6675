"""Under a limit, pairs of a join come in an order that asks about few values, unless that is
off."""

from __future__ import annotations

from scripts import Counted

PAIRS = (
    "SELECT a.x AS x, b.y AS y FROM a JOIN b ON a.k = b.k "
    "AND llm_classify(a.x, ['c', 'd']) = llm_classify(b.y, ['c', 'd']) LIMIT 8"
)
FIRST = "limit 8 (stops early; pairs of few values first)"


def test_pairs_of_few_values_come_first() -> None:
    db = Counted(lambda call: "c")
    db.add("a", {"k": [1] * 40, "x": [f"x{i}" for i in range(40)]})
    db.add("b", {"k": [1] * 40, "y": [f"y{i}" for i in range(40)]})
    frame = db.session.sql(PAIRS)
    assert FIRST in frame.explain_text()
    assert len(frame.to_pylist()) == 8
    in_order, expected = len(db.model.calls), frame.estimate().total.cached
    assert in_order == expected == 6  # three of one side, three of the other make nine pairs

    db.session.clear_cache()
    db.session.sql("SET blendfusion.rules_off = 'few_values_first'")
    frame = db.session.sql(PAIRS)
    text = frame.explain_text()
    assert FIRST not in text
    assert "limit 8 (stops early)" in text
    assert len(frame.to_pylist()) == 8
    assert len(db.model.calls) - in_order == frame.estimate().total.cached == 9
    assert FIRST not in frame.trace.to_html()
