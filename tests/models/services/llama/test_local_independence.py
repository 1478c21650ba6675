"""The answers of the packaged local model do not depend on their company in a batch."""

from __future__ import annotations

import pytest

import blendfusion as bf

pytestmark = [pytest.mark.local, pytest.mark.long]

TEXTS = [
    f"{subject} {verb} {how}."
    for subject in ("The parcel", "My invoice")
    for verb in ("arrived", "crashed", "was replaced", "broke")
    for how in ("after two days", "again, and nobody answers", "without any trouble")
]


@pytest.mark.parametrize(
    "call",
    [
        "llm_filter('Is the writer unhappy?', text)",
        "llm_classify(text, ['delivery', 'billing', 'software'])",
        "llm_score('How urgent is it?', text)",
        "llm_int('How many days?', text, evidence => false)",
    ],
)
def test_no_answer_moves_in_other_company(call: str) -> None:
    session = bf.connect(cache=None, progress="off")
    session.from_pydict({"text": TEXTS}, name="t")
    found = session.sql(f"SELECT {call} AS a FROM t").check_independence(k=20)
    assert (found.asked, found.moved) == (20, 0), found.rows.filter(found.rows["moved"]).to_pylist()
