"""The part of a frame that measures its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.run.hooks import BaseFrame

if TYPE_CHECKING:
    from blendfusion.services.evaluate.compare_answers import AnswerKind
    from blendfusion.services.evaluate.evaluation import Evaluation


class Measuring(BaseFrame):
    """A frame whose answers can be compared with labels."""

    def evaluate(
        self, answer: str, label: str, *, kind: AnswerKind | None = None, within: float = 0.0
    ) -> Evaluation:
        """Run this frame and measure its column ``answer`` against its column ``label``.

        ``kind`` is 'boolean', 'label' (a closed set), 'number' or 'text'; None: by the type and the
        calls of the frame. Numbers are right ``within`` a distance of their label. An answer may be
        a struct with its ``confidence``. Rows without a label or an answer are counted apart.
        Raises QueryError if a call of the frame reads the label.
        """
        from blendfusion.services.evaluate.run import evaluate_frame

        return evaluate_frame(self, answer, label, kind, within)
