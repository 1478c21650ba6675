"""Thoughts of reasoning models in their replies: the answer is what is left without them."""

from __future__ import annotations

import re

_NAME = r"(?:seed:|ant)?(?:think(?:ing)?|thoughts?|reasoning|reflection)"
_BEGINS = "|".join(
    (
        rf"<{_NAME}\s*>",  # DeepSeek, Qwen, Seed, Exaone, Claude's old prompts
        r"(?-i:\[THINK\])",  # Magistral
        "◁think▷",  # Kimi
        r"<\|(?:begin_of_thought|start_thinking|thinking|think|inner_prefix)\|>",  # Sky-T1, Cohere
        "<unused94>",  # MedGemma
        r"<\|channel>thought",  # Gemma
    )
)
_ENDS = "|".join(
    (
        rf"</{_NAME}\s*>",
        r"(?-i:\[/THINK\])",
        "◁/think▷",
        r"<\|(?:end_of_thought|end_thinking|/thinking|/think|inner_suffix)\|>",
        "<unused95>",
        r"<channel\|>",
    )
)
_MARK = re.compile(f"(?P<begin>{_BEGINS})|(?P<end>{_ENDS})", re.IGNORECASE)
_SOLUTION = re.compile(
    r"\s*(?:<answer>|<\|begin_of_solution\|>|<\|START_RESPONSE\|>|<\|begin_of_box\|>)\s*(.*?)\s*"
    r"(?:</answer>|<\|end_of_solution\|>|<\|END_RESPONSE\|>|<\|end_of_box\|>)?\s*",
    re.DOTALL,
)
"""The marks that some models write around an answer behind a thought."""
_CHANNEL, _MESSAGE = "<|channel|>", "<|message|>"
_FINAL = re.compile(r"<\|channel\|>\s*final\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>")
_OVER = re.compile(r"<\|(?:end|return|call|start)\|>")
_PLAIN = (
    (re.compile(r"\s*analysis(?=[A-Z])"), re.compile("assistant(?:<[^>]*>)?final")),
    (re.compile(r"\s*Here is my thought process:"), re.compile("Here is my response:")),
)
"""Beginnings and ends without a mark: of channels whose marks a server left out, and of Granite."""


def without_marks(reply: str) -> str:
    """A reply with its thoughts, but without the marks around them.

    >>> without_marks("<think>Okay, the user asks")
    'Okay, the user asks'
    """
    return _MARK.sub(" ", reply).strip()


def without_thoughts(reply: str) -> str | None:
    """A reply without the thoughts in it; None if it ends within one.

    Thoughts may be several, and the beginning of the first may stand in the prompt. A reply without
    any is unchanged. Time is linear.

    >>> without_thoughts("<think>Rome? Oslo?</think> Rome")
    'Rome'
    >>> without_thoughts("<think>Okay, the user asks") is None
    True
    """
    spoken = _of_channels(reply)
    if spoken is None:
        return None
    kept: list[str] = []
    start, within = 0, False
    for mark in _MARK.finditer(spoken):
        if mark["end"]:
            if not within:
                kept.clear()
            start, within = mark.end(), False
        elif not within:
            kept.append(spoken[start : mark.start()])
            within = True
    if within:
        return None
    if not start:
        return spoken
    whole = "".join(part.strip() for part in kept) + spoken[start:].lstrip()
    solution = _SOLUTION.fullmatch(whole)
    return solution[1] if solution else whole


def may_begin(text: str) -> bool:
    """Whether a text may be the beginning of a thought."""
    return text.lstrip()[:1] in ("<", "[", "◁")


def behind_thoughts(reply: str) -> int:
    """The place behind the last mark of a thought; 0 without any."""
    marks = (_MARK, _FINAL, *(end for begin, end in _PLAIN if begin.match(reply)))
    return max((found.end() for mark in marks for found in mark.finditer(reply)), default=0)


def _of_channels(reply: str) -> str | None:
    """The last final message of a reply in channels (gpt-oss); any other reply itself."""
    if _CHANNEL in reply:
        final = max((found.end() for found in _FINAL.finditer(reply)), default=None)
        return None if final is None else _OVER.split(reply[final:], maxsplit=1)[0]
    for begin, end in _PLAIN:
        if begin.match(reply):
            last = max((found.end() for found in end.finditer(reply)), default=None)
            return None if last is None else reply[last:].lstrip()
    return reply
