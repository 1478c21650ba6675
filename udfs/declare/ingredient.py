"""What an ingredient is: its parameters, its answers, and how a call of it is bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Concatenate, TypeAlias, cast, get_args

import pyarrow as pa

from blendfusion.errors import ArgumentError, close_matches
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.constraints.regex import check as check_pattern
from blendfusion.models.guarantees.accuracy import Proxy, Targets
from blendfusion.models.http.parse_reply import read_answer
from blendfusion.models.prompts.canonical import canonical
from blendfusion.options import OnError
from blendfusion.types import Constraint, Example, Task, TaskForm
from blendfusion.udfs.declare.call import Call, Confidence, kept_type
from blendfusion.udfs.declare.comparison import OPERATORS, SIDES, Comparing
from blendfusion.udfs.declare.pairing import Pairing
from blendfusion.udfs.declare.pairing_options import PAIRING_OPTIONS, paired

if TYPE_CHECKING:
    from blendfusion.models.embedders.embedder import Embedder
    from blendfusion.udfs.ask.embed_columns import Texts
    from blendfusion.udfs.ask.user_model import UserModel

Literal: TypeAlias = "str | int | float | bool | list[Literal] | dict[str, Literal] | None"
"""A literal argument of a call, as Python."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value argument: a column or expression; ``name`` is the column's, '' for an expression."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal argument."""

    value: Literal


@dataclass(frozen=True, slots=True)
class Query:
    """A subquery in the place of a literal: its one column holds the values, read at run time."""

    text: str


Option: TypeAlias = "Literal | Query"
"""What a call may give by name."""

Argument: TypeAlias = "Value | Constant"

Compute: TypeAlias = "Callable[[Sequence[Texts], Embedder], pa.Array]"
"""What an ingredient that needs no language model computes: text columns and an embedder give one
array, with a value a row."""

Run: TypeAlias = "Callable[Concatenate[UserModel, ...], pa.Array]"
"""The body of a user's ingredient: a model and one array a value column give one array."""


PROMISES = ("accuracy", "recall", "precision", "delta")
"""What a call may want of a cascade."""

NAMED = (
    *("question", "labels", "options", "returns", "regex", "examples"),
    *("consistency", "confidence", "model", *PROMISES, "proxy", "on_error"),
)
"""The options that a call may name: ``llm_map('…', x, options => ['a', 'b'])``."""


@dataclass(frozen=True)
class Ingredient:
    """A function that asks a model.

    ``leading`` and ``trailing`` name the literal parameters that stand before and after the value
    columns; ``question`` is the default for an ingredient without such a parameter. ``returns``
    is what every answer looks like; None: what the context of the call says, else text.
    """

    name: str
    summary: str
    leading: tuple[str, ...] = ("question",)
    trailing: tuple[str, ...] = ()
    question: str = ""
    returns: Constraint | None = None
    aggregate: bool = False
    lists: bool = False
    """A function of a row whose value, a list of texts or a text, is read as an aggregate reads the
    rows of a group: item by item, and in parts where it is longer than the model's window."""
    named: tuple[str, ...] = NAMED
    """The options that a call may name besides the parameters."""
    answers: Callable[[Mapping[str, Literal]], Constraint] | None = field(
        default=None, compare=False
    )
    """What the literals of a call, by name, say that its answers look like, where the function has
    a way of its own to say it. Raises ArgumentError."""
    form: TaskForm = "question"
    min_values: int = 1
    max_values: int | None = None
    pairs: bool = False
    """Says of two values whether they belong together; takes the options of a ``Pairing``."""
    images: bool = False
    """Its values are images: bytes, or texts that say where an image is."""
    compares: bool = False
    """Compares two values, which may be literals, by an operator that stands between them."""
    run: Run | None = field(default=None, compare=False)
    compute: Compute | None = field(default=None, compare=False)
    """It asks no language model: what there is to do, with text columns, some of which may be
    literals."""
    serial: int = 0
    """Tells two users' ingredients of one name apart; 0 for ours."""
    type: pa.DataType | None = None
    """The Arrow type of a user's ingredient; None: given by the constraint."""
    value_types: tuple[pa.DataType, ...] | None = None
    """The Arrow types of a user's ingredient's columns; None: any number of texts."""

    @property
    def reads_rows(self) -> bool:
        """A question is put about any number of texts."""
        return self.aggregate or self.lists

    def takes_literal(self, place: int) -> bool:
        """A literal in this place of the arguments, from 0, is a value rather than a parameter."""
        return self.compute is not None or (self.compares and place != 1)

    @property
    def signature(self) -> str:
        if self.compares:
            return f"{self.name}(a, '<', b)"
        if self.images:
            return f"{self.name}({', '.join((*self.leading, 'image…'))})"
        values = "value, other" if self.pairs else "values…" if self.max_values != 1 else "value"
        return f"{self.name}({', '.join((*self.leading, values, *self.trailing))})"


_FROM_QUERIES = ("options", "labels", "examples")
"""What a subquery may give."""

_OPERATOR = "operator"
"""The parameter between the values of a call that compares."""

RETURNS: Mapping[str, Constraint] = {
    "bool": Constraint("boolean"),
    "boolean": Constraint("boolean"),
    "int": Constraint("integer"),
    "integer": Constraint("integer"),
    "bigint": Constraint("integer"),
    "float": Constraint("number"),
    "double": Constraint("number"),
    "number": Constraint("number"),
    "date": Constraint("date"),
    "timestamp": Constraint("timestamp"),
    "str": Constraint("text"),
    "text": Constraint("text"),
    "varchar": Constraint("text"),
    "string": Constraint("text"),
    "list": Constraint("list", item=Constraint("text")),
    "list[str]": Constraint("list", item=Constraint("text")),
    "list[int]": Constraint("list", item=Constraint("integer")),
    "list[float]": Constraint("list", item=Constraint("number")),
    "list[date]": Constraint("list", item=Constraint("date")),
}
"""The names that ``returns =>`` accepts; behind that of a list may stand how many items it has:
``list{3}``, ``list[int]{1,4}``, ``list{2,}``, ``list+`` (at least one), ``list*``."""

MOST_WAYS = 9
"""In how many ways one question may be put."""

MOST_ITEMS = 100
"""The longest list that ``returns =>`` may ask for."""

_COUNTED = re.compile(r"(list(?:\[\w+\])?)(?:([*+])|\{(\d+)(?:(,)(\d*))?\})")


def returned(name: str) -> Constraint | None:
    """What ``returns => name`` says of answers; None if it is no type.

    >>> str(returned("list[int]{2,4}"))
    'list of 2 to 4 integer'
    """
    name = name.lower().replace(" ", "")
    counted = _COUNTED.fullmatch(name)
    if counted is None or counted[1] not in RETURNS:
        return RETURNS.get(name)
    listed, sign, least, comma, most = counted.groups()
    if sign is not None:
        return replace(RETURNS[listed], min_items=int(sign == "+"))
    fewest = int(least)
    highest = int(most) if most else None if comma else fewest
    if max(fewest, highest or 0) > MOST_ITEMS or (highest is not None and highest < fewest):
        return None
    return replace(RETURNS[listed], min_items=fewest, max_items=highest)


def arrow_type(constraint: Constraint) -> pa.DataType:
    """The Arrow type of answers under a constraint."""
    if constraint.kind == "list":
        return pa.list_(arrow_type(constraint.item or Constraint()))
    if constraint.kind == "struct":
        return pa.struct([(f.name, arrow_type(f.constraint)) for f in constraint.fields])
    return {
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "score": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }.get(constraint.kind, pa.string())


def bind(
    ingredient: Ingredient,
    positional: Sequence[Argument],
    named: Mapping[str, Option],
    *,
    context: Constraint | None = None,
    ordered: bool = False,
) -> Call:
    """Bind a call's literals; the order of precedence is options, regex, returns, context.

    ``context`` is what the place of the call in the query says about its answer. Raises
    ArgumentError, naming the ingredient and what it takes.
    """
    return _Binder(ingredient, positional, dict(named), context, ordered).call()


class _Binder:
    def __init__(
        self,
        ingredient: Ingredient,
        positional: Sequence[Argument],
        named: dict[str, Option],
        context: Constraint | None,
        ordered: bool,
    ) -> None:
        self.ingredient = ingredient
        self.positional = list(positional)
        self.named: dict[str, Literal] = {
            n: given for n, given in named.items() if not isinstance(given, Query)
        }
        self.queries = {n: given for n, given in named.items() if isinstance(given, Query)}
        self.context = context
        self.ordered = ordered

    def call(self) -> Call:
        allowed = {*self.ingredient.named, *self.ingredient.leading, *self.ingredient.trailing}
        if self.ingredient.compute is not None:
            allowed = set()
        if self.ingredient.pairs:
            allowed = {*PAIRING_OPTIONS, "model", "on_error"}
        if self.ingredient.compares:
            allowed = {_OPERATOR, "model", "on_error"}
        for name in (*self.named, *self.queries):
            if name not in allowed:
                raise self.error(f"no option '{name}'", close_matches(name, allowed))
        for name in self.queries:
            if name not in _FROM_QUERIES or self.ingredient.pairs:
                raise self.error(
                    f"{name} => (SELECT …) is not a literal",
                    f"Only {', '.join(_FROM_QUERIES)} may come from a subquery."
                    if not self.ingredient.pairs
                    else "Write a list, as in labels => ['a', 'b'].",
                )
        self._take_positional()
        values = [a for a in self.positional if isinstance(a, Value)]
        columns = tuple(v.name for v in values)
        self._check_values(values)
        constraint = self._constraint()
        on_error, confidence = self._on_error(), self._confidence(constraint)
        targets = self._targets(constraint)
        comparing = self._comparing(columns)
        answers = self.ingredient.type or self._type(constraint)
        if "keep" in (on_error, confidence):
            answers = kept_type(answers, errors=on_error == "keep", confidence=confidence == "keep")
        task = Task(
            ingredient=self.ingredient.name,
            question=self._question(columns) if comparing is None else comparing.question,
            constraint=constraint,
            columns=columns if comparing is None else SIDES,
            examples=self._examples(len(values), constraint),
            aggregate=self.ingredient.reads_rows,
            form=self.ingredient.form,
            images=self.ingredient.images,
            examples_query=self.queries["examples"].text if "examples" in self.queries else None,
            consistency=self._consistency(),
        )
        return Call(
            self.ingredient,
            task,
            answers,
            len(values),
            on_error,
            self.ordered,
            self._pairing(on_error),
            comparing,
            confidence,
            targets,
            self._models(targets),
        )

    def error(self, problem: str, hint: str | None = None) -> ArgumentError:
        return ArgumentError(
            f"{self.ingredient.name}: {problem}", hint=hint or f"Write {self.ingredient.signature}."
        )

    def _take_positional(self) -> None:
        for name in self.ingredient.leading:
            if name in self.named:
                continue
            if not self.positional:
                raise self.error(f"the {name} is missing")
            first = self.positional.pop(0)
            if not isinstance(first, Constant):
                raise self.error(
                    f"the {name} must be a literal, not a column",
                    f"Write {self.ingredient.signature}; use {{}} or {{column}} in the {name} "
                    "to refer to values.",
                )
            self.named[name] = first.value
        if self.ingredient.compares and _OPERATOR not in self.named:
            between = self.positional.pop(1) if len(self.positional) > 1 else None
            if not isinstance(between, Constant):
                raise self.error("the operator must be a literal between the values")
            self.named[_OPERATOR] = between.value
        for name in reversed(self.ingredient.trailing):
            if name in self.named or name in self.queries:
                continue
            if not self.positional or not isinstance(self.positional[-1], Constant):
                raise self.error(f"the {name} must be given as a literal after the value")
            last = self.positional.pop()
            assert isinstance(last, Constant)
            self.named[name] = last.value

    def _check_values(self, values: Sequence[Value]) -> None:
        if len(values) != len(self.positional):
            stray = next(a for a in self.positional if isinstance(a, Constant))
            raise self.error(
                f"{stray.value!r} is a literal where a column is expected",
                f"Write {self.ingredient.signature}; a literal can be given by name, "
                "as in options => ['a', 'b'].",
            )
        if not values:
            raise self.error("there is no value to ask about")
        limit, least = self.ingredient.max_values, self.ingredient.min_values
        types = self.ingredient.value_types
        if types is not None and len(values) != len(types):
            raise self.error(f"takes {len(types)} value(s), {len(values)} given")
        if len(values) < least:
            raise self.error(f"takes {least} values, {len(values)} given")
        if limit is not None and len(values) > limit:
            raise self.error(f"takes {limit} value(s), {len(values)} given")

    def _question(self, columns: tuple[str, ...]) -> str:
        question = self.named.get("question", self.ingredient.question)
        if self.ingredient.pairs and self.named.get("how"):
            return f"Do both match: {self.named['how']}?"
        if "claim" in self.named:
            question = self.named["claim"]
        if not isinstance(question, str):
            raise self.error(f"the question must be text, not {question!r}")
        if "question" in self.ingredient.leading and not question.strip():
            raise self.error("the question is empty")
        places = re.findall(r"\{([^{}]*)\}", question.replace("{{", "").replace("}}", ""))
        positions = places.count("")
        if positions > len(columns):
            raise self.error(
                f"the question has {positions} placeholders {{}} for {len(columns)} value(s)"
            )
        for name in (place for place in places if re.match("[A-Za-z_]", place)):
            if name.lower() not in {c.lower() for c in columns}:
                raise self.error(
                    f"the question refers to {{{name}}}, which is not among its values",
                    close_matches(name, [c for c in columns if c])
                    or f"Write {self.ingredient.signature}.",
                )
        return question

    def _constraint(self) -> Constraint:
        if self.ingredient.answers is not None:
            return self.ingredient.answers(self.named)
        if self.ingredient.pairs:
            return self.ingredient.returns or Constraint("boolean")
        options = self.named.get("labels", self.named.get("options"))
        query = self.queries.get("labels", self.queries.get("options"))
        regex = self.named.get("regex")
        returns = self.named.get("returns")
        fixed = self.ingredient.returns
        if options is not None or query is not None:
            word = "labels" if "labels" in {*self.named, *self.queries} else "options"
            if regex is not None:
                raise self.error(f"{word} and regex exclude each other")
            if query is not None:
                choice = Constraint("choice", query=query.text)
            else:
                names, meanings = self._options(options, word), self._meanings(options, word)
                choice = Constraint("choice", options=names, meanings=meanings)
            listed = self._returns(returns) if returns is not None else fixed
            if listed is not None and listed.kind == "list":
                return replace(listed, item=choice)
            self._check_place(choice, word)
            return choice
        if regex is not None:
            return Constraint("regex", pattern=self._regex(regex))
        if returns is not None:
            return self._returns(returns)
        if fixed is not None:
            return fixed
        return self.context or Constraint()

    def _check_place(self, choice: Constraint, word: str) -> None:
        """The place of a call may need booleans, numbers or dates: then each option must be one."""
        needed = self._needed
        hint = f"Compare the answer with one of the {word}, or leave them out."
        if needed is not None and choice.query is not None and needed.kind == "boolean":
            raise self.error(f"{word} of a subquery are texts where a boolean is needed", hint)
        for option in choice.options:
            if needed is not None and not holds(needed, option):
                raise self.error(f"the option {option!r} where a {needed.kind} is needed", hint)

    @property
    def _needed(self) -> Constraint | None:
        """The type that the place of the call needs, if it is not text."""
        if self.context is None or self.context.kind in ("text", "regex", "choice", "list"):
            return None
        # Whole numbers and decimals compare.
        return Constraint("number") if self.context.kind == "integer" else self.context

    def _type(self, constraint: Constraint) -> pa.DataType:
        needed = self._needed
        if constraint.kind == "choice" and constraint.query is None and needed is not None:
            return arrow_type(needed)
        return arrow_type(constraint)

    def _pairing(self, on_error: OnError | None) -> Pairing | None:
        if not self.ingredient.pairs:
            return None
        if on_error == "keep":
            raise self.error(
                "on_error => 'keep' is not possible: a join has no place for errors",
                "frame.trace.errors lists them. Write 'null' or 'raise'.",
            )
        labels = self.named.get("labels")
        return paired(
            self.named,
            () if labels is None else self._options(labels, "labels"),
            self.error,
        )

    def _comparing(self, columns: tuple[str, ...]) -> Comparing | None:
        if not self.ingredient.compares:
            return None
        given = self.named[_OPERATOR]
        if not isinstance(given, str) or given.strip() not in OPERATORS:
            raise self.error(f"{given!r} is no operator", f"Write one of {'  '.join(OPERATORS)}.")
        return Comparing(OPERATORS[given.strip()], columns)

    def _options(self, options: Literal, word: str) -> tuple[str, ...]:
        if isinstance(options, dict):
            options = list(options)
        if not isinstance(options, list):
            raise self.error(
                f"{word} must be a list of texts, not {options!r}", "Write ['a', 'b']."
            )
        if not options:
            raise self.error(f"{word} are empty", "Give at least two, as in ['a', 'b'].")
        texts = []
        for option in options:
            if isinstance(option, bool) or not isinstance(option, str | int | float):
                raise self.error(f"{word} must be texts, not {option!r}")
            text = str(option)
            if not text.strip():
                raise self.error(f"{word} hold an empty text")
            texts.append(text)
        repeated = next((t for t in texts if texts.count(t) > 1), None)
        if repeated is not None:
            raise self.error(f"{word} hold {repeated!r} twice")
        return tuple(texts)

    def _meanings(self, options: Literal, word: str) -> tuple[str, ...]:
        """What each option means, where that is said."""
        if not isinstance(options, dict):
            return ()
        hint = "Write {'a': 'what a means', 'b': 'what b means'}."
        meanings = []
        for option, meaning in options.items():
            if not isinstance(meaning, str) or not meaning.strip():
                raise self.error(
                    f"{word}: what {option!r} means must be text, not {meaning!r}", hint
                )
            meanings.append(" ".join(meaning.split()))
        return tuple(meanings)

    def _regex(self, regex: Literal) -> str:
        if not isinstance(regex, str):
            raise self.error(f"regex must be text, not {regex!r}")
        try:
            check_pattern(regex)
        except ArgumentError as problem:
            raise self.error(problem.message, problem.hint) from None
        return regex

    def _returns(self, returns: Literal) -> Constraint:
        found = returned(returns) if isinstance(returns, str) else None
        if found is not None:
            return found
        raise self.error(
            f"returns => {returns!r} is not a type", close_matches(str(returns), RETURNS)
        )

    def _examples(self, n_values: int, constraint: Constraint) -> tuple[Example, ...]:
        given = self.named.get("examples")
        if given is None:
            return ()
        hint = "Write examples => [['a value', 'its answer'], …], one value a value column."
        if not isinstance(given, list):
            raise self.error("examples must be a list", hint)
        width = 1 if self.ingredient.reads_rows else n_values
        examples = []
        for item in given:
            if not isinstance(item, list) or len(item) != width + 1:
                raise self.error(f"the example {item!r} does not have {width + 1} parts", hint)
            *inputs, answer = item
            said = canonical(answer, constraint) if isinstance(answer, dict) else _text(answer)
            examples.append(Example(tuple(map(_text, inputs)), self._right(said, constraint)))
        return tuple(examples)

    def _right(self, said: str, constraint: Constraint) -> str:
        """The right answer of an example. It may differ from what the place of the call makes of
        answers, as in ``llm_map(…) = 'CA'``, but not from what the call says itself."""
        if (constraint.item or constraint).query is not None:
            return said
        read = read_answer(said, constraint)
        if read is None and constraint is not self.context:
            raise self.error(
                f"the answer {said!r} of an example does not fit {constraint}",
                "Write answers as the call gives them.",
            )
        return said if read is None else read

    def _confidence(self, constraint: Constraint) -> Confidence | None:
        given = self.named.get("confidence")
        if given is None:
            return None
        if self.ingredient.run is not None or constraint.kind not in ("boolean", "choice"):
            raise self.error(
                f"confidence is of answers from a closed set, not of {constraint}",
                "Ask a yes/no question, or say options => ['a', 'b'].",
            )
        if given == "keep":
            return "keep"
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
            raise self.error(
                f"confidence => {given!r} is not possible",
                "Write the least probability of an answer, above 0 and at most 1, or 'keep', which "
                "gives a struct of value and confidence.",
            )
        return float(given)

    def _targets(self, constraint: Constraint) -> Targets | None:
        given = {name: self.named[name] for name in PROMISES if self.named.get(name) is not None}
        proxy = self._proxy(given)
        if not given:
            return None
        if self.ingredient.reads_rows or self.ingredient.run is not None:
            raise self.error(f"{next(iter(given))} is promised of functions of a row")
        shares: dict[str, float] = {}
        for name, share in given.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
                raise self.error(
                    f"{name} => {share!r} is not possible", "Write a number above 0, at most 1."
                )
            shares[name] = float(share)
        if [*shares] == ["delta"]:
            raise self.error(
                "delta alone promises nothing", "Write accuracy, recall or precision, too."
            )
        said = Targets(**shares, proxy=proxy)
        named = said.of(constraint.kind)
        if named is None:
            raise self.error(
                f"{said} cannot be promised of answers that are {constraint}",
                "accuracy is of closed sets (yes or no, options, labels), recall and precision of yes or no.",
            )
        if named != said:
            raise self.error(
                f"{said} cannot be promised together",
                "Write accuracy, or recall and precision or one of them, of yes or no.",
            )
        return said

    def _proxy(self, promises: Mapping[str, Literal]) -> Proxy | None:
        given = self.named.get("proxy")
        if given is None:
            return None
        if given not in get_args(Proxy):
            raise self.error(
                f"proxy => {given!r} is not possible", "Write 'similarity' or 'embedding'."
            )
        if not promises:
            raise self.error(
                f"proxy => '{given}' alone promises nothing", "Write recall => 0.9, too."
            )
        own = {"recall", "delta"}
        if given == "similarity" and ("recall" not in promises or not {*promises} <= own):
            raise self.error(
                f"proxy => '{given}' can promise recall, and nothing else",
                "It says no to the values that are least like the question: write recall => 0.9.",
            )
        if "confidence" in self.named:
            raise self.error(
                f"proxy => '{given}' does not go with confidence",
                "It is no model that tells how probable answers are.",
            )
        return cast(Proxy, given)

    def _models(self, targets: Targets | None) -> tuple[str, ...]:
        given = self.named.get("model")
        if given is None:
            return ()
        names = given if isinstance(given, list) else [given]
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise self.error(
                f"model => {given!r} is not possible",
                "Write the name of a model that the session knows, or a list of such.",
            )
        chosen = tuple(str(name) for name in names)
        repeated = next((name for name in chosen if chosen.count(name) > 1), None)
        if repeated is not None:
            raise self.error(f"model names {repeated!r} twice", "Write each model once.")
        if targets is None:
            return chosen
        if targets.proxy is not None and len(chosen) > 1:
            raise self.error(
                f"proxy => '{targets.proxy}' stands for the small model, and model names "
                f"{len(chosen)}",
                f"Write model => '{chosen[-1]}'.",
            )
        if targets.proxy is None and len(chosen) != 2:
            raise self.error(
                f"{targets} is promised of a small model before a large one",
                "Write model => ['small', 'large'], or say proxy => 'embedding'.",
            )
        return chosen

    def _consistency(self) -> int:
        given = self.named.get("consistency", 1)
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_WAYS:
            raise self.error(
                f"consistency => {given!r} is not possible",
                f"In how many ways a question is put is a whole number from 1 to {MOST_WAYS}.",
            )
        return given

    def _on_error(self) -> OnError | None:
        given = self.named.get("on_error")
        if given is None:
            return None
        if given not in get_args(OnError):
            raise self.error(
                f"on_error => {given!r} is not possible", "Write 'null', 'raise' or 'keep'."
            )
        if given == "keep" and self.ingredient.run is not None:
            raise self.error(
                "on_error => 'keep' is not possible: only its body knows which answers a row needs",
                "Ask with model.ask(…, on_error='keep') in it, and return what rows should keep.",
            )
        return cast(OnError, given)


def _text(value: Literal) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
