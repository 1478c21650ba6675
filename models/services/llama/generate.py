"""Answers of an open pattern: written token by token under an automaton (``guided``), and no
further than the comparisons of the query need (``decided_answer``)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from blendfusion.models.constraints.constraint import MOST_DIGITS, holds, regex_of
from blendfusion.models.constraints.regex import check
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.thoughts import may_begin, without_marks, without_thoughts
from blendfusion.models.services.llama.batch import Row, TaskBatch
from blendfusion.models.services.llama.constrained_decoding import Writer, never
from blendfusion.models.services.llama.context import Logits
from blendfusion.models.services.llama.prefix_check import decided_answer
from blendfusion.types import Answer, Usage

SHORT_ANSWER_TOKENS = 48
"""Enough for every number, date and time."""
QUERY_TOKENS = 256
"""Enough for most SQL queries."""


class TextDecoder:
    """Writes answers inside the constraint of a task."""

    def __init__(self, asking: TaskBatch) -> None:
        self._asking = asking
        self._constraint = asking.task.constraint
        if self._constraint.kind == "regex":
            check(regex_of(self._constraint))
        self.reserve = self._limit()

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows.

        A token that was chosen by less than what other rows may change is chosen once more, when
        the row with what is written before it goes through the model exactly. If it turns out to be
        another, the row goes on from there. So every answer is the one that the model gives to the
        row alone."""
        layout, noise = self._asking.layout, self._asking.noise
        grammar = self._constraint.grammar
        guide = self._asking.opened.guide(
            grammar or regex_of(self._constraint),
            layout.lead,
            layout.stop,
            is_grammar=bool(grammar),
        )
        decides = self._decides if self._constraint.decides else never
        draft = self._constraint.begun
        begun = [(row, guide.writer(self.reserve, noise, decides, draft)) for row in rows]
        self._write(begun)
        while begun := self._confirm([at for at in begun if at[1].ties]):
            self._write(begun, again=True)

    def _limit(self) -> int:
        """Most tokens of one answer; what every struct of these fields repeats does not count."""
        if self._constraint.kind in ("integer", "number", "date", "timestamp"):
            return SHORT_ANSWER_TOKENS
        if self._constraint.max_tokens:
            return self._constraint.max_tokens
        if self._asking.task.form == "query":
            return max(QUERY_TOKENS, self._asking.options.max_tokens)
        repeated = canonical({}, self._constraint) if self._constraint.kind == "struct" else ""
        written_anyway = len(self._asking.context.tokenize(repeated, special=False))
        return self._asking.options.max_tokens + written_anyway

    def _write(self, begun: Sequence[tuple[Row, Writer]], *, again: bool = False) -> None:
        """Write all answers to their end, and settle those without near-ties."""

        def step(place: int, logits: Logits) -> Sequence[int]:
            row, writer = begun[place]
            added = writer.step(logits)
            if not added and not writer.ties:
                self._settle(row, writer)
            return added

        rows = [(*row, *writer.tokens) for row, writer in begun]
        # Forced tokens may go a little past the limit.
        reserve = [max(1, self.reserve - len(writer.tokens)) for _, writer in begun]
        if again:
            self._asking.run_again(rows, step, reserve, exact=False)
        else:
            self._asking.run(rows, step, reserve)

    def _confirm(self, begun: Sequence[tuple[Row, Writer]]) -> list[tuple[Row, Writer]]:
        """Settle answers whose near-ties are decided alike where rows go exactly, or that end with
        what is decided there; those that have to be written on are returned."""
        ties = [(row, writer, tie) for row, writer in begun for tie in writer.ties]
        again = [(*row, *writer.tokens[: tie.at]) for row, writer, tie in ties]
        order = sorted(range(len(ties)), key=again.__getitem__)
        best = [0] * len(ties)

        def step(place: int, logits: Logits) -> Sequence[int]:
            _, writer, tie = ties[order[place]]
            best[order[place]] = writer.choose_token(tie, logits)
            return ()

        if ties:
            self._asking.run_again([again[place] for place in order], step, 0)
        for (_, writer, tie), token in zip(ties, best, strict=True):
            if tie in writer.ties and token != tie.token:
                writer.rewrite(tie, token)
        for row, writer in begun:
            writer.ties.clear()
            if writer.ended:
                self._settle(row, writer)
        return [(row, writer) for row, writer in begun if not writer.ended]

    def _settle(self, row: Row, writer: Writer) -> None:
        answer = self._read(writer)
        if self._ran_on(row, answer):
            problem = f"digits without an end: {answer.text}, which the value does not hold"
            answer = Answer.failed(problem, answer.usage)
        self._asking.settle(row, answer)

    def _ran_on(self, row: Row, answer: Answer) -> bool:
        """The pattern ended a number, and not the model: it has all the digits that are possible,
        and is not copied from the value."""
        most = MOST_DIGITS.get(self._constraint.kind)
        if most is None or answer.text is None or answer.finish == "decided":
            return False
        digits = answer.text.lstrip("-").partition(".")[0]
        return len(digits) == most and digits not in self._asking.context.text(row)

    def _decides(self, written: bytes) -> bool:
        begun = self._certain_prefix(written)
        if self._constraint.kind == "text" and may_begin(begun):
            return False
        return decided_answer(self._constraint, begun) is not None

    def _certain_prefix(self, written: bytes) -> str:
        """The certain prefix of the answer, without parts that may still be cut off."""
        lead, stop = self._asking.layout.lead, self._asking.layout.stop
        text = written.decode("utf-8", "ignore")
        text = text.removeprefix(lead) if text.startswith(lead) else ""
        for length in range(len(stop), 0, -1):
            if text.endswith(stop[:length]):
                text = text[:-length]
                break
        return text.strip() if self._constraint.kind == "text" else text

    def _read(self, writer: Writer) -> Answer:
        constraint, layout = self._constraint, self._asking.layout
        usage = Usage(completion_tokens=len(writer.tokens))
        if writer.enough:
            known = decided_answer(constraint, self._certain_prefix(writer.written))
            return Answer(known, finish="decided", usage=usage)
        text = writer.written.decode("utf-8", "ignore")
        text = text.removeprefix(layout.lead)
        stopped = text.removesuffix(layout.stop)
        # A pattern may want the line break that ends other answers.
        if constraint.kind != "regex" or holds(constraint, stopped) or not holds(constraint, text):
            text = stopped
        if constraint.kind == "text":
            spoken = without_thoughts(text)
            if not spoken and constraint.max_tokens:
                spoken = without_marks(text)
            if spoken is None:
                return Answer.failed("wrote a thought, and no answer", usage)
            text = spoken.strip()
        if not writer.complete and constraint.kind == "list":
            text = _close_list(text)
        if not holds(constraint, text):
            reason = f"no answer within {self.reserve} tokens" if not writer.complete else "wrong"
            return Answer.failed(f"{reason}: {text[:60]!r} is not {constraint}", usage)
        return Answer(text, finish="complete" if writer.complete else "length", usage=usage)


def _close_list(text: str) -> str:
    """A JSON list that was cut off, closed after its last whole element."""
    for end in range(len(text), 0, -1):
        try:
            json.loads(text[:end] + "]")
        except ValueError:
            continue
        return text[:end] + "]"
    return "[]"
