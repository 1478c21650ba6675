"""Writes the named arguments of a call in braces as ours: closed sets, types, list lengths."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.arrow_types import is_text
from blendfusion.language.query_text.rewriter import Written
from blendfusion.services.dialects.blendsql.arguments import Arguments
from blendfusion.services.dialects.blendsql.signatures import signature
from blendfusion.services.dialects.common.braces import (
    Argument,
    Braces,
    is_call,
    read_call,
    read_named,
)
from blendfusion.services.dialects.common.columns import Base, Columns
from blendfusion.udfs.declare.arguments import INFERRED, sql_string

_ORDERS = (TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE)


class Options:
    """The named arguments of the calls of one text."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.weaver = columns.weaver
        self.reader = columns.reader

    def write(self, given: Arguments) -> list[Written]:
        """The named arguments of BlendFusion's function, from those of a BlendSQL call."""
        written: list[Written] = []
        options = given.one("options")
        returns = given.returns
        explicit = options is not None or returns is not None or given.one("regex") is not None
        inferred = None if explicit else self._infer(given.call)
        if options is not None and self.reader.word(options.start) not in ("NONE", "NULL"):
            self._check_kinds(options, given.call)
            written.append(["options => ", *self._set(options)])
        elif inferred is not None:
            written.append([f"options => {inferred}"])
        returns = self.return_type(given)
        if returns is None and not explicit and inferred is None and self._is_number(given.call):
            returns = "int"
        if returns is not None:
            written.append([f"returns => {sql_string(returns)}"])
        return [*written, *given.passed_on("regex", "confidence", "on_error", "examples")]

    def _is_number(self, call: Braces) -> bool:
        """Where BlendSQL takes an answer for a whole number: in MAX, MIN and ORDER BY, and compared
        with another answer or a subquery."""
        reader, start, stop = self.reader, call.start, call.stop
        if reader.kind(start - 1) == TokenType.ORDER_BY:
            return True
        if reader.opens(start - 1) and reader.close[start - 1] == stop:
            if reader.word(start - 2) in ("MAX", "MIN"):
                return True
        elif reader.word(start - 1) == "DISTINCT" and reader.word(start - 3) in ("MAX", "MIN"):
            return True
        if reader.kind(stop) in _ORDERS:
            return is_call(reader, stop + 1) or reader.word(stop + 2) == "SELECT"
        if reader.kind(start - 1) in _ORDERS:
            return start > 1 and reader.kind(start - 2) == TokenType.R_BRACE
        # The only item of a subquery that an answer is compared with.
        alone = reader.word(start - 1) == "SELECT" and reader.opens(start - 2)
        return alone and reader.kind(start - 3) in _ORDERS

    def return_type(self, given: Arguments) -> str | None:
        """The type for ``returns``: a list where several answers are needed."""
        returns = given.returns
        if self.list_place(given.call) is not None and not given.is_list:
            return "list+" if returns is None else f"list[{returns}]+"
        if returns is None and given.quantifier is not None:
            return f"list{given.quantifier}"
        return returns

    def _set(self, given: Argument) -> Written:
        """A closed set: literals, ``'a;b'``, a column, a subquery, or the answers of a call."""
        reader = self.reader
        if reader.is_query(given.start, given.stop) or reader.kind(given.start) in (
            TokenType.L_BRACKET,
            TokenType.PARAMETER,
        ):
            return list(self.weaver.weave(given.start, given.stop))
        if given.stop == given.start + 1 and reader.kind(given.start) == TokenType.STRING:
            text = reader.tokens[given.start].text
            if reader.pair(given.start) is None:
                options = [part.strip() for part in text.split(";")]
                return [f"[{', '.join(sql_string(o) for o in options if o)}]"]
        inner = self._inner(given)
        if inner is not None:
            written = self.weaver.weave(given.start, given.stop)
            takes = signature(inner.name)
            if takes is not None and Arguments(self.weaver, inner, takes).is_list:
                return ["(SELECT unnest(answers) FROM (SELECT ", *written, " AS answers))"]
            return ["(SELECT ", *written, ")"]
        if self.columns.is_column(given):
            base = self.base(given)
            return [f"(SELECT {base.column} FROM {base.relation})"]
        return list(self.weaver.weave(given.start, given.stop))

    def _check_kinds(self, options: Argument, call: Braces) -> None:
        """Raises QueryError for options that are numbers, compared with a text."""
        reader, at = self.reader, call.stop + 1
        inside = range(options.start + 1, options.stop - 1)
        kinds = {reader.kind(i) for i in inside} - {TokenType.COMMA}
        equal = reader.kind(call.stop) in (TokenType.EQ, TokenType.NEQ)
        if equal and reader.kind(at) == TokenType.STRING and kinds == {TokenType.NUMBER}:
            text = reader.source_text(at, at + 1)
            raise reader.refusal(
                at, f"{text} is a text, and the options are numbers", "Write options of one type."
            )

    def _inner(self, given: Argument) -> Braces | None:
        """The call that an argument is, with braces of its own or without."""
        if is_call(self.reader, given.start):
            return read_call(self.reader, given.start)
        return read_named(self.reader, given.start)

    def base(self, given: Argument) -> Base:
        """The base column behind a column. Raises QueryError where it is unknown."""
        found = self.columns.base(given)
        if found is None:
            column = self.reader.source_text(given.start, given.stop)
            raise self.reader.refusal(
                given.start, f"'{column}': of which table?", f"Write table.{column}."
            )
        return found

    def _infer(self, call: Braces) -> str | None:
        """The values of the column of texts that a call is compared with: ``t.c = {{…}}``."""
        reader = self.reader
        equal = reader.kind(call.start - 1) == TokenType.EQ
        among = reader.word(call.start - 1) == "IN"
        if not (equal or among):
            return None
        stop = call.start - 1 - (among and reader.word(call.start - 2) == "NOT")
        start = reader.operand_before(stop)
        if start < 0 or reader.column_end(start) != stop:
            return None
        found = self.columns.base(Argument(None, start, stop))
        if found is None:  # of several tables: DataFusion says so
            return None
        query = f"SELECT {found.column} FROM {found.relation}"
        schema = self.columns.schema(query, start)
        texts = schema is not None and len(schema.types) == 1 and is_text(schema.types[0])
        return f"({query} {INFERRED})" if texts else None

    def list_place(self, call: Braces) -> str | None:
        """``IN`` or ``VALUES``, if the call stands right behind it, ``UNNEST`` inside it."""
        before = self.reader.word(call.start - 1)
        if before in ("IN", "VALUES"):
            return before
        if self.reader.opens(call.start - 1) and self.reader.word(call.start - 2) == "UNNEST":
            return "UNNEST"
        return None
