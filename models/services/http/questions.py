"""Asks the model of a server yes/no questions in the way that was chosen for it (``ways``).

Each question is scored behind neutral texts first, and behind its sample, once a model: so many
requests more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from blendfusion.models.protocol.model import Values
from blendfusion.models.services.http.chat import Chat
from blendfusion.models.services.http.client import NoAnswer, Refusal
from blendfusion.models.services.http.question_scores import QuestionScores
from blendfusion.models.services.http.transport import Client
from blendfusion.models.services.verbalizer.query_likelihood import (
    Neutral,
    Odds,
    neutral,
    neutral_values,
)
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Answer, Task, Usage


@dataclass(slots=True)
class Questions:
    """The questions of a model of a server."""

    chat: Chat
    way: Way
    _neutral: dict[Task, Neutral] = field(default_factory=dict)
    _odds: dict[Task, Odds] = field(default_factory=dict)

    async def begin(self, client: Client, task: Task) -> Usage:
        """Score the neutral texts of a question and its sample, if that was not done; returns what
        it took.

        Raises ``Refusal`` where the server tells no odds, ``NoAnswer``, ``Missing`` and
        ``ModelFailed``.
        """
        scores = QuestionScores(self.chat, client, task, self.way)
        if task in self._odds:
            return scores.spent
        bare = replace(task, sample=())
        if bare not in self._neutral:
            if scores.way.likelihood and not await scores.available():
                raise Refusal("the server tells no odds of a prompt")
            self._neutral[bare] = neutral(await scores.every(neutral_values(task)))
        sample = await scores.every(task.sample, fitting=True)
        self._odds[task] = Odds(scores.way, self._neutral[bare]).with_column(sample)
        return scores.spent

    async def answer(self, client: Client, task: Task, row: Values) -> Answer:
        """The answer for one tuple of values, after ``begin``. Raises ``Missing`` and
        ``ModelFailed``."""
        scores = QuestionScores(self.chat, client, task, self.way)
        try:
            answer = self._odds[task].answer(await scores.score(row))
        except Refusal as refusal:
            answer = Answer.failed(str(refusal), too_long=refusal.too_long)
        except NoAnswer as error:
            answer = Answer.failed(str(error))
        failed = 0 if answer.error is None else 1
        return answer.with_usage(scores.spent + Usage(values=1, failed=failed))
