"""The matches of values in a set of others, for joins by meaning: equal ones for free, then a model.

A value meets, in this order: what is equal to it, what differs in case, accents or punctuation
alone, and else the candidates that look most like it, among which the model chooses. So a value is
one request, however large the set is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from blendfusion.models.model import Values
from blendfusion.types import Constraint, Task
from blendfusion.udfs.asker import Asker
from blendfusion.udfs.call import Call
from blendfusion.udfs.nearest import Nearest, normalized
from blendfusion.udfs.outcome import outcomes
from blendfusion.udfs.pairing import Pairing

NONE = "none"
"""The answer that no candidate matches."""

Key: TypeAlias = tuple[object, ...]
Column: TypeAlias = "pa.Array | pa.ChunkedArray"


@dataclass(slots=True)
class Tally:
    """How the values of one join found their matches."""

    equal: int = 0
    alike: int = 0
    """In all but case, accents and punctuation."""
    alone: int = 0
    """With no text to be matched with, by their keys."""
    asked: int = 0
    unmatched: int = 0
    """Asked, and none of the candidates chosen."""
    ranks: Counter[int] = field(default_factory=Counter)
    """The places, from 1, of the chosen among their candidates."""

    def __str__(self) -> str:
        """
        >>> print(Tally(equal=4, asked=3, unmatched=1, ranks=Counter({1: 1, 7: 1})))
        4 equal, 2 chosen of 3 asked: 1 the first, 0 second or third, 1 later; 1 without a match
        """
        free = [f"{n:,} {how}" for n, how in ((self.equal, "equal"), (self.alike, "alike")) if n]
        chosen = self.ranks.total()
        near = self.ranks[2] + self.ranks[3]
        places = (
            f"{self.ranks[1]:,} the first, {near:,} second or third, "
            f"{chosen - self.ranks[1] - near:,} later"
        )
        asked = [f"{chosen:,} chosen of {self.asked:,} asked: {places}"] if self.asked else []
        none = self.unmatched + self.alone
        parts = ", ".join(free + asked) or "nothing to match"
        return f"{parts}; {none:,} without a match"


class Domain:
    """The texts that may match: those of one key, where an equality stands beside the join."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = sorted(set(texts))
        self._places = {text: i for i, text in enumerate(self.texts)}
        self._alike: dict[str, list[int]] = {}
        for i, text in enumerate(self.texts):
            self._alike.setdefault(normalized(text), []).append(i)

    def equal(self, text: str) -> int | None:
        return self._places.get(text)

    def alike(self, text: str) -> int | None:
        """The one text that is the same but for case, accents and punctuation."""
        plain = normalized(text)
        found = self._alike.get(plain, ()) if plain else ()
        return found[0] if len(found) == 1 else None

    def candidates(self, text: str, k: int) -> list[int]:
        """Those most like ``text``, best first; all of them if they are no more than ``k``."""
        return self._nearest.of(text, k)

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self.texts)


def domains(table: pa.Table) -> dict[Key, Domain]:
    """The texts of the first column by the values of the others; rows with a NULL, and blank texts,
    match nothing."""
    grouped: dict[Key, list[str]] = {}
    for text, *key in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if text is not None and text.strip() and None not in key:
            grouped.setdefault(tuple(key), []).append(text)
    return {key: Domain(texts) for key, texts in grouped.items()}


Row: TypeAlias = tuple[object, ...]
"""A value, and the key beside it."""


class Matcher:
    """Finds the matches of one call's values in one plan's rows; one for a run. ``call``: a ``chooser``.

    ``tally`` tells how they were found.
    """

    def __init__(self, call: Call, among: Mapping[Key, Domain], asker: Asker) -> None:
        assert call.pairing is not None
        self._call = call
        self._pairing = call.pairing
        self._among = among
        self._asker = asker
        self._matches: dict[Row, list[str]] = {}
        self.tally = Tally()

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """The match of each row's first value among the texts of its key, the others: TEXT, or a LIST
        of TEXT where a value may have many. NULL where the value or its key is, for blank values, and
        without a match."""
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        self._match([row for row in dict.fromkeys(rows) if row not in self._matches])
        matches = [self._matches[row] for row in rows]
        if self._pairing.many:
            return pa.array([texts or None for texts in matches], self._call.type)
        return pa.array([texts[0] if texts else None for texts in matches], self._call.type)

    def _match(self, rows: Sequence[Row]) -> None:
        found: dict[Row, list[str]] = {row: [] for row in rows}
        waiting: dict[Row, list[str]] = {}
        for row in rows:
            text, domain = row[0], self._among.get(row[1:])
            if not isinstance(text, str) or not text.strip():
                continue
            if domain is None:
                self.tally.alone += 1
                continue
            free = self._free(text, domain)
            if free is not None:
                found[row].append(domain.texts[free])
                if not self._pairing.many:
                    continue
            places = [i for i in domain.candidates(text, self._pairing.k) if i != free]
            if places:
                waiting[row] = [domain.texts[i] for i in places]
        for size in sorted({len(texts) for texts in waiting.values()}):
            own = {row: texts for row, texts in waiting.items() if len(texts) == size}
            for row, chosen in self._chosen(own, size).items():
                found[row] += chosen
        self._matches |= found

    def _free(self, text: str, domain: Domain) -> int | None:
        """The match that needs no model; a criterion of the user's may mean another."""
        if self._pairing.criterion:
            return None
        same = domain.equal(text)
        if same is not None:
            self.tally.equal += 1
            return same
        alike = domain.alike(text)
        if alike is not None:
            self.tally.alike += 1
        return alike

    def _chosen(self, waiting: Mapping[Row, list[str]], size: int) -> dict[Row, list[str]]:
        """What the model chooses for each row among its candidates, ``size`` of them each."""
        put = question(self._call.task, self._pairing, size)
        asked: list[Values] = [(str(row[0]), listed(texts)) for row, texts in waiting.items()]
        answers = self._asker.ask(self._call.task, asked, self._call, put=put)
        results = outcomes(self._call, answers, asked, self._asker)
        self.tally.asked += len(set(asked))
        chosen: dict[Row, list[str]] = {}
        for (row, texts), result in zip(waiting.items(), results, strict=True):
            places = _places(result)
            chosen[row] = [texts[place - 1] for place in places]
            self.tally.ranks.update(places)
            self.tally.unmatched += not places
        return chosen


def _places(answer: object) -> list[int]:
    """The numbers of the candidates that an answer names."""
    if answer is None or answer == NONE:
        return []
    if isinstance(answer, list):
        return sorted({int(number) for number in answer})
    return [int(str(answer))]


def listed(candidates: Sequence[str]) -> str:
    """The candidates as numbered lines. Line breaks in them are blanks, so that each is one line.

    >>> print(listed(["a", "b c"]))
    1. a
    2. b c
    """
    return "\n".join(f"{i}. {' '.join(text.split())}" for i, text in enumerate(candidates, 1))


def chooser(call: Call) -> Call:
    """The call that chooses the matches of values among candidates, for one that judges pairs."""
    assert call.pairing is not None
    kind = pa.list_(pa.string()) if call.pairing.many else pa.string()
    return replace(call, task=question(call.task, call.pairing, call.pairing.k), type=kind)


def question(task: Task, pairing: Pairing, candidates: int) -> Task:
    """What a model is asked of a value and so many candidates."""
    numbers = tuple(str(i) for i in range(1, candidates + 1))
    which = "Which candidates match" if pairing.many else "Which candidate matches"
    how = pairing.criterion or "they are the same thing, perhaps written differently"
    constraint = Constraint("choice", options=(*numbers, NONE))
    if pairing.many:
        constraint = Constraint("list", item=Constraint("choice", options=numbers))
    return replace(
        task,
        question=f"{which} the value: {how}?",
        constraint=constraint,
        columns=("value", "candidates"),
    )
