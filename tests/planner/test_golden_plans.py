"""A page a rule: what plans look like, and how many values they ask."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden import FOLDER, check, pages
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf
from blendfusion.planner.ir.nodes import Plan
from blendfusion.planner.rules import CONSTANT_TESTS, COSTLY_PREDICATES_LAST, RULES, SIMILAR_FIRST

N = 40
T = pa.table(
    {"id": range(N), "k": [i % 4 for i in range(N)], "x": [f"v{i % 20}" for i in range(N)]}
)
pytestmark = pytest.mark.filterwarnings(  # of constant_tests
    "ignore:.* never equals .*:blendfusion.PlanWarning",
    "ignore:.* is true for no answer.*:blendfusion.PlanWarning",
)
U = pa.table({"uid": range(6), "y": ["a", "c", "b", "c", None, "a"]})


@pytest.fixture
def sessions(tmp_path: Path) -> list[Counted]:
    pq.write_table(T, tmp_path / "files.parquet")
    made = [Counted(hashed), Counted(hashed, planner=False)]
    for db in made:
        db.add("t", T).add("u", U)
        db.session.register_parquet("files", str(tmp_path / "files.parquet"))
    return made


@pytest.mark.parametrize("page", pages("plans"), ids=lambda page: page.stem)
def test_plans_look_like_their_page(
    page: Path, sessions: list[Counted], update_golden: bool
) -> None:
    _look(page, sessions, update_golden)


def _look(page: Path, sessions: list[Counted], update_golden: bool, *, first: bool = False) -> None:
    """Compare the plans of a page, which show the rules that fired; the page's own must be among
    them. ``first``: the first difference is enough."""
    planned, plain = sessions
    if page.stem == SIMILAR_FIRST:  # the one rule that a session must ask for
        planned.session.sql("SET blendfusion.similar_first = true")

    fired: set[str] = set()

    def comes_out(sql: str) -> str:
        planned.session.clear_cache()
        frame = planned.session.sql(sql)
        rules = [rewrite.rule for rewrite in frame.prepared.rewrites]
        fired.update(rules)
        text = frame.explain_text(estimates=False)
        estimate = frame.estimate()
        about = "" if estimate.exact else "about "
        rows = unordered(tuples(frame.to_arrow_table()))
        # Without the planner every pair is asked, no match chosen (tests/engine/test_join.py), and
        # no whole column known (tests/engine/test_same.py).
        by_labels = "labels =>" in sql and "check =>" not in sql
        of_columns = any(name in sql for name in ("llm_same", "llm_prefers"))
        chosen = ("llm_join" in sql and not by_labels) or of_columns
        if not chosen and ("LIMIT" not in sql or "ORDER BY" in sql):
            assert rows == unordered(plain.rows(sql))
        asked = planned.asked(sql)
        # A frame without stages of its own has rules only in its parts.
        shown = f"rules: {', '.join(rules)}\n" if rules else ""
        return f"{text}\n{shown}values expected: {about}{estimate.total.values}, asked: {asked}"

    check(page, comes_out, update=update_golden, first=first)
    if page.stem in {rule.name for rule in RULES}:
        assert page.stem in fired, f"no case of this page makes {page.stem} fire"


def test_every_rule_has_a_page() -> None:
    assert {rule.name for rule in RULES} <= {page.stem for page in pages("plans")}


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_a_rule_that_does_nothing_fails_its_page(
    rule: str, sessions: list[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a rule sees whether it fires."""
    idle = tuple(r._replace(apply=_nothing) if r.name == rule else r for r in RULES)
    monkeypatch.setattr("blendfusion.planner.driver.RULES", idle)
    if rule in (
        CONSTANT_TESTS,
        SIMILAR_FIRST,
        COSTLY_PREDICATES_LAST,
    ):  # which the driver gives an argument more
        monkeypatch.setattr(f"blendfusion.planner.driver.{rule}", _nothing)
    page = FOLDER / "plans" / f"{rule}.txt"
    with pytest.raises((AssertionError, bf.BlendFusionError)):
        _look(page, sessions, update_golden=False, first=True)


@pytest.mark.parametrize("page", pages("plans"), ids=lambda page: page.stem)
def test_no_rule_is_left_out_where_it_would_fire(
    page: Path, sessions: list[Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plans of a page stay as they are if each rule sees each relation."""
    everywhere = tuple(r._replace(on=()) for r in RULES)
    monkeypatch.setattr("blendfusion.planner.driver.RULES", everywhere)
    monkeypatch.setattr("blendfusion.planner.driver.asks_anything", lambda plan: True)
    _look(page, sessions, update_golden=False)


def _nothing(plan: Plan, **more: object) -> Plan:
    return plan
