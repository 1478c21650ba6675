"""When an answer may end early: never before DataFusion would say the same of all that follows."""

from __future__ import annotations

import itertools

import pytest
from comparisons import Answers
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import holds
from blendfusion.models.services.llama.prefix_check import decided_answer
from blendfusion.types import Comparison, Constraint

OPERATORS = ("=", "<", "<=", ">", ">=")


def until(kind, *comparisons, pattern=None):
    return Constraint(kind, pattern=pattern, decides=tuple(sorted(comparisons)))


def compare(operator, *operands):
    return Comparison(operator, operands)


# -- what is decided when --------------------------------------------------------------------------

DECIDED = [
    # a text can no longer be equal, is after or before, begins as it must
    ("text", compare("=", "Paris"), "", None),
    ("text", compare("=", "Paris"), "Pari", None),
    ("text", compare("=", "Paris"), "Paris", None),
    ("text", compare("=", "Paris"), "Pau", "Pau"),
    ("text", compare("=", "Paris"), "Paris,", "Paris,"),
    ("text", compare(">=", "Paris"), "Paris", "Paris"),
    ("text", compare("<", "Paris"), "O", "O"),
    ("text", compare("between", "a", "c"), "b", "b"),
    ("text", compare("between", "a", "c"), "c", None),
    ("text", compare("between", "c", "a"), "", ""),
    ("text", compare("like", "ab%"), "a", None),
    ("text", compare("like", "ab%"), "ab", "ab"),
    ("text", compare("like", "ab%"), "b", "b"),
    ("text", compare("like", "%ab%"), "xxa", None),
    ("text", compare("like", "%ab%"), "xxab", "xxab"),
    ("text", compare("like", "%ab"), "xxab", None),
    ("text", compare("like", "_b%"), "ab", "ab"),
    ("text", compare("like", "a_"), "ab", None),
    ("text", compare("like", "a_"), "abc", "abc"),
    ("regex", compare("=", "CA"), "N", "N"),
    # whole numbers: more digits make them larger
    ("integer", compare(">", "3"), "5", "5"),
    ("integer", compare(">", "3"), "2", None),
    ("integer", compare(">", "3"), "-", "-1"),
    ("integer", compare("<", "10"), "5", None),
    ("integer", compare("=", "60"), "5", "5"),
    ("integer", compare("=", "51"), "5", None),
    ("integer", compare("between", "10", "20"), "5", "5"),
    ("integer", compare("between", "10", "20"), "1", None),
    ("integer", compare(">", "2.5"), "3", "3"),
    ("integer", compare(">", "3"), "0", "0"),
    # numbers: a fraction stays below the next whole number
    ("number", compare(">", "3"), "5.", "5.0"),
    ("number", compare("<", "6"), "5.", "5.0"),
    ("number", compare("<", "6"), "5", None),
    ("number", compare("=", "5.25"), "5.3", "5.3"),
    ("number", compare("=", "5.25"), "5.2", None),
    ("number", compare("=", "0"), "-", None),
    # dates: a year is enough where the month does not matter
    ("date", compare(">=", "2024-01-01"), "2024", "2024-01-01"),
    ("date", compare("between", "2024-01-01", "2024-12-31"), "2024", "2024-01-01"),
    ("date", compare("between", "2024-01-01", "2024-12-31"), "202", None),
    ("date", compare(">", "2024-06-15"), "2024-1", "2024-10-01"),
    ("date", compare("=", "2024-02-29"), "2024-02-2", None),
    ("date", compare(">", "2023-02-28"), "2023-02-", "2023-02-01"),
    ("date", compare(">", "2024-02-28"), "2024-02-", None),
    ("date", compare("<", "1900-01-01"), "1", None),
    ("date", compare("<", "1900-01-01"), "18", "1899-12-31"),
    ("date", compare("<", "2024-01-01"), "1", "1999-12-31"),
    ("date", compare("<", "2024-01-01"), "0", "0999-12-31"),
    ("date", compare(">", "2024-06-15"), "0000", None),
    ("timestamp", compare(">", "2024-06-15T12:00:00"), "2024-06-15T1", None),
    ("timestamp", compare(">", "2024-06-15T12:00:00"), "2024-06-15T2", "2024-06-15T20:00:00"),
    # no beginning of an answer, or no kind that is written from left to right
    ("date", compare(">", "2024-06-15"), "2023-02-30", None),
    ("integer", compare(">", "3"), "05", None),
    ("boolean", compare("=", "true"), "t", None),
    ("list", compare("=", "[]"), "[", None),
]


@pytest.mark.parametrize(("kind", "comparison", "begun", "answer"), DECIDED)
def test_an_answer_is_decided_as_soon_as_the_comparison_is(kind, comparison, begun, answer):
    pattern = "[A-Z]{2}" if kind == "regex" else None

    assert decided_answer(until(kind, comparison, pattern=pattern), begun) == answer


def test_every_comparison_must_be_decided():
    both = until("integer", compare(">", "3"), compare("=", "57"))

    assert decided_answer(both, "5") is None
    assert decided_answer(both, "6") == "6"


def test_without_comparisons_nothing_is_decided():
    assert decided_answer(Constraint("text"), "Paris") is None


# -- DataFusion says the same ----------------------------------------------------------------------

TEXTS = ["".join(word) for n in range(5) for word in itertools.product("ab ", repeat=n)]
TEXTS = sorted({text.strip() for text in TEXTS} | {"Ä", "a\U0010ffff", "aé", "az"})
INTEGERS = [
    "0",
    *map(str, (*range(1, 30), 57, 99, 100, 101, 120)),
    "599",
    "999",
    "1000",
    "9" * 17,
    "9" * 18,
    "1" + "0" * 17,
]
DIGITS = ["0", "1", "5", "9", "10", "12", "99", "100", "512", "9" * 15]
FRACTIONS = ["", ".0", ".5", ".05", ".25", ".999999", ".000000", ".123456"]
YEARS = (1900, 1999, 2000, 2023, 2024, 2099, 1815, 1, 987, 9999)
DATES = [
    f"{year:04}-{month:02}-{day:02}"
    for year in YEARS
    for month in (1, 2, 10, 12)
    for day in (1, 9, 15, 28, 29, 31)
]
TIMES = ["00:00:00", "09:59:59", "12:00:00", "20:10:00", "23:59:59"]

ANSWERS = {
    "text": TEXTS,
    "integer": [*INTEGERS, *(f"-{n}" for n in INTEGERS)],
    "number": [f"{sign}{n}{f}" for sign in ("", "-") for n in DIGITS for f in FRACTIONS],
    "date": DATES,
    # DataFusion compares moments in nanoseconds, which end in 2262.
    "timestamp": [f"{date}T{time}" for date in DATES[:168:8] for time in TIMES],
}
LITERALS = {
    "text": ["", "a", "ab", "a b", "ba", "abab", "ä", "b"],
    "integer": ["0", "1", "-1", "5", "10", "12", "99", "100", "-57", "2.5", "0.0", "-0.0", "1e3"],
    "number": ["0", "1", "-1", "5", "10", "12.5", "99", "0.0", "-0.0", "0.25", "-5.05"],
    "date": ["1899-12-31", "1999-09-30", "2000-01-01", "2023-12-31", "2024-02-29", "2100-01-01"],
    "timestamp": ["1999-09-30T00:00:00", "2024-02-29T12:00:00", "2024-10-10T23:59:59"],
}
BOUNDS = {
    "text": [("a", "b"), ("ab", "abb"), ("b", "a")],
    "integer": [("1", "9"), ("10", "20"), ("5", "5"), ("20", "10"), ("1", "5.5"), ("-9", "0")],
    "number": [("0", "1"), ("1.5", "10"), ("-1", "0")],
    "date": [("2024-01-01", "2024-12-31"), ("2000-01-01", "1999-01-01")],
    "timestamp": [("2024-01-01T00:00:00", "2024-12-31T23:59:59")],
}
PATTERNS = ["a%", "ab%", "%", "_b%", "a_", "%b", "%ab%", "a%b%", "", "a b%", "b_%"]


def comparisons(kind):
    found = [compare(o, x) for o in OPERATORS for x in LITERALS[kind]]
    found += [compare("between", *bounds) for bounds in BOUNDS[kind]]
    return found + ([compare("like", p) for p in PATTERNS] if kind == "text" else [])


@pytest.mark.parametrize("kind", ANSWERS)
def test_where_an_answer_is_decided_datafusion_says_the_same_of_all_that_begin_so(kind):
    answers = [a for a in ANSWERS[kind] if holds(Constraint(kind), a)]
    claims = {comparison: set() for comparison in comparisons(kind)}
    for comparison, pairs in claims.items():
        constraint = until(kind, comparison)
        for answer in answers:
            for end in range(len(answer) + 1):
                # Blanks at the end of what is written so far may turn out to be trimmed.
                found = decided_answer(constraint, answer[:end].rstrip())
                if found is not None:
                    pairs.add((found, answer))
    assert {c for c, pairs in claims.items() if not pairs} == NEVER.get(kind, set())
    texts = sorted({text for pairs in claims.values() for pair in pairs for text in pair})
    assert all(holds(Constraint(kind), text) for text in texts)
    column = Answers(kind, texts)
    for comparison, pairs in claims.items():
        truth = dict(zip(texts, column.truths(comparison), strict=True))
        assert [pair for pair in pairs if truth[pair[0]] != truth[pair[1]]] == []


NEVER = {"text": {compare("like", "%b")}}
"""Comparisons that only the end of an answer decides."""


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3), st.sampled_from(TEXTS))
def test_what_is_decided_stays_decided(literals, answer):
    constraint = until("text", *(compare("=", literal) for literal in literals))
    found = [decided_answer(constraint, answer[:end]) is not None for end in range(len(answer) + 1)]

    assert found == sorted(found)
