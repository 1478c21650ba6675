"""The answer from a closed set by the odds of its options, with its probability among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.prompts.thoughts import behind_thoughts
from blendfusion.models.scores.distribution import shares_of
from blendfusion.models.scores.token import Token
from blendfusion.types import Constraint

_AROUND = ' "\n\t}'
"""Characters that may surround an answer in a reply, such as quotes and brackets of JSON."""

_FIELD = '":'


def likeliest(odds: Mapping[Any, Any], constraint: Constraint) -> tuple[str, float] | None:
    """The option with the highest odds, and the logarithm of its probability; None for invalid
    odds. The odds need not add up to one. Missing options have none, and ties go to the
    constraint's first.

    >>> likeliest({True: 3, False: 1}, Constraint("boolean"))
    ('true', -0.2876820724517809)
    """
    options = closed_set(constraint) or ()
    shares = shares_of(odds, options)
    if shares is None:
        return None
    best = max(range(len(shares)), key=shares.__getitem__)
    return options[best], log(shares[best] / sum(shares))


def written_odds(tokens: Sequence[Token], replies: Sequence[str], chosen: str) -> float | None:
    """The logarithm of the probability of ``chosen`` among ``replies``: see ``written_shares``."""
    shares = written_shares(tokens, replies, chosen)
    share = None if shares is None else shares[replies.index(chosen)] / sum(shares)
    return log(share) if share else None


def written_shares(
    tokens: Sequence[Token], replies: Sequence[str], chosen: str
) -> list[float] | None:
    """The shares of ``replies``, in their order, by the tokens of a generated reply, which is
    ``chosen``, and their alternatives; None if they do not determine them.

    Tokens that begin no reply do not count, nor do tokens that may still become the chosen reply or
    another. What begins several other replies counts for each of them alike.
    """
    known = [reply.casefold().strip(_AROUND) for reply in replies]
    own = known[replies.index(chosen)]
    shares = dict.fromkeys(known, 0.0)
    begun, reached = "", 1.0
    for token in tokens[_first(tokens, own) :]:
        for text, logprob in token.logprobs.items():
            if text == token.text or not text.strip(_AROUND):
                continue
            reply_start = (begun + text).strip(_AROUND).casefold()
            fits = [reply for reply in known if reply.startswith(reply_start)]
            if fits == [own] or own not in fits:
                for reply in fits:
                    shares[reply] += reached * exp(logprob) / len(fits)
        if token.text not in token.logprobs:
            return None
        begun += token.text
        reached *= exp(token.logprobs[token.text])
        reply_start = begun.strip(_AROUND).casefold()
        if [reply for reply in known if reply.startswith(reply_start)] == [own]:
            break
    else:
        if begun.strip(_AROUND).casefold() != own:
            return None
    shares[own] += reached
    return [shares[reply] for reply in known] if shares[own] > 0 else None


def _first(tokens: Sequence[Token], answer: str) -> int:
    """The position of the token that begins the answer, after thoughts and after the name of the
    field in a JSON object."""
    text = "".join(token.text for token in tokens)
    behind = behind_thoughts(text)
    behind = max(behind, text.rfind(_FIELD) + len(_FIELD)) if _FIELD in text else behind
    start = text.casefold().find(answer, behind)
    if start < 0:
        return len(tokens)
    length = 0
    for place, token in enumerate(tokens):
        length += len(token.text)
        if length > start:
            return place
    return len(tokens)
