"""Lays out a prompt as running text, as a base model continues it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blendfusion.models.protocol.model import Values
from blendfusion.models.services.prompts.prompt import BEHIND, Prompt


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt; ``special``: control tokens named in it are meant as such."""

    text: str
    special: bool


QUESTION = (Piece("\nQuestion:", special=False),)
ANSWER = (Piece("\nAnswer:", special=False),)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the values stand: ``head`` + values + ``tail``, then the model replies.

    ``lead`` begins every reply (token boundaries: running text continues with a blank).
    ``stop`` may end it; one of the model's end tokens always may. Where the question stands behind
    the values, the reply is the question; ``behind`` follows it, and ``answer_lead`` begins yes and
    no.
    """

    prompt: Prompt
    head: tuple[Piece, ...]
    tail: tuple[Piece, ...]
    lead: str
    stop: str
    behind: tuple[Piece, ...] = ()
    answer_lead: str = ""

    def block(self, values: Values) -> str:
        """The values as one text. Where a line break ends a turn, values are folded to one line,
        so that data cannot forge a turn."""
        return self.prompt.block(values, one_line=bool(self.stop))

    def common(self, values: Values) -> str:
        """The beginning of the block that other requests repeat; '' for none."""
        return self.prompt.common(values, one_line=bool(self.stop))


def join_pieces(pieces: Iterable[Piece]) -> str:
    """The text of pieces, for a server, which reads its control tokens itself."""
    return "".join(piece.text for piece in pieces)


def plain(prompt: Prompt) -> Layout:
    """Instruction, shots and question as running text, as a base model continues it."""
    if prompt.task.form in BEHIND:
        return _before_question(prompt)
    parts = [prompt.instruction]
    parts += [f"{question}\nAnswer: {reply}" for question, reply in prompt.shots]
    parts.append(prompt.head)
    head = Piece("\n\n".join(parts), special=False)
    return Layout(prompt, (head,), (Piece("\nAnswer:", special=False),), lead=" ", stop="\n")


def _before_question(prompt: Prompt) -> Layout:
    """The values, up to where a question follows, and what then leads to its answer."""
    shots = [f"{question}\nAnswer: {reply}" for question, reply in prompt.shots]
    head = Piece("\n\n".join([*shots, prompt.head]), special=False)
    return Layout(prompt, (head,), QUESTION, lead=" ", stop="\n", behind=ANSWER, answer_lead=" ")
