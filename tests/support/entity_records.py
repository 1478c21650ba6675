"""Records of two lists that are the same thing, and a model that knows which."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.udfs.services.columns.closure import Closure

Pairs = set[frozenset[str]]


@dataclass(frozen=True)
class Records:
    """Two tables, and the pairs of their rows that are the same."""

    folder: str
    left: str
    right: str
    pairs: str
    column: str

    def names(self, data: Path, side: str) -> dict[int, str]:
        table = pq.read_table(data / self.folder / f"{side}.parquet")
        keys, texts = table[f"{side}_id"].to_pylist(), table[self.column].to_pylist()
        return dict(zip(keys, texts, strict=True))

    def matches(self, data: Path) -> set[tuple[str, str]]:
        """(name on the left, name on the right) of the pairs that are the same."""
        left, right = self.names(data, self.left), self.names(data, self.right)
        rows = pq.read_table(data / self.folder / f"{self.pairs}.parquet").to_pylist()
        return {
            (left[r[f"{self.left}_id"]], right[r[f"{self.right}_id"]])
            for r in rows
            if r.get("label", 1) == 1
        }

    def truth(self, data: Path) -> Pairs:
        """The matches of different names, in any order."""
        return {frozenset(pair) for pair in self.matches(data) if len(set(pair)) == 2}

    def texts(self, data: Path) -> list[str]:
        both = (*self.names(data, self.left).values(), *self.names(data, self.right).values())
        return sorted(set(both))


SETS = (
    Records("em_fodors_zagats", "fodors", "zagats", "matches", "name"),
    Records("em_dblp_acm", "dblp", "acm", "matches", "title"),
    Records("em_abt_buy", "abt", "buy", "matches", "name"),
    Records("em_amazon_google", "amazon", "google", "pairs", "title"),
    Records("em_beer", "beeradvocate", "ratebeer", "pairs", "beer_name"),
)


def entities_of(texts: Sequence[str], pairs: Iterable[Iterable[str]]) -> dict[str, int]:
    """The number of the entity of each text, by the closure of pairs that are the same."""
    place = {text: i for i, text in enumerate(texts)}
    closure = Closure(len(texts))
    for a, b in pairs:
        closure.same(place[a], place[b])
    return {text: closure.root(i) for text, i in place.items()}


def judge(truth: dict[str, int], noise: float) -> Callable[[str, str], bool]:
    """Whether two texts are one entity, with a share of wrong answers."""

    def answer(a: str, b: str) -> bool:
        a, b = sorted((a, b))
        wrong = random.Random(f"{a}\n{b}").random() < noise
        return (truth[a] == truth[b]) is not wrong

    return answer


def scripted(same: Callable[[str, str], bool]) -> bf.ScriptedModel:
    """A model that answers questions about pairs."""
    return bf.ScriptedModel(lambda request: same(*map(str, request.values)))


def implied_by(answers: dict[tuple[int, int], bool], pair: tuple[int, int]) -> bool:
    """Whether other answers imply that of ``pair``: a path of same pairs with at most one different
    pair, found by search rather than by sets."""
    near: dict[int, list[tuple[int, bool]]] = {}
    for (a, b), same in answers.items():
        if (a, b) != pair:
            near.setdefault(a, []).append((b, same))
            near.setdefault(b, []).append((a, same))
    seen, waiting = {(pair[0], True)}, [(pair[0], True)]
    while waiting:
        place, same = waiting.pop()
        for other, edge in near.get(place, []):
            state = (other, same and edge)
            if (same or edge) and state not in seen:
                seen.add(state)
                waiting.append(state)
    return (pair[1], True) in seen or (pair[1], False) in seen
