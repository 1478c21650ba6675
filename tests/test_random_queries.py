"""Random queries over several joined tables: the plan never changes rows, and asks no more.

``pytest tests/test_random_queries.py --cases 20000`` runs more of them, and
``HYPOTHESIS_PROFILE=explore`` others. What was ever found is kept in tests/golden/found.
"""

from __future__ import annotations

import os
from collections import Counter
from zlib import crc32

import pytest
from differential import (
    DATABASES,
    contradicts_itself,
    databases,
    difference,
    explained,
    joins,
    outcome,
)
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st
from random_choices import Choices
from random_queries import Query, random_query

from blendfusion.planner.rules import RULES
from blendfusion.planner.run_switches import FEW_VALUES_FIRST, LIMITED_STAGES, PREDICATE_ORDER

pytestmark = [
    # Random conditions are impossible now and then, which is said once a process.
    pytest.mark.filterwarnings("ignore:.*is true for no answer:blendfusion.errors.PlanWarning"),
    pytest.mark.slow,
    # Whether a comparison with a label outside of the set, or an answer without evidence, is met
    # depends on the plan.
    pytest.mark.filterwarnings("ignore:.*never equals:blendfusion.errors.PlanWarning"),
    pytest.mark.filterwarnings("ignore:.*states all the numbers:blendfusion.AnswerWarning"),
]

OPTIONAL = (
    *(rule.name for rule in RULES if not rule.required),
    *(PREDICATE_ORDER, FEW_VALUES_FIRST, LIMITED_STAGES),
)
RULES_OFF: dict[str, tuple[str, ...]] = {
    "all rules": (),
    "no rule": OPTIONAL,
    "the written order": (PREDICATE_ORDER,),
    **{f"without {rule}": (rule,) for rule in OPTIONAL if rule != PREDICATE_ORDER},
    **{f"only {rule}": tuple(r for r in OPTIONAL if r != rule) for rule in OPTIONAL},
}
"""The sets of rules that every result must be the same under, by those that are off."""
SHARE_OF_ALL_RULES = 0.4
"""How many of the cases run as users' queries do."""

_MAY_ASK_MORE = "FILTER (WHERE"
"""DataFusion evaluates an aggregate's argument on the rows of its FILTER, the plan on all of them.
"""


@st.composite
def queries(draw: st.DrawFn) -> Query:
    return random_query(Choices.drawn(draw))


def others(number: int, salt: str):  # type: ignore[no-untyped-def]
    """So many examples, of a test's own: without a seed, tests that differ in a parameter only
    would all draw the same."""

    def decorate(test):  # type: ignore[no-untyped-def]
        test = settings(max_examples=max(1, number))(test)
        return test if "HYPOTHESIS_PROFILE" in os.environ else seed(crc32(salt.encode()))(test)

    return decorate


@pytest.mark.parametrize("rules", RULES_OFF)
def test_the_plan_gives_the_rows_of_full_evaluation(rules: str, cases: int) -> None:
    off, seen = RULES_OFF[rules], Counter[str]()
    share = SHARE_OF_ALL_RULES if not off else (1 - SHARE_OF_ALL_RULES) / (len(RULES_OFF) - 1)

    @others(int(cases * share / 2), rules)  # each runs plain and planned
    @given(query=queries(), number=st.integers(0, DATABASES - 1))
    def check(query: Query, number: int) -> None:
        plain_session, planned_session = databases(number)
        plain = outcome(plain_session, query.sql)
        planned = outcome(planned_session, query.bounded, off)
        seen.update(cases=1, without_rows=not plain.rows, refused=plain.error is not None)
        seen.update(asking=bool(plain.asked), unplanned=planned.reason is not None)
        wrong = difference(query, plain, planned)
        if wrong is not None and contradicts_itself(number, query.sql, plain):
            seen.update(contradictory=1)
            return
        if wrong is None and not plain.error and PREDICATE_ORDER in off and not query.bounds:
            # Below a join DataFusion asks nothing where the other side turns out to be empty, and a
            # plan that asked before the join cannot know. Without joins it asks what it meets, in
            # the written order, which the learned order may leave.
            more = planned.asked - plain.asked
            bound = _MAY_ASK_MORE not in query.sql and not joins(plain_session, query.sql)
            if more and not planned.reason and bound:
                wrong = f"asked, and not by full evaluation: {sorted(map(repr, more))}"
        if wrong is not None:
            note(f"{query.bounded}\ntables: random_tables.tables({number}), without {off}\n{wrong}")
            note(explained(planned_session, query.bounded, off))
        assert wrong is None

    check()
    if not off:  # the shares of fewer cases say little
        assert seen["contradictory"] <= 0.003 * seen["cases"] + 1, "wrong too often, whoever is"
        assert seen["refused"] <= 0.06 * seen["cases"] + 3, "DataFusion refuses too many queries"
        assert seen["unplanned"] <= 0.06 * seen["cases"] + 3, "too many queries run plain"
        assert seen["asking"] >= 0.3 * seen["cases"] - 3, "too many queries ask nothing"
