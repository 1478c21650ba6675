"""What llm_members asks is seen before and after a run, as of any other call."""

from __future__ import annotations

from scripts import Counted

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value


def first_option(call: bf.Request) -> Value:
    """The first of the options; yes, if that is asked for."""
    if call.constraint.item is not None:
        return list(call.constraint.item.options[:1])
    return True


def enums() -> Counted:
    counted = Counted(first_option)
    counted.add("t", {"kind": [["cafe"], ["thai"], ["cafe"]], "x": ["a", "b", "c"]})
    counted.session.register_enum("t", "kind")
    return counted


def test_a_literal_that_must_be_asked_counts_once() -> None:
    db = enums()
    frame = db.session.sql("SELECT x FROM t WHERE 'coffee' = ANY(kind)", dialect="suql")
    estimate = frame.estimate()
    assert (estimate.total.values, estimate.exact) == (1, True)
    assert db.model.calls == []
    assert frame.to_pydict() == {"x": ["a", "c"]}
    assert len(db.model.calls) == 1
    assert frame.estimate().total.values == 0
    told = frame.explain_text(analyze=True)
    assert "→ list of text  [0 values asked (0 expected), 1 cached" in told


def test_a_member_is_free_and_what_follows_is_counted() -> None:
    db = enums()
    text = "SELECT x FROM t WHERE 'Cafe' = ANY(kind) AND answer(x, 'is it good?') = 'Yes'"
    estimate = db.session.sql(text, dialect="suql").estimate()
    assert [op.values for op in estimate.operators] == [0, 2]
    text = text.replace("Cafe", "coffee")
    estimate = db.session.sql(text, dialect="suql").estimate()
    assert estimate.operators[0].values == 1
    assert estimate.operators[1].values > 0
    assert not estimate.exact
