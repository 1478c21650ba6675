"""Parses a chat completion: its text, its end, its usage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.prompts.parse_reply import encodable
from blendfusion.models.prompts.thoughts import without_marks, without_thoughts
from blendfusion.models.scores.token import Token
from blendfusion.models.services.http.retry import Passing
from blendfusion.types import Usage

_BROKEN_OFF = "broken off"
_ENDS = {
    "content_filter": re.compile(r"filter|safety|recitation|block|prohibit|spii|language|refus"),
    "length": re.compile(r"length|max_|context_window|repetition"),
    _BROKEN_OFF: re.compile(
        r"error|abort|cancel|timeout|timed?_out|interrupt|incomplete|insufficient|fail|overload"
        r"|malformed|unexpected|unspecified|other|pause"
    ),
}
"""How a reply ended, by the words that providers have for it. Any other reply is whole."""
_FINISH_SHOWN = 40
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""The fields of a thought: DeepSeek's, vLLM's and SGLang's; OpenRouter's and Groq's; Ollama's."""
_TEXTS = ("text", "output_text")
_LEAST = -1e4
"""The log probability of an impossible token; OpenAI sends -9999."""
_MOST_TOKENS = 1 << 40
"""A count beyond this is a mistake of the server's."""
_REFUSAL_SHOWN = 200
"""Characters of a model's refusal that an error repeats."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply. ``refusal``: the text of a refusal, or ''. ``tokens``: the tokens of the
    text, if they were requested and the server returns them."""

    text: str
    finish: str
    usage: Usage
    refusal: str = ""
    tokens: tuple[Token, ...] = ()
    thought: str = ""
    """The thought that the server told apart from the text."""

    @property
    def visible_text(self) -> str | None:
        """The text without thoughts; None if it ends within one."""
        return without_thoughts(self.text)

    @property
    def reason(self) -> str:
        """The reason that a reply states: its visible text, else the model's thought."""
        return (self.visible_text or "").strip() or self.thought.strip() or without_marks(self.text)

    @property
    def whole(self) -> bool:
        """Whether the model ended the reply itself, so that the reply shows the effect of a
        constraint."""
        return self.finish not in ("length", "content_filter") and not self.refusal


def read_completion(reply: dict[str, Json]) -> Completion:
    """The first choice of ``reply``. Raises ``Passing`` if there is no choice, or if it is
    incomplete.

    Some servers answer 200 to a failure behind them.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Passing("the server's reply is not a chat completion")
    stated = str(choice.get("finish_reason"))
    finish = _end(stated)
    error = reply.get("error") or choice.get("error")
    if finish == _BROKEN_OFF or error:
        reason = "error" if error else encodable(stated[:_FINISH_SHOWN])
        raise Passing(f"the server broke the answer off ({reason})")
    content, refusal = message.get("content"), message.get("refusal")
    return Completion(
        encodable(_text(content)),
        finish,
        usage_of(reply),
        " ".join(encodable(str(refusal)[: 8 * _REFUSAL_SHOWN]).split())[:_REFUSAL_SHOWN]
        if refusal
        else "",
        tuple(tokens_of(choice)),
        next((_thought(message[name]) for name in _THOUGHTS if message.get(name)), ""),
    )


def _end(finish: str) -> str:
    """The name in ``_ENDS`` of the end of a reply; ``finish`` itself if the reply is whole.

    >>> _end("MAX_TOKENS"), _end("model_length"), _end("cancelled"), _end("eos_token")
    ('length', 'length', 'broken off', 'eos_token')
    """
    words = finish.lower()
    return next((end for end, pattern in _ENDS.items() if pattern.search(words)), finish)


def _thought(thought: Json) -> str:
    """A thought as text, whatever its form."""
    return encodable(_text(thought)) or "…"


def _text(content: Json) -> str:
    """The text of a message: a text, or a list of parts, of which those that are thoughts have
    another type."""
    if isinstance(content, list):
        parts = (
            part.get("text")
            for part in content
            if isinstance(part, dict) and part.get("type", "text") in _TEXTS
        )
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def tokens_of(choice: dict[str, Json]) -> Iterator[Token]:
    stated = choice.get("logprobs")
    content = stated.get("content") if isinstance(stated, dict) else None
    for token in content if isinstance(content, list) else ():
        if isinstance(token, dict):
            others = token.get("top_logprobs")
            alternatives = [token, *(others if isinstance(others, list) else ())]
            yield Token(
                str(token.get("token", "")), dict(filter(None, map(logprob_of, alternatives)))
            )


def logprob_of(entry: Json) -> tuple[str, float] | None:
    if isinstance(entry, dict):
        text, logprob = entry.get("token"), entry.get("logprob")
        if isinstance(text, str) and isinstance(logprob, int | float) and logprob == logprob:
            return text, float(max(_LEAST, min(0.0, logprob)))
    return None


def usage_of(reply: dict[str, Json]) -> Usage:
    """The usage in a reply; zero without any."""
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
    return min(count, _MOST_TOKENS) if isinstance(count, int) and count > 0 else 0
