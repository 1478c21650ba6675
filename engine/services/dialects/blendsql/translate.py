"""Translates BlendSQL: ``{{LLMMap('question', t.column)}}`` and similar calls, current and
earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError, close_matches
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Form, Weaver, Written, join_parts
from blendfusion.language.query_text.source_map import Piece, Translation, identity, within
from blendfusion.services.dialects.blendsql.arguments import Arguments
from blendfusion.services.dialects.blendsql.bare_columns import with_values
from blendfusion.services.dialects.blendsql.contexts import Contexts
from blendfusion.services.dialects.blendsql.options import Options
from blendfusion.services.dialects.blendsql.select_aliases import aliases_in_where
from blendfusion.services.dialects.blendsql.signatures import GONE, signature
from blendfusion.services.dialects.blendsql.sqlite_functions import in_our_words
from blendfusion.services.dialects.common.braces import (
    Argument,
    Braces,
    is_call,
    read_call,
    read_named,
)
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.common.columns import Columns, plain_name
from blendfusion.services.dialects.common.positional import as_query, fill_positional
from blendfusion.services.dialects.functions.claims import claim
from blendfusion.services.dialects.functions.sqlite import SQLITE
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

_EQUALS = (TokenType.EQ, TokenType.NEQ)
_NUMBERS = {TokenType.TRUE: "1", TokenType.FALSE: "0"}
"""TRUE and FALSE in SQLite."""
_CAPTION = "Describe the image in one sentence."


def translate(text: str, known: SessionFacts) -> Translation:
    """``text`` in our SQL; text without a form of BlendSQL's stays as it is, byte for byte.

    Raises QueryError, with the span in ``text``, for a form that has no translation.
    """
    steps: list[Callable[[Reader], Translation]] = [
        as_query,
        in_our_words,
        with_values,
        lambda reader: aliases_in_where(reader, known),
    ]
    if known.parameters is not None:
        values = known.parameters
        steps.insert(0, lambda reader: fill_positional(reader, values))
    done = identity(text)
    steps.append(lambda reader: _BlendSQL(reader, known, done).whole())
    reader = Reader(done.sql)
    for step in steps:
        try:
            next_one = step(reader)
        except QueryError as problem:
            raise within(problem, done) from None
        if next_one.sql is not reader.text:
            done = done.then(next_one)
            reader = Reader(done.sql)
    return done


class _BlendSQL:
    """One text; its calls in braces are written as calls of BlendFusion's functions."""

    def __init__(self, reader: Reader, known: SessionFacts, before: Translation) -> None:
        self.reader = reader
        if known.parameters is not None:
            self.reader.data = frozenset(_values(self.reader, before))
        self.known = known
        self.weaver = Weaver(self.reader)
        self.columns = Columns(self.weaver, known)
        self.options = Options(self.columns)
        self.contexts = Contexts(self.columns, self.options)
        self._aliases: set[tuple[int, str]] = set()
        at, calls = 0, set[int]()
        while at < len(self.reader.tokens):
            if is_call(self.reader, at):
                self._claim(read_call(self.reader, at))
                calls |= {at, at + 1, at + 2}
                at += 2
            elif self.reader.kind(at) in _NUMBERS and self.reader.kind(at - 1) in _EQUALS:
                self._truth(at)
            at += 1
        claim(self.weaver, known, SQLITE, but=calls)

    def whole(self) -> Translation:
        return self.weaver.whole()

    def _truth(self, at: int) -> None:
        """``column = TRUE``, of a column of integers."""
        start = self.reader.operand_before(at - 1)
        if self.reader.column_end(start) != at - 1:
            return
        kind = self.columns.type(start, at - 1)
        if kind is not None and pa.types.is_integer(kind):
            self.weaver.add(Form(at, at + 1, lambda: [_NUMBERS[self.reader.tokens[at].token_type]]))

    # --- calls ------------------------------------------------------------------------------------

    def _claim(self, call: Braces) -> None:
        """Have the call written, and those that stand in it without braces."""
        write = self._writer(call)
        start, stop = call.start, call.stop
        before = self.reader.word(start - 1)
        bare = False
        if before == "VALUES":
            start -= 1
            bare = self.reader.word(start - 1) == "FROM"
        if before in ("JOIN", "FROM") and call.name.lower() != "llmjoin":
            raise self.reader.refusal(
                call.at, f"{call.name} gives a value, not a table", "Call it in SELECT or WHERE."
            )
        alias = self._alias(call)
        around = ("(", ")") if bare else ("", "")
        self.weaver.add(Form(start, stop, lambda: [around[0], *write(), around[1], alias]))
        for given in call.given:
            inner = read_named(self.reader, given.start)
            if inner is not None and inner.stop == given.stop and self._is_known(inner.name):
                self._claim(inner)

    def _is_known(self, name: str) -> bool:
        return signature(name) is not None or name.lower() in GONE

    def _alias(self, call: Braces) -> str:
        """A column name, if the call is a whole item of a select list without one; else ''."""
        if call.start == call.at or not self.reader.is_item(call.start, call.stop):
            return ""
        first = call.given[0] if call.given else Argument(None, call.at, call.at)
        text = " ".join(self.reader.source_text(call.at, call.stop - 2).split())
        question = first.name in (None, "question") and first.stop == first.start + 1
        if call.name.lower() == "llmmap" and question and self._is_string(first.start):
            text = self.reader.tokens[first.start].text
        if any(self.reader.is_query(g.start, g.stop) for g in call.given):
            first = call.given[0]
            text = f"{call.name}({self.reader.source_text(first.start, first.stop)})"
        select = self.reader.around(call.start)[0][0]
        if (select.start, text) in self._aliases:
            return ""
        self._aliases.add((select.start, text))
        return f" AS {quoted_name(text)}"

    def _is_string(self, at: int) -> bool:
        return self.reader.kind(at) == TokenType.STRING and at not in self.reader.data

    def _writer(self, call: Braces) -> Callable[[], Written]:
        name = call.name.lower()
        if name in GONE:
            problem, hint = GONE[name]
            raise self.reader.refusal(call.at, problem, hint)
        takes = signature(name)
        if takes is not None:
            arguments = Arguments(self.weaver, call, takes)
            if name in ("vqa", "imagecaption"):
                return lambda: self._about_images(arguments)
            if name == "llmmap":
                return lambda: self._map(arguments)
            if name == "llmjoin":
                return self._join(arguments)
            return lambda: self.contexts.call(arguments, name)
        if name in self.known.ingredients:
            return lambda: self._custom(call, name)
        names = ["LLMMap", "LLMQA", "LLMJoin", "LLMValidate", *self.known.ingredients]
        raise self.reader.refusal(
            call.at, f"unknown function '{call.name}'", close_matches(call.name, names)
        )

    def _custom(self, call: Braces, name: str) -> Written:
        parts: list[Iterable[Piece | str]] = []
        for given in call.given:
            written = self.columns.value(given)
            parts.append([f"{given.name} => ", *written] if given.name else written)
        return [f"{name}(", *join_parts(parts), ")"]

    # --- LLMMap -----------------------------------------------------------------------------------

    def _map(self, given: Arguments) -> Written:
        values, context = self._values_and_context(given)
        if context is None and given.schema is None and all(map(self.columns.is_images, values)):
            return self._about_images(given)
        if given.schema is not None:
            if len(values) != 1 or context is not None:
                raise self.reader.refusal(
                    given.call.at,
                    f"{given.call.name}: the fields of a schema are read from one value",
                    "Join the values into one: a || ' ' || b.",
                )
            return self.contexts.extract(given, given.schema, self.columns.value(values[0]))
        parts: list[Iterable[Piece | str]] = [given.text("question")]
        parts += [self.columns.value(value) for value in values]
        if context is not None:
            is_query = self.reader.is_query(context.start, context.stop)
            context_text = (
                self.contexts.as_text(self.contexts.table(context))
                if is_query
                else self.columns.value(context)
            )
            parts.append(context_text)
        parts += self.options.write(given)
        return ["llm_map(", *join_parts(parts), ")"]

    def _values_and_context(self, given: Arguments) -> tuple[list[Argument], Argument | None]:
        """The values of a call by row, and the context that they share, if any."""
        values, context = given.values, given.one("context")
        if not values and context is not None:  # the value's name in old versions
            values, context = [context], None
        if not values:
            raise self.reader.refusal(
                given.call.at,
                f"{given.call.name}: no column to ask about",
                given.signature.spelling,
            )
        return values, context

    def _about_images(self, given: Arguments) -> Written:
        """A question about images, or their captions."""
        values, context = self._values_and_context(given)
        if context is not None:
            raise self.reader.refusal(
                context.start, f"{given.call.name} takes images only", given.signature.spelling
            )
        if given.schema is not None:
            raise self.reader.refusal(
                given.schema.start,
                f"{given.call.name}: an answer about images is one value or one list",
                "Ask for each field by itself.",
            )
        captions = "question" not in given.signature.positional
        parts: list[Iterable[Piece | str]] = [
            [sql_string(_CAPTION)] if captions else given.text("question")
        ]
        parts += [self.columns.value(value) for value in values]
        return ["llm_vqa(", *join_parts([*parts, *self.options.write(given)]), ")"]

    # --- LLMJoin ----------------------------------------------------------------------------------

    def _join(self, given: Arguments) -> Callable[[], Written]:
        reader, call = self.reader, given.call
        left, right = given.one("left_on"), given.one("right_on")
        if left is None or right is None:
            raise reader.refusal(
                call.at, f"{call.name} takes left_on and right_on", given.signature.spelling
            )
        if "llm_join" not in self.known.ingredients:
            a, b = ("".join(map(_text_of, self.columns.value(side))) for side in (left, right))
            raise reader.refusal(
                call.at,
                f"{call.name}: joins by meaning are not there yet",
                f"Write ON llm_filter('Are these the same?', {a}, {b}): every pair is asked about.",
            )

        def write() -> Written:
            parts: list[Iterable[Piece | str]] = [
                self.columns.value(left),
                self.columns.value(right),
            ]
            how = given.one("join_criteria")
            if how is not None:
                parts.append(["how => ", *given.text("join_criteria")])
            parts += given.passed_on("many", "exact", "k", "on_error")
            condition: Written = ["llm_join(", *join_parts(parts), ")"]
            if reader.word(call.start - 1) != "JOIN":
                return condition
            return [f"{self._joined_table(call, left, right)} ON ", *condition]

        return write

    def _joined_table(self, call: Braces, left: Argument, right: Argument) -> str:
        """The table of the two that is not in FROM yet."""
        reader = self.reader
        before = set()
        for select, _ in reader.around(call.start)[:1]:
            for source in reader.sources(select):
                if source.start < call.start:
                    alias = source.alias if source.alias is not None else source.end - 1
                    before.add(reader.name(alias))
        tables = []
        for side in (left, right):
            pair = reader.pair(side.start) if side.stop == side.start + 1 else None
            tables.append(reader.name(side.start) if pair is None else pair[0])
        new = [t for t in tables if t not in before]
        if len(new) != 1:
            raise reader.refusal(
                call.at,
                f"{call.name}: which table is joined?",
                "Write JOIN table ON {{LLMJoin(…)}}.",
            )
        return plain_name(new[0])


def _text_of(part: Piece | str) -> str:
    return part if isinstance(part, str) else part.text


def _values(reader: Reader, before: Translation) -> Iterable[int]:
    """Where the values of ``?`` stand, in the text that ``before`` made."""
    for at, token in enumerate(reader.tokens):
        start, end = before.origin(token.start, token.end + 1)
        if before.source[start:end] == "?":
            yield at
