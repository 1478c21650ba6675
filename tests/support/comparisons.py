"""What DataFusion says of comparisons of answers, and a model that answers no further than they
need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Values
from blendfusion.models.scripted_model import Script
from blendfusion.models.services.llama.prefix_check import decided_answer
from blendfusion.types import Answer, Comparison, Constraint, ConstraintKind, Task
from blendfusion.udfs.ask.decode import decode
from blendfusion.udfs.declare.returns import arrow_type


class Answers:
    """Canonical answers of one kind as a column of DataFusion's."""

    def __init__(self, kind: ConstraintKind, texts: Sequence[str | None]) -> None:
        self._kind = kind
        column = decode(texts, arrow_type(Constraint(kind)))
        self._context = SessionContext()
        self._context.from_arrow(pa.table({"i": range(len(texts)), "f": column}), name="t")

    def truths(self, comparison: Comparison) -> list[tuple[bool | None, ...]]:
        """For each answer, in order, what every way to write the comparison says of it."""
        columns = [f"{c} AS r{i}" for i, c in enumerate(self._conditions(comparison))]
        found = self._context.sql(f"SELECT {', '.join(columns)} FROM t ORDER BY i").to_pydict()
        return list(zip(*found.values(), strict=True))

    def _conditions(self, comparison: Comparison) -> list[str]:
        quotes = {
            "date": "DATE '{}'",
            "timestamp": "TIMESTAMP '{}'",
            "integer": "{}",
            "number": "{}",
        }
        quote = quotes.get(self._kind, "'{}'")
        shown = [quote.format(operand) for operand in comparison.operands]
        conditions = [f"f {comparison.operator} {' AND '.join(shown)}"]
        if comparison.operator == "=":
            conditions.append(f"CASE f WHEN {shown[0]} THEN TRUE ELSE FALSE END")
            conditions.append(f"f IN ({', '.join(shown * 5)})")
        return conditions


class EarlyModel(bf.ScriptedModel):
    """A scripted model that ends every answer where the comparisons are decided; ``early``
    counts."""

    @property
    def abilities(self) -> Abilities:
        return replace(super().abilities, stops_early=True)

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.early = 0

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        answers = super().answer(task.in_full, values)
        return [self._cut(task.constraint, answer) for answer in answers]

    def _cut(self, constraint: Constraint, answer: Answer) -> Answer:
        text = answer.text or ""
        for end in range(len(text)):
            known = decided_answer(constraint, text[:end].rstrip())
            if known is not None:
                self.early += 1
                return Answer(known, finish="decided", usage=answer.usage)
        return answer
