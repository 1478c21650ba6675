"""Formats a prompt with the chat template of a model.

A template is rendered with sentinels in the place of every text of the prompt, so that only the
template itself may name control tokens, never a question, an option or a value.
"""

from __future__ import annotations

import re
from typing import Any

from blendfusion.models.services.prompts.prompt import BEHIND, Prompt
from blendfusion.models.services.verbalizer.running_text import QUESTION, Layout, Piece

_SENTINEL = "\x02{}\x03"
_ANY_SENTINEL = re.compile("\x02([0-9]+)\x03")


def chat(prompt: Prompt, template: str, *, bos: str, eos: str) -> Layout | None:
    """The prompt in the form of the chat template; None if the template fails for it."""
    turns = [{"role": "system", "content": prompt.instruction}]
    for question, reply in prompt.shots:
        turns += [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
    turns.append({"role": "user", "content": prompt.head})
    for candidate in (turns, _merge_system_turn(turns)):
        pieces = _fill(template, candidate, bos, eos)
        if pieces is not None:
            last = max(place for place, piece in enumerate(pieces) if not piece.special)
            head, tail = pieces[: last + 1], pieces[last + 1 :]
            if prompt.task.form in BEHIND:
                return Layout(prompt, head, QUESTION, lead=" ", stop="\n", behind=tail)
            return Layout(prompt, head, tail, lead="", stop="")
    return None


def _merge_system_turn(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    """Without a system turn, which some templates refuse: the first question carries it."""
    system, first, *rest = turns
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _fill(
    template: str, turns: list[dict[str, str]], bos: str, eos: str
) -> tuple[Piece, ...] | None:
    """The rendered template in pieces; None if it fails or drops one of the texts."""
    from jinja2.exceptions import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> Any:
        raise TemplateError(message)

    marked = [{**turn, "content": _SENTINEL.format(place)} for place, turn in enumerate(turns)]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    try:
        rendered = environment.from_string(template).render(
            messages=marked, add_generation_prompt=True, bos_token=bos, eos_token=eos
        )
    except (TemplateError, TypeError, ValueError):
        return None
    parts = _ANY_SENTINEL.split(rendered)
    if [int(place) for place in parts[1::2]] != list(range(len(turns))):
        return None
    pieces: list[Piece] = []
    for place, part in enumerate(parts):
        special = place % 2 == 0
        pieces.append(Piece(part if special else turns[int(part)]["content"], special))
    return tuple(piece for piece in pieces if piece.text)
