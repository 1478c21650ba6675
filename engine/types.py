"""The nouns that cross folders: a leaf that imports nothing of ours.

Every noun is a frozen dataclass that can be compared and hashed, so that two equal
requests are one question to the model and one entry of the cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

ConstraintKind = Literal[
    "text",
    "boolean",
    "integer",
    "number",
    "date",
    "timestamp",
    "choice",
    "regex",
    "list",
    "struct",
    "score",
]

TaskForm = Literal["question", "statement", "summary"]

FinishReason = Literal["complete", "decided", "length", "error"]

ComparisonOperator = Literal["=", "<", "<=", ">", ">=", "between", "like"]

ADDED = {"added": True}
"""Metadata of a field that nouns did not always have: as long as it has its default it is no part of
a cache key, so that answers which were stored before are found."""


@dataclass(frozen=True, slots=True, order=True)
class Comparison:
    """A comparison of an answer with literals. Its negation is the same comparison: what is known
    of one is known of the other, so ``<>`` is ``=`` here, and NOT LIKE is LIKE."""

    operator: ComparisonOperator
    operands: tuple[str, ...]
    """One literal, or the two bounds of ``between``: a number as it was written, else the text; a
    date or a timestamp in the form that answers have."""

    def text(self, *, quoted: bool) -> str:
        """The comparison as SQL has it behind the answer; ``quoted``: the literals are texts."""
        shown = [f"'{operand}'" if quoted else operand for operand in self.operands]
        return f"{self.operator} {' and '.join(shown)}"


@dataclass(frozen=True, slots=True)
class StructField:
    """One field of a struct: what its value looks like, where there is one, and what it means."""

    name: str
    constraint: Constraint
    description: str = ""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What an answer may look like.

    Answers are exchanged as canonical text: ``true``/``false`` for a boolean, decimal digits for
    integer, number and score, ISO 8601 for date (``2024-02-29``) and timestamp
    (``2024-02-29T12:30:00``), the option itself for a choice, a JSON array of strings for a list, a
    JSON object of all fields in their order for a struct, null for one that has no value.
    """

    kind: ConstraintKind = "text"
    options: tuple[str, ...] = ()
    """The closed set of a choice, in the order in which the user wrote it."""
    meanings: tuple[str, ...] = field(default=(), metadata=ADDED)
    """What the user says that each option means, in their order; () where nothing is said."""
    query: str | None = None
    """SQL whose one column holds the options of a choice; read when the query runs, and no part of
    what a model is asked: by then they are ``options``."""
    pattern: str | None = None
    """The regular expression (whole match, Rust/RE2 syntax) of kind ``regex``."""
    item: Constraint | None = None
    """What each element of a list may look like."""
    min_items: int = field(default=0, metadata=ADDED)
    """How many elements a list has at least."""
    max_items: int | None = field(default=None, metadata=ADDED)
    """How many it has at most; None: as many as lists have at most where nothing is said."""
    fields: tuple[StructField, ...] = field(default=(), metadata=ADDED)
    """What a struct consists of; their names differ."""
    scale: tuple[int, int] | None = field(default=None, metadata=ADDED)
    """The lowest and the highest point of a score, which may lie anywhere between them."""
    literals: tuple[str, ...] = ()
    """Literals that the query compares the answer with; shown to the model as examples."""
    decides: tuple[Comparison, ...] = ()
    """All that the query wants to know of the answer, if it is no more than the truth of these.
    Then an answer may end where they are decided (finish ``decided``): it is a beginning of the
    text, or a number or a date that begins alike, for which they have the same truth."""

    def __str__(self) -> str:
        if self.decides:
            quoted = self.kind not in ("integer", "number")
            known = ", ".join(c.text(quoted=quoted) for c in self.decides[:4])
            more = ", …" if len(self.decides) > 4 else ""
            return f"{replace(self, decides=())}, until decided for {known}{more}"
        if self.query is not None:
            return f"one of ({' '.join(self.query.split())})"
        if self.kind == "choice":
            shown = ", ".join(self.options[:4]) + (", …" if len(self.options) > 4 else "")
            return f"one of {{{shown}}}"
        if self.kind == "regex":
            return f"/{self.pattern}/"
        if self.kind == "list":
            return f"list of {self.lengths}{self.item}"
        if self.kind == "struct":
            shown = ", ".join(f"{f.name} {f.constraint}" for f in self.fields[:4])
            return f"struct of {shown}{', …' if len(self.fields) > 4 else ''}"
        if self.scale is not None:
            return f"score from {self.scale[0]} to {self.scale[1]}"
        return self.kind

    @property
    def lengths(self) -> str:
        """How many elements a list has, in words; '' where nothing is said."""
        if self.min_items == self.max_items:
            return f"{self.min_items} "
        if self.max_items is not None:
            return f"{self.min_items} to {self.max_items} "
        return f"at least {self.min_items} " if self.min_items else ""


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example of the user's: the values of one request and the right answer, as text."""

    values: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Task:
    """One question with its constraint: all that the requests of one call have in common.

    Functions that put the same question in the same way share its answers.
    """

    ingredient: str = field(compare=False)
    """The name of the function that asks (first), e.g. ``llm_filter``."""
    question: str
    """The question as the user wrote it; may hold ``{}`` or ``{column}`` placeholders."""
    constraint: Constraint = field(default_factory=Constraint)
    columns: tuple[str, ...] = ()
    """The names of the values, one a value; '' where an expression has none."""
    examples: tuple[Example, ...] = ()
    aggregate: bool = False
    """True: a request's values are the rows of one context, any number of them.
    False: a request's values are the columns of one row, as many as ``columns``."""
    form: TaskForm = "question"
    """What ``question`` is: a question, a statement to be judged, or what a summary should say."""
    images: bool = field(default=False, metadata=ADDED)
    """The values are images: their names, for which ``blendfusion.models.protocol.images`` has the bytes, or
    URLs."""
    examples_query: str | None = field(default=None, metadata=ADDED)
    """SQL whose rows are labelled ones, of which some become ``examples``; read when the query runs, and
    no part of what a model is asked."""
    consistency: int = field(default=1, metadata=ADDED)
    """In how many ways the question is put; the answer is what most of theirs say."""
    variant: int = field(default=0, metadata=ADDED)
    """Which of these ways this is: 0 is the usual one."""

    @property
    def in_full(self) -> Task:
        """The same question, answered to the end whatever the query compares the answer with."""
        if not self.constraint.decides:
            return self
        return replace(self, constraint=replace(self.constraint, decides=()))


@dataclass(frozen=True, slots=True)
class Request:
    """A task put to one tuple of values: equal requests share one answer.

    A value that is NULL in a tuple of several is None and is left out of the prompt.
    """

    task: Task
    values: tuple[str | None, ...]

    @property
    def ingredient(self) -> str:
        return self.task.ingredient

    @property
    def question(self) -> str:
        return self.task.question

    @property
    def constraint(self) -> Constraint:
        return self.task.constraint


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked and spent. The same noun for an estimate and for a measurement.

    ``values`` counts requests that reached a model, ``cached`` those answered from the cache,
    ``calls`` the batches (or HTTP requests) they went in. ``prompt_tokens`` counts every token of
    every prompt, ``evaluated_tokens`` those that the model really computed (a shared prefix
    counts once). ``seconds`` is time spent inside the model.
    """

    values: int = 0
    cached: int = 0
    failed: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage.total((self, other))

    @staticmethod
    def total(usages: Iterable[Usage]) -> Usage:
        """The sum of many usages (faster than adding them one by one)."""
        held = list(usages)
        times = Counter(map(id, held))  # the hits of a cache share one
        each = {id(usage): usage for usage in held}.items()
        columns = zip(*([n * times[i] for n in u.numbers] for i, u in each), strict=True)
        return Usage(*map(sum, columns))

    @property
    def numbers(self) -> tuple[int | float, ...]:
        """The fields in order."""
        return (
            self.values,
            self.cached,
            self.failed,
            self.calls,
            self.prompt_tokens,
            self.evaluated_tokens,
            self.completion_tokens,
            self.seconds,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one request: canonical text, or an error for that request alone."""

    text: str | None
    finish: FinishReason = "complete"
    logprob: float | None = None
    """Natural logarithm of the probability of the chosen option, among the options."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    too_long: bool = False
    """A failed answer: what was asked does not fit the model's window."""
    spent: tuple[tuple[str, Usage], ...] = ()
    """Where others than the session's first model were asked: what each model spent, by name, in
    their order. ``usage`` is that of the value then, which counts once."""

    @staticmethod
    def failed(reason: str, usage: Usage | None = None, *, too_long: bool = False) -> Answer:
        return Answer(None, "error", None, usage or Usage(), reason, too_long)

    def with_usage(self, usage: Usage) -> Answer:
        spent = ((self.model, usage),) if self.spent else ()
        return Answer(self.text, self.finish, self.logprob, usage, self.error, self.too_long, spent)

    @property
    def model(self) -> str:
        """Who gave it; '' for the session's first model."""
        return self.spent[-1][0] if self.spent else ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """How a model presents itself in EXPLAIN, in the trace and in the cache key."""

    name: str
    fingerprint: str
    """Changes whenever weights, prompts or settings change in a way that may change an answer."""
    window: int
    """Longest prompt plus answer, in tokens."""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
