"""Finds the matches of values in a set of others, for joins by meaning: first without, then with a
model.

A value matches, in this order: an equal text, a text that differs only in case, accents or
punctuation, or else the one that the model chooses among the most similar candidates. So a value is
one request, however large the set is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias

import pyarrow as pa

from blendfusion.errors import ModelNotFound
from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.models.protocol.model import Values
from blendfusion.models.vectors.tfidf import Nearest, normalize
from blendfusion.types import Constraint, Task
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.media_words import words_of_media
from blendfusion.udfs.ask.outcomes import outcomes
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.pairing import Pairing
from blendfusion.udfs.evaluate.distinct import Column
from blendfusion.udfs.evaluate.row_keys import Key, key_values, row_keys
from blendfusion.udfs.evaluate.whole_column import WholeColumn
from blendfusion.udfs.joins.label_matcher import LabelMatcher
from blendfusion.udfs.joins.recall_estimate import JoinMatches
from blendfusion.udfs.joins.vector_candidates import NearestInMeaning
from blendfusion.udfs.text.numbered_lines import number_lines

NONE = "none"
"""The answer for no matching candidate."""


@dataclass(slots=True)
class Tally:
    """Statistics of how the values of one join found their matches."""

    equal: int = 0
    alike: int = 0
    """Values equal except for case, accents and punctuation."""
    alone: int = 0
    """Values whose key has no text to match."""
    questions: int = 0
    unmatched: int = 0
    """Values asked without a chosen candidate."""
    ranks: Counter[int] = field(default_factory=Counter)
    """The ranks, from 1, of the chosen candidates."""
    open: int = 0
    """Values that may have a match beyond their candidates."""
    sampled: int = 0
    beyond: int = 0
    """Sampled values with a match among the next candidates."""
    missed: int = 0
    """The number of those matches."""
    tied: int = 0
    """Values of which further texts are as similar as the last candidate."""
    vectors: str = ""
    """The embedder whose vectors found candidates beside the spelling; '' for none."""

    def __str__(self) -> str:
        """
        >>> print(Tally(equal=4, questions=3, unmatched=1, ranks=Counter({1: 1, 7: 1})))
        4 equal, 2 chosen of 3 asked: 1 the first, 0 second or third, 1 later; 1 without a match
        """
        free = [f"{n:,} {how}" for n, how in ((self.equal, "equal"), (self.alike, "alike")) if n]
        chosen = self.ranks.total()
        near = self.ranks[2] + self.ranks[3]
        places = (
            f"{self.ranks[1]:,} the first, {near:,} second or third, "
            f"{chosen - self.ranks[1] - near:,} later"
        )
        chosen_text = (
            [f"{chosen:,} chosen of {self.questions:,} asked: {places}"] if self.questions else []
        )
        none = self.unmatched + self.alone
        parts = ", ".join(free + chosen_text) or "nothing to match"
        means = f"; candidates by words and the vectors of {self.vectors}" if self.vectors else ""
        return f"{parts}; {none:,} without a match{means}"


class Domain:
    """The texts that may match: those with one key, if the join has an equality as well."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = sorted(set(texts))
        self._shown = self.texts
        self._places = {text: i for i, text in enumerate(self.texts)}
        self._alike: dict[str, list[int]] = {}
        self._in_meaning: NearestInMeaning | None = None
        for i, text in enumerate(self.texts):
            self._alike.setdefault(normalize(text), []).append(i)

    def show(self, words: Mapping[str, str]) -> None:
        """From here on ``words`` stand for some texts where candidates are looked for."""
        self._shown = [words.get(text, text) for text in self.texts]

    def equal(self, text: str) -> int | None:
        return self._places.get(text)

    def alike(self, text: str) -> int | None:
        """The only text that is equal except for case, accents and punctuation."""
        plain = normalize(text)
        found = self._alike.get(plain, ()) if plain else ()
        return found[0] if len(found) == 1 else None

    def candidates(self, text: str, k: int) -> list[int]:
        """The texts most similar to ``text``, best first; all of them if there are no more than
        ``k``."""
        return self._nearest.of(text, k)

    def candidates_in_meaning(
        self, text: str, vector: Vectors, k: int, embedder: Embedder
    ) -> list[int]:
        """The texts most similar to ``text``: one by spelling, one by ``vector``, and so on."""
        if self._in_meaning is None:
            self._in_meaning = NearestInMeaning(self._shown, self._nearest, embedder)
        return self._in_meaning.of(text, vector, k)

    def cuts_a_tie(self, text: str, k: int) -> bool:
        """Whether another text is as similar by spelling as the last of the ``k`` candidates."""
        return self._nearest.cuts_a_tie(text, k)

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self._shown)


def domains(table: pa.Table) -> dict[Key, Domain]:
    """The texts of the first column by the values of the others; rows with a NULL and blank texts
    match nothing."""
    grouped: dict[Key, list[str]] = {}
    texts, *columns = table.columns
    for text, key in zip(texts.to_pylist(), row_keys(columns, len(table)), strict=True):
        if text is not None and text.strip() and None not in key:
            grouped.setdefault(key, []).append(text)
    return {key: Domain(texts) for key, texts in grouped.items()}


Row: TypeAlias = tuple[object, ...]
"""A value with its key."""


class Matcher:
    """Finds the rows of one plan that match the values of ``call``, a ``chooser``, in one run.

    ``tally`` has the statistics of the matching.
    """

    def __init__(self, call: Call, among: Mapping[Key, Domain], dispatcher: Dispatcher) -> None:
        assert call.pairing is not None
        self._call = call
        self._pairing = call.pairing
        self._among = among
        self._dispatcher = dispatcher
        self._matches: dict[Row, list[str]] = {}
        self._embedder = _embedder(call, dispatcher)
        self._words: dict[str, str] = {}
        """The model's words about images and recordings, where candidates are looked for."""
        self.tally = Tally()

    @property
    def summary(self) -> Sequence[str]:
        tally, k = self.tally, self._pairing.k
        found = JoinMatches(
            tally.equal + tally.alike + tally.ranks.total(),
            tally.ranks,
            k,
            tally.open,
            tally.sampled,
            tally.beyond,
            tally.missed,
            k if self._pairing.many else 1,
        )
        return [f"matches: {tally}", f"recall of {k} candidates: {found}"]

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """The match of each row's first value among the texts of its key, the other columns: TEXT,
        or a LIST of TEXT for a call with many matches. NULL without a match, for blank values, and
        if the value or its key is NULL."""
        values, *keys = columns
        rows = [*zip(values.to_pylist(), *map(key_values, keys), strict=True)]
        self._match([row for row in dict.fromkeys(rows) if row not in self._matches])
        matches = [self._matches[row] for row in rows]
        if self._pairing.many:
            return pa.array([texts or None for texts in matches], self._call.type)
        return pa.array([texts[0] if texts else None for texts in matches], self._call.type)

    def _match(self, rows: Sequence[Row]) -> None:
        found: dict[Row, list[str]] = {row: [] for row in rows}
        waiting: dict[Row, list[str]] = {}
        self._describe(rows)
        vectors = self._vectors(rows)
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
            near = self._near(text, domain, vectors, self._pairing.candidates(len(domain.texts)))
            places = [i for i in near if i != free]
            if places:
                waiting[row] = [domain.texts[i] for i in places]
        for row, places in self._choose(waiting).items():
            self.tally.ranks.update(places)
            self.tally.unmatched += not places
            found[row] += [waiting[row][place - 1] for place in places]
        self.tally.questions += len({(row[0], *texts) for row, texts in waiting.items()})
        self._matches |= found
        beyond = [row for row in waiting if self._pairing.many or not found[row]]
        self._look_beyond(beyond, vectors)
        if not self._pairing.check:  # else a sample says how much lies beyond
            self._note_ties(beyond)

    def _note_ties(self, rows: Sequence[Row]) -> None:
        """Count the values of which further texts are as similar as their last candidate."""
        k = self._pairing.k
        cut = [row for row in rows if self._are_some_left_out(row)]
        tied = sum(self._among[row[1:]].cuts_a_tie(self._show(str(row[0])), k) for row in cut)
        if tied:
            self.tally.tied += tied
            self._dispatcher.observer.on_unsearched(self._call, tied)

    def _look_beyond(self, rows: Sequence[Row], vectors: Mapping[str, Vectors]) -> None:
        """Sample values that may have a match beyond their candidates, and count those that have
        one."""
        k = self._pairing.k
        further: dict[Row, list[str]] = {}
        for row in rows:
            size = len(self._among[row[1:]].texts)
            if size > self._pairing.candidates(size):
                further[row] = []
        self.tally.open += len(further)
        size = min(len(further), self._pairing.check - self.tally.sampled)
        for row in random.Random(0).sample(sorted(further, key=repr), max(0, size)):
            domain = self._among[row[1:]]
            near = self._near(str(row[0]), domain, vectors, 2 * k)
            further[row] = [domain.texts[i] for i in near[k:]]
        sampled = {row: texts for row, texts in further.items() if texts}
        self.tally.sampled += len(sampled)
        chosen = self._choose(sampled).values()
        self.tally.beyond += sum(map(bool, chosen))
        self.tally.missed += sum(map(len, chosen))

    def _vectors(self, rows: Sequence[Row]) -> dict[str, Vectors]:
        """The vectors of the rows' values that have more texts than candidates to choose from; none
        if spelling alone finds candidates."""
        if self._embedder is None:
            return {}
        texts = [
            row[0]
            for row in rows
            if isinstance(row[0], str) and row[0].strip() and self._are_some_left_out(row)
        ]
        if not texts:
            return {}
        self.tally.vectors = self._embedder.name
        try:
            return dict(zip(texts, self._embedder.embed([*map(self._show, texts)]), strict=True))
        except UnknownVectorError:  # an estimate does not embed
            return {}

    def _are_some_left_out(self, row: Row) -> bool:
        """Whether a value has more texts than candidates."""
        domain = self._among.get(row[1:])
        size = 0 if domain is None else len(domain.texts)
        return size > self._pairing.candidates(size)

    def _near(self, text: str, domain: Domain, vectors: Mapping[str, Vectors], k: int) -> list[int]:
        """The candidates of a text, best first; a longer list begins with the shorter one."""
        shown = self._show(text)
        if self._embedder is None or text not in vectors:
            return domain.candidates(shown, k)
        try:
            return domain.candidates_in_meaning(shown, vectors[text], k, self._embedder)
        except UnknownVectorError:
            return domain.candidates(shown, k)

    def _describe(self, rows: Sequence[Row]) -> None:
        """Have images and recordings put into words where some are no candidates: their names say
        nothing."""
        cut = [row for row in rows if self._are_some_left_out(row)]
        domains = {row[1:]: self._among[row[1:]] for row in cut}
        texts = {str(row[0]) for row in cut if row[0] is not None}
        texts.update(text for domain in domains.values() for text in domain.texts)
        new = words_of_media(UserModel(self._dispatcher, self._call), texts - self._words.keys())
        self._words |= new
        for domain in domains.values() if new else ():
            domain.show(self._words)

    def _show(self, text: str) -> str:
        return self._words.get(text, text)

    def _free(self, text: str, domain: Domain) -> int | None:
        """The match without the model; none with a user's criterion, which may define another
        match."""
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

    def _choose(self, waiting: Mapping[Row, list[str]]) -> dict[Row, list[int]]:
        """The positions, from 1, of the candidates that the model chooses for each row."""
        chosen: dict[Row, list[int]] = {}
        for size in sorted({len(texts) for texts in waiting.values()}):
            own = {row: texts for row, texts in waiting.items() if len(texts) == size}
            task = question(self._call.task, self._pairing, size)
            values: list[Values] = [
                (str(row[0]), number_lines(texts)) for row, texts in own.items()
            ]
            answers = self._dispatcher.ask(self._call.task, values, self._call, sent=task)
            results = outcomes(self._call, answers, values, self._dispatcher)
            chosen |= zip(own, map(_places, results), strict=True)
        return chosen


class Matches(Protocol):
    """Finds the matches of one call's values in one run."""

    @property
    def summary(self) -> Sequence[str]:
        """A description of how matches were found, one line each."""
        ...

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """The match or matches of each row's values."""
        ...


def _embedder(call: Call, dispatcher: Dispatcher) -> Embedder | None:
    """The embedder for candidates by meaning, since matches by a user's criterion may be spelled
    differently. None without an embedder."""
    assert call.pairing is not None
    if not call.pairing.criterion:
        return None
    try:
        return dispatcher.embedder_for(call)
    except ModelNotFound:
        return None


def matcher(call: Call, table: pa.Table, dispatcher: Dispatcher) -> Matches:
    """The matcher for a call that chooses from the rows of ``table``, or depends on all of them."""
    if call.ingredient.kind.whole_column:
        return WholeColumn(call, table, dispatcher)
    if call.pairing is not None and call.pairing.labelling is not None:
        return LabelMatcher(call, table, dispatcher)
    return Matcher(call, domains(table), dispatcher)


def _places(answer: object) -> list[int]:
    """The candidate numbers in an answer."""
    if answer is None or answer == NONE:
        return []
    if isinstance(answer, list):
        return sorted({int(number) for number in answer})
    return [int(str(answer))]


def chooser(call: Call) -> Call:
    """The call that chooses among candidates, from the call that judges pairs."""
    assert call.pairing is not None
    kind = pa.list_(pa.string()) if call.pairing.many else pa.string()
    return replace(call, task=question(call.task, call.pairing, call.pairing.k), type=kind)


def question(task: Task, pairing: Pairing, candidates: int) -> Task:
    """The task for a value and a list of ``candidates`` numbered candidates."""
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
