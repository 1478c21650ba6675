"""The options of a call of llm_join: the condition of a match, and the search for matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.labelling import DIFFERENT, SAME, SAMPLED, Labelling, Labels
from blendfusion.udfs.declare.options import Choices, choices, one_of, whole
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.declare.promises import ErrorOf

CANDIDATES = 10
"""Candidates per value. They contain 99.6 to 100 % of the true matches of restaurants, papers and
products by their names (benchmarks/bench_joins.py)."""

WHOLE = 12
"""Texts that are all candidates where no number of candidates is given."""

MOST_CANDIDATES = 50
"""The maximum number of options in a prompt."""

MOST_SAMPLED = 1000
"""The maximum of ``check``."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Selects the pairs of values that a call asks about."""

    k: int = CANDIDATES
    """Candidates that a model sees for one value."""
    whole: int = 0
    """All texts are candidates if there are no more than these."""
    many: bool = False
    """A value may match several others, not only one."""
    exact: bool = False
    """Every pair is asked: no candidates, and nothing is free."""
    criterion: str = ""
    """The criterion of a match, in words; '': the values name the same thing."""
    check: int = 0
    """How many unmatched values are asked once more, among the next ``k`` candidates."""
    labelling: Labelling | None = None
    """Labels of the values, by which they match."""

    def candidates(self, texts: int) -> int:
        """The candidates of one value among so many texts."""
        return max(self.k, texts) if texts <= self.whole else self.k

    @property
    def by_labels(self) -> bool:
        """The user says which labels match: no pair is asked about."""
        return self.labelling is not None and not self.labelling.check


def _how(given: Literal, name: str) -> str:
    if not isinstance(given, str):
        raise ArgumentError(
            f"{name} => {given!r} is not text", hint="Say in words what a match is."
        )
    return given.strip()


def _by_what(given: Literal, name: str) -> str:
    if not isinstance(given, str):
        raise ArgumentError(f"{name} => {given!r} is not text", hint="Say by what to label.")
    return given.strip()


def _match(given: Literal, name: str) -> str | tuple[Labels, ...]:
    hint = f"Write '{SAME}', '{DIFFERENT}', or pairs of labels, as in [['a', 'b'], ['b', 'a']]."
    if given in ("", SAME, DIFFERENT):
        return str(given)
    if not isinstance(given, list) or not given:
        raise ArgumentError(f"{name} => {given!r} is not possible", hint=hint)
    pairs: list[Labels] = []
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ArgumentError(f"{name} => [… {pair!r} …]: that is no pair of labels", hint=hint)
        pairs.append((str(pair[0]), str(pair[1])))
    return tuple(pairs)


_FLAG = one_of((True, False), "Write true or false.")

HOW = Parameter(
    "how",
    "What makes two values match, in words; then no match is free.",
    _how,
    example="llm_join(a.title, b.title, how => 'the same author')",
)
MANY = Parameter(
    "many",
    "Whether a value may match any number of values of the other side, not one.",
    _FLAG,
    annotation="bool",
    default=False,
)
EXACT = Parameter(
    "exact",
    "Whether the model is asked about every pair; then no match is free.",
    _FLAG,
    annotation="bool",
    default=False,
)
PAIR_LABELS = Parameter(
    "labels",
    "The model labels each value, and labels decide which values match.",
    choices,
    annotation="Sequence[str]",
    show=lambda read: read.literal,
    example="llm_join(a.text, b.text, labels => ['good', 'bad'], match => 'different')",
)
LABEL_QUESTION = Parameter("label_question", "The criterion of the labels.", _by_what)
MATCH = Parameter(
    "match",
    "The labels that match: equal ones ('same'), 'different' ones, or pairs such as "
    "``[['a', 'b']]``.",
    _match,
    annotation="str | Sequence[Sequence[str]]",
)
CHECK = Parameter(
    "check",
    "How many unmatched values to retry against the next ``k`` candidates: EXPLAIN ANALYZE then "
    "estimates the missed matches. With ``labels`` and ``how``, the sampled pairs of values per "
    "pair of labels.",
    whole(0, MOST_SAMPLED, "The size of a sample"),
    annotation="int",
)
K = Parameter(
    "k",
    "The number of candidates that the model sees for one value: those with the most similar "
    "spelling. Without it, up to 12 texts are all candidates.",
    whole(1, MOST_CANDIDATES, "The number of candidates"),
    annotation="int",
    default=CANDIDATES,
)

PAIRING = (HOW, MANY, EXACT, PAIR_LABELS, LABEL_QUESTION, MATCH, CHECK, K)
"""The options of a call that pairs values."""


def pairing_of(given: Mapping[str, Any], error: ErrorOf) -> Pairing:
    """The pairing that checked options ask for, by their names. Raises ArgumentError."""
    how, check = given.get("how", ""), given.get("check", 0)
    exact = given.get("exact", False)
    if check and exact:
        raise error("check and exact exclude each other", "Nothing lies beyond all pairs.")
    labelling = _labelling(given, how, error)
    k, many = given.get("k", CANDIDATES), given.get("many", False)
    whole = 0 if "k" in given else WHOLE
    return Pairing(k, whole, many, exact, how, 0 if labelling is not None else check, labelling)


def _labelling(given: Mapping[str, Any], how: str, error: ErrorOf) -> Labelling | None:
    first = next((name for name in ("labels", "label_question", "match") if name in given), None)
    if first is None:
        return None
    labels: Choices | None = given.get("labels")
    if labels is None:
        raise error(f"{first} without labels", "Write labels => ['a', 'b'] as well.")
    other = next((name for name in ("k", "exact", "many") if name in given), None)
    if other is not None:
        raise error(
            f"{other} and labels exclude each other",
            "By labels a value matches every other whose label fits.",
        )
    match = given.get("match", "" if how else SAME)
    _check_pairs(match, labels.options, error)
    check = given.get("check", 0 if match else SAMPLED)
    if not match and not check:
        raise error("check => 0 without match", f"Say which labels match: match => '{DIFFERENT}'.")
    if check and not how:
        raise error("check without how", "Say in words what a match is: how => '…'.")
    return Labelling(labels.options, given.get("label_question", ""), match, check)


def _check_pairs(match: str | Sequence[Labels], labels: Sequence[str], error: ErrorOf) -> None:
    for label in (label for pair in match for label in pair if not isinstance(match, str)):
        if label not in labels:
            raise error(
                f"match names {label!r}, which is none of the labels",
                f"Write '{SAME}', '{DIFFERENT}', or pairs of labels, as in [['a', 'b'], ['b', 'a']].",
            )
