"""Parses a completion of running text: its tokens and those of the prompt, with their odds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.scores.token import Token
from blendfusion.models.services.http.completion import logprob_of, tokens_of, usage_of
from blendfusion.models.services.http.retry import Passing
from blendfusion.types import Usage

COMPLETIONS = "/completions"
"""The path of completions of running text in OpenAI's API."""


@dataclass(frozen=True, slots=True)
class TextCompletion:
    """The tokens of a reply, each with its offset in characters: those of the prompt, if it was
    echoed, then those of the model's text."""

    tokens: tuple[Token, ...]
    offsets: tuple[int, ...]
    usage: Usage

    def between(self, start: int, end: int) -> list[Token]:
        """The tokens that begin in a range of characters."""
        pairs = zip(self.tokens, self.offsets, strict=True)
        return [token for token, offset in pairs if start <= offset < end]


def read_text_completion(reply: dict[str, Json], prompt: str) -> TextCompletion:
    """The first choice of ``reply`` to a prompt. Raises ``Passing`` if there is none.

    A reply without odds has no tokens. llama-server tells odds in the form of chats, and echoes no
    prompt.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(choice.get("text"), str):
        raise Passing("the server's reply is not a completion")
    if generated := tuple(tokens_of(choice)):
        starts = accumulate((len(token.text) for token in generated[:-1]), initial=len(prompt))
        return TextCompletion(generated, tuple(starts), usage_of(reply))
    stated = choice.get("logprobs")
    columns = [
        stated.get(name) if isinstance(stated, dict) else None
        for name in ("tokens", "text_offset", "token_logprobs", "top_logprobs")
    ]
    rows = zip(*(column if isinstance(column, list) else () for column in columns), strict=False)
    tokens, offsets = [], []
    for text, offset, own, others in rows:
        if isinstance(text, str) and isinstance(offset, int):
            entries = {**(others if isinstance(others, dict) else {}), text: own}
            found = (logprob_of({"token": t, "logprob": p}) for t, p in entries.items())
            tokens.append(Token(text, dict(filter(None, found))))
            offsets.append(offset)
    return TextCompletion(tuple(tokens), tuple(offsets), usage_of(reply))
