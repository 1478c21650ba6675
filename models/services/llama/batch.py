"""One task with many tuples of values: tokens, limits of the window, and usage.

Values are tokenised alone and as plain text: data can never become control tokens. What decides the
answers of rows is in ``choosing``, ``scoring`` and ``writing``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from blendfusion.models.protocol.model import OnAnswer, Values, ignore_answer
from blendfusion.models.services.llama.chat_template import chat
from blendfusion.models.services.llama.context import LlamaContext
from blendfusion.models.services.llama.model_cache import OpenModel
from blendfusion.models.services.llama.scheduler import Run, RunCost, Step
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.models.services.prompts.prompt import render
from blendfusion.models.services.verbalizer.running_text import Layout, Piece, plain
from blendfusion.options import Options
from blendfusion.types import Answer, Task, Usage

Row = tuple[int, ...]
"""The tokens of one tuple of values, behind the prefix that all rows share."""

Runs = Callable[[Sequence[Row], Step, int], None]
"""``TaskBatch.run`` or ``TaskBatch.run_again``."""
Decide = Callable[[Sequence[Row], Runs, float], list[Row]]
"""Settles rows by a run; returns those that are nearer to a tie than a number."""


class TaskBatch:
    """The rows of a task, and the answers to them as they are settled."""

    in_streams = True
    """On a GPU, rows may go where each has a stream to itself."""

    def __init__(
        self,
        opened: OpenModel,
        task: Task,
        options: Options,
        on_answer: OnAnswer = ignore_answer,
        *,
        in_chat: bool = False,
    ) -> None:
        """``in_chat``: a question behind the text stands in the chat template."""
        self.opened = opened
        self.context = opened.context
        self.task = task
        self.options = options
        self.layout = _layout(
            task, opened.context, shots=shows_examples(options.shots), in_chat=in_chat
        )
        self._head = self.prefix = self._tokens(self.layout.head, start=True)
        self._common = ""
        """The text at the end of the prefix that values begin with."""
        self._on_answer = on_answer
        self.tail = self._tokens(self.layout.tail)
        self.behind = self._tokens(self.layout.behind)
        self._answers: dict[int, Answer] = {}
        self._places: dict[Row, list[int]] = {}
        self._values: Sequence[Values] = ()
        self._samples: dict[Row, Values] = {}
        self.spent = RunCost()
        self._called = False
        self._charged_tokens = 0
        """Tokens that were charged to answers already."""
        self._charged_until = time.perf_counter()

    def row(self, values: Values) -> Row:
        block = self.layout.block(values).removeprefix(self._common)
        return (*self.context.tokenize(block, special=False), *self.tail)

    def fitting(self, values: Sequence[Values], reserve: int) -> list[Row]:
        """The distinct rows of values, in order, that leave room for answers of ``reserve`` tokens;
        the values of all others fail as too long. What all values begin with joins the prefix, if
        later requests may begin with it, too."""
        commons = {self.layout.common(value) for value in values}
        self._common = commons.pop() if len(commons) == 1 else ""
        self.prefix = (*self._head, *self.context.tokenize(self._common, special=False))
        self._values = values
        for place, value in enumerate(values):
            row = self.row(value)
            failure = self.too_long(row, reserve)
            if failure is None:
                self._places.setdefault(row, []).append(place)
            else:
                self.tell(place, failure)
        return sorted(self._places)

    def place(self, row: Row) -> int:
        """The first place in the values of a row of ``fitting``."""
        return self._places[row][0]

    def values(self, row: Row) -> Values | None:
        """The values of a row of ``fitting`` or ``sample``; None of another row."""
        places = self._places.get(row)
        return self._samples.get(row) if places is None else self._values[places[0]]

    def sample(self, reserve: int) -> list[Row]:
        """The rows of the task's sample that leave room for answers of ``reserve`` tokens."""
        rows = {self.row(values): values for values in self.task.sample}
        self._samples = {r: v for r, v in rows.items() if self.too_long(r, reserve) is None}
        return list(self._samples)

    @property
    def held_tokens(self) -> int:
        """Tokens that stand before every row."""
        return len(self.prefix)

    @property
    def start(self) -> int:
        """The position at which rows begin."""
        return len(self.prefix)

    def begin(self) -> None:
        """Have every sequence begin with the prefix."""
        self.spent.tokens += self.opened.begin(self.prefix)

    def end(self) -> None:
        """Nothing more is asked."""

    def run(
        self,
        rows: Sequence[Row],
        step: Step,
        reserve: int | Sequence[int],
        *,
        exact: bool = False,
    ) -> None:
        """Drive rows to their end behind the prefix (``scheduler.Run``, ``Streams.run``);
        ``exact``: so that no row changes another's logits."""
        each = [reserve] * len(rows) if isinstance(reserve, int) else reserve
        if self.opened.streams is None or not self.in_streams:
            slots = 1 if exact and not self.opened.exact else self.opened.slots
            self._run(rows, step, each, slots)
            return
        left = self.opened.streams.run(self.prefix, rows, step, each, self.spent)
        self._run(
            [rows[place] for place in left],
            lambda place, logits: step(left[place], logits),
            [each[place] for place in left],
            slots=1,
        )

    def _run(self, rows: Sequence[Row], step: Step, reserve: Sequence[int], slots: int) -> None:
        Run(
            self.context, self.start, rows, step, reserve=reserve, spent=self.spent, slots=slots
        ).to_the_end()

    @property
    def noise(self) -> float:
        """Maximum change of a score by the other rows of a run."""
        return self.opened.noise if self.opened.slots > 1 and not self.opened.exact else 0.0

    def decide(self, rows: Sequence[Row], settle: Decide) -> None:
        """Settle the rows by ``settle``. Those that are nearer to a tie than what others change go
        again, alone."""
        near = settle(rows, self.run, self.noise)
        if near:
            settle(near, self.run_again, 0.0)

    def run_again(
        self,
        rows: Sequence[Row],
        step: Step,
        reserve: int | Sequence[int],
        *,
        exact: bool = True,
    ) -> None:
        """Drive rows once more, as they were nearer to a tie than what others change."""
        with self.again(len(rows)):
            self.run(rows, step, reserve, exact=exact)

    @contextmanager
    def again(self, rows: int) -> Iterator[None]:
        """Count the computation within this context as a repetition of ``rows`` rows."""
        spent = self.spent
        before, given = spent.tokens, spent.given
        yield
        spent.again += rows
        spent.extra += spent.tokens - before
        spent.given = given

    def settle(self, row: Row, answer: Answer, further: int = 0) -> None:
        """The final answer to all values of these tokens; the first of them pays. ``further``:
        tokens of other prompts about the same values."""
        for place in self._places[row]:
            usage = Usage(
                values=1,
                failed=int(answer.error is not None),
                prompt_tokens=self.held_tokens + len(row) + further,
                completion_tokens=answer.usage.completion_tokens,
            )
            self.tell(place, answer.with_usage(usage))

    def tell(self, place: int, answer: Answer) -> None:
        """Pass on an answer, with the tokens and the seconds since the last one."""
        now, spent, usage = time.perf_counter(), self.spent, answer.usage
        usage = Usage(
            usage.values,
            usage.cached,
            usage.failed,
            calls=int(spent.calls > 0 and not self._called),
            prompt_tokens=usage.prompt_tokens,
            evaluated_tokens=spent.tokens - self._charged_tokens,
            completion_tokens=usage.completion_tokens,
            seconds=now - self._charged_until,
        )
        self._called = spent.calls > 0
        self._charged_tokens, self._charged_until = spent.tokens, now
        self._answers[place] = answer.with_usage(usage)
        self._on_answer(place, self._answers[place])

    def answers(self) -> list[Answer]:
        """All answers, in the order of the values."""
        return [self._answers[place] for place in range(len(self._answers))]

    def too_long(self, row: Row, reserve: int) -> Answer | None:
        """The failure of a row that leaves no room for an answer of ``reserve`` tokens."""
        room = self.context.n_ctx - self.held_tokens - reserve - 1
        if len(row) <= room:
            return None
        what = "the value" if room > 0 else "the question"
        taken = self.held_tokens + reserve + (len(row) if room > 0 else 0)
        more = "" if room <= 0 else " with its question and the answer"
        return Answer.failed(
            f"{what} takes {taken} tokens{more}, the window is {self.context.n_ctx}",
            Usage(failed=1),
            too_long=room > 0,
        )

    def _tokens(self, pieces: Iterable[Piece], *, start: bool = False) -> Row:
        tokens: list[int] = []
        for piece in pieces:
            begins = start and not tokens
            if begins and piece.special:
                # A template may already name the token that begins a text.
                bos = self.context.bos_text()
                begins = not (bos and piece.text.startswith(bos))
            tokens += self.context.tokenize(piece.text, special=piece.special, start=begins)
        return tuple(tokens)


def _layout(task: Task, context: LlamaContext, *, shots: bool, in_chat: bool) -> Layout:
    """Running text without a list of options for closed sets and scores, where small models were
    measured to be better in it (benchmarks/lab.md); else, and for images, which models have seen in
    chats only, the chat template, where the model has one."""
    prompt = render(task, shots=shots, listed=False)
    if prompt.replies and not task.images and not in_chat:
        return plain(prompt)
    prompt = render(task, shots=shots)
    template = context.chat_template()
    layout = None
    if template:
        layout = chat(
            prompt, template, bos=context.bos_text(), eos=context.control_text(context.eos)
        )
    return layout or plain(prompt)
