"""The types that cross packages: a leaf without imports from other packages.

Every type is a frozen dataclass that can be compared and hashed, so that two equal requests are one
question to the model and one entry of the cache.
"""

from __future__ import annotations

import math
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

OWN_VALUES = "array_agg("
"""The beginning of a choice's ``query`` that means the values of the group itself."""

TaskForm = Literal["question", "statement", "summary", "query", "likelihood", "behind"]

FinishReason = Literal["complete", "decided", "length", "error"]

ComparisonOperator = Literal["=", "<", "<=", ">", ">=", "between", "like"]

ADDED = {"added": True}
"""Metadata of fields that were added later. A field with its default value is left out of the cache
key, so that earlier stored answers are found."""


@dataclass(frozen=True, slots=True, order=True)
class Comparison:
    """A comparison of an answer with literals. A comparison and its negation are equivalent here,
    since either determines the other: ``<>`` is ``=``, and NOT LIKE is LIKE."""

    operator: ComparisonOperator
    operands: tuple[str, ...]
    """One literal, or the two bounds of ``between``: a number as written, a date or a timestamp in
    the canonical form of answers, else the text."""

    def text(self, *, quoted: bool) -> str:
        """The comparison as SQL after the answer; ``quoted``: the literals are texts."""
        shown = [f"'{operand}'" if quoted else operand for operand in self.operands]
        return f"{self.operator} {' and '.join(shown)}"


@dataclass(frozen=True, slots=True)
class StructField:
    """One field of a struct: the constraint of its value, and its meaning."""

    name: str
    constraint: Constraint
    description: str = ""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The set of valid answers.

    Answers are exchanged as canonical text: ``true``/``false`` for a boolean, decimal digits for
    integer, number and score, ISO 8601 for date (``2024-02-29``) and timestamp
    (``2024-02-29T12:30:00``), the option itself for a choice, a JSON array of strings for a list, a
    JSON object of all fields in their order for a struct, with null for a missing value.
    """

    kind: ConstraintKind = "text"
    options: tuple[str, ...] = ()
    """The closed set of a choice, in the user's order."""
    meanings: tuple[str, ...] = field(default=(), metadata=ADDED)
    """The user's meaning of each option, in their order; () without meanings."""
    query: str | None = None
    """SQL whose one column holds the options of a choice. It is read when the query runs; requests
    then contain ``options`` instead. ``array_agg(x)``: the values of the group that is asked
    about."""
    pattern: str | None = None
    """The regular expression (whole match, Rust/RE2 syntax) of kind ``regex``."""
    item: Constraint | None = None
    """The constraint of each item of a list."""
    min_items: int = field(default=0, metadata=ADDED)
    """The minimum number of items of a list."""
    max_items: int | None = field(default=None, metadata=ADDED)
    """The maximum number of items; None: the default maximum."""
    fields: tuple[StructField, ...] = field(default=(), metadata=ADDED)
    """The fields of a struct, with distinct names."""
    scale: tuple[int, int] | None = field(default=None, metadata=ADDED)
    """The lowest and the highest point of a score, which may lie anywhere between them."""
    grammar: str = field(default="", metadata=ADDED)
    """A grammar of a text in Lark's form, whose start is the rule ``query``. A model that follows
    grammars writes under it; others answer freely, and who asks checks the text."""
    begun: str = field(default="", metadata=ADDED)
    """A text whose longest beginning that the grammar allows is kept, and written on."""
    digits: tuple[int, int] | None = field(default=None, metadata=ADDED)
    """The precision and the scale of a number that is a decimal: so many digits at most, and so
    many of them behind the point."""
    distribution: bool = field(default=False, metadata=ADDED, repr=False)
    """The answer is not one of a choice's options or of a score's points but the probability of
    each: a JSON object of numbers from 0 to 1, in their order, which add up to one."""
    max_tokens: int = field(default=0, metadata=ADDED, repr=False)
    """The most tokens of a text; 0: as many as the session says."""
    literals: tuple[str, ...] = ()
    """Literals that the query compares the answer with; shown to the model as examples."""
    decides: tuple[Comparison, ...] = ()
    """The comparisons whose truth is all that the query needs of the answer, if so. An answer may
    then end early (finish ``decided``): it is a prefix of the text, or a number or a date with that
    prefix, with the same truth values."""

    def __str__(self) -> str:
        if self.decides:
            quoted = self.kind not in ("integer", "number")
            known = ", ".join(c.text(quoted=quoted) for c in self.decides[:4])
            more = ", …" if len(self.decides) > 4 else ""
            return f"{replace(self, decides=())}, until decided for {known}{more}"
        if self.distribution:
            return f"a probability for each of {replace(self, distribution=False)}"
        if self.of_group:
            return f"one of {self.query}"
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
        if self.digits is not None:
            return f"decimal({self.digits[0]}, {self.digits[1]})"
        if self.scale is not None:
            return f"score from {self.scale[0]} to {self.scale[1]}"
        return self.kind

    @property
    def of_group(self) -> bool:
        """Whether the options are the values of the group that is asked about."""
        return self.query is not None and self.query.startswith(OWN_VALUES)

    @property
    def lengths(self) -> str:
        """The number of items of a list, in words; '' without bounds."""
        if self.min_items == self.max_items:
            return f"{self.min_items} "
        if self.max_items is not None:
            return f"{self.min_items} to {self.max_items} "
        return f"at least {self.min_items} " if self.min_items else ""


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example by the user: the values of one request and the right answer, as text."""

    values: tuple[str, ...]
    answer: str
    reason: str = field(default="", metadata=ADDED)
    """The reason for it, where the model is to write one first."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question with its constraint: the common part of a call's requests.

    Functions with an equal task share its answers.
    """

    ingredient: str = field(compare=False)
    """The name of the (first) function with this task, e.g. ``llm_filter``."""
    question: str
    """The question as the user wrote it, perhaps with ``{}`` or ``{column}`` placeholders."""
    constraint: Constraint = field(default_factory=Constraint)
    columns: tuple[str, ...] = ()
    """The names of the values, one per value; '' for an expression without a name."""
    examples: tuple[Example, ...] = ()
    aggregate: bool = False
    """True: a request's values are the rows of one context, any number of them. False: a request's
    values are the columns of one row, as many as ``columns``."""
    form: TaskForm = "question"
    """The form of ``question``: a question, a statement to judge, the topic of a summary, how to
    write a query, or a yes/no question that is answered by its likelihood behind the text."""
    images: bool = field(default=False, metadata=ADDED)
    """Whether the values are images: URLs, or names whose bytes
    ``blendfusion.models.protocol.images`` has."""
    audio: bool = field(default=False, metadata=ADDED)
    """Whether the values are recordings: names whose bytes are held as those of images are."""
    examples_query: str | None = field(default=None, metadata=ADDED)
    """SQL whose rows are labelled examples, from which ``examples`` are picked. It is read when the
    query runs, and is not part of a request."""
    sample: tuple[tuple[str, ...], ...] = field(default=(), metadata=ADDED)
    """Tuples of values, without answers, that place the threshold of a yes/no question."""
    sample_query: str | None = field(default=None, metadata=ADDED)
    """SQL whose rows are the sample. It is read when the query runs, and is not part of a
    request."""
    consistency: int = field(default=1, metadata=ADDED)
    """The number of ways in which the question is asked; the majority answer counts."""
    variant: int = field(default=0, metadata=ADDED)
    """The number of this way; 0 is the usual one."""
    reasoning: int = field(default=0, metadata=ADDED)
    """The most tokens of the reason that the model writes before its answer; 0: it writes none."""

    @property
    def options_query(self) -> str | None:
        """The subquery that gives the options of the answers, if one does."""
        choice = self.constraint.item or self.constraint
        return None if choice.of_group else choice.query

    @property
    def subqueries(self) -> tuple[str, ...]:
        """The subqueries that give the options, the examples and the sample."""
        queries = (self.options_query, self.examples_query, self.sample_query)
        return tuple(query for query in queries if query is not None)

    @property
    def in_full(self) -> Task:
        """This question with complete answers, whatever the query compares them with."""
        if not self.constraint.decides:
            return self
        return replace(self, constraint=replace(self.constraint, decides=()))

    @property
    def with_single_answer(self) -> Task:
        """This question with one option or point as its answer, where it has the probability of
        each."""
        if not self.constraint.distribution:
            return self
        return replace(self, constraint=replace(self.constraint, distribution=False))


@dataclass(frozen=True, slots=True)
class Request:
    """A task with one tuple of values; equal requests share one answer.

    A NULL in a tuple of several values is None, and is left out of the prompt.
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
    """Questions and spending, both estimated and measured.

    ``values`` counts requests that reached a model, ``cached`` those answered from the cache,
    ``calls`` the batches (or HTTP requests), and ``beside`` the values among them whose answer came
    with the request of another question about the same text. ``prompt_tokens`` counts every token
    of every prompt, ``evaluated_tokens`` those that the model computed (a shared prefix counts
    once). ``seconds`` is time spent inside the model.
    """

    values: int = 0
    cached: int = 0
    failed: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    completion_tokens: int = 0
    beside: int = 0
    seconds: float = 0.0

    @property
    def readings(self) -> int:
        """How often a model read a text for the values: once for all questions of one request."""
        return self.values - self.beside

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.values + other.values,
            self.cached + other.cached,
            self.failed + other.failed,
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.evaluated_tokens + other.evaluated_tokens,
            self.completion_tokens + other.completion_tokens,
            self.beside + other.beside,
            self.seconds + other.seconds,
        )

    @staticmethod
    def total(usages: Iterable[Usage]) -> Usage:
        """The sum of many usages (faster than adding them one by one)."""
        held = list(usages)
        if len(held) == 1:
            return held[0]
        times = Counter(map(id, held))  # cache hits share one object
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
            self.beside,
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
    """Whether the request failed because it exceeds the model's window."""
    spent: tuple[tuple[str, Usage], ...] = ()
    """The usage of each model by name, in their order, if other models than the session's first
    were asked. ``usage`` then counts the value once."""
    reason: str | None = None
    """The text that the model wrote before it as its reason; None without one. It is not stored."""

    @staticmethod
    def failed(reason: str, usage: Usage | None = None, *, too_long: bool = False) -> Answer:
        return Answer(None, "error", None, usage or Usage(), reason, too_long)

    def with_usage(self, usage: Usage) -> Answer:
        spent = ((self.model, usage),) if self.spent else ()
        return Answer(self.text, self.finish, self.logprob, usage, self.error, self.too_long, spent)

    @property
    def probability(self) -> float | None:
        """The probability of the chosen option; None if it is not known."""
        return None if self.logprob is None else math.exp(min(0.0, self.logprob))

    @property
    def is_cut(self) -> bool:
        """Whether it is only the beginning of an answer, which ``max_tokens`` cut off."""
        return self.finish == "length" and self.text is not None

    @property
    def model(self) -> str:
        """The model that answered; '' for the session's first model."""
        return self.spent[-1][0] if self.spent else ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The description of a model for EXPLAIN, the trace and the cache key."""

    name: str
    fingerprint: str
    """A text that changes with every change of weights, prompts or settings that may change an
    answer."""
    window: int
    """The maximum length of prompt plus answer, in tokens."""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
