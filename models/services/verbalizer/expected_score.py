"""The expected value of a score: each point of the scale weighted by the model's probability."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp

from blendfusion.models.constraints.constraint import points
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.thoughts import behind_thoughts
from blendfusion.models.scores.token import Token
from blendfusion.models.services.verbalizer.option_trie import Fork, Scores, forks
from blendfusion.types import Constraint


def expected_score(logprobs: Mapping[int, float], constraint: Constraint) -> str:
    """The canonical score, from the log probability of each point by its position.

    >>> expected_score({0: -0.6931472, 1: -0.6931472}, Constraint("score", scale=(1, 2)))
    '1.5'
    """
    scale = points(constraint)
    odds = {int(scale[place]): exp(logprob) for place, logprob in logprobs.items()}
    return canonical(odds, constraint)


def of_tokens(tokens: Sequence[Token], constraint: Constraint) -> str | None:
    """The score by the probabilities of a generated reply; None if they cover no point of the
    scale."""
    odds = point_odds(tokens, constraint)
    return canonical(odds, constraint) if sum(odds.values()) > 0 else None


def point_odds(tokens: Sequence[Token], constraint: Constraint) -> dict[int, float]:
    """The probabilities of the points of a scale, by those of a generated reply.

    Other tokens do not count. For a point of several tokens that shares its beginning with others
    (1 and 10), the probabilities after the generated beginning are known; another beginning counts
    as the point that it is by itself.
    """
    scale = points(constraint)
    place = _first(tokens)
    odds: dict[int, float] = defaultdict(float)
    begun, share = "", 1.0
    for token in tokens[place:]:
        written = begun + _digits(token.text)
        goes_on = written != begun and any(p != written and p.startswith(written) for p in scale)
        for text, logprob in token.logprobs.items():
            point = begun + _digits(text)
            if point in scale and not (goes_on and text == token.text):
                odds[int(point)] += share * exp(logprob)
        if not goes_on:
            break
        begun, share = written, share * exp(token.logprobs.get(token.text, 0.0))
    else:
        if begun in scale:
            odds[int(begun)] += share
    return dict(odds)


def _first(tokens: Sequence[Token]) -> int:
    """The position of the token that begins the answer, after thoughts and after the name of the
    field in a JSON object."""
    text = "".join(token.text for token in tokens)
    start = max(behind_thoughts(text), text.rfind('":'), 0)
    number = re.compile(r"-?[0-9]").search(text, start)
    if number is None:
        return len(tokens)
    length = 0
    for place, token in enumerate(tokens):
        length += len(token.text)
        if length > number.start():
            return place
    return len(tokens)


def _digits(token: str) -> str:
    """The digits of a token, without the quotes, blanks and brackets around them."""
    return token.strip(' "\n}')


def chains(root: Fork) -> list[list[Fork]]:
    """The forks of a tree in chains: each fork of a chain lies below the one before it.

    After the first fork of a chain, a model needs only a few more tokens for each of the others.
    The first chain begins at the root.
    """
    found: list[list[Fork]] = []
    begun = [root]
    while begun:
        chain = [begun.pop()]
        while below := [branch for branch in chain[-1].next if isinstance(branch, Fork)]:
            chain.append(below[0])
            begun += below[1:]
        found.append(chain)
    return found


def spread(root: Fork, scores: Mapping[Fork, Scores]) -> dict[int, float]:
    """The log probability of every option by its position, from the scores of each fork's
    branches."""
    reached = {root: 0.0}
    found: dict[int, float] = {}
    for fork in forks(root):
        for branch, logprob in zip(fork.next, scores[fork], strict=True):
            into = reached[fork] + float(logprob)
            if isinstance(branch, Fork):
                reached[branch] = into
            else:
                found[branch] = into
    return found
