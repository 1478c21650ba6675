"""Reads calls with positional and named arguments, and their prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import QueryError, close_matches
from blendfusion.language.query_text.call_sites import literal_of
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Form, Pieces, Weaver
from blendfusion.language.query_text.source_map import Piece, Translation, within
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.common.quoting import requote
from blendfusion.services.dialects.functions.call import System
from blendfusion.services.dialects.functions.claims import claim
from blendfusion.udfs.declare.arguments import Literal, quoted_name, sql_string

Span: TypeAlias = tuple[int, int]
Path: TypeAlias = tuple[str, ...]
Written: TypeAlias = "Iterable[Piece | str]"

_MADE = ("ARRAY_CONSTRUCT", "STRUCT")
"""Functions whose arguments are a list."""
_TYPES = {
    **dict.fromkeys(("STRING", "VARCHAR"), "TEXT"),
    **dict.fromkeys(("INT64", "INTEGER", "BIGINT"), "INT"),
    **dict.fromkeys(("FLOAT64", "DOUBLE", "NUMERIC", "NUMBER"), "FLOAT"),
    "BOOL": "BOOLEAN",
}
"""Types of the warehouses by their names in BlendFusion's schemas."""
_OF_WAREHOUSES = ("AI.", "ML.", "SNOWFLAKE.CORTEX.")
"""How names begin that can be nothing else than functions of warehouses."""
_JOINED = ("CONCAT",)
_TEMPLATE = "PROMPT"
_FORMAT = "FORMAT"
_BEFORE_OPERANDS = ("SELECT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "WHEN", "THEN", "ELSE", "IN")
"""Words that end no operand, so that parentheses behind them are not those of a call."""
_ENDS = (".", "?", "!", ":")
"""Characters that end a sentence; the value behind them starts a new one."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a warehouse: how it is called, and what it is in our SQL.

    ``parameters`` are in order, those that may be left out behind ``required`` of them. ``ignored``
    ones (connections, endpoints, parameters of a model) have no effect here: the session's model
    answers. ``write`` gives our SQL of a whole call, and ``becomes`` describes it. ``fields`` do so
    for what is read from the call's result: ``AI_CLASSIFY(…):labels[0]`` has the path ``("labels",
    "0")``."""

    signature: str
    name: str
    parameters: tuple[str, ...]
    required: int
    write: Callable[[Call], Written]
    becomes: str
    fields: Mapping[Path, Callable[[Call], Written]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    open_fields: Callable[[Call, str], Written] | None = None
    """The text for a field of any name, where the call itself defines its fields."""
    base: Path = ()
    """The path below which those fields are."""
    field_writer: Callable[[Path], Callable[[Call], Written] | None] | None = None
    """Gives what writes the field at a path, where the call itself defines its paths."""


def function(
    signature: str, write: str | Callable[[Call], Written], becomes: str = "", **others: Any
) -> Function:
    """The function ``AI_AGG(expr, task_description)``, with what may be left out in brackets.

    ``write`` may be our SQL with the arguments in braces, ``llm_qa({task_description}, {expr})``,
    or the name of a function of ours that is about the prompt."""
    name, _, listed = signature.rstrip(")").partition("(")
    needed, _, optional = (part.strip(" ],") for part in listed.partition("["))
    required = needed.split(", ")
    parameters = (*required, *filter(None, optional.split(", ")))
    if isinstance(write, str) and "(" not in write:
        becomes, write = f"{write}(question, value, …)", partial(asks, write)
    elif isinstance(write, str):
        becomes, write = becomes or re.sub(r"[{}]", "", write), partial(fill, write)
    return Function(signature, name, parameters, len(required), write, becomes, **others)


@dataclass(frozen=True)
class Call:
    """One call: tokens ``start`` to ``stop`` of the text, and those of each argument."""

    function: Function
    weaver: Weaver
    start: int
    stop: int
    arguments: Mapping[str, Span]
    known: SessionFacts

    @property
    def reader(self) -> Reader:
        return self.weaver.reader

    def has(self, name: str) -> bool:
        return name in self.arguments

    def value(self, name: str) -> Pieces:
        """An argument as an expression of our SQL."""
        return self.weaver.weave(*self.arguments[name])

    def text(self, name: str) -> str:
        """An argument that is a literal text. Raises QueryError for another one."""
        start, stop = self.arguments[name]
        if stop != start + 1 or self.reader.kind(start) != TokenType.STRING:
            raise self.refusal(name, f"{name} must be a literal text here")
        return self.reader.tokens[start].text

    def is_null(self, name: str) -> bool:
        start, stop = self.arguments[name]
        return stop == start + 1 and self.reader.kind(start) == TokenType.NULL

    def is_template(self, name: str) -> bool:
        return self.reader.word(self.arguments[name][0]) == _TEMPLATE

    def literal(self, name: str, wanted: str) -> Literal:
        """An argument that is a literal, lists and objects too. Raises QueryError for another."""
        start, stop = self.arguments[name]
        tokens = [
            _as_text(token) if self.reader.kind(at + 1) == TokenType.COLON else token
            for at, token in enumerate(self.reader.tokens[start:stop], start)
        ]
        found = literal_of([t for t in tokens if t.text.upper() not in _MADE])
        if found is None:
            raise self.refusal(name, f"{name} must be {wanted} here")
        return found.value

    def texts(self, name: str) -> list[tuple[str, str]]:
        """The (text, description) of each item of a list of texts, of pairs, or of objects with a
        label and a description. Raises QueryError for another argument."""
        given = self.literal(name, "a list of literal texts")
        found = [_label_of(item) for item in (given if isinstance(given, list) else [None])]
        if None in found:
            raise self.refusal(
                name, f"{name} must be a list of literal texts here", "Write ['a', 'b']."
            )
        return [pair for pair in found if pair is not None]

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """The (key, value) pairs of an object of texts. Raises QueryError for another argument."""
        given = self.literal(name, "an object of texts")
        if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
            raise self.refusal(name, f"{name} must be an object of texts here")
        return [(key, str(value)) for key, value in given.items()]

    def schema(self, name: str) -> str:
        """An argument that says what fields an answer has, in our words: a JSON schema, also inside
        of what asks for one, or a type with fields. Raises QueryError for another argument."""
        typed = re.match(r"TYPE\s+(.*)", self.reader.source_text(*self.arguments[name]), re.DOTALL)
        given: object = typed[1] if typed else self.literal(name, "a schema")
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                given = json.loads(given)
            except ValueError:
                raise self.refusal(name, f"{name} is no JSON") from None
        if not isinstance(given, dict):
            return _fields(str(given))
        for inside in ("json_schema", "schema"):
            given = given[inside] if isinstance(given.get(inside), dict) else given
        return json.dumps(given, ensure_ascii=False)

    def prompt(self, name: str = "prompt") -> tuple[str, list[Pieces]]:
        """The question of a prompt, and the values that it is about.

        One value behind a whole sentence stands outside of the question, as it does in our SQL;
        else each value has its ``{}`` in it."""
        parts = list(self._parts(self.arguments[name]))
        values = [part for part in parts if not isinstance(part, str)]
        woven = [self.weaver.weave(*span) for span in values]
        if len(values) == 1 and len(parts) > 1 and not isinstance(parts[-1], str):
            text = "".join(part for part in parts if isinstance(part, str)).strip()
            if text.endswith(_ENDS):
                return escape_braces(text.rstrip(": ")), woven
        return "".join(
            escape_braces(p) if isinstance(p, str) else "{}" for p in parts
        ).strip(), woven

    def join_prompt(self, name: str) -> Written:
        """A prompt as one text."""
        for i, part in enumerate(self._parts(self.arguments[name])):
            yield " || " * bool(i)
            yield from [sql_string(part)] if isinstance(part, str) else self.weaver.weave(*part)

    def refusal(self, argument: str | None, problem: str, hint: str | None = None) -> QueryError:
        """The error of an argument, or of the whole call."""
        span = self.arguments.get(argument) if argument else None
        at = self.start if span is None else span[0]
        return self.reader.refusal(at, f"{self.function.name}: {problem}", hint)

    def _parts(self, span: Span) -> Iterator[str | Span]:
        """The literal texts and the values that a prompt is joined from."""
        reader, (start, stop) = self.reader, span
        if stop == start + 1 and reader.kind(start) == TokenType.STRING:
            yield reader.tokens[start].text
            return
        inner = None
        called = start + (reader.word(start) in (*_JOINED, "STRUCT", "ARRAY_CONSTRUCT"))
        if reader.opens(called) and reader.close[called] == stop - 1:
            inner = reader.parts(called + 1, stop - 1)
        elif reader.word(start) == _TEMPLATE and reader.opens(start + 1):
            yield from self._template(reader.parts(start + 2, reader.close[start + 1]))
            return
        elif reader.word(start) == _FORMAT and reader.close.get(start + 1) == stop - 1:
            yield from self._format(reader.parts(start + 2, stop - 1))
            return
        else:
            joined = reader.parts(start, stop, TokenType.DPIPE)
            inner = joined if len(joined) > 1 else None
        if (
            reader.kind(start) == TokenType.L_BRACKET
            and reader.kind(start + 1) == TokenType.L_BRACE
        ):
            hint = "Write 'Is it good? ' || column, or PROMPT('Is {0} good?', column)."
            raise self.refusal(None, "a prompt is one text here, no list of messages", hint)
        if inner is None:
            yield span
            return
        for a, b in inner:
            named = reader.word(b - 2) == "AS" and reader.word(start) == "STRUCT"
            yield from self._parts((a, b - 2 * named))

    def _format(self, parts: Sequence[Span]) -> Iterator[str | Span]:
        """``FORMAT('… %s', a)``."""
        if not parts or self.reader.kind(parts[0][0]) != TokenType.STRING:
            raise self.refusal(None, "the format of a prompt must be a literal text here")
        pieces = re.split(r"(%[a-zA-Z%])", self.reader.tokens[parts[0][0]].text)
        values = iter(parts[1:])
        for piece in pieces:
            place = re.fullmatch("%[a-zA-Z]", piece)
            value = next(values, None) if place else None
            if place and (value is None or piece not in ("%s", "%t", "%d", "%i")):
                raise self.refusal(None, f"'{piece}' in the format has no value", "Write %s.")
            if place and value is not None:
                yield value
            elif piece:
                yield "%" if piece == "%%" else piece
        if next(values, None) is not None:
            raise self.refusal(None, "the format has fewer places than there are values")

    def _template(self, parts: Sequence[Span]) -> Iterator[str | Span]:
        """``PROMPT('… {0} … {1}', a, b)``."""
        if not parts or self.reader.kind(parts[0][0]) != TokenType.STRING:
            raise self.refusal(None, "the template of PROMPT must be a literal text here")
        text = self.reader.tokens[parts[0][0]].text
        for i, piece in enumerate(re.split(r"\{(\d+)\}", text)):
            if i % 2 == 0:
                if piece:
                    yield piece
            elif int(piece) + 1 < len(parts):
                yield parts[int(piece) + 1]
            else:
                raise self.refusal(None, f"PROMPT has no value for {{{piece}}}")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A system with language-model functions; ``name`` is that of the dialect. Its strings and
    quoted names are read as those of its SQL. ``refused`` are functions without a translation, with
    what to write in their place."""

    title: str
    name: str
    functions: Sequence[Function]
    refused: Mapping[str, str]
    system: System
    """Its other functions and its operators."""
    sql: str = ""
    """sqlglot's name of its SQL; '' for ``name``."""

    def translate(self, text: str, known: SessionFacts) -> Translation:
        """``text`` in our SQL. Raises QueryError, with the span in ``text``, for a form that has no
        translation."""
        ours = requote(text, self.sql or self.name)
        by_name = {one.name.upper(): one for one in self.functions}
        try:
            weaver = Weaver(Reader(ours.sql))
            read = [
                place
                for at in range(len(weaver.reader.tokens))
                for place in _claim(weaver, at, by_name, self.refused, known)
            ]
            claim(weaver, known, self.system, but=read)
            return ours.then(weaver.whole())
        except QueryError as problem:
            raise within(problem, ours) from None


def _claim(
    weaver: Weaver,
    at: int,
    functions: Mapping[str, Function],
    refused: Mapping[str, str],
    known: SessionFacts,
) -> Sequence[int]:
    """Have the call of a language-model function at ``at`` written. The places of its name and of
    its arguments without effect; none if there is no call."""
    reader = weaver.reader
    if reader.kind(at - 1) == TokenType.DOT:
        return ()
    name, behind = _name(reader, at)
    if not reader.opens(behind):
        return ()
    if name in refused:
        raise reader.refusal(at, f"{name} has no translation", refused[name])
    if name not in functions:
        if name.startswith(_OF_WAREHOUSES):
            alone = name.rpartition(".")[2]
            hint = f"Write {alone}." if alone in functions else close_matches(name, functions)
            raise reader.refusal(at, f"{name} has no translation", hint)
        return ()
    function, close = functions[name], reader.close[behind]
    call = Call(function, weaver, at, close + 1, {}, known)
    bound = _bind(call, reader.parts(behind + 1, close))
    call = Call(function, weaver, at, close + 1, bound, known)
    start, stop, write = _shape(call)
    alias = ""
    if reader.is_item(start, stop):
        behind = close + 1 + at - start
        dotted = reader.kind(behind) == TokenType.DOT and reader.kind(stop - 2) == TokenType.DOT
        name = reader.tokens[stop - 1].text if dotted else reader.one_line(start, stop)
        alias = f" AS {quoted_name(name)}"

    def write_call() -> Iterable[Piece | str]:
        yield from write(call)
        yield alias

    weaver.add(Form(start, stop, write_call))
    unused = [bound[name] for name in bound.keys() & function.ignored]
    return [at, *(place for span in unused for place in range(*span))]


def _name(reader: Reader, at: int) -> tuple[str, int]:
    """The name that stands at ``at`` in upper case, with its qualifiers, and where it ends."""
    name = reader.tokens[at].text.upper() if reader.is_name(at) else ""
    at += 1
    while name and reader.kind(at) == TokenType.DOT and at + 1 < len(reader.tokens):
        name += "." + reader.tokens[at + 1].text.upper()
        at += 2
    return name, at


def _bind(call: Call, parts: Sequence[Span]) -> dict[str, Span]:
    """The arguments by name. Raises QueryError for one that the function does not take."""
    function, reader = call.function, call.reader
    bound: dict[str, Span] = {}
    names = {p.lower(): p for p in (*function.parameters, *sorted(function.ignored))}
    for place, (start, stop) in enumerate(parts):
        if reader.kind(start + 1) == TokenType.FARROW:
            written = reader.tokens[start].text
            name, span = names.get(written.lower(), ""), (start + 2, stop)
            if not name:
                raise reader.refusal(
                    start,
                    f"{function.name} takes no '{written}'",
                    close_matches(written, names.values()),
                )
        elif place < len(function.parameters):
            name, span = function.parameters[place], (start, stop)
        else:
            raise reader.refusal(start, f"{function.name} takes no argument here")
        if name in bound:
            raise reader.refusal(start, f"{function.name}: '{name}' is given twice")
        bound[name] = span
    missing = [p for p in function.parameters[: function.required] if p not in bound]
    if missing:
        usage = ", ".join(function.parameters[: function.required])
        raise call.refusal(None, f"'{missing[0]}' is missing", f"Write {function.name}({usage}).")
    return bound


def _shape(call: Call) -> tuple[int, int, Callable[[Call], Written]]:
    """Where a call and the field access behind it, ``call(…).field`` or ``(call(…)).field``, start
    and end, and the text that replaces both."""
    function, start = call.function, call.start
    ends = _field_ends(call.reader, call.stop)
    if len(ends) == 1 and _is_alone(call):
        around = _field_ends(call.reader, call.stop + 1)
        if len(around) > 1:
            start, ends = start - 1, around
    for path, stop in reversed(ends):
        if path and path in function.fields:
            return start, stop, function.fields[path]
        write = function.field_writer(path) if function.field_writer and path else None
        if write is not None:
            return start, stop, write
        opened = function.open_fields
        if (
            opened is not None
            and len(path) == len(function.base) + 1
            and path[:-1] == function.base
        ):
            return start, stop, lambda c, name=path[-1], write=opened: write(c, name)
    if len(ends) > 1 and function.fields:
        known = ", ".join(".".join(path) for path in function.fields)
        raise call.reader.refusal(
            call.stop,
            f"{function.name} has no field '{'.'.join(ends[-1][0])}' here",
            f"It has {known}.",
        )
    return call.start, call.stop, function.write


def _field_ends(reader: Reader, at: int) -> list[tuple[Path, int]]:
    """The field accesses from ``at`` on, each with its end; the first is none at all."""
    ends: list[tuple[Path, int]] = [((), at)]
    while step := _step(reader, ends[-1][1]):
        ends.append(((*ends[-1][0], step[0]), step[1]))
    return ends


def _is_alone(call: Call) -> bool:
    """The call is all that stands in its parentheses, which are not those of another call."""
    reader, opening = call.reader, call.start - 1
    if opening < 0 or not reader.opens(opening) or reader.close[opening] != call.stop:
        return False
    return not reader.is_name(opening - 1) or reader.word(opening - 1) in _BEFORE_OPERANDS


def _step(reader: Reader, at: int) -> tuple[str, int] | None:
    """One step into a result: ``.name``, ``:name``, ``['name']`` or ``[0]``; (name, where it
    ends)."""
    if reader.kind(at) in (TokenType.DOT, TokenType.COLON) and at + 1 < len(reader.tokens):
        return reader.tokens[at + 1].text.lower(), at + 2
    if reader.kind(at) == TokenType.L_BRACKET and reader.close.get(at) == at + 2:
        return reader.tokens[at + 1].text.lower(), at + 3
    return None


def _as_text(token: Token) -> Token:
    """The name of a field, ``{name: 1}``, as a text, ``{'name': 1}``."""
    if token.token_type == TokenType.STRING:
        return token
    return Token(TokenType.STRING, token.text, start=token.start, end=token.end)


def _label_of(item: Literal) -> tuple[str, str] | None:
    """The (text, description) of an item of a list; None for anything else."""
    match item:
        case str():
            return item, ""
        case [str(text), str(about)]:
            return text, about
        case {"label": str(text), **more}:
            return text, str(more.get("description", ""))
    return None


def _fields(kind: str) -> str:
    """The translated fields of a struct type, or of a list of structs."""
    inside = re.fullmatch(
        r"\s*(?:STRUCT\s*<|OBJECT\s*\()(.*)[>)]\s*", kind, re.DOTALL | re.IGNORECASE
    )
    text = re.sub(r"\bARRAY\s*<", "LIST<", inside[1] if inside else kind, flags=re.IGNORECASE)
    return re.sub(r"\w+", lambda word: _TYPES.get(word[0].upper(), word[0]), text.replace(":", " "))


def escape_braces(text: str) -> str:
    """A text as a part of a question, in which braces are no places of values."""
    return text.replace("{", "{{").replace("}", "}}")


# --- what most functions become -----------------------------------------------------------------


def fill(template: str, call: Call) -> Written:
    """``template`` with the arguments in the places of their names in braces."""
    for i, piece in enumerate(re.split(r"\{(\w+)\}", template)):
        yield from call.value(piece) if i % 2 else [piece]


def wrap(before: str, inside: Written, behind: str) -> Written:
    """``inside`` between two texts."""
    return [before, *inside, behind]


def asks(ours: str, call: Call, prompt: str = "prompt", *options: str) -> Written:
    """``ours(question, value…, option…)`` about a prompt, which is NULL if one of its values is."""
    question, values = call.prompt(prompt)
    several = len(values) > 1
    for i, value in enumerate(values if several else ()):
        yield "CASE WHEN " if i == 0 else " AND "
        yield from value
        yield " IS NOT NULL"
    yield f"{' THEN ' * several}{ours}({sql_string(question)}"
    for value in values:
        yield ", "
        yield from value
    yield "".join(f", {option}" for option in options) + ")" + " END" * several


def asks_also(ours: str, call: Call, prompt: str, more: str) -> Written:
    """``asks``, with one value more, such as a file, beside those in the prompt."""
    *call_of_prompt, end = asks(ours, call, prompt)
    return [*call_of_prompt, *(wrap(", ", call.value(more), "") if call.has(more) else ()), end]


def fixed_question(ours: str, question: str, call: Call, value: str, *options: str) -> Written:
    """``ours('question', value, option…)`` with a question of our own."""
    behind = "".join(f", {option}" for option in options)
    return wrap(f"{ours}({sql_string(question)}, ", call.value(value), f"{behind})")


def classifies(
    call: Call, value: str, labels: Sequence[tuple[str, str]], question: str = ""
) -> Written:
    """``llm_classify(value, labels)``, with the meanings of labels where there are any."""
    behind = f", question => {sql_string(question)})" if question else ")"
    return wrap("llm_classify(", call.value(value), f", {list_labels(labels)}{behind}")


def list_labels(labels: Sequence[tuple[str, str]]) -> str:
    """Labels as a list, or as an object if one has a meaning."""
    if any(meaning for _, meaning in labels):
        return "{" + ", ".join(f"{sql_string(k)}: {sql_string(v or k)}" for k, v in labels) + "}"
    return "[" + ", ".join(sql_string(label) for label, _ in labels) + "]"


def extracts(call: Call, value: str, fields: Sequence[tuple[str, str]]) -> Written:
    """``llm_extract(value, fields)`` of texts by (name, meaning)."""
    schema = ", ".join(
        f"{quoted_name(name)} TEXT" + (f" COMMENT {sql_string(about)}" if about else "")
        for name, about in fields
    )
    return wrap("llm_extract(", call.value(value), f", {sql_string(schema)})")


def classifies_prompt(call: Call, prompt: str, labels: Sequence[tuple[str, str]]) -> Written:
    """``llm_classify(value, labels)``, or a question with options where the prompt has words."""
    question, values = call.prompt(prompt)
    if question == "{}" and len(values) == 1:
        return classifies(call, prompt, labels)
    return asks("llm_map", call, prompt, f"options => {list_labels(labels)}")


def extract_fields(call: Call, schema: str, prompt: str = "prompt") -> Written:
    """``llm_extract(value, schema)`` of the one value of a prompt."""
    question, values = call.prompt(prompt)
    if len(values) != 1:
        raise call.refusal(
            prompt,
            "several fields need one value in the prompt",
            "Write llm_extract(value, 'name TEXT, …', question => '…').",
        )
    behind = f", {sql_string(schema)}, question => {sql_string(question)})"
    return wrap("llm_extract(", values[0], behind)
