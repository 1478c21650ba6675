"""A call: one use of an ingredient in a query, without its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any

import pyarrow as pa

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.options import OnError
from blendfusion.types import ADDED, Task
from blendfusion.udfs.declare.comparison import Comparing
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import RowQuestion
from blendfusion.udfs.declare.options import Confidence
from blendfusion.udfs.declare.pairing import Pairing
from blendfusion.udfs.declare.returns import arrow_type

VALUE, CONFIDENCE, ERROR = "value", "confidence", "error"
"""The fields of a kept result."""
BYTES = pa.binary_view()
"""The type of bytes to which DataFusion casts all others, and nothing else."""
EVIDENCE, ITEM, START, END, REASON = "evidence", "item", "start", "end", "reason"
"""The further fields of a result with its evidence; ``item`` only where the texts are a list."""


DISTRIBUTION = pa.map_(pa.string(), pa.float64())
"""The type of results that are the probabilities of all possible answers."""


def kept_type(
    answers: pa.DataType, *, errors: bool = True, confidence: bool = False, reasons: bool = False
) -> pa.DataType:
    """The type of results that keep their errors, the probabilities or the reasons of answers."""
    kept = [(VALUE, answers)]
    kept += [(CONFIDENCE, pa.float64())] if confidence else []
    kept += [(REASON, pa.string())] if reasons else []
    kept += [(ERROR, pa.string())] if errors else []
    return pa.struct(kept)


def evidence_type(answers: pa.DataType, *, of_list: bool = False) -> pa.DataType:
    """The type of a result with the span of the text, or of the item of a list, that states it."""
    item = [(ITEM, pa.int64())] if of_list else []
    span = [(EVIDENCE, pa.string()), *item, (START, pa.int64()), (END, pa.int64())]
    return pa.struct([(VALUE, answers), (CONFIDENCE, pa.float64()), *span, (REASON, pa.string())])


@dataclass(frozen=True)
class Call:
    """An ingredient with its literals bound. Its remaining arguments are the value columns.

    Two calls are equal if they must give equal answers for equal values. ``name`` is the
    name of the function that stands for the call in a DataFusion plan; it is a digest of all
    the rest, so equal calls share it, in any session.
    """

    ingredient: Ingredient
    task: Task
    type: pa.DataType
    """The type of its result: that of its answers, or a struct of one and the fields kept beside it
    (see ``is_struct``)."""
    n_values: int
    on_error: OnError | None = None
    """None: as the session says."""
    ordered: bool = False
    """For an aggregate: the rows of a context come in an order that the query asked for."""
    pairing: Pairing | None = None
    """For a call that pairs the values of two columns: how."""
    comparing: Comparing | None = None
    """For a call that compares two values: how."""
    confidence: Confidence | None = None
    """The use of its answers' probabilities; None: they are not used."""
    targets: Targets | None = None
    """The targets of its cascade; None: the session's."""
    models: tuple[str, ...] = ()
    """The models that it names, in the order in which they are asked; (): the session's."""

    literals: str = ""
    """The literals that the body of a user's function gets, as a JSON object; '' without any."""
    evidence: bool = field(default=False, metadata=ADDED)
    """Each answer, or each field of it, stands beside the span of the text that states it."""
    stated: bool = field(default=False, metadata=ADDED)
    """A number or a date that the text does not state is NULL, as in results with evidence."""
    reasons: bool = field(default=False, metadata=ADDED)
    """Each result is a struct of the value and the reason that the model wrote before it."""
    check: str = field(default="", metadata=ADDED)
    """The SQL predicate that each ``answer`` must satisfy; '' for none."""
    retries: int = field(default=0, metadata=ADDED)
    """How often an answer that does not satisfy it is asked for again."""
    threshold: float | None = field(default=None, metadata=ADDED)
    """The minimum probability of a yes; None: the likelier answer counts."""
    calibrated: str = field(default="", metadata=ADDED)
    """The name of the calibration of its probabilities; '' for none."""
    review: str = field(default="", metadata=ADDED)
    """The name of the table of values that people answer; '' for none."""
    shown: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The arguments but defaults, as SQL, by the names of their parameters in their order."""
    casts: tuple[str, ...] = field(default=(), metadata=ADDED)
    """The types to which the query casts its answers: one that cannot be cast is a failed one."""
    in_bytes: tuple[int, ...] = field(default=(), metadata=ADDED)
    """The values that are bytes, which may be images, by their places: DataFusion must not cast
    them to text."""

    @cached_property
    def _hash(self) -> int:
        """Once: a task may have thousands of options, and expressions are looked up by calls."""
        return hash(tuple(getattr(self, f.name) for f in _identity_fields()))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def name(self) -> str:
        digested = [f for f in _identity_fields() if f.name not in ("ingredient", "type")]
        digested = [f for f in digested if not f.metadata or getattr(self, f.name) != f.default]
        identity = [(f.name, getattr(self, f.name)) for f in digested]
        text = repr((self.ingredient.kind.version, str(self.type), identity))
        digest = hashlib.blake2s(text.encode(), digest_size=6)
        return f"{self.ingredient.name}_{digest.hexdigest()}"

    @property
    def value_types(self) -> Sequence[pa.DataType]:
        """The Arrow types of the columns of values that the call passes to its function."""
        types = list(self.ingredient.kind.value_types(self.n_values))
        for place in () if self.names_bytes else self.in_bytes:
            types[place] = BYTES
        return types

    @property
    def names_bytes(self) -> bool:
        """Whether its values that are bytes come as their names: only rows are read as bytes."""
        return type(self.ingredient.kind) is not RowQuestion

    @property
    def aggregate(self) -> bool:
        """The values are lists: the rows of a group, or the items of a row's list."""
        return self.ingredient.kind.many_texts

    @property
    def is_struct(self) -> bool:
        """The result is a struct of the value and an error, of which one is set, or of the value
        and its probability, or of all three."""
        return self.evidence or self.reasons or "keep" in (self.on_error, self.confidence)

    @property
    def gives_probabilities(self) -> bool:
        """The results are probabilities, rather than the answers."""
        return self.ingredient.probability or self.confidence == "all"

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The smallest and the largest number that a result can be; None where it has no bounds."""
        if self.is_struct:
            return None
        if self.ingredient.probability:
            return 0.0, 1.0
        constraint = self.task.constraint
        scored = constraint.kind == "score" and self.type == self.answer_type
        return constraint.scale if scored else None

    @property
    def gives_shares(self) -> bool:
        """Whether a result is the probability of each option."""
        return self.confidence == "all" and not self.is_struct

    @property
    def is_bounded(self) -> bool:
        """Whether a result is a number between bounds, or consists of such numbers."""
        return self.gives_shares or self.bounds is not None

    def targets_with(self, usual: Targets | None) -> Targets | None:
        """The targets of its cascade, where ``usual`` are those of the session. None where it has
        none: a cascade needs many values that are asked one by one, and decides by probabilities of
        its own."""
        if not self.ingredient.kind.can_cascade:
            return None
        if self.gives_probabilities or self.threshold is not None or self.calibrated:
            return None
        if self.targets is None:
            if usual is None or len(self.models) == 1:
                return None
            return usual.of(self.task.constraint.kind)
        if self.targets.delta is None and usual is not None:
            return replace(self.targets, delta=usual.delta)
        return self.targets

    def model_names(self, usual: Targets | None) -> ModelNames:
        """The names of its models, where ``usual`` are the targets of the session."""
        own = self.targets if self.targets is not None else usual
        return ModelNames(self.models, own if len(self.models) > 1 else None)

    @property
    def needs_odds(self) -> bool:
        """Whether its results depend on how probable the answers are."""
        by_odds = self.threshold is not None or self.confidence is not None
        return bool(by_odds or self.gives_probabilities or self.calibrated or self.review)

    @property
    def answer_type(self) -> pa.DataType:
        """The type of the answers."""
        return arrow_type(self.task.constraint) if self.gives_probabilities else self.value_type

    @property
    def value_type(self) -> pa.DataType:
        """The type of its result without the fields kept beside it."""
        if self.evidence and self.ingredient.has_fields:
            return pa.struct([(field.name, field.type.field(VALUE).type) for field in self.type])
        return self.type.field(VALUE).type if self.is_struct else self.type

    @property
    def text(self) -> str:
        """The call as SQL, its values by their column names (``…`` for an expression)."""
        columns = self.task.columns if self.comparing is None else self.comparing.columns
        return self.to_sql([name or "…" for name in columns])

    def to_sql(self, values: Sequence[str]) -> str:
        """The call as SQL, with these texts for its values."""
        ingredient, shown = self.ingredient, dict(self.shown)
        parts = [shown[p.name] for p in ingredient.leading if p.name in shown]
        between = [shown[p.name] for p in ingredient.between if p.name in shown]
        parts += [*values[:1], *between, *values[1:]]
        parts += [shown[p.name] for p in ingredient.trailing if p.name in shown]
        return f"{ingredient.name}({', '.join([*parts, *self.written_options()])})"

    def written_options(self, without: str = "") -> list[str]:
        """The arguments that have a name in the call as SQL, except ``without``."""
        options = {p.name for p in self.ingredient.options} - {without}
        return [f"{name} => {literal}" for name, literal in self.shown if name in options]


@cache
def _identity_fields() -> Sequence[Field[Any]]:
    """The fields of a call by which it is compared."""
    return [f for f in fields(Call) if f.compare]
