"""Has the functions and operators of another system written in our SQL, or refuses them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.arrow_types import is_text as is_text_type
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Weaver, Written
from blendfusion.language.query_text.token_tree import RESERVED
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.functions.aggregates import end_of
from blendfusion.services.dialects.functions.call import FunctionCall, Spelling, System
from blendfusion.services.dialects.functions.casts import Casts
from blendfusion.services.dialects.functions.literal_patterns import OF_OPERATORS
from blendfusion.services.dialects.functions.operands import is_product, operand_end, operand_start
from blendfusion.services.dialects.functions.types import Types
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

_NO_FUNCTIONS = {
    *("ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CAST", "CUBE", "DISTINCT", "ELSE"),
    *("EXCEPT", "EXCLUDE", "EXISTS", "FILTER", "FROM", "GROUP", "HAVING", "IN", "INTO", "INTERVAL"),
    *("IS", "JOIN", "LATERAL", "LIKE", "ILIKE", "LIMIT", "NOT", "OFFSET", "ON", "OR", "ORDER"),
    *("OVER", "PARTITION", "QUALIFY", "ROLLUP", "SELECT", "SETS", "SOME", "TABLE", "THEN", "TO"),
    *("UNION", "INTERSECT", "USING", "VALUES", "WHEN", "WHERE", "WITH", "WITHIN", "MATERIALIZED"),
    *("RLIKE", "REGEXP", "XOR", "ESCAPE", "RETURN", "RETURNS", "KEY"),
    *("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "DEFAULT", "ROWS", "RANGE", "SET"),
    *("TRY_CAST", "SAFE_CAST", "ORDINAL", "SAFE_OFFSET", "SAFE_ORDINAL"),
    *("IDENTIFIER", "TABLESAMPLE", "PIVOT", "UNPIVOT", "WINDOW", "RENAME"),
}
"""Words before a parenthesis that are no functions."""
_OURS_ALONE = (
    "array_has array_has_any array_has_all array_element array_append array_prepend array_dims "
    "array_ndims array_resize array_pop_back array_pop_front array_positions arrow_cast "
    "arrow_typeof arrow_metadata make_array named_struct date_bin to_local_time get_field "
    "list_has list_has_any list_has_all list_append list_distinct list_sort list_to_string "
    "make_list make_time named_struct struct union_extract union_tag unnest version"
).split()
"""Functions of DataFusion whose names mean nothing else in other systems."""
_ENDS_ORDER = {
    *("LIMIT", "OFFSET", "FETCH", "ROWS", "RANGE", "GROUPS", "UNION", "INTERSECT", "EXCEPT"),
    *("SEPARATOR", "WINDOW", "QUALIFY", "FOR", "MINUS", "EXCLUDE"),
}
_ORDERS = (TokenType.ORDER_BY,)
_TESTS = (TokenType.EQ, TokenType.NEQ)
_COMPARED = (*_TESTS, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE)
_PATTERNS = ("LIKE", "ILIKE")


@cache
def functions_of_datafusion() -> frozenset[str]:
    """The names of the functions of a plain session, in lower case."""
    context = SessionContext(SessionConfig().with_information_schema(True))
    query = "SELECT DISTINCT routine_name FROM information_schema.routines"
    return frozenset(context.sql(query).to_pydict()["routine_name"])


class Claims:
    """The forms of one text that mean something else than in our SQL."""

    def __init__(
        self, weaver: Weaver, known: SessionFacts, system: System, but: Collection[int]
    ) -> None:
        self.weaver = weaver
        self.reader: Reader = weaver.reader
        self.system = system
        self.types = Types(weaver, known)
        self.known = known
        self.casts = Casts(weaver, self.types, system)
        self.claimed: set[int] = set()
        names = _named_relations(self.reader)
        for at in range(len(self.reader.tokens)):
            if at in but:
                continue
            self._operator(at)
            self.casts.claim(at)
            if at not in names and self._is_call(at):
                self._function(at)
        self._names(but)
        if system.unnests_by_name:
            self._named_items()

    # --- functions --------------------------------------------------------------------------------

    def _is_call(self, at: int) -> bool:
        reader = self.reader
        if not reader.opens(at + 1) or reader.kind(at) in (TokenType.STRING, TokenType.IDENTIFIER):
            return False
        before = reader.kind(at - 1)
        typed = before == TokenType.DCOLON
        if before == TokenType.STAR and reader.word(at) == "REPLACE":
            return False
        if reader.word(at) in ("DIV", "MOD") and _ends_operand(reader, at - 1):
            return False
        word = reader.word(at)
        function = word not in _NO_FUNCTIONS or (
            word in self.system.spellings and not _ends_operand(reader, at - 1) and word != "ANY"
        )
        return reader.is_name(at) and function and not typed

    def _function(self, at: int) -> None:
        reader, system = self.reader, self.system
        name = reader.word(at)
        if reader.kind(at - 1) == TokenType.DOT:
            self._check_qualifier(at)
            return
        if reader.word(at - 1) == "AS" and self._is_type(at):
            return
        stop = reader.close[at + 1] + 1
        parts = tuple(reader.parts(at + 2, stop - 1))
        call = FunctionCall(self.weaver, self.types, system, at, stop, parts)
        spellings = system.spellings.get(name, [])
        if spellings:
            self._translate(call, spellings)
        elif name.lower() in system.same:
            return
        elif name in system.refused:
            raise reader.refusal(at, f"{name} has no translation", system.refused[name])
        elif system.strict and not self._is_ours(name.lower()):
            raise reader.refusal(
                at,
                f"{name} of {system.title} has no translation",
                f"BlendFusion's own SQL has a function {name.lower()}: see dialect='sql'.",
            )

    def _is_ours(self, name: str) -> bool:
        """A function that means what it means here: the user's, or one that no system has."""
        if name in self.known.ingredients or name in _OURS_ALONE:
            return True
        return name not in functions_of_datafusion()

    def _check_qualifier(self, at: int) -> None:
        reader = self.reader
        start = at
        while reader.kind(start - 1) == TokenType.DOT and start > 1:
            start -= 2
        if reader.word(start) == "SAFE":
            hint = "TRY_CAST(text AS type) is NULL for a text of no such value."
            raise reader.refusal(start, "SAFE. has no translation", hint)

    def _is_type(self, at: int) -> bool:
        """``DECIMAL(10, 2)`` of a CAST."""
        reader = self.reader
        return all(
            reader.kind(i) in (TokenType.NUMBER, TokenType.COMMA)
            for i in range(at + 2, reader.close[at + 1])
        )

    def _translate(self, call: FunctionCall, spellings: list[Spelling]) -> None:
        if self.system.leaves(call):
            return
        fit = next((s for s in spellings if s.takes(len(call.arguments))), None)
        if fit is None:
            usage = " or ".join(s.signature.replace(", …", ", …") for s in spellings)
            raise call.refusal(
                f"it has no translation with {len(call.arguments)} arguments", f"Write {usage}."
            )
        start, stop = call.at, end_of(call)
        if call.reader.word(call.at + 2) == "DISTINCT" and isinstance(fit.write, str):
            raise call.refusal("DISTINCT has no equal here")
        self.claimed.add(start)
        self.weaver.rewrite_by(start, stop, lambda: list(fit.write_call(call)))

    # --- operators --------------------------------------------------------------------------------

    def _operator(self, at: int) -> None:
        reader, system = self.reader, self.system
        kind, word = reader.kind(at), reader.word(at)
        if kind == TokenType.SLASH and system.exact_division:
            self._division(at)
        elif kind == TokenType.DIV and _ends_operand(reader, at - 1):
            self._whole_division(at)
        elif word == "MOD" and kind != TokenType.MOD and _ends_operand(reader, at - 1):
            self.weaver.rewrite(at, at + 1, "%")
        elif kind == TokenType.MOD and word != "MOD" and system.null_of_zero:
            stop = operand_end(reader, at + 1)
            self.weaver.rewrite(at + 1, stop, "NULLIF(", (at + 1, stop), ", 0)")
        elif kind == TokenType.CARET and system.caret_is_power:
            self._power(at)
        elif kind == TokenType.DPIPE and not system.bars_join:
            raise reader.refusal(at, "|| is OR there", "Write OR, or CONCAT(a, b) for texts.")
        elif kind == TokenType.DAMP and not system.bars_join:
            self.weaver.rewrite(at, at + 1, " AND ")
        elif kind in _ORDERS and system.nulls_lowest:
            self._order(at)
        elif kind in _TESTS and (system.truth_is_number or system.any_case):
            self._truth(at)
            self._text_test(at)
        elif word == "IN" and system.any_case and reader.opens(at + 1):
            self._text_list(at)
        elif word in system.matches and kind not in (TokenType.STRING, TokenType.IDENTIFIER):
            self._match(at, word)
        elif word in _PATTERNS and kind not in (TokenType.STRING, TokenType.IDENTIFIER):
            self._like(at, word)
        elif kind == TokenType.L_BRACKET and system.first_index == 0:
            self._subscript(at)
        elif kind == TokenType.L_BRACKET and system.slices:
            self._slice(at)
        elif kind == TokenType.IDENTIFIER and system.quoted_texts:
            self._quoted_text(at)
        elif kind == TokenType.COLON and system.paths:
            self._path(at)
        elif word == "DATETIME" and reader.kind(at + 1) == TokenType.STRING:
            self.weaver.rewrite(at, at + 1, "TIMESTAMP")
        elif word == "MINUS" and (reader.word(at + 1) == "SELECT" or reader.opens(at + 1)):
            self.weaver.rewrite(at, at + 1, "EXCEPT")
        elif word == "FETCH" and reader.word(at + 1) in ("FIRST", "NEXT"):
            self._fetch(at)
        elif word == "TOP" and reader.word(at - 1) == "SELECT" and not reader.opens(at + 1):
            raise reader.refusal(at, "TOP has no translation", "Write LIMIT at the end.")
        elif word == "IN" and reader.word(at + 1) == "UNNEST" and reader.opens(at + 2):
            self._in_list(at)
        elif kind in (TokenType.DASH, TokenType.PLUS) and system.date_difference:
            self._date_sum(at)
        elif kind == TokenType.COMMA and reader.word(at + 1) == "FROM":
            self.weaver.rewrite(at, at + 1, " ")

    def _division(self, at: int) -> None:
        reader = self.reader
        stop = operand_end(reader, at + 1)
        number = reader.kind(at + 1) == TokenType.NUMBER and stop == at + 2
        if number and float(reader.tokens[at + 1].text) != 0:
            self.weaver.rewrite(at + 1, stop, "CAST(", (at + 1, stop), " AS DOUBLE)")
            return
        divisor: tuple[str | tuple[int, int], ...]
        if self.system.null_of_zero:
            divisor = ("NULLIF(CAST(", (at + 1, stop), " AS DOUBLE), 0)")
        else:  # 0 / 0 of whole numbers is an error, as the division by zero is there
            value = (at + 1, stop)
            divisor = ("(CAST(", value, " AS DOUBLE) + 0 / CAST(", value, " <> 0 AS INT))")
        self.weaver.rewrite(at + 1, stop, *divisor)

    def _whole_division(self, at: int) -> None:
        """``a DIV b``."""
        reader = self.reader
        start, stop = operand_start(reader, at), operand_end(reader, at + 1)
        if is_product(reader, start - 1):
            raise reader.refusal(
                at, "DIV behind another product has no translation", "Put (a * b) in parentheses."
            )
        divisor = (
            ("NULLIF(", (at + 1, stop), ", 0)") if self.system.null_of_zero else ((at + 1, stop),)
        )
        exact: tuple[str | tuple[int, int], ...] = (
            "CAST(trunc(CAST(",
            (start, at),
            " AS DOUBLE) / ",
            *divisor,
            ") AS BIGINT)",
        )
        self.weaver.rewrite(start, stop, *exact)

    def _power(self, at: int) -> None:
        """``a ^ b``."""
        reader = self.reader
        start, stop = operand_start(reader, at), operand_end(reader, at + 1)
        if reader.kind(start - 1) in (TokenType.CARET, TokenType.DASH, TokenType.PLUS):
            signed = not _ends_operand(reader, start - 2)
            if signed or reader.kind(start - 1) == TokenType.CARET:
                raise reader.refusal(at, "^ has no translation here", "Write power(a, b).")
        self.weaver.rewrite(
            start, stop, "power(CAST(", (start, at), " AS DOUBLE), ", (at + 1, stop), ")"
        )

    def _order(self, at: int) -> None:
        """Every key of ORDER BY with the place of its NULLs."""
        reader = self.reader
        stop = at + 1
        while stop < len(reader.tokens):
            if reader.kind(stop) in (TokenType.R_PAREN, TokenType.SEMICOLON):
                break
            if reader.word(stop) in _ENDS_ORDER:
                break
            stop = reader.close.get(stop, stop) + 1
        for _, end in reader.parts(at + 1, stop):
            if reader.word(end - 2) != "NULLS":
                first = reader.word(end - 1) != "DESC"
                self.weaver.behind[end - 1] = f" NULLS {'FIRST' if first else 'LAST'}"

    def _truth(self, at: int) -> None:
        """``condition = 1``, and ``number = TRUE``."""
        reader = self.reader
        for other, start, stop in (
            (at + 1, operand_start(reader, at), at),
            (at - 1, at + 1, operand_end(reader, at + 1)),
        ):
            token = reader.tokens[other] if 0 <= other < len(reader.tokens) else None
            if token is None or stop <= start:
                continue
            alone = operand_end(reader, other) == other + 1 if other > at else True
            truth = {"1": "TRUE", "0": "FALSE"}.get(token.text)
            if token.token_type == TokenType.NUMBER and truth and alone:
                self._as_type(other, (start, stop), pa.types.is_boolean, truth)
            number = {TokenType.TRUE: "1", TokenType.FALSE: "0"}.get(token.token_type)
            if number:
                self._as_type(other, (start, stop), pa.types.is_integer, number)

    def _text_test(self, at: int) -> None:
        """``text = 'A'`` where letter case does not count."""
        reader = self.reader
        if self.system.any_case:
            for literal, start, stop in (
                (at + 1, operand_start(reader, at), at),
                (at - 1, at + 1, operand_end(reader, at + 1)),
            ):
                if reader.kind(literal) == TokenType.STRING:
                    self._in_one_case((start, stop), [literal])
                    return

    def _text_list(self, at: int) -> None:
        """``text IN ('A', 'B')``."""
        reader = self.reader
        parts = reader.parts(at + 2, reader.close[at + 1])
        stop = at - (reader.word(at - 1) == "NOT")
        if all(b == a + 1 and reader.kind(a) == TokenType.STRING for a, b in parts):
            self._in_one_case((operand_start(reader, stop), stop), [a for a, _ in parts])

    def _in_one_case(self, value: tuple[int, int], literals: Sequence[int]) -> None:
        """A value and the literals that it is compared with in lower case, if it is a text that no
        model writes."""
        reader = self.reader
        answered = any(reader.name(i) in self.known.ingredients for i in range(*value))
        cased = any(c.isalpha() for i in literals for c in reader.tokens[i].text)
        if answered or not cased:
            return

        def is_text() -> bool:
            found = self.types.of(*value)
            return found is not None and is_text_type(found)

        def write() -> Written:
            woven = self.weaver.weave(*value)
            return ["lower(", *woven, ")"] if is_text() else [*woven]

        def lower_case(at: int) -> Written:
            text = reader.tokens[at].text
            return [sql_string(text.lower())] if is_text() else [reader.source_text(at, at + 1)]

        self.weaver.rewrite_by(*value, write)
        for at in literals:
            if (at, at + 1) != value:
                self.weaver.rewrite_by(at, at + 1, partial(lower_case, at))

    def _as_type(
        self, at: int, other: tuple[int, int], has: Callable[[pa.DataType], bool], ours: str
    ) -> None:
        def write() -> Written:
            found = self.types.of(*other)
            fits = found is not None and has(found)
            return [ours if fits else self.reader.tokens[at].text]

        self.weaver.rewrite_by(at, at + 1, write)

    def _match(self, at: int, word: str) -> None:
        """``text RLIKE pattern``."""
        reader = self.reader
        operator, pattern = self.system.matches[word]
        if (
            reader.opens(at + 1)
            and not _ends_operand(reader, at - 1)
            and reader.word(at - 1) != "NOT"
        ):
            return  # a function
        negated = reader.word(at - 1) == "NOT"
        stop = operand_end(reader, at + 1)
        if pattern in OF_OPERATORS:
            if stop != at + 2 or reader.kind(at + 1) != TokenType.STRING:
                raise reader.refusal(at, f"the pattern of {word} must be a literal text here")
            ours = sql_string(OF_OPERATORS[pattern](reader.tokens[at + 1].text))
            self.weaver.rewrite(at - negated, stop, f"{'!' * negated}{operator} {ours}")
            return
        before, _, behind = pattern.partition("{0}")
        start = at - negated
        self.weaver.rewrite(
            start, stop, f"{'!' * negated}{operator} {before}", (at + 1, stop), behind
        )

    def _like(self, at: int, word: str) -> None:
        """``x LIKE ANY ('a%', 'b%')``, and LIKE where letter case does not count."""
        reader = self.reader
        quantifier = reader.word(at + 1)
        word = "ILIKE" if word == "ILIKE" else self.system.like
        if quantifier not in ("ANY", "ALL", "SOME") or not reader.opens(at + 2):
            if word != reader.word(at):
                self.weaver.rewrite(at, at + 1, word)
            return
        negated = reader.word(at - 1) == "NOT"
        start, close = operand_start(reader, at - negated), reader.close[at + 2]
        joint = " AND " if quantifier == "ALL" else " OR "
        operator = f" {'NOT ' * negated}{word} "
        parts: list[str | tuple[int, int]] = ["("]
        for i, pattern in enumerate(reader.parts(at + 3, close)):
            parts += [joint] * bool(i) + [(start, at - negated), operator, pattern]
        self.weaver.rewrite(start, close + 1, *parts, ")")

    def _subscript(self, at: int) -> None:
        """``list[0]``, ``list[OFFSET(0)]``: ours begins with 1."""
        reader = self.reader
        before = reader.kind(at - 1)
        item = before in (TokenType.R_PAREN, TokenType.R_BRACKET) or (
            reader.is_name(at - 1) and reader.word(at - 1) not in ("ARRAY", *_NO_FUNCTIONS)
        )
        close = reader.close.get(at)
        if not item or close is None or close == at + 1 or at == 0:
            return
        start, stop, step = at + 1, close, 1
        if reader.word(start) in ("OFFSET", "SAFE_OFFSET", "ORDINAL", "SAFE_ORDINAL"):
            step = int("OFFSET" in reader.word(start))
            start, stop = start + 2, close - 1
        if stop == start + 1 and reader.kind(start) == TokenType.STRING:
            return
        if stop == start + 1 and reader.kind(start) == TokenType.NUMBER:
            number = int(reader.tokens[start].text) + step
            self.weaver.rewrite(at + 1, close, str(number))
            return
        if any(reader.kind(i) == TokenType.COLON for i in range(start, stop)):
            raise reader.refusal(at, "slices have no translation", "Write array_slice(list, 1, 3).")
        value = (start, stop)
        below = "" if step else " > 0"
        tested = ("CASE WHEN ", value, below or " >= 0", " THEN ", value, " + 1" * step, " END")
        self.weaver.rewrite(at + 1, close, *tested)

    def _slice(self, at: int) -> None:
        """``text[0:5]``: the characters from the first to the fifth."""
        reader, close = self.reader, self.reader.close.get(at, 0)
        numbers = [reader.tokens[i].text for i in (at + 1, at + 3) if i < close]
        if (
            close != at + 4
            or reader.kind(at + 2) != TokenType.COLON
            or not _ends_operand(reader, at - 1)
        ):
            return
        if not all(number.isdigit() for number in numbers):
            return
        start = operand_start(reader, at)
        first, last = max(int(numbers[0]), 1), int(numbers[1])

        def write() -> Written:
            found = self.types.of(start, at)
            if found is None or not is_text_type(found):
                return [*self.weaver.weave(start, close + 1)]
            length = max(last - first + 1, 0)
            return ["substr(", *self.weaver.weave(start, at), f", {first}, {length})"]

        self.weaver.rewrite_by(start, close + 1, write)

    def _quoted_text(self, at: int) -> None:
        """``LIKE "%a%"``, where no column has the name."""
        reader = self.reader
        compared = reader.kind(at - 1) in _COMPARED or reader.word(at - 1) in _PATTERNS
        if not compared or TokenType.DOT in (reader.kind(at - 1), reader.kind(at + 1)):
            return

        def write() -> Written:
            column = self.types.of(at, at + 1)
            known = column is None and self.types.reads(at)
            return [sql_string(reader.tokens[at].text) if known else reader.source_text(at, at + 1)]

        self.weaver.rewrite_by(at, at + 1, write)

    def _path(self, at: int) -> None:
        """``column:field.other`` of a STRUCT."""
        reader = self.reader
        inside = [i for i, j in reader.close.items() if i < at < j]
        innermost = max(inside, default=-1)
        if reader.kind(innermost) in (TokenType.L_BRACE, TokenType.L_BRACKET):
            return
        start = operand_start(reader, at)
        if start == at or not (reader.is_name(at + 1) or reader.kind(at + 1) == TokenType.STRING):
            return
        stop, names = at + 2, [reader.tokens[at + 1].text]
        while reader.kind(stop) == TokenType.DOT:
            names.append(reader.tokens[stop + 1].text)
            stop += 2

        def write() -> Written:
            found = self.types.of(start, at)
            if found is not None and not pa.types.is_struct(found):
                hint = "llm_extract(text, 'name TEXT, …') reads fields from a text."
                raise reader.refusal(at, f"':{names[0]}' of a value without fields", hint)
            fields = "".join(f"[{sql_string(name)}]" for name in names)
            return [*self.weaver.weave(start, at), fields]

        self.weaver.rewrite_by(start, stop, write)

    def _in_list(self, at: int) -> None:
        """``x IN UNNEST(list)``."""
        reader = self.reader
        negated = reader.word(at - 1) == "NOT"
        start, close = operand_start(reader, at - negated), reader.close[at + 2]
        tested = "NOT array_has(" if negated else "array_has("
        self.weaver.rewrite(
            start, close + 1, tested, (at + 3, close), ", ", (start, at - negated), ")"
        )

    def _date_sum(self, at: int) -> None:
        """``date - date`` and ``date + 1``, where they are no days."""
        reader, system = self.reader, self.system
        left, right = (operand_start(reader, at), at), (at + 1, operand_end(reader, at + 1))
        numbers = [reader.kind(start) == TokenType.NUMBER for start, _ in (left, right)]
        if not _ends_operand(reader, at - 1) or numbers[0]:
            return
        if reader.word(right[0]) == "INTERVAL" or (numbers[1] and not system.dates_are_numbers):
            return

        def write() -> Written:
            kind = self.types.of(*left)
            if kind is not None and pa.types.is_date(kind):
                other = self.types.of(*right)
                number = other is not None and pa.types.is_integer(other)
                dated = other is not None and pa.types.is_date(other)
                if dated or (number and system.dates_are_numbers):
                    what = f"a date {reader.tokens[at].text} a {'date' if dated else 'number'}"
                    raise reader.refusal(at, f"{what} is no date there", system.date_difference)
            return [reader.tokens[at].text]

        self.weaver.rewrite_by(at, at + 1, write)

    def _fetch(self, at: int) -> None:
        """``FETCH FIRST 3 ROWS ONLY``."""
        reader = self.reader
        numbered = reader.kind(at + 2) == TokenType.NUMBER
        rows = at + 2 + numbered
        if reader.word(rows) in ("ROW", "ROWS") and reader.word(rows + 1) == "ONLY":
            number = reader.tokens[at + 2].text if numbered else "1"
            self.weaver.rewrite(at, rows + 2, f"LIMIT {number}")

    def _named_items(self) -> None:
        """``FROM UNNEST(list) AS item``: the items have the name."""
        reader = self.reader
        for _, _, select, _ in reader.selects:
            for source in reader.sources(select):
                if source.kind != "function" or reader.word(source.start) != "UNNEST":
                    continue
                if source.alias is None or source.columns:
                    continue
                if reader.word(source.stop) == "WITH":
                    raise reader.refusal(source.stop, "WITH OFFSET has no translation")
                alone = len(select.sources) == 1
                name = reader.source_text(source.alias, source.alias + 1)
                if alone:
                    self.weaver.behind[source.alias] = f"({name})"

    # --- names ------------------------------------------------------------------------------------

    def _names(self, but: Collection[int]) -> None:
        """Items of select lists that were translated are named after their own text."""
        reader = self.reader
        forms = sorted(self.claimed)
        for _, _, select, _ in reader.selects if forms else ():
            for start, stop in reader.items(select):
                if not any(start <= at < stop for at in forms) or start in but:
                    continue
                if reader.is_item(start, stop) and not _is_aliased(reader, start, stop):
                    name = quoted_name(reader.one_line(start, stop))
                    self.weaver.behind[stop - 1] = f" AS {name}"


def _ends_operand(reader: Reader, at: int) -> bool:
    """An operand ends with the token at ``at``."""
    kinds = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING)
    if at < 0:
        return False
    word = reader.word(at)
    return reader.kind(at) in kinds or (
        reader.is_name(at) and word not in _NO_FUNCTIONS and word not in RESERVED
    )


def _is_aliased(reader: Reader, start: int, stop: int) -> bool:
    """The item has an alias, with AS or without."""
    if stop - start < 2:
        return False
    if reader.word(stop - 2) == "AS":
        return True
    last = reader.tokens[stop - 1]
    named = (
        last.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and reader.word(stop - 1) != "END"
    )
    before = reader.kind(stop - 2)
    ends = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING)
    return named and (before in ends or reader.is_name(stop - 2))


def _named_relations(reader: Reader) -> set[int]:
    """Where names stand that a parenthesis of columns follows, and functions that are tables."""
    found: set[int] = set()
    for query, _ in reader.scopes():
        found.update(common.name for common in query.common)
    for _, _, select, _ in reader.selects:
        for source in reader.sources(select):
            if source.alias is not None:
                found.add(source.alias)
            if source.kind == "function":
                found.add(source.start)
    for at in range(len(reader.tokens)):
        if reader.word(at - 1) in ("INTO", "TABLE", "UPDATE"):
            found.add(at)
    return found


def claim(weaver: Weaver, known: SessionFacts, system: System, but: Iterable[int] = ()) -> None:
    """Have the forms of ``system`` written, except at the positions ``but``. Raises QueryError for
    one that has no equal."""
    Claims(weaver, known, system, frozenset(but))
