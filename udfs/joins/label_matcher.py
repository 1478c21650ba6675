"""Finds the matches of labelled values, where sampled pairs decide which labels match.

For every pair of labels that occurs, the model judges some pairs of values. If nearly all agree,
the majority answer holds for all such pairs; otherwise these are asked one by one. If values come
in chunks, each chunk has its share of the sample, as the first ones may differ from the rest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from blendfusion.models.protocol.model import Values
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.outcomes import outcomes
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.labelling import Labels
from blendfusion.udfs.evaluate.distinct import Column
from blendfusion.udfs.evaluate.label_join import labelling_of
from blendfusion.udfs.evaluate.row_keys import Key, key_values, row_keys
from blendfusion.udfs.text.binomial_bounds import at_most

BY_LABEL, BY_TEXT = "label ", "text "
"""Prefixes of a match: all values of this label, or this one value."""

AGREEING = 0.95
"""The minimum share of the sampled pairs of two labels with the same answer."""

Row: TypeAlias = tuple[object, ...]
"""A value, its label, and the key beside it."""
Group: TypeAlias = tuple[str, Sequence[str]]
"""A value, and the values of one label of the other side."""


@dataclass(slots=True)
class LabelTally:
    """The results of the samples of pairs of labels."""

    sampled: int = 0
    decided: int = 0
    open: int = 0
    """Pairs of labels whose samples disagree."""
    uncertainty: float = 0.0
    """The largest share of the pairs of two labels that may differ from the sample's answer."""
    one_by_one: int = 0
    """Pairs of values that no labels decide."""

    def __str__(self) -> str:
        """
        >>> tally = LabelTally(sampled=60, decided=3, open=1, uncertainty=0.14, one_by_one=240)
        >>> print(str(tally).replace("; ", "\\n"))
        3 of 4 pairs of labels decide by 60 sampled pairs (wrongly for at most 14 % of their pairs,
        at 95 % confidence) 240 pairs of the others asked one by one"""
        if not self.sampled:
            return "nothing to match"
        met = self.decided + self.open
        most = f"at most {100 * self.uncertainty:.0f} % of their pairs"
        sure = f" (wrongly for {most}, at 95 % confidence)" if self.decided else ""
        rest = f"; {self.one_by_one:,} pairs of the others asked one by one" if self.open else ""
        return f"{self.decided} of {met} pairs of labels decide by {self.sampled:,} sampled pairs{sure}{rest}"


@dataclass(slots=True)
class _PairSample:
    """The state of the pairs of values of two labels."""

    met: int = 0
    """The number of pairs so far."""
    answers: list[object] = field(default_factory=list)
    """The answers to the sampled pairs: TRUE, FALSE, or NULL without an answer."""


class LabelMatcher:
    """Finds the matches of one call's values in one run. ``call``: a ``label_chooser``; ``table``:
    the texts that may match, their labels, and their keys."""

    def __init__(self, call: Call, table: pa.Table, dispatcher: Dispatcher) -> None:
        self._call = call
        self._labelling = labelling_of(call)
        self._dispatcher = dispatcher
        self._among = _by_label(table)
        self._samples: dict[Labels, _PairSample] = {}
        self._matches: dict[Row, list[str]] = {}
        self.tally = LabelTally()

    @property
    def summary(self) -> list[str]:
        return [f"matches: {self.tally}"]

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """The matches of each row's value: LIST of TEXT, each a label or a text after ``BY_LABEL``
        or ``BY_TEXT``; NULL if the value or its label is NULL."""
        value, label, *keys = columns
        rows: list[Row] = [
            *zip(value.to_pylist(), label.to_pylist(), *map(key_values, keys), strict=True)
        ]
        new = [row for row in dict.fromkeys(rows) if row not in self._matches]
        met = list(self._rows_by_label(new))
        verdicts = self._settle(met)
        self._matches |= {row: [] for row in new}
        unsettled: list[tuple[Row, str]] = []
        for row, label, texts in met:
            verdict = verdicts[str(row[1]), label]
            if verdict:
                self._matches[row].append(BY_LABEL + label)
            elif verdict is None:
                unsettled += ((row, text) for text in texts)
        answers = self._answers([(str(row[0]), text) for row, text in unsettled])
        self.tally.one_by_one += len(unsettled)
        for (row, text), yes in zip(unsettled, answers, strict=True):
            if yes:
                self._matches[row].append(BY_TEXT + text)
        return pa.array([self._matches[row] or None for row in rows], self._call.type)

    def _rows_by_label(self, rows: Sequence[Row]) -> Iterator[tuple[Row, str, Sequence[str]]]:
        """Each row with each label of the other side, and the texts of that label."""
        for row in rows:
            if row[0] is not None and row[1] is not None:
                for label, texts in self._among.get(row[2:], {}).items():
                    yield row, label, texts

    def _settle(
        self, met: Sequence[tuple[Row, str, Sequence[str]]]
    ) -> Mapping[Labels, bool | None]:
        """Whether two labels match, by the samples so far; None: the labels do not decide."""
        groups: dict[Labels, list[Group]] = {}
        for row, label, texts in met:
            groups.setdefault((str(row[1]), label), []).append((str(row[0]), texts))
        chosen: dict[Labels, list[Values]] = {}
        for labels, new in groups.items():
            sampled = self._samples.setdefault(labels, _PairSample())
            pairs = sum(len(texts) for _, texts in new)
            sampled.met += pairs
            # The whole sample of the first chunk, and the share of later ones.
            size = -(-self._labelling.check * pairs // sampled.met)
            chosen[labels] = _sample(sorted(new), size)  # whatever the order of the rows
        answers = iter(self._answers([pair for pairs in chosen.values() for pair in pairs]))
        for labels, values in chosen.items():
            self._samples[labels].answers += [next(answers) for _ in values]
        verdicts = {labels: self._verdict(labels) for labels in self._samples}
        self._count(verdicts)
        return verdicts

    def _verdict(self, labels: Labels) -> bool | None:
        sampled = self._samples[labels]
        expected = self._expected_answer(labels)
        agreeing = sampled.answers.count(expected)
        if agreeing < AGREEING * len(sampled.answers) and not self._dispatcher.guesses_answers:
            return None
        return expected

    def _expected_answer(self, labels: Labels) -> bool:
        """The answer that the sample must confirm."""
        if self._labelling.match:
            return bool(self._labelling.holds(*labels))
        answers = self._samples[labels].answers
        return answers.count(True) > answers.count(False)

    def _count(self, verdicts: Mapping[Labels, bool | None]) -> None:
        tally = self.tally
        tally.sampled = sum(len(sampled.answers) for sampled in self._samples.values())
        tally.open = sum(verdict is None for verdict in verdicts.values())
        tally.decided = len(verdicts) - tally.open
        answers = (
            (self._samples[labels].answers, verdict)
            for labels, verdict in verdicts.items()
            if verdict is not None
        )
        tally.uncertainty = max(
            (
                at_most(len(given) - given.count(expected), len(given))
                for given, expected in answers
            ),
            default=0.0,
        )

    def _answers(self, pairs: Sequence[Values]) -> list[object]:
        """The answer for each pair of values: TRUE, FALSE, or NULL without an answer."""
        return outcomes(
            self._call,
            self._dispatcher.ask(self._call.task, pairs, self._call),
            pairs,
            self._dispatcher,
            to=pa.bool_(),
        )


def _by_label(table: pa.Table) -> Mapping[Key, Mapping[str, Sequence[str]]]:
    """The texts by their labels, by the key columns; rows with a NULL are left out."""
    found: dict[Key, dict[str, list[str]]] = {}
    texts, own, *columns = table.columns
    keys = row_keys(columns, len(table))
    for text, label, key in zip(texts.to_pylist(), own.to_pylist(), keys, strict=True):
        if text is not None and label is not None and None not in key:
            found.setdefault(key, {}).setdefault(label, []).append(text)
    return {
        key: {label: sorted(labels[label]) for label in sorted(labels)}
        for key, labels in found.items()
    }


def _sample(groups: Sequence[Group], size: int) -> list[Values]:
    """A deterministic uniform sample of the pairs; all pairs, if there are no more than
    ``size``."""
    starts, total = [], 0
    for _, texts in groups:
        starts.append(total)
        total += len(texts)
    chosen = sorted(random.Random(0).sample(range(total), min(size, total)))
    pairs: list[Values] = []
    group = 0
    for place in chosen:
        while group + 1 < len(starts) and starts[group + 1] <= place:
            group += 1
        value, texts = groups[group]
        pairs.append((value, texts[place - starts[group]]))
    return pairs
