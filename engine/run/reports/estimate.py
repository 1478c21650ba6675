"""The record of an estimate: the values and the spending of a query, with the basis of the
numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blendfusion.budget import Price, money
from blendfusion.planner.ir.nodes import Ask
from blendfusion.run.execution.predicate_order import Order
from blendfusion.run.observe.progress import beside_text, count_noun, readings_text
from blendfusion.types import Task, Usage

ASSUMED = "assumed answers"
EARLIER = "earlier answers"
EXACT = "exact"
AT_MOST = "at most, of both models"
AT_MOST_LARGE = "at most"
FOOTNOTE = (
    "Assumed answers: as long as none is known, half of the yes/no answers are yes, half of the "
    "comparisons with other answers hold, and labels are equally frequent."
)


@dataclass(frozen=True, slots=True)
class OperatorEstimate:
    """The expected questions of one call of one stage. Operators are in the order of EXPLAIN's
    stages.

    Equal requests count at the first operator that makes them. ``rows`` is the number of rows that
    reach the call; None, like ``usage``, if unknown.
    """

    stage: int
    """The stage's number from 1, as in EXPLAIN; 0: a plain plan."""
    call: str
    """The call as SQL."""
    task: Task
    rows: int | None
    usage: Usage | None
    """Values, values in the session's cache, and tokens; a shared prefix counts once in
    ``evaluated_tokens``. ``calls`` are the requests of a server without retries, and 0 in
    process. Failures are not estimated."""
    seconds: float | None
    """Seconds inside the model; None until the session has measured a rate."""
    basis: str
    """The basis of ``rows`` and ``values``: ``exact``, a sample, or the kind of assumed answers.
    With ``usage`` None: the reason."""
    tokens_basis: str
    seconds_basis: str
    notes: int = 0
    """The number of values that are notes on parts of contexts beyond the model's window."""
    ask: Ask | None = field(default=None, repr=False, compare=False)
    """The call in the plan."""
    models: tuple[str, ...] = ()
    """The models that the call names; () for the session's."""
    price: Price | None = None
    """The price of its model, if known: that of the first model of a failover chain, or of the
    large model of a cascade."""
    most: int | None = None
    """The most values that it asks whatever the answers are; None: unknown."""
    form_search: int = 0
    """The number of requests beyond ``usage`` that may be needed to find the form in which the
    server takes the answer's constraint; 0 once it is known, and in process."""
    constant_tokens: int = 0
    """The tokens of each request to a server that are the same for all values; 0 in process, where
    they are read once."""
    scored_by: str | None = None
    """The words by which a local model scores its replies; None if it generates them, or gives no
    words."""
    asker: str | None = None
    """Which model of a chain is asked, and why those before it are not; why none is; None: the
    first."""

    @property
    def values(self) -> int | None:
        """Requests to the model; None if unknown."""
        return None if self.usage is None else self.usage.values

    @property
    def cost(self) -> float | None:
        """The cost of ``usage``; None without a price, or if unknown."""
        return None if self.usage is None or self.price is None else self.price.of(self.usage)

    @property
    def exact(self) -> bool:
        return self.basis == EXACT

    def __str__(self) -> str:
        if self.usage is None:
            return f"unknown: {self.basis}"
        about = "" if self.exact else "about "
        rows = "" if self.rows is None else f" of {count_noun(self.rows, 'row')}"
        values = f"{about}{count_noun(self.usage.values, 'value')}{rows} ({self.basis})"
        values += beside_text(self.usage)
        if self.notes:
            values += f", {count_noun(self.notes, 'note')} on long contexts among them"
        spending = _spending_text(self.usage, self.seconds, self.constant_tokens)
        return values + _search_text(self.form_search) + spending


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected questions and spending of a frame: ``print`` shows it, fields serve programs.

    ``operators``: one per call of each stage.
    """

    operators: tuple[OperatorEstimate, ...] = ()
    price: Price | None = None
    """The price of the session's model, if known."""
    least: int = 0
    """The least values that a run to the end asks, whatever the answers are."""
    weights: Mapping[str, str] = field(default_factory=dict)
    """The weights in use by the names of local models: the file, or its converted copy."""
    orders: Mapping[int, Order] = field(default_factory=dict, repr=False, compare=False)
    """The predicates of each stage in their expected order, by the stage's number, with the
    statistics behind the order."""

    @property
    def total(self) -> Usage:
        """The sum. Operators with unknown usage count 0 (see ``complete``), and so do unknown
        seconds (see ``seconds``)."""
        known = [op.usage for op in self.operators if op.usage is not None]
        return Usage.total(known) if known else Usage()

    @property
    def most(self) -> int | None:
        """The most values that a run asks, whatever the answers are; None: unknown."""
        known = [op.most for op in self.operators]
        return None if None in known else sum(most for most in known if most is not None)

    @property
    def complete(self) -> bool:
        """False if the number of values of some operator is unknown."""
        return all(op.usage is not None for op in self.operators)

    @property
    def exact(self) -> bool:
        return all(op.exact for op in self.operators)

    @property
    def seconds(self) -> float | None:
        """Seconds inside the model; None if a part is unknown."""
        known = [op.seconds for op in self.operators]
        return None if any(s is None for s in known) else sum(s for s in known if s is not None)

    @property
    def form_search(self) -> int:
        """The number of requests beyond ``total`` that may be needed to find the forms in which
        servers take constraints."""
        return sum(op.form_search for op in self.operators)

    @property
    def cost(self) -> float | None:
        """The cost of ``total`` by the session's prices; None if a price or a part is unknown."""
        if not self.operators:
            return None if self.price is None else 0.0
        costs = [op.cost for op in self.operators]
        return None if any(c is None for c in costs) else sum(c for c in costs if c is not None)

    def values_of(self, task: Task, models: tuple[str, ...] = ()) -> int | None:
        """The values of all operators for ``task`` that go to the session's model, or to the
        ``models`` that a call names, without notes; None if unknown."""
        own = [op for op in self.operators if (op.task, op.models) == (task, models)]
        if not own or any(op.usage is None for op in own):
            return None
        return sum((op.values or 0) - op.notes for op in own)

    def lines(self) -> list[str]:
        """The total, and the assumed answers, if any."""
        if not self.complete:
            return ["Expected: unknown"]
        total, seconds = self.total, self.seconds
        about = "" if self.exact else "about "
        values = f"{about}{count_noun(total.values, 'value')}{self._bounds_text()}"
        beside = readings_text(total) + _search_text(self.form_search)
        text = f"Expected: {values}{beside}{_spending_text(total, seconds)}"
        if self.cost:
            text += f", cost {money(self.cost)}"
        if seconds is None:
            text += "; no time yet: this session has not measured its model"
        return [text, *([FOOTNOTE] if any(ASSUMED in op.basis for op in self.operators) else [])]

    def _bounds_text(self) -> str:
        if self.exact:
            return ""
        most = "" if self.most is None else f", at most {self.most:,}"
        return f" (at least {self.least:,}{most})"

    def weight_lines(self) -> list[str]:
        """The weights in use, one line per local model."""
        return [f"Weights of {name}: {description}" for name, description in self.weights.items()]

    def __str__(self) -> str:
        operators = [f"{op.call}: {op}" for op in self.operators]
        return "\n".join([*operators, *self.lines(), *self.weight_lines()])

    __repr__ = __str__


def _search_text(requests: int) -> str:
    if not requests:
        return ""
    return f", up to {count_noun(requests, 'request')} more to find the form that the server takes"


def _spending_text(usage: Usage, seconds: float | None, constant: int = 0) -> str:
    parts = [f"{usage.cached:,} cached"] if usage.cached else []
    if usage.values:
        tokens = count_noun(usage.prompt_tokens, "prompt token")
        if usage.evaluated_tokens != usage.prompt_tokens:
            tokens = f"{usage.evaluated_tokens:,} of {tokens} evaluated"
        if constant:
            tokens += f" ({constant:,} of each request are the same for all values)"
        parts += [tokens, count_noun(usage.completion_tokens, "completion token")]
        parts += [f"{seconds:.2f} s"] if seconds is not None else []
    return "".join(f", {part}" for part in parts)
