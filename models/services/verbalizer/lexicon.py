"""A lexicon of related words of common labels, with their opposites.

A small model that reads about a goal and a cup answers *football* or *game* as readily as *sports*.
All related words are scored at the same position, so they cost nothing, and together they vary less
than one word (verbalizers with outside knowledge: Hu et al., "Knowledgeable Prompt-tuning", 2022).
The words were written for this project: nearest neighbours among word vectors made answers worse,
as most are other forms of the same word (benchmarks/lab.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LEXICON = Path(__file__).with_name("lexicon.txt")
"""One line per idea: the labels that name it, then its words. After ``<>`` stands its opposite, in
the same form, or a name of it; after ``<`` an idea that is true of more texts. Ideas under one
heading compete with each other."""

RARE = 0.5


@dataclass(frozen=True, slots=True)
class Idea:
    """The idea behind a label. ``against``: the words of its opposite; without one (not
    ``has_opposite``), those of all competing ideas. ``rarity``: the threshold above a neutral text
    in standard deviations; negative for an idea that is true of most texts."""

    words: tuple[str, ...]
    against: tuple[str, ...]
    has_opposite: bool
    rarity: float


def _read(ideas: str) -> dict[str, Idea]:
    found: dict[str, Idea] = {}
    for heading in f"\n{ideas}".split("\n#")[1:]:
        lines = heading.splitlines()[1:]
        sides = [side for line in lines for side in re.split("<>?", line) if ":" in side]
        every = [word for side in sides for word in _words(side)]
        named = {name: _words(side) for side in sides for name in _names(side)}
        for line in lines:
            one, *opposite = re.split("<>?", line)
            own = _words(one)
            if not opposite:
                against = tuple(word for word in dict.fromkeys(every) if word not in own)
                _name(found, one, Idea(own, against, has_opposite=False, rarity=RARE))
                continue
            other = _words(opposite[0]) or named[opposite[0].strip()]
            rarity = 0.0 if "<>" in line else RARE
            _name(found, one, Idea(own, other, has_opposite=True, rarity=rarity))
            if ":" in opposite[0]:
                _name(found, opposite[0], Idea(other, own, has_opposite=True, rarity=-rarity))
    return found


def _name(found: dict[str, Idea], side: str, idea: Idea) -> None:
    for name in _names(side):
        found.setdefault(name, idea)


def _names(side: str) -> list[str]:
    return [name.strip() for name in side.partition(":")[0].split(",")]


def _words(side: str) -> tuple[str, ...]:
    return tuple(side.partition(":")[2].split())


_NAMED = _read(LEXICON.read_text("utf-8"))


def idea_of(name: str) -> Idea | None:
    """The idea that a label of one word names, in any case, in singular or plural.

    >>> idea_of("Person").words[:3]
    ('person', 'people', 'man')
    >>> idea_of("unhappy").against[:2]
    ('happy', 'satisfied')
    """
    name = name.strip().lower()
    return _NAMED.get(name) or _NAMED.get(name.removesuffix("s"))
