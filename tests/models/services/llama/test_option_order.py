"""The order in which options are written is no matter to a model that compares their scores."""

from __future__ import annotations

import pytest

import blendfusion as bf

TEXTS = [
    "The striker scored twice in the final.",
    "Shares fell after the bank cut its forecast.",
    "A new chip makes phones faster.",
    "Ministers met to discuss the border.",
]
LABELS = {"world": "politics, war", "sports": "games, teams", "business": "companies, markets"}


@pytest.mark.long
@pytest.mark.local
@pytest.mark.parametrize("meanings", [False, True])
def test_options_in_any_order_give_the_same_answers(meanings: bool) -> None:
    told = set()
    with bf.connect("smollm2", cache=None) as session:
        session.from_pydict({"text": TEXTS}, name="t")
        for names in (list(LABELS), sorted(LABELS, reverse=True), sorted(LABELS)):
            pairs = ", ".join(f"'{n}': '{LABELS[n]}'" if meanings else f"'{n}'" for n in names)
            labels = f"{{{pairs}}}" if meanings else f"[{pairs}]"
            call = f"llm_classify(text, {labels}, question => 'What is the topic of this article?')"
            told.add(tuple(session.sql(f"SELECT {call} AS f FROM t").to_pydict()["f"]))
    assert len(told) == 1
