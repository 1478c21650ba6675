"""Predicates that a question asks for and a query lacks, and the reverse."""

from __future__ import annotations

import re

from sqlglot import exp

from blendfusion.services.ask.comparisons import COMPARISONS
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.links import STOP_WORDS, stem, words_of
from blendfusion.services.ask.where import predicates

_NO = re.compile(
    r"\b(?:not|never|without|except|excluding|neither|nor|nobody|none|cannot|no|non|other than|but not|lacks?|lacking|"
    r"anywhere but|all but|everything but)\b|n[’']t\b",
    re.IGNORECASE,
)
_NO_NEGATION = re.compile(
    r"\b(?:whether or not|or not|not only|no matter|no (?:more|less|fewer|later|earlier) than|not (?:more|less|fewer|later|earlier) than"
    r"|(?:not|n't)\s+(?:\w+\s+){0,2}(?:more|less|fewer|over|above|below|under|\w+er than)\b|(?:not|n't) (?:exceed|over|above|below|under|before|after)\w*|not null|why not|if not)\b|\bnos?\.",
    re.IGNORECASE,
)
_NEGATIVE = frozenset("0 f n no false none non never not".split())
_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)(?<![\w'’\"“])[A-Z][\w'’-]+")
_NO_NAMES = frozenset(
    "I SQL ID IDs January February March April May June July August September October November December Monday "
    "Tuesday Wednesday Thursday Friday Saturday Sunday Q1 Q2 Q3 Q4 What Which Who How List Show Find Give Return "
    "Count Tell When Where The For And Also".split()
)


def negation_left_out(case: Case) -> Doubt | None:
    """A negation of the question, and a query that excludes nothing."""
    found = _NO.search(_NO_NEGATION.sub("", case.question))
    if found is None or _excludes(case.tree) or _keeps_those_without(case):
        return None
    values = " ".join(link.value.casefold() for link in case.links)
    if found[0].casefold() in case.names or re.search(
        rf"\b{re.escape(found[0].casefold())}\b", values
    ):
        return None
    return (
        f"the question says {found[0]!r}, and the query excludes nothing",
        "Use NOT, <> or EXCEPT.",
    )


def _keeps_those_without(case: Case) -> bool:
    """Whether the question wants rows without a partner, too, and the query has them."""
    also = {"also", "even", "including", "include", "with"} & set(case.words)
    return bool(also) and any(join.side == "LEFT" for join in case.tree.find_all(exp.Join))


def _excludes(tree: exp.Expr) -> bool:
    if any(tree.find_all(exp.Not, exp.NEQ, exp.Except, exp.Is)):
        return True
    if any(node.args.get("negate") for node in tree.find_all(exp.Predicate)):
        return True
    if any(join.kind == "ANTI" or join.side == "ANTI" for join in tree.find_all(exp.Join)):
        return True
    literals = (one.name.casefold() for one in tree.find_all(exp.Literal))
    flags = tree.find_all(exp.Boolean)
    texts = [words_of(text) for text in literals]
    return any(_NEGATIVE & set(words) for words in texts) or any(not flag.this for flag in flags)


def negation_from_nowhere(case: Case) -> Doubt | None:
    """A query that excludes a value or rows of a set, and a question without such a word."""
    if _NO.search(case.question) or {
        "other",
        "different",
        "only",
        "besides",
        "remaining",
        "rest",
        "outside",
        "un",
        "another",
        "exactly",
        "all",
        "every",
        "each",
        "ever",
        "unlike",
        "but",
        "beside",
    } & set(case.words):
        return None
    for term in case.tree.find_all(exp.NEQ, exp.Not, exp.Except):
        if isinstance(term, exp.Not) and not isinstance(
            term.this.unnest(), exp.In | exp.Exists | exp.EQ | exp.Like | exp.ILike | exp.Column
        ):
            continue
        if isinstance(term, exp.NEQ) and (
            isinstance(term.right, exp.Column) or term.right.name in ("", "0")
        ):
            continue
        return (
            f"the query excludes rows by {_part(term)}, and the question has no negation",
            "Use the predicate itself.",
        )
    for like in case.tree.find_all(exp.Like, exp.ILike):
        if like.args.get("negate"):
            return (
                f"the query excludes rows by {_part(like)}, and the question has no negation",
                "Use the predicate itself.",
            )
    return None


def _part(term: exp.Expr) -> str:
    return "EXCEPT" if isinstance(term, exp.Except) else term.sql("postgres")


def always_true(case: Case) -> Doubt | None:
    """A predicate of literals alone, such as ``1 = 1``."""
    for term in case.tree.find_all(*COMPARISONS):
        if isinstance(term.left.unnest(), exp.Literal) and isinstance(
            term.right.unnest(), exp.Literal
        ):
            return f"{term.sql('postgres')} is the same for every row", "Leave it out."
    for either in case.tree.find_all(exp.Or):
        if any(isinstance(side.unnest(), exp.Boolean) for side in (either.left, either.right)):
            return f"{either.sql('postgres')} is the same for every row", "Leave it out."
    return None


def reads_no_table(case: Case) -> Doubt | None:
    """A query of literals alone."""
    if case.tree.find(exp.Table) is not None or case.tree.find(exp.Column) is not None:
        return None
    return "the query reads no table", "Compute the answer from the tables."


def wildcard_of_a_letter(case: Case) -> Doubt | None:
    """A pattern that holds for nearly every text, which the question does not spell."""
    for like in case.tree.find_all(exp.Like, exp.ILike):
        text = like.expression.name.strip("%_")
        if len(text) < 2 and text.casefold() not in case.words:
            return (
                f"{like.sql('postgres')} holds for nearly every text",
                "Compare with the value that the question names.",
            )
    return None


def value_not_compared(case: Case) -> Doubt | None:
    """A value of the question that stands in the selected columns alone: it filters nothing."""
    named = {words_of(link.value) for link in case.links if link.score >= 2 and not link.by_column}
    for literal in case.tree.find_all(exp.Literal):
        if not literal.is_string or words_of(literal.name) not in named:
            continue
        if (
            literal.find_ancestor(
                exp.Predicate, exp.Case, exp.Func, exp.Where, exp.Having, exp.Join
            )
            is None
        ):
            return (
                f"the query selects {literal.sql('postgres')} and compares nothing with it",
                "Put it into WHERE.",
            )
    return None


def name_left_out(case: Case) -> Doubt | None:
    """A capitalised name inside the question that stands nowhere in the query."""
    texts = [one.name for one in case.tree.find_all(exp.Literal)]
    names = [one.name for one in case.tree.find_all(exp.Identifier)]
    used = {stem(word) for text in (*texts, *names) for word in words_of(text.replace("_", " "))}
    whole = " ".join((*texts, *names)).casefold()
    for found in _NAME.finditer(case.question):
        name = found[0]
        words = list(map(stem, words_of(name.removesuffix("'s").removesuffix("’s"))))
        if name in _NO_NAMES or name.casefold() in STOP_WORDS or set(words) <= case.names | used:
            continue
        if any(word in whole or word[:4] in whole for word in words):
            continue
        return f"the question names {name}, and the query does not", "Compare a column with it."
    return None


def or_left_out(case: Case) -> Doubt | None:
    """Two alternatives, and a query with one: *or* between two values of the question."""
    if not re.search(
        r"\b(?!his|he|him|whether|either)[\w'’]+ or (?!more\b|less\b|not\b|fewer\b|above\b|below\b|higher\b|lower\b|older\b|younger\b|later\b|earlier\b)",
        case.question,
        re.I,
    ):
        return None
    if any(
        case.tree.find_all(
            exp.Or,
            exp.In,
            exp.Union,
            exp.Any,
            exp.Between,
            exp.GTE,
            exp.LTE,
            exp.RegexpLike,
            exp.RegexpILike,
            exp.Case,
        )
    ):
        return None
    if any(case.tree.find_all(exp.Except, exp.Not, exp.NEQ)):
        return None
    return "the question says 'or', and the query has one alternative", "Use OR, IN or UNION."


def both_as_either(case: Case) -> Doubt | None:
    """*both … and …*, and a query that either of them satisfies."""
    if not re.search(r"\bboth\b.*\band\b", case.question, re.I):
        return None
    if any(case.tree.find_all(exp.Intersect, exp.Having, exp.Exists)) or len(case.selects) > 1:
        return None
    either = case.tree.find(exp.In, exp.Or)
    if either is None:
        return None
    return (
        "the question says 'both', and the query takes rows of either",
        "Use INTERSECT, or count the distinct values.",
    )


def extra_not_null(case: Case) -> Doubt | None:
    """IS NOT NULL, which drops rows that the question does not exclude."""
    if _NO.search(case.question) or {
        "known",
        "has",
        "have",
        "with",
        "had",
        "having",
        "available",
        "recorded",
    } & set(case.words):
        return None
    for select in case.selects:
        for term in predicates(select):
            inner = term.this if isinstance(term, exp.Not) else term
            if isinstance(inner, exp.Is) and (inner.args.get("negate") or inner is not term):
                return (
                    f"{term.sql('postgres')} drops rows that the question does not exclude",
                    "Leave it out.",
                )
    return None
