"""Binds the options of a call of llm_join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blendfusion.errors import ArgumentError
from blendfusion.udfs.declare.labelling import DIFFERENT, SAME, SAMPLED, Labelling, Labels
from blendfusion.udfs.declare.pairing import MOST_CANDIDATES, Pairing

LABEL_OPTIONS = ("labels", "label_question", "match")
PAIRING_OPTIONS = ("how", "many", "k", "exact", "check", *LABEL_OPTIONS)
"""The options of a call that pairs values."""

MOST_SAMPLED = 1000
"""As many as a check may ask for."""

Error = Callable[[str, str], ArgumentError]
"""Makes an error of a problem and a hint."""


def paired(named: Mapping[str, object], labels: Sequence[str], error: Error) -> Pairing:
    """The pairing that options say, by their names; ``labels``: checked already, () for none.
    Raises ArgumentError."""
    how = named.get("how", "")
    if not isinstance(how, str):
        raise error(f"how => {how!r} is not text", "Say in words what a match is.")
    flags = {name: named.get(name, False) for name in ("many", "exact")}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise error(f"{name} => {flag!r} is not possible", "Write true or false.")
    k = named.get("k", Pairing().k)
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MOST_CANDIDATES:
        raise error(
            f"k => {k!r} is not possible",
            f"The number of candidates is a whole number from 1 to {MOST_CANDIDATES}.",
        )
    check = named.get("check", 0)
    if not isinstance(check, int) or isinstance(check, bool) or not 0 <= check <= MOST_SAMPLED:
        raise error(
            f"check => {check!r} is not possible",
            f"The size of a sample is a whole number from 0 to {MOST_SAMPLED:,}.",
        )
    if check and flags["exact"]:
        raise error("check and exact exclude each other", "Nothing lies beyond all pairs.")
    labelling = _labelling(named, tuple(labels), how.strip(), error)
    own = 0 if labelling is not None else check
    return Pairing(k, bool(flags["many"]), bool(flags["exact"]), how.strip(), own, labelling)


def _labelling(
    named: Mapping[str, object], labels: tuple[str, ...], how: str, error: Error
) -> Labelling | None:
    given = next((name for name in LABEL_OPTIONS if name in named), None)
    if given is None:
        return None
    if not labels:
        raise error(f"{given} without labels", "Write labels => ['a', 'b'] as well.")
    other = next((name for name in ("k", "exact", "many") if name in named), None)
    if other is not None:
        raise error(
            f"{other} and labels exclude each other",
            "By labels a value matches every other whose label fits.",
        )
    question = named.get("label_question", "")
    if not isinstance(question, str):
        raise error(f"label_question => {question!r} is not text", "Say by what to label.")
    match = _match(named.get("match", "" if how else SAME), labels, error)
    check = named.get("check", 0 if match else SAMPLED)
    assert isinstance(check, int)
    if not match and not check:
        raise error("check => 0 without match", f"Say which labels match: match => '{DIFFERENT}'.")
    if check and not how:
        raise error("check without how", "Say in words what a match is: how => '…'.")
    return Labelling(labels, question.strip(), match, check)


def _match(given: object, labels: Sequence[str], error: Error) -> str | tuple[Labels, ...]:
    """Which labels match; '' where that is not said."""
    hint = f"Write '{SAME}', '{DIFFERENT}', or pairs of labels, as in [['a', 'b'], ['b', 'a']]."
    if given in ("", SAME, DIFFERENT):
        return str(given)
    if not isinstance(given, list) or not given:
        raise error(f"match => {given!r} is not possible", hint)
    pairs: list[Labels] = []
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2:
            raise error(f"match => [… {pair!r} …]: that is no pair of labels", hint)
        stranger = next((label for label in pair if label not in labels), None)
        if stranger is not None:
            raise error(f"match names {stranger!r}, which is none of the labels", hint)
        pairs.append((str(pair[0]), str(pair[1])))
    return tuple(pairs)
