"""Asks a local model about images: one tuple at a time, after the question.

The question is computed once. An image stands where a value would: between the end of the
question and the beginning of the answer, in tokens and vectors of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from blendfusion.errors import QueryError
from blendfusion.models.protocol.images import has_bytes, image_bytes, is_image, split
from blendfusion.models.protocol.model import OnAnswer, Values
from blendfusion.models.services.llama.batch import Row, TaskBatch
from blendfusion.models.services.llama.image_encoder import ImageRefused, PreparedImage, Projector
from blendfusion.models.services.llama.model_cache import OpenModel
from blendfusion.options import Options
from blendfusion.types import Answer, Task, Usage

Answered = Callable[[TaskBatch, Sequence[Values]], list[Answer]]
"""Answers values, as those of texts are."""


def about_images(
    opened: OpenModel,
    task: Task,
    options: Options,
    values: Sequence[Values],
    on_answer: OnAnswer,
    projector: Path,
    answered: Answered,
) -> list[Answer]:
    """The answers of an open model, whose lock the caller holds; an image that cannot be shown has
    failed alone."""
    eyes = opened.projector(projector, options)
    answers = []
    for place, images in enumerate(values):
        with ExitStack() as held:

            def tell(_: int, answer: Answer, place: int = place) -> None:
                on_answer(place, answer)

            try:

                def show(image: str, held: ExitStack = held) -> PreparedImage:
                    return held.enter_context(eyes.prepare(_bytes(image)))

                asking = ImageRow(opened, task, options, tell, eyes, images, show)
                answers += answered(asking, [images])
            except ImageRefused as problem:
                answers.append(Answer.failed(str(problem), Usage(values=1, failed=1)))
                on_answer(place, answers[-1])
    return answers


def _pieces(named: Sequence[tuple[str, str, str]]) -> list[tuple[str, str | None]]:
    """Named values as texts, each with the image behind it, if there is one. A text may have images
    in its midst; a single value has no name."""
    pieces: list[tuple[str, str | None]] = []
    for name, value, text in named:
        lead = (f"\n{name}: " if name else "\n- ") if len(named) > 1 else ""
        if is_image(value):
            pieces.append((lead, value))
            continue
        label = ""
        for part in split(f"{lead}{text}"):
            if has_bytes(part):
                pieces.append((label, part))
            label = "" if has_bytes(part) else part
        pieces += [(label, None)] if label else []
    return pieces


def _bytes(image: str) -> bytes:
    try:
        return image_bytes(image)
    except QueryError:
        raise ImageRefused(
            "an image at a URL: a local model fetches nothing. Read the images into a BINARY column, or "
            "ask a model on a server"
        ) from None


class ImageRow(TaskBatch):
    """One tuple of images, and texts beside them (None), as the row of a task: its text stands
    behind them."""

    in_streams = False

    def __init__(
        self,
        opened: OpenModel,
        task: Task,
        options: Options,
        on_answer: OnAnswer,
        eyes: Projector,
        values: Values,
        show: Callable[[str], PreparedImage],
    ) -> None:
        super().__init__(opened, task, options, on_answer)
        self._eyes = eyes
        pieces = _pieces(self.layout.prompt.beside(values))
        self._images = [None if image is None else show(image) for _, image in pieces]
        self._labels = [self.context.tokenize(label, special=False) for label, _ in pieces]
        self._start = len(self.prefix)

    def row(self, values: Values) -> Row:
        return self.tail

    @property
    def held_tokens(self) -> int:
        images = sum(image.cells for image in self._images if image is not None)
        return len(self.prefix) + images + sum(map(len, self._labels))

    @property
    def start(self) -> int:
        return self._start

    def begin(self) -> None:
        """Have every sequence begin with the prefix and the images."""
        super().begin()
        context, position = self.context, len(self.prefix)
        context.trim(position)
        for label, image in zip(self._labels, self._images, strict=True):
            context.decode_prefix(label, position)
            position += len(label)
            if image is not None:
                position = self._eyes.show(image, context, position)
        self.spent.calls += 1
        self.spent.tokens += self.held_tokens - len(self.prefix)
        self._start = position
        context.fan_out()

    def end(self) -> None:
        """Leave nothing but the prefix."""
        self.context.trim(len(self.prefix))
