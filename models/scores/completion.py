"""Reads a chat completion: the text, why it ended, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.http.retry import Passing
from blendfusion.models.http.server_errors import encodable
from blendfusion.types import Usage

_BROKEN_OFF = ("error", "abort", "insufficient_system_resource")  # OpenRouter, vLLM, DeepSeek
_LEAST = -1e4
"""The log probability of what cannot be; OpenAI says -9999."""
_REFUSAL_SHOWN = 200
"""Characters of a model's refusal that an error repeats."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, and the log probabilities of those that could have stood in its place."""

    text: str
    logprobs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply. ``refusal``: the model's own words, or '' if it did not refuse. ``tokens`` are
    those of the text, where they were asked for and the server tells them."""

    text: str
    finish: str
    usage: Usage
    refusal: str = ""
    tokens: tuple[Token, ...] = ()

    @property
    def whole(self) -> bool:
        """The model ended it, so that it shows what the model was held to."""
        return self.finish not in ("length", "content_filter") and not self.refusal


def read_completion(reply: dict[str, Json]) -> Completion:
    """The first choice of ``reply``; raises ``Passing`` if there is none, or it was broken off.

    Some servers answer 200 to what failed behind them.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Passing("the server's reply is not a chat completion")
    finish = str(choice.get("finish_reason"))
    if finish in _BROKEN_OFF:
        raise Passing(f"the server broke the answer off ({finish})")
    content, refusal = message.get("content"), message.get("refusal")
    return Completion(
        encodable(content) if isinstance(content, str) else "",
        finish,
        usage_of(reply),
        " ".join(encodable(str(refusal)).split())[:_REFUSAL_SHOWN] if refusal else "",
        tuple(_tokens(choice)),
    )


def _tokens(choice: dict[str, Json]) -> Iterator[Token]:
    stated = choice.get("logprobs")
    content = stated.get("content") if isinstance(stated, dict) else None
    for token in content if isinstance(content, list) else ():
        if isinstance(token, dict):
            others = token.get("top_logprobs")
            told = [token, *(others if isinstance(others, list) else ())]
            yield Token(str(token.get("token", "")), dict(filter(None, map(_told, told))))


def _told(entry: Json) -> tuple[str, float] | None:
    if isinstance(entry, dict):
        text, logprob = entry.get("token"), entry.get("logprob")
        if isinstance(text, str) and isinstance(logprob, int | float) and logprob == logprob:
            return text, float(max(_LEAST, min(0.0, logprob)))
    return None


def usage_of(reply: dict[str, Json]) -> Usage:
    """The tokens that a reply says it took; none where it says nothing."""
    stated = reply.get("usage")
    if not isinstance(stated, dict):
        return Usage()
    details = stated.get("prompt_tokens_details")
    prompt = _count(stated, "prompt_tokens")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else 0
    return Usage(
        prompt_tokens=prompt,
        evaluated_tokens=max(0, prompt - cached),
        completion_tokens=_count(stated, "completion_tokens"),
    )


def _count(stated: dict[str, Json], name: str) -> int:
    count = stated.get(name)
    return count if isinstance(count, int) and count > 0 else 0
