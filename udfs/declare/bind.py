"""Binds the arguments of a call to the parameters that its function declares."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from blendfusion.errors import ArgumentError, close_matches
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.parse_reply import read_answer
from blendfusion.options import OnError
from blendfusion.types import Constraint, Example, Task
from blendfusion.udfs.declare.answer_predicate import check_predicate
from blendfusion.udfs.declare.arguments import (
    Argument,
    Constant,
    Literal,
    Option,
    OwnValues,
    Query,
    Value,
    sql_literal,
)
from blendfusion.udfs.declare.call import DISTRIBUTION, Call, evidence_type, kept_type
from blendfusion.udfs.declare.comparison import OPERATOR, SIDES, Comparing
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import GroupQuestion, PairMatch, RowQuestion, UserBody
from blendfusion.udfs.declare.options import (
    CALIBRATED,
    CASCADE,
    CHECK,
    CLAIM,
    CONFIDENCE,
    CONSISTENCY,
    EVIDENCE,
    EXAMPLES,
    EXAMPLES_HINT,
    LABELS,
    MODEL,
    ON_ERROR,
    OPTIONS,
    QUESTION,
    REASONING,
    REASONS,
    REGEX,
    RETRIES,
    RETURN_TYPE,
    REVIEW,
    SAMPLE,
    SAMPLE_HINT,
    THRESHOLD,
    USUAL_RETRIES,
    Choices,
    Confidence,
)
from blendfusion.udfs.declare.pairing import HOW, Pairing, pairing_of
from blendfusion.udfs.declare.parameter import AnyParameter, Parameter
from blendfusion.udfs.declare.promises import models_of, promised_targets
from blendfusion.udfs.declare.returns import arrow_type
from blendfusion.udfs.declare.sample import sample_rows
from blendfusion.udfs.text.evidence import has_facts

_T = TypeVar("_T")


def bind(
    ingredient: Ingredient,
    positional: Sequence[Argument],
    named: Mapping[str, Option],
    *,
    context: Constraint | None = None,
    ordered: bool = False,
) -> Call:
    """Bind a call's literals. The type of its answers comes from the options, else the regex, else
    ``returns``, else the function, else ``context``: what the place of the call in the query
    requires.

    Raises ArgumentError, which names the function and its parameters.
    """
    return _Binder(ingredient, positional, named, context, ordered).call()


class _Binder:
    def __init__(
        self,
        ingredient: Ingredient,
        positional: Sequence[Argument],
        named: Mapping[str, Option],
        context: Constraint | None,
        ordered: bool,
    ) -> None:
        self.ingredient = ingredient
        self.kind = ingredient.kind
        self.positional = list(positional)
        self.context = context
        self.ordered = ordered
        self.given: dict[str, Literal] = {}
        """The literals, by the names of their parameters."""
        self.words: dict[str, str] = {}
        """The names under which the user gave them."""
        self.queries: dict[str, Query] = {}
        """The subqueries among the arguments."""
        self.read: dict[str, Any] = {}
        """The values that the checks made of the literals."""
        self._take_named(named)

    def call(self) -> Call:
        self._take_positional()
        values = [a for a in self.positional if isinstance(a, Value)]
        columns = tuple(v.name for v in values)
        self._check_values(values)
        self._read()
        question = self._question(columns)
        constraint = self._constraint()
        self._check_group_options(constraint, len(values))
        examples = self._examples(len(values), constraint)
        on_error, confidence = self._on_error(), self._confidence(constraint)
        targets = promised_targets(constraint, self.read, self.error)
        pairing = self._pairing(on_error)
        comparing = self._comparing(columns)
        result = self._result_type(constraint, confidence)
        evidence = self.get(EVIDENCE) is True
        stated = self._needs_statement(constraint, len(values))
        if evidence:
            self._check_evidence(constraint, columns, on_error, confidence)
            result = self._evidence_type(result)
        reasons = self._reasons(evidence=evidence)
        result = _result_with_kept(result, on_error, confidence, reasons=reasons)
        task = Task(
            ingredient=self.ingredient.name,
            question=question if comparing is None else comparing.question,
            constraint=_constraint_to_ask(constraint, confidence),
            columns=columns if comparing is None else SIDES,
            examples=examples,
            aggregate=self.kind.many_texts,
            form=self.ingredient.form,
            images=self.kind.images,
            audio=self.kind.audio,
            examples_query=self._query(EXAMPLES),
            sample=self._sample(len(values), constraint),
            sample_query=self._query(SAMPLE),
            consistency=self.get(CONSISTENCY) or 1,
            reasoning=self.get(REASONING) or 0,
        )
        return Call(
            self.ingredient,
            task,
            result,
            len(values),
            on_error,
            self.ordered,
            pairing,
            comparing,
            confidence,
            targets,
            models_of(targets, self.read, self.error) or self.kind.usual_models,
            self._literals(),
            evidence,
            stated,
            reasons,
            *self._checks(constraint),
            self._threshold(confidence),
            self._calibration(),
            self.get(REVIEW) or "",
            self._argument_texts(task),
        )

    def error(self, problem: str, hint: str | None = None) -> ArgumentError:
        return ArgumentError(
            f"{self.ingredient.name}: {problem}", hint=hint or f"Write {self.ingredient.signature}."
        )

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        """Adds the name of the function to what a declaration says is wrong."""
        try:
            yield
        except ArgumentError as problem:
            raise self.error(problem.message, problem.hint) from None

    def get(self, parameter: Parameter[_T]) -> _T | None:
        """The checked argument of a parameter; None where it is absent."""
        found: _T | None = self.read.get(parameter.name)
        return found

    def _take_named(self, named: Mapping[str, Option]) -> None:
        for word, given in named.items():
            parameter = self.ingredient.parameter(word)
            if parameter is None:
                raise self._unknown_option(word)
            if isinstance(given, OwnValues):
                self._check_own_values(parameter, given)
                self.queries[parameter.name] = given
            elif isinstance(given, Query):
                self._check_query(parameter, word)
                self.queries[parameter.name] = given
            else:
                self.given[parameter.name] = given
            self.words.setdefault(parameter.name, word)

    def _unknown_option(self, word: str) -> ArgumentError:
        known = [name for p in self.ingredient.parameters for name in p.names]
        options = ", ".join(p.name for p in self.ingredient.options) or "no options"
        hint = close_matches(word, known) or f"{self.ingredient.name} takes {options}."
        return self.error(f"no option '{word}'", hint)

    def _check_query(self, parameter: AnyParameter, word: str) -> None:
        if parameter.subquery:
            return
        possible = [n for p in self.ingredient.parameters if p.subquery for n in p.names]
        raise self.error(
            f"{word} => (SELECT …) is not a literal",
            f"Only {', '.join(possible)} may come from a subquery."
            if possible
            else "Write a list, as in labels => ['a', 'b'].",
        )

    def _check_own_values(self, parameter: AnyParameter, given: OwnValues) -> None:
        if parameter is not OPTIONS or not isinstance(self.kind, GroupQuestion):
            raise self.error(
                f"{parameter.name} => {given.text} is not a literal",
                "The values of a group are options of llm_qa: "
                "llm_qa('Which is worst?', x, options => array_agg(x)).",
            )

    def _absent(self, parameters: Sequence[AnyParameter]) -> list[AnyParameter]:
        return [p for p in parameters if p.name not in self.given and p.name not in self.queries]

    def _take_positional(self) -> None:
        for parameter in self._absent(self.ingredient.leading):
            if not self.positional:
                raise self.error(f"the {parameter.name} is missing")
            first = self.positional.pop(0)
            if not isinstance(first, Constant):
                raise self.error(
                    f"the {parameter.name} must be a literal, not a column",
                    self._literal_hint(parameter.name, first),
                )
            self.given[parameter.name] = first.value
        for parameter in self._absent(self.ingredient.between):
            second = self.positional.pop(1) if len(self.positional) > 1 else None
            if not isinstance(second, Constant):
                raise self.error(f"the {parameter.name} must be a literal between the values")
            self.given[parameter.name] = second.value
        self._take_trailing()

    def _literal_hint(self, parameter: str, first: Argument) -> str:
        """The hint for a column in the place of a literal."""
        name = first.name if isinstance(first, Value) else ""
        if not re.fullmatch(r"\w*", name):
            return (
                f"Text is written in single quotes: {self.ingredient.name}({sql_literal(name)}, …)."
            )
        if name and self.positional and isinstance(self.positional[0], Constant):
            literal = sql_literal(self.positional[0].value)
            return f"The {parameter} comes first: {self.ingredient.name}({literal}, {name})."
        return (
            f"Write {self.ingredient.signature}; use {{}} or {{column}} in the {parameter} to refer to "
            "values."
        )

    def _take_trailing(self) -> None:
        """The literals at the end, in the order of the parameters, which may have defaults."""
        trailing = self._absent(self.ingredient.trailing)
        start = len(self.positional)
        while start and isinstance(self.positional[start - 1], Constant):
            start -= 1
        start = max(start, len(self.positional) - len(trailing))
        literals = self.positional[start:] if trailing else []
        for parameter, literal in zip(trailing, literals, strict=False):
            assert isinstance(literal, Constant)
            self.given[parameter.name] = literal.value
            self.positional.pop()
        for parameter in trailing[len(literals) :]:
            if parameter.default is None:
                raise self.error(f"the {parameter.name} must be given as a literal after the value")

    def _check_values(self, values: Sequence[Value]) -> None:
        if len(values) != len(self.positional):
            literals = [a.value for a in self.positional if isinstance(a, Constant)]
            hint = "a literal can be given by name, as in options => ['a', 'b']."
            if LABELS.name in self.given and all(isinstance(one, str) for one in literals):
                labels = sql_literal([*literals, self.given[LABELS.name]])
                hint = f"the labels are one list: {labels}."
            raise self.error(
                f"{literals[0]!r} is a literal where a column is expected",
                f"Write {self.ingredient.signature}; {hint}",
            )
        if not values:
            named = re.search(r"\{(\w+)\}", str(self.given.get(QUESTION.name, "")))
            call = f"{self.ingredient.name}(…, {named[1]})" if named else ""
            advice = f"Name the column behind the question, too: {call}." if named else None
            raise self.error("there is no value to ask about", advice)
        names = self.ingredient.values
        beside = self.ingredient.beside and len(values) > len(names)
        if not isinstance(names, str) and len(values) != len(names) and not beside:
            noun = "value" if len(names) == 1 else "values"
            several = "llm_map('…', a, b) asks about several values in one question."
            raise self.error(
                f"takes {len(names)} {noun}, {len(values)} given",
                f"Write {self.ingredient.signature}; {several}"
                if isinstance(self.kind, RowQuestion)
                else None,
            )

    def _read(self) -> None:
        """Check each literal by its parameter's declaration. An option that is NULL is absent."""
        required = {p.name for p in (*self.ingredient.leading, *self.ingredient.trailing)}
        for parameter in self.ingredient.parameters:
            name = parameter.name
            if name not in self.given or (self.given[name] is None and name not in required):
                continue
            with self._name_errors():
                self.read[name] = parameter.read(self.given[name], self.words.get(name, name))

    def _question(self, columns: tuple[str, ...]) -> str:
        if self.get(HOW):
            return f"Do both match: {self.get(HOW)}?"
        if self.ingredient.questions is not None:
            return self.ingredient.questions(self.read)
        question = self.get(QUESTION) or self.get(CLAIM) or self.ingredient.question
        own = isinstance(self.kind, UserBody)  # the user's: it may have no docstring
        if self.ingredient.leading and not own and not question.strip():
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
            with self._name_errors():
                return self.ingredient.answers(self.read)
        fixed = self.ingredient.returns
        if isinstance(self.kind, PairMatch):
            return fixed or Constraint("boolean")
        choice, pattern = self._choice(), self.get(REGEX)
        returns = self.get(RETURN_TYPE)
        if choice is not None:
            word = self.words.get(OPTIONS.name, LABELS.name)
            if pattern is not None:
                raise self.error(f"{word} and regex exclude each other")
            listed = returns or fixed
            if listed is not None and listed.kind == "list":
                return replace(listed, item=choice)
            self._check_place(choice, word)
            return choice
        if pattern is not None:
            return Constraint("regex", pattern=pattern)
        return returns or fixed or self.context or Constraint()

    def _choice(self) -> Constraint | None:
        query = self.queries.get(OPTIONS.name) or self.queries.get(LABELS.name)
        if query is not None:
            return Constraint("choice", query=query.text)
        given: Choices | None = self.get(OPTIONS) or self.get(LABELS)
        if given is None:
            return None
        return Constraint("choice", options=given.options, meanings=given.meanings)

    def _check_place(self, choice: Constraint, word: str) -> None:
        """The place of a call may require booleans, numbers or dates: each option must be one."""
        needed = self._required_type
        hint = f"Compare the answer with one of the {word}, or leave them out."
        if needed is not None and choice.query is not None and needed.kind == "boolean":
            raise self.error(f"{word} of a subquery are texts where a boolean is needed", hint)
        for option in choice.options:
            if needed is not None and not holds(needed, option):
                raise self.error(f"the option {option!r} where a {needed.kind} is needed", hint)

    @property
    def _required_type(self) -> Constraint | None:
        """The type that the place of the call requires, if it is not text."""
        if self.context is None or self.context.kind in ("text", "regex", "choice", "list"):
            return None
        # Whole numbers and decimals compare.
        return Constraint("number") if self.context.kind == "integer" else self.context

    def _type(self, constraint: Constraint) -> pa.DataType:
        needed = self._required_type
        if constraint.kind == "choice" and constraint.query is None and needed is not None:
            return arrow_type(needed)
        return arrow_type(constraint)

    def _result_type(self, constraint: Constraint, confidence: Confidence | None) -> pa.DataType:
        """The type of a result without what is kept beside it."""
        if confidence == "all":
            return DISTRIBUTION
        if self.ingredient.probability:
            return pa.float64()
        return self.kind.result or self._type(constraint)

    def _reasons(self, *, evidence: bool) -> bool:
        """Whether results have reasons. Raises ArgumentError for what does not go with them."""
        if self.get(REASONING) is None:
            if self.get(REASONS):
                raise self.error(
                    "reasons are of a model that is asked for them", "Write reasoning => 'brief'."
                )
            return False
        others = {
            "sample": self.get(SAMPLE) is not None or SAMPLE.name in self.queries,
            "evidence => true": evidence and self.get(REASONS) is True,
            "a cascade": any(self.get(option) is not None for option in CASCADE),
        }
        self._refuse_beside("reasoning", others)
        return self.get(REASONS) is True

    def _needs_statement(self, constraint: Constraint, n_values: int) -> bool:
        """Whether the text must state the numbers and dates of answers."""
        usual = self.ingredient.reads and self.get(EVIDENCE) is None
        return usual and n_values == 1 and has_facts(constraint)

    def _check_group_options(self, constraint: Constraint, values: int) -> None:
        if (constraint.item or constraint).of_group and (
            self.get(CHECK) is not None or values != 1
        ):
            raise self.error("options => array_agg(x) go with one value, and without check")

    def _check_evidence(
        self,
        constraint: Constraint,
        columns: Sequence[str],
        on_error: OnError | None,
        confidence: Confidence | None,
    ) -> None:
        if constraint.kind == "struct" and not self.ingredient.has_fields:
            raise self.error(
                "evidence is of one answer, and here are several fields",
                "Write llm_extract(text, 'a TEXT, b INT', evidence => true).",
            )
        if len(columns) != 1:
            raise self.error(
                f"evidence is of one text, and here are {len(columns)} values",
                "Join the values in one text: concat_ws(' ', a, b).",
            )
        if on_error == "keep" or confidence is not None:
            other = "on_error => 'keep'" if on_error == "keep" else "confidence"
            raise self.error(
                f"evidence does not go with {other}", "The result has the confidence and a reason."
            )

    def _evidence_type(self, result: pa.DataType) -> pa.DataType:
        if not self.ingredient.has_fields:
            return evidence_type(result, of_list=self.kind.many_texts)
        return pa.struct([(field.name, evidence_type(field.type)) for field in result])

    def _pairing(self, on_error: OnError | None) -> Pairing | None:
        if not isinstance(self.kind, PairMatch):
            return None
        if on_error == "keep":
            raise self.error(
                "on_error => 'keep' is not possible: a join has no place for errors",
                "frame.trace.errors lists them. Write 'null' or 'raise'.",
            )
        return pairing_of(self.read, self.error)

    def _comparing(self, columns: tuple[str, ...]) -> Comparing | None:
        operator = self.get(OPERATOR)
        return None if operator is None else Comparing(operator, columns)

    def _examples(self, n_values: int, constraint: Constraint) -> tuple[Example, ...]:
        width = 1 if self.kind.many_texts else n_values
        widest = width + (1 if self.get(REASONING) is None else 2)
        examples = []
        for item in self.get(EXAMPLES) or ():
            if not isinstance(item, list) or not width < len(item) <= widest:
                raise self.error(
                    f"the example {item!r} does not have {width + 1} parts", EXAMPLES_HINT
                )
            inputs, answer, reason = item[:width], item[width], item[width + 1 :]
            text = canonical(answer, constraint) if isinstance(answer, dict) else _text(answer)
            right = self._right(text, constraint)
            examples.append(Example(tuple(map(_text, inputs)), right, *map(_text, reason)))
        return tuple(examples)

    def _right(self, text: str, constraint: Constraint) -> str:
        """The right answer of an example. It may differ from what the place of the call makes of
        answers, as in ``llm_map(…) = 'CA'``, but not from the options of the call."""
        if (constraint.item or constraint).query is not None:
            return text
        read = read_answer(text, constraint)
        if read is None and constraint is not self.context:
            raise self.error(
                f"the answer {text!r} of an example does not fit {constraint}",
                "Write answers as the call gives them.",
            )
        return text if read is None else read

    def _sample(self, n_values: int, constraint: Constraint) -> tuple[tuple[str, ...], ...]:
        given = self.get(SAMPLE)
        if given is None and SAMPLE.name not in self.queries:
            return ()
        if constraint.kind != "boolean":
            raise self.error(
                f"a sample places the threshold of yes or no, not of {constraint}",
                "Ask a yes/no question, where a boolean is needed or with returns => 'bool'.",
            )
        for row in given or ():
            if len(row) != n_values:
                raise self.error(
                    f"{list(row)} of the sample has not {n_values} parts, one a value", SAMPLE_HINT
                )
        sample = sample_rows(given or ())
        if given is not None and not sample:
            raise self.error("the sample has no text that is neither NULL nor blank", SAMPLE_HINT)
        return sample

    def _query(self, parameter: AnyParameter) -> str | None:
        """The subquery that gives the argument of a parameter, if one does."""
        query = self.queries.get(parameter.name)
        return None if query is None else query.text

    def _confidence(self, constraint: Constraint) -> Confidence | None:
        given = self.get(CONFIDENCE)
        if given is None:
            return None
        scales = ("score",) if given == "all" else ()
        if constraint.kind not in ("boolean", "choice", *scales):
            raise self.error(
                f"confidence is of answers from a closed set, not of {constraint}",
                "Ask a yes/no question, or say options => ['a', 'b'].",
            )
        if given == "all":
            self._check_distribution(constraint)
        return given

    def _check_distribution(self, constraint: Constraint) -> None:
        """Raise ArgumentError for what does not go with the probabilities of all answers."""
        others = {
            "several texts": self.kind.many_texts,
            "consistency": constraint.kind != "boolean" and (self.get(CONSISTENCY) or 1) > 1,
            "a cascade": any(self.get(option) is not None for option in CASCADE),
            "reasons => true": self.get(REASONS) is True,
            "check": CHECK in self.ingredient.options and self.get(CHECK) is not None,
        }
        self._refuse_beside("confidence => 'all'", others)

    def _refuse_beside(self, option: str, others: Mapping[str, bool]) -> None:
        """Raise ArgumentError for the first of ``others`` that is given beside an option."""
        for other in (name for name, given in others.items() if given):
            raise self.error(f"{option} does not go with {other}", "Leave one of them out.")

    def _threshold(self, confidence: Confidence | None) -> float | None:
        given = self.get(THRESHOLD)
        if given is None:
            return None
        others = {
            "confidence": confidence is not None,
            "a cascade": any(self.get(option) is not None for option in CASCADE),
        }
        self._refuse_beside("threshold", others)
        return given

    def _calibration(self) -> str:
        given = self.get(CALIBRATED)
        if given is None:
            return ""
        cascade = any(self.get(option) is not None for option in CASCADE)
        self._refuse_beside("calibrated", {"a cascade": cascade})
        return given

    def _checks(self, constraint: Constraint) -> tuple[str, int]:
        """The predicate over answers, and the number of further questions."""
        if CHECK not in self.ingredient.options:
            return "", 0
        check = self.get(CHECK)
        if check is None:
            if self.get(RETRIES) is not None:
                raise self.error("retries are of a check", "Write check => 'answer > 0'.")
            return "", 0
        with self._name_errors():
            check_predicate(check, arrow_type(constraint))
        retries = self.get(RETRIES)
        return check, USUAL_RETRIES if retries is None else retries

    def _on_error(self) -> OnError | None:
        given = self.get(ON_ERROR)
        if given == "keep" and self.kind.has_body:
            raise self.error(
                "on_error => 'keep' is not possible: only its body knows which answers a row needs",
                "Ask with model.ask(…, on_error='keep') in it, and return what rows should keep.",
            )
        return given

    def _literals(self) -> str:
        """The literals that the body of a user's function gets by name, as JSON."""
        if not self.kind.has_body:
            return ""
        own = [p for p in self.ingredient.parameters if p not in (MODEL, ON_ERROR)]
        values = {p.name: self.read.get(p.name, p.default) for p in own}
        return json.dumps(values) if values else ""

    def _argument_texts(self, task: Task) -> tuple[tuple[str, str], ...]:
        """The arguments as SQL, by the names of their parameters, without defaults."""
        shown = []
        for parameter in self.ingredient.parameters:
            name = parameter.name
            literal: object = None
            if name in self.queries:
                literal = self.queries[name]
            elif name == EXAMPLES.name:
                literal = [
                    (*e.values, e.answer, *([e.reason] if e.reason else [])) for e in task.examples
                ]
            elif name == SAMPLE.name:
                literal = [row[0] if len(row) == 1 else row for row in task.sample]
            elif name in self.read:
                literal = parameter.show(self.read[name])
            if literal not in (None, [], parameter.default):
                shown.append((name, sql_literal(literal)))
        return tuple(shown)


def _result_with_kept(
    answers: pa.DataType, on_error: OnError | None, confidence: Confidence | None, *, reasons: bool
) -> pa.DataType:
    """The type of results with what is kept beside them."""
    errors, odds = on_error == "keep", confidence == "keep"
    if not (errors or odds or reasons):
        return answers
    return kept_type(answers, errors=errors, confidence=odds, reasons=reasons)


def _text(value: Literal) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _constraint_to_ask(constraint: Constraint, confidence: Confidence | None) -> Constraint:
    """The answer to a yes/no question and its probability give both probabilities; of more answers
    each is asked for."""
    if confidence != "all" or constraint.kind == "boolean":
        return constraint
    return replace(constraint, distribution=True)
