"""A store that notes the answers that pass through it, by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import Keys
from blendfusion.models.stores.memory import FROM_CACHE, AnswerStore, StoreStats
from blendfusion.types import Answer, Task

FAILED = Answer.failed("the recorded run had no valid answer for this value")


def text_digest(text: str) -> str:
    """A digest that stands for ``text`` where it must not appear."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class KeyedStore:
    """Answers in memory by key alone, as a file of answers has them: no values, no questions.

    A failed answer stands for a value that must not be asked again."""

    outlives_process = False

    def __init__(self, answers: Mapping[bytes, Answer] | None = None) -> None:
        self.answers: dict[bytes, Answer] = dict(answers or {})

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        found = {}
        for key, value in Keys(fingerprint, task).of_each(values).items():
            answer = self.answers.get(key)
            if answer is not None and answer.error is None:
                found[value] = answer
        return found

    def failed_values(self, fingerprint: str, task: Task, values: Iterable[Values]) -> set[Values]:
        """The values among these that have no valid answer."""
        keyed = Keys(fingerprint, task).of_each(values).items()
        return {v for key, v in keyed if (a := self.answers.get(key)) is not None and a.error}

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        keys = Keys(fingerprint, task)
        for value, answer in answers.items():
            self.answers[keys.of(value)] = answer.with_usage(FROM_CACHE)

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        """Nothing: estimates have no use for it here."""
        return []

    def clear(self, fingerprint: str | None = None) -> None:
        self.answers.clear()

    def stats(self) -> StoreStats:
        return StoreStats(entries=len(self.answers), models=len({k[:4] for k in self.answers}))

    def close(self) -> None:
        """Nothing to close."""


class StoreWrapper:
    """Passes everything on to the store ``of`` a model; subclasses add to single methods."""

    def __init__(self, of: AnswerStore) -> None:
        self.of = of

    @property
    def outlives_process(self) -> bool:
        return self.of.outlives_process

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        return self.of.get_many(fingerprint, task, values)

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        self.of.store_many(fingerprint, task, answers)

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        return self.of.earlier(fingerprint, task, most)

    def clear(self, fingerprint: str | None = None) -> None:
        self.of.clear(fingerprint)

    def stats(self) -> StoreStats:
        return self.of.stats()

    def close(self) -> None:
        self.of.close()


class Recording(StoreWrapper):
    """A store of which what is found or stored is also noted in ``noted``."""

    def __init__(self, of: AnswerStore, noted: KeyedStore, tokens: dict[str, int]) -> None:
        super().__init__(of)
        self.noted, self.tokens = noted, tokens

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        found = super().get_many(fingerprint, task, values)
        self.noted.store_many(fingerprint, task, found)
        return found

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        self.noted.store_many(fingerprint, task, answers)
        super().store_many(fingerprint, task, answers)

    def note_failed(self, fingerprint: str, task: Task, values: Iterable[Values]) -> None:
        """Note values without a valid answer, which no store keeps."""
        self.noted.store_many(fingerprint, task, dict.fromkeys(values, FAILED))

    def note_tokens(self, text: str, count: int) -> None:
        """Note the length of a text: it decides how long values are divided."""
        self.tokens[text_digest(text)] = count
