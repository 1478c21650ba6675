"""The matches of labelled values, where sampled pairs say which labels match.

Of every pair of labels that meet some pairs of values are asked about. If nearly all of them give one
answer, it is the answer for all such pairs; else these are asked about one by one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from blendfusion.models.model import Values
from blendfusion.udfs.asker import Asker
from blendfusion.udfs.call import Call
from blendfusion.udfs.confidence import at_most
from blendfusion.udfs.labelled import labelling_of
from blendfusion.udfs.labelling import Labels
from blendfusion.udfs.outcome import outcomes

BY_LABEL, BY_TEXT = "label ", "text "
"""What a match begins with: the others of this label, or this one other."""

AGREEING = 0.95
"""The share of the sampled pairs of two labels that must have one answer."""

Row: TypeAlias = tuple[object, ...]
"""A value, its label, and the key beside it."""
Key: TypeAlias = tuple[object, ...]
Column: TypeAlias = "pa.Array | pa.ChunkedArray"
Group: TypeAlias = tuple[str, Sequence[str]]
"""A value, and others of one label that it meets."""


@dataclass(slots=True)
class LabelTally:
    """What samples said of the pairs of labels."""

    sampled: int = 0
    decided: int = 0
    open: int = 0
    """Pairs of labels whose samples do not agree."""
    uncertainty: float = 0.0
    """The largest share of the pairs of two labels that may be otherwise than these decide."""
    one_by_one: int = 0
    """Pairs of values that no labels decide."""

    def __str__(self) -> str:
        """
        >>> tally = LabelTally(sampled=60, decided=3, open=1, uncertainty=0.14, one_by_one=240)
        >>> print(str(tally).replace("; ", "\\n"))
        3 of 4 pairs of labels decide by 60 sampled pairs (wrongly for at most 14 % of their pairs, at 95 % confidence)
        240 pairs of the others asked one by one
        """
        if not self.sampled:
            return "nothing to match"
        met = self.decided + self.open
        most = f"at most {100 * self.uncertainty:.0f} % of their pairs"
        sure = f" (wrongly for {most}, at 95 % confidence)" if self.decided else ""
        rest = f"; {self.one_by_one:,} pairs of the others asked one by one" if self.open else ""
        return f"{self.decided} of {met} pairs of labels decide by {self.sampled:,} sampled pairs{sure}{rest}"


class LabelMatcher:
    """Finds what one call's values match; one for a run. ``call``: a ``label_chooser``; ``table``: texts that
    may match, their labels, and their keys."""

    def __init__(self, call: Call, table: pa.Table, asker: Asker) -> None:
        self._call = call
        self._labelling = labelling_of(call)
        self._asker = asker
        self._among = _by_label(table)
        self._verdicts: dict[Labels, bool | None] = {}
        """Whether two labels match; None: they do not decide."""
        self._matches: dict[Row, list[str]] = {}
        self.tally = LabelTally()

    @property
    def said(self) -> list[str]:
        return [f"matches: {self.tally}"]

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """What each row's value matches: LIST of TEXT, each a label or a text behind ``BY_LABEL`` or
        ``BY_TEXT``; NULL where the value or its label is."""
        rows: list[Row] = list(zip(*(column.to_pylist() for column in columns), strict=True))
        new = [row for row in dict.fromkeys(rows) if row not in self._matches]
        met = list(self._met(new))
        self._settle(met)
        self._matches |= {row: [] for row in new}
        unsettled: list[tuple[Row, str]] = []
        for row, label, texts in met:
            verdict = self._verdicts[str(row[1]), label]
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

    def _met(self, rows: Sequence[Row]) -> Iterator[tuple[Row, str, Sequence[str]]]:
        """Each row with each label that it meets, and the texts of that label."""
        for row in rows:
            if row[0] is not None and row[1] is not None:
                for label, texts in self._among.get(row[2:], {}).items():
                    yield row, label, texts

    def _settle(self, met: Sequence[tuple[Row, str, Sequence[str]]]) -> None:
        """Sample the pairs of labels that meet for the first time."""
        groups: dict[Labels, list[Group]] = {}
        for row, label, texts in met:
            labels = (str(row[1]), label)
            if labels not in self._verdicts:
                groups.setdefault(labels, []).append((str(row[0]), texts))
        samples = {labels: _sample(met, self._labelling.check) for labels, met in groups.items()}
        answers = iter(self._answers([pair for pairs in samples.values() for pair in pairs]))
        for labels, pairs in samples.items():
            self._verdicts[labels] = self._verdict(labels, [next(answers) for _ in pairs])

    def _verdict(self, labels: Labels, answers: Sequence[object]) -> bool | None:
        yes, no = answers.count(True), answers.count(False)
        said = self._labelling.holds(*labels) if self._labelling.match else yes > no
        agreeing = yes if said else no
        self.tally.sampled += len(answers)
        if agreeing < AGREEING * len(answers) and not self._asker.guesses_answers:
            self.tally.open += 1
            return None
        self.tally.decided += 1
        otherwise = at_most(len(answers) - agreeing, len(answers))
        self.tally.uncertainty = max(self.tally.uncertainty, otherwise)
        return said

    def _answers(self, pairs: Sequence[Values]) -> list[object]:
        """TRUE, FALSE, or NULL for no answer, for each pair of values."""
        return outcomes(
            self._call,
            self._asker.ask(self._call.task, pairs, self._call),
            pairs,
            self._asker,
            to=pa.bool_(),
        )


def _by_label(table: pa.Table) -> Mapping[Key, Mapping[str, Sequence[str]]]:
    """The texts by their labels, by the values of the columns behind; what has a NULL is left out."""
    found: dict[Key, dict[str, list[str]]] = {}
    for text, label, *key in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if text is not None and label is not None and None not in key:
            found.setdefault(tuple(key), {}).setdefault(label, []).append(text)
    return {
        key: {label: sorted(labels[label]) for label in sorted(labels)}
        for key, labels in found.items()
    }


def _sample(groups: Sequence[Group], size: int) -> list[Values]:
    """So many of the pairs, all alike and the same each time; all of them, if they are no more."""
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
