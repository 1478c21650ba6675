"""The parameters that several functions share, and the checks of their arguments.

A check sees one argument alone; ``bind`` checks what depends on other arguments or on the type of
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args
from typing import Literal as OneOf

from blendfusion.errors import ArgumentError, close_matches
from blendfusion.models.constraints.regex import check as check_pattern
from blendfusion.models.guarantees.accuracy import Proxy
from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.declare.returns import RETURNS, constraint_named, type_name
from blendfusion.udfs.declare.sample import MOST
from blendfusion.udfs.declare.struct_schema import fields_of, schema_text

Confidence: TypeAlias = "float | OneOf['keep', 'all']"
"""The minimum probability of an answer; ``keep``: the probability stands beside the answer;
``all``: the probabilities of all possible answers are the result."""

MOST_WAYS = 9
"""The maximum of ``consistency``."""

USUAL_RETRIES = 2

_T = TypeVar("_T")


class Choices(NamedTuple):
    """A closed set of answers, with the meaning of each if the user gives meanings."""

    options: tuple[str, ...]
    meanings: tuple[str, ...] = ()

    @property
    def literal(self) -> object:
        if not self.meanings:
            return self.options
        return dict(zip(self.options, self.meanings, strict=True))


def text(given: Literal, name: str) -> str:
    if not isinstance(given, str):
        raise ArgumentError(f"the {name} must be text, not {given!r}")
    return given


def name_of_kept(given: Literal, name: str) -> str:
    """The check of the name under which a session keeps something."""
    if not isinstance(given, str) or not given.strip():
        raise ArgumentError(f"the {name} must be a text, not {given!r}")
    return given


def whole(low: int, high: int, doc: str) -> Callable[[Literal, str], int]:
    """The check of a whole number; ``doc`` is the subject of its hint."""

    def read(given: Literal, name: str) -> int:
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            raise ArgumentError(
                f"{name} => {given!r} is not possible",
                hint=f"{doc} is a whole number from {low} to {high:,}.",
            )
        return given

    return read


def one_of(values: Sequence[_T], hint: str) -> Callable[[Literal, str], _T]:
    """The check of an argument with few possible values."""

    def read(given: Literal, name: str) -> _T:
        for value in values:
            if given == value and type(given) is type(value):
                return value
        raise ArgumentError(f"{name} => {given!r} is not possible", hint=hint)

    return read


def _reasoning(given: Literal, name: str) -> int:
    """The check of the length of reasons, in tokens."""
    if given == "brief":
        return BRIEF
    if isinstance(given, str):
        raise ArgumentError(
            f"{name} => {given!r} is not possible", hint="Write 'brief', or a number of tokens."
        )
    return whole(1, MOST_REASONING, "The tokens of a reason")(given, name)


def choices(given: Literal, name: str) -> Choices:
    """The check of a closed set: a list, or a mapping of options to meanings. Linear in its
    length."""
    listed = list(given) if isinstance(given, dict) else given
    if not isinstance(listed, list):
        raise ArgumentError(
            f"{name} must be a list of texts, not {given!r}", hint="Write ['a', 'b']."
        )
    if not listed:
        raise ArgumentError(f"{name} are empty", hint="Give at least two, as in ['a', 'b'].")
    found: dict[str, None] = {}
    for option in listed:
        if isinstance(option, bool) or not isinstance(option, str | int | float):
            raise ArgumentError(f"{name} must be texts, not {option!r}")
        shown = str(option)
        if not shown.strip():
            raise ArgumentError(f"{name} hold an empty text")
        if shown in found:
            raise ArgumentError(f"{name} hold {shown!r} twice")
        found[shown] = None
    meanings = _meanings(given, name) if isinstance(given, dict) else ()
    return Choices(tuple(found), meanings)


def _meanings(given: dict[str, Literal], name: str) -> tuple[str, ...]:
    hint = "Write {'a': 'what a means', 'b': 'what b means'}."
    meanings = []
    for option, meaning in given.items():
        if not isinstance(meaning, str) or not meaning.strip():
            raise ArgumentError(
                f"{name}: what {option!r} means must be text, not {meaning!r}", hint=hint
            )
        meanings.append(" ".join(meaning.split()))
    return tuple(meanings)


def _pattern(given: Literal, name: str) -> str:
    if not isinstance(given, str):
        raise ArgumentError(f"{name} must be text, not {given!r}")
    check_pattern(given)
    return given


def pattern_of(given: Any) -> Any:
    """The text of a pattern: a text, a compiled one, or a type of outlines (``outlines.types``)."""
    if type(given).__module__.startswith("outlines.types"):
        return import_module("outlines.types.dsl").to_regex(given)
    return getattr(given, "pattern", given)


def _type(given: Literal, name: str) -> Constraint:
    found = constraint_named(given) if isinstance(given, str) else None
    if found is None and isinstance(given, str) and len(given.split()) > 1:
        return Constraint("struct", fields=fields_of(given))
    if found is None:
        raise ArgumentError(
            f"{name} => {given!r} is not a type", hint=close_matches(str(given), RETURNS)
        )
    return found


def _type_shown(constraint: Constraint) -> str:
    return schema_text(constraint.fields) if constraint.fields else type_name(constraint)


def _list_type(given: Literal, name: str) -> Constraint:
    found = _type(given, name)
    if found.kind != "list":
        raise ArgumentError(f"{name} => {given!r} is not a list", hint="Write 'list', 'list{1,3}'.")
    return found


def _examples(given: Literal, name: str) -> list[Literal]:
    if not isinstance(given, list):
        raise ArgumentError(f"{name} must be a list", hint=EXAMPLES_HINT)
    return given


def _sample(given: Literal, name: str) -> list[tuple[str | None, ...]]:
    if not isinstance(given, list):
        raise ArgumentError(f"{name} must be a list of texts, not {given!r}", hint=SAMPLE_HINT)
    return [_sample_row(item, name) for item in given]


def _sample_row(item: Literal, name: str) -> tuple[str | None, ...]:
    row = []
    for part in item if isinstance(item, list) else [item]:
        if part is not None and not isinstance(part, str):
            raise ArgumentError(f"{name} has {part!r}, which is no text", hint=SAMPLE_HINT)
        row.append(part)
    return tuple(row)


SAMPLE_HINT = (
    "Write sample => ['a text', …] or sample => (SELECT text FROM …), with a list or a column for "
    "each of several values."
)

EXAMPLES_HINT = "Write examples => [['a value', 'its answer'], …], one value a value column."


def _confidence(given: Literal, name: str) -> Confidence:
    if given == "keep":
        return "keep"
    if given == "all":
        return "all"
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise ArgumentError(
            f"{name} => {given!r} is not possible",
            hint="Write the least probability of an answer, above 0 and at most 1; or 'keep', which "
            "gives a struct of value and confidence; or 'all', which gives a map of each possible "
            "answer and its probability.",
        )
    return float(given)


def _share(given: Literal, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise ArgumentError(
            f"{name} => {given!r} is not possible", hint="Write a number above 0, at most 1."
        )
    return float(given)


def _models(given: Literal, name: str) -> tuple[str, ...]:
    names = given if isinstance(given, list) else [given]
    if not names or not all(isinstance(one, str) and one.strip() for one in names):
        raise ArgumentError(
            f"{name} => {given!r} is not possible",
            hint="Write the name of a model that the session knows, or a list of names.",
        )
    chosen = tuple(str(one) for one in names)
    repeated = next((one for one in chosen if chosen.count(one) > 1), None)
    if repeated is not None:
        raise ArgumentError(f"{name} names {repeated!r} twice", hint="Write each model once.")
    return chosen


QUESTION = Parameter(
    "question", "The question; ``{}`` or ``{column}`` in it stands for a value.", text
)
CRITERION = Parameter(
    "question",
    "The criterion of a classification or an extraction, or the topic of a summary.",
    text,
    example="llm_classify(text, ['a', 'b'], question => 'Whose fault?')",
)
CLAIM = Parameter("claim", "The claim to judge.", text)
LABELS = Parameter(
    "labels",
    "The labels; a mapping gives each a meaning: "
    '``{"billing": "invoices and refunds", "other": "all else"}``.',
    choices,
    annotation="Sequence[str] | Mapping[str, str]",
    show=lambda read: read.literal,
    subquery=True,
)
OPTIONS = Parameter(
    "options",
    "A closed set of answers, or of the items of a list; a mapping gives each a meaning.",
    choices,
    annotation="Sequence[str] | Mapping[str, str]",
    show=lambda read: read.literal,
    example="llm_map('Which season?', text, options => ['spring', 'summer']); "
    "options => (SELECT name FROM seasons); options => {'spring': 'March to May', …}",
    alias="labels",
    subquery=True,
)
REGEX = Parameter(
    "regex",
    "A pattern for the whole answer.",
    _pattern,
    annotation="object",
    from_python=pattern_of,
    example="llm_map('Which room?', text, regex => '[A-Z][0-9]{2}')",
)
RETURN_TYPE = Parameter(
    "returns",
    "A type: 'int', 'float', 'bool', 'date', 'timestamp', 'text', 'list', 'list[int]', …; "
    "'list{3}', 'list[int]{1,4}', 'list+' set the number of items. Fields as in CREATE TABLE give a "
    "struct: 'a TEXT, b INT'.",
    _type,
    show=_type_shown,
    example="llm_map('Which years?', text, returns => 'list[int]'); "
    "llm_qa('What is wrong?', text, returns => 'fault TEXT, times INT')",
)
LIST_TYPE = Parameter(
    "returns",
    "A type of lists: 'list' or 'list[int]', with the number of items in 'list{3}', 'list{1,4}', "
    "'list+'.",
    _list_type,
    show=type_name,
)
EXAMPLES = Parameter(
    "examples",
    "Worked examples: the values, then the answer.",
    _examples,
    annotation="Sequence[Sequence[object]]",
    example="llm_filter('Is it late?', text, examples => [['Still waiting', 'yes']]); "
    "examples => (SELECT text, label FROM labelled)",
    subquery=True,
)
SAMPLE = Parameter(
    "sample",
    "Unlabelled values resembling yours, ideally both yes and no cases. The yes threshold is set "
    "halfway between their mean score and that of neutral texts. An answer depends on its value and the "
    f"sample alone; with more than {MOST} distinct values, a fixed {MOST} are used. The session's "
    "``calibration='column'`` does not apply then; a model without odds ignores the sample.",
    _sample,
    annotation="Sequence[str | None] | Sequence[Sequence[str | None]]",
    example="llm_filter('Would they recommend it?', text, sample => (SELECT text FROM typical)); "
    "sample => ['Arrived broken', 'Does its job']",
    subquery=True,
)
CONSISTENCY = Parameter(
    "consistency",
    "The number of ways to ask the question; the majority answer counts.",
    whole(1, MOST_WAYS, "The number of ways to ask a question"),
    annotation="int",
    example="llm_filter('Is it late?', text, consistency => 3)",
    default=1,
)
BRIEF = 64
"""The most tokens of a brief reason."""
MOST_REASONING = 4_096
CONFIDENCE = Parameter(
    "confidence",
    "The minimum probability of a yes, a no or an option; an answer below it is NULL. 'keep' gives "
    "a struct of ``value`` and ``confidence``; 'all' a map of each possible answer (``true`` and "
    "``false``, the options, the points of a scale) and its probability.",
    _confidence,
    annotation="float | str",
    example="llm_filter('Is it late?', text, confidence => 0.9); "
    "llm_classify(text, ['a', 'b'], confidence => 'all')['a']",
)
THRESHOLD = Parameter(
    "threshold",
    "The minimum probability of a yes for the answer to be yes; below it the answer is no. Without "
    "this option, the likelier of the two counts.",
    _share,
    annotation="float",
    example="llm_filter('Is it late?', text, threshold => 0.8)",
)
CALIBRATED = Parameter(
    "calibrated",
    "The name of a calibration (``session.calibrate``), or 'name@2' for its second version: every "
    "probability of a yes is the share of yes that labels showed for it.",
    name_of_kept,
    example="llm_probability('Is it late?', text, calibrated => 'late')",
)
REVIEW = Parameter(
    "review",
    "The name of a table for review: a value whose answer is below ``confidence``, or fails, goes "
    "there, and a person's answer to it (``session.review``) counts from then on.",
    name_of_kept,
    example="llm_filter('Is it late?', text, confidence => 0.8, review => 'todo')",
)
EVIDENCE = Parameter(
    "evidence",
    "Whether each answer is a struct of ``value``, ``confidence``, ``evidence`` (the words of the "
    "text that state it), their offsets ``start`` and ``end``, and ``reason``; what the text does "
    "not state is NULL. Without this option, so are the numbers and dates of ``llm_date`` and "
    "``llm_extract``; false: the model's word counts.",
    one_of((True, False), "Write true or false."),
    annotation="bool",
    example="llm_extract(text, 'people INT, day DATE', evidence => true)",
)
REASONING = Parameter(
    "reasoning",
    "Whether the model writes a reason before each answer: 'brief', or the most tokens of it. A "
    "reason is a question of its own, and a value of the one for the answer; an example may have "
    "one behind its answer.",
    _reasoning,
    annotation="str | int",
    example="llm_classify(text, ['refund', 'repair'], reasoning => 'brief')",
    show=lambda tokens: "brief" if tokens == BRIEF else tokens,
)
REASONS = Parameter(
    "reasons",
    "Whether each result is a struct of ``value`` and ``reason``.",
    one_of((True, False), "Write true or false."),
    annotation="bool",
    example="llm_filter('Is it late?', text, reasoning => 'brief', reasons => true)",
    default=False,
)
CHECK = Parameter(
    "check",
    "A SQL predicate over ``answer``, as in 'answer > 0'. An answer for which it does not hold is asked "
    "for again, with the reason, ``retries`` times at most; then it has failed.",
    text,
    example="llm_int('How many?', text, check => 'answer BETWEEN 1 AND 9'); "
    "llm_extract(text, 'low INT, high INT', check => 'answer[''low''] <= answer[''high'']')",
)
RETRIES = Parameter(
    "retries",
    "How often an answer that fails ``check`` is asked for again.",
    whole(0, MOST_WAYS, "The number of further questions"),
    annotation="int",
    default=USUAL_RETRIES,
)
MODEL = Parameter(
    "model",
    "Name(s) of registered models. Several form a failover chain; with targets, a cascade (the "
    "smallest first).",
    _models,
    annotation="str | Sequence[str]",
    show=lambda names: names[0] if len(names) == 1 else names,
    example="llm_filter('Is it late?', text, model => 'gemma'); "
    "model => ['smollm2', 'large'], accuracy => 0.9",
)
ON_ERROR: Parameter[OnError] = Parameter(
    "on_error",
    "The result for a value without a valid answer: NULL ('null'), an error of the query "
    "('raise'), or a struct of ``value`` and ``error`` ('keep'). Default: the session's option.",
    one_of(get_args(OnError), "Write 'null', 'raise' or 'keep'."),
    annotation="OnError",
    example="llm_int('How many?', text, on_error => 'keep')['error']",
)
ACCURACY = Parameter(
    "accuracy",
    "A target of a cascade, a small model before a large one: the least share of answers that "
    "equal the large model's.",
    _share,
    annotation="float",
    example="llm_map('Which?', text, options => ['a', 'b'], model => ['smollm2', 'large'], "
    "accuracy => 0.9)",
)
RECALL = Parameter(
    "recall",
    "A target of a cascade: the least share of the large model's yes that get a yes.",
    _share,
    annotation="float",
    example="llm_filter('Is it late?', text, recall => 0.95)",
)
PRECISION = Parameter(
    "precision",
    "A target of a cascade: the least share of yes that are a yes of the large model.",
    _share,
    annotation="float",
)
DELTA = Parameter(
    "delta", "The probability that the targets of a cascade are missed.", _share, annotation="float"
)
PROXY: Parameter[Proxy] = Parameter(
    "proxy",
    "Similarity to the question ('similarity'), or a classifier of vectors ('embedding'), takes "
    "the place of the small model.",
    one_of(get_args(Proxy), "Write 'similarity' or 'embedding'."),
    annotation="str",
    example="llm_filter('Is it late?', text, recall => 0.9, proxy => 'similarity')",
)

CASCADE = (ACCURACY, RECALL, PRECISION, DELTA, PROXY)
"""The targets of a cascade, which Python takes as ``targets=bf.Targets(…)`` as well."""
CHOICE_CASCADE = (ACCURACY, DELTA, PROXY)
"""The targets that are possible of a closed set without a yes."""
