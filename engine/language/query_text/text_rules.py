"""The rules that write a text anew before DataFusion plans it: one list, one driver.

A rule names the words without which a text has nothing for it. Its module is imported for the first
text that has them, so most queries load none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from blendfusion.language.query_text.source_map import Translation


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE | re.DOTALL)


class TextRule(NamedTuple):
    """A function ``module:function`` of a text; ``needs`` names what else it is given."""

    words: str
    """A regular expression that a text matches if the rule may have something to do."""
    function: str
    needs: Sequence[str] = ()

    def applies(self, text: str) -> bool:
        return _pattern(self.words).search(text) is not None

    @property
    def module(self) -> str:
        return f"blendfusion.language.query_text.{self.function.partition(':')[0]}"

    def load(self) -> Callable[..., Any]:
        """The function of the rule."""
        name = self.function.partition(":")[2]
        loaded: Callable[..., Any] = getattr(import_module(self.module), name)
        return loaded


REPEATED_NAME = "require unique expression names"
"""A part of DataFusion's message for a name that two columns have."""

_SUBQUERY = r"\bexists\s*\(|\bin\s*\(\s*(?:select|with)\b"
_VALUE = r"(?<!\bas )(?<!\bfrom )(?<!\bjoin )(?<!\bin )(?<!\bexists )\(\s*(?:select|with)\b"
"""A subquery that may be a value."""
_DISTINCT_FROM = TextRule(r"\bdistinct\s+from\b", "distinct_from:distinct_from")
_SIMILAR_TO = TextRule(r"\bsimilar\b", "similar_to:similar_to")

CHECKS = (
    TextRule(
        r"\b(?:(?:table)?sample|prewhere|connect|rollup|cube|totals)\b|\*\s*ilike",
        "ignored_clauses:check_clauses",
    ),
    _SIMILAR_TO,
)
"""Rules that may refuse the user's own text, whose places their errors name."""

EXPRESSIONS = (_DISTINCT_FROM, _SIMILAR_TO)
"""Rules for expressions, as verbs of frames take them."""

SOURCES = (TextRule("unnest", "unnest:rewrite_unnest", ("columns",)),)
"""Rules for what FROM has, before names are looked up."""

QUERIES = (
    TextRule(
        r"\b(?:except|intersect)\b.*?\ball\b", "counted_sets:counted_sets", ("columns", "warn")
    ),
    _DISTINCT_FROM,
    TextRule(
        r"\bjoin\b.*\bon\b.*(?:\bnot\s+distinct\s+from\b|<=>).*(?<![<>!])=(?!>)",
        "null_safe_keys:null_safe_keys",
    ),
    TextRule(r"\busing\s*\(|\bnatural\b", "using_columns:using_columns", ("columns",)),
    TextRule(r"\b(?:any|some|all)\s*\(\s*(?:select|with|\()", "set_comparisons:set_comparisons"),
    TextRule(_SUBQUERY, "subquery_values:subquery_values"),
    TextRule(_SUBQUERY, "subquery_conditions:subquery_conditions", ("columns",)),
    TextRule(
        r"\b(?:where|having)\b.*\(\s*(?:select|with)\b",
        "subquery_conditions:conditions_above_aggregates",
        ("columns",),
    ),
    TextRule(
        r"\(\s*select\b.*(?:\bhaving\b|\bcount\b.*\bnull\b)|\blateral\b",
        "empty_aggregates:empty_aggregates",
    ),
    TextRule(_VALUE, "empty_subqueries:empty_subqueries"),
    TextRule(r"\b(?:rollup|cube)\s*\(", "grouped_keys:grouped_keys"),
    TextRule(
        r"\bwindow\b.*\bas\s*\(|\bover\s*\(\s*(?!partition\b|order\b)[a-z\"]",
        "base_windows:base_windows",
    ),
    TextRule(
        r"\bin\s*\(.*\bin\s*\(|=.*\bor\b.*=|(?:<>|!=).*\band\b.*(?:<>|!=)",
        "repeated_lists:repeated_lists",
    ),
    TextRule(r"\^|[&|]\s*\(*\s*-|-.*[&|]|'\.\*'", "hidden_operands:hidden_operands"),
    _SIMILAR_TO,
    TextRule(r"\bcopy\b.*\bpartitioned\s+by\b", "partitioned_copies:keep_null_keys"),
)
"""Rules for whole queries, in order."""

CASTS = TextRule(r"\b(?:try_)?cast\s*\(|::", "named_casts:named_casts")
"""The rule for casts that DataFusion takes for their columns: see ``prepare.cast_names``."""

AFTER_ERRORS = (
    TextRule(REPEATED_NAME, "repeated_names:number_repeats"),
    TextRule("is in neither GROUP BY nor an aggregate function", "ordinals:expand_ordinals"),
)
"""Rules for queries that DataFusion refuses; their words are those of its message."""


def rewrite(text: str, rules: Sequence[TextRule], **around: object) -> str:
    """``text`` as the rules write it, one after the other. ``around``: what they need besides."""
    for rule in rules:
        if rule.applies(text):
            text = rule.load()(text, *(around[name] for name in rule.needs))
    return text


def check(text: str) -> None:
    """Raise QueryError for what DataFusion would ignore or misread in the user's own text."""
    for rule in CHECKS:
        if rule.applies(text):
            rule.load()(text)


def rewrite_after(message: str, text: str) -> Translation | None:
    """``text`` as DataFusion takes it, after an error with this message; None if no rule helps."""
    rule = next((rule for rule in AFTER_ERRORS if rule.applies(message)), None)
    found: Translation | None = rule.load()(text) if rule else None
    return found
