"""Translates SUQL: ``answer(column, 'question')`` and ``summary(column)`` in PostgreSQL's SQL, with
enums."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.arrow_types import is_list
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Form, Weaver, Written
from blendfusion.language.query_text.source_map import Translation
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.common.columns import Columns
from blendfusion.services.dialects.functions.claims import claim
from blendfusion.services.dialects.functions.postgres import POSTGRES
from blendfusion.services.dialects.suql import opening_hours as hours
from blendfusion.services.dialects.suql import postgres_functions as postgres
from blendfusion.services.dialects.suql.enums import Enums
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

_ANSWERS = ("answer", "extract_info")
"""The second is HProPro's name of the same."""
_OPERATORS = {"==": "=", "!=": "<>"}
"""HProPro's operators that SQL spells differently."""
_TRUTH = {"yes": "TRUE", "no": "FALSE"}
_MAKES_LIST = ("ARRAY", "ARRAY_AGG", "MAKE_ARRAY", "STRING_TO_ARRAY")
_COMPARISONS = (TokenType.EQ, TokenType.NEQ)
_ORDERED = (*_COMPARISONS, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE)


def translate(text: str, known: SessionFacts) -> Translation:
    """``text`` in our SQL. Raises QueryError, with the span in ``text``, for a form that has no
    translation."""
    return _SUQL(text, known).weaver.whole()


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: the tokens that it is, those of its column, and that of its question."""

    name: str
    start: int
    stop: int
    column: tuple[int, int]
    question: int | None
    words: tuple[str, ...]
    """The words of the question and its column, however they are spaced."""


class _SUQL:
    def __init__(self, text: str, known: SessionFacts) -> None:
        self.reader = Reader(text)
        self.weaver = Weaver(self.reader)
        self.columns = Columns(self.weaver, known)
        enums = Enums(self.weaver, self.columns)
        postgres.claim(self.weaver, but=enums.claimed)
        calls = [c for c in map(self._call, range(len(self.reader.tokens))) if c is not None]
        compared = {c.start: self._truths(c) for c in calls}
        # A question that is compared with something else, too, is no yes/no question.
        others = {c.words for c in calls if not compared[c.start] and self._is_compared(c)}
        compared = {c.start: [] if c.words in others else compared[c.start] for c in calls}
        decided = {c.words for c in calls if compared[c.start]}
        for call in calls:
            for truth in compared[call.start]:
                self.weaver.add(truth)
            as_text = call.words in decided and not compared[call.start]
            self._claim(call, as_text=as_text and not self._is_typed(call))
        for at in range(len(self.reader.tokens)):
            self._check(at)
        hours.claim(self.weaver)
        claim(self.weaver, known, POSTGRES, but=[call.start for call in calls])

    # --- calls ------------------------------------------------------------------------------------

    def _call(self, at: int) -> _Call | None:
        reader = self.reader
        name = reader.name(at) if reader.opens(at + 1) else ""
        qualified = reader.kind(at - 1) == TokenType.DOT
        if name not in (*_ANSWERS, "summary") or qualified:
            return None
        if at == 0:
            raise reader.refusal(
                at, f"{name}(…) alone reads no table", f"Write SELECT {name}(…) FROM a_table."
            )
        stop = reader.close[at + 1] + 1
        parts = reader.parts(at + 2, stop - 1)
        wanted = 1 if name == "summary" else 2
        if len(parts) != wanted:
            spelling = "summary(column)" if wanted == 1 else f"{name}(column, 'question')"
            problem = f"{name} takes {wanted} arguments, {len(parts)} given"
            raise reader.refusal(at, problem, f"Write {spelling}.")
        question = parts[1][0] if wanted == 2 else None
        if question is not None and not self._is_text(*parts[1]):
            raise reader.refusal(
                question, f"{name}: the question is a text", f"Write {name}(column, 'question')."
            )
        tokens = reader.tokens[at:stop]
        words = (t.text if t.token_type == TokenType.STRING else t.text.lower() for t in tokens)
        return _Call(name, at, stop, parts[0], question, tuple(words))

    def _is_text(self, start: int, stop: int) -> bool:
        parameter = self.reader.source_text(start, stop).startswith("$")
        return stop == start + 1 and (self.reader.kind(start) == TokenType.STRING or parameter)

    def _claim(self, call: _Call, *, as_text: bool) -> None:
        alias = ""
        if self.reader.is_item(call.start, call.stop):
            text = " ".join(self.reader.source_text(call.start, call.stop).split())
            alias = f" AS {quoted_name(text)}"

        def write() -> Written:  # when all forms are known, on which types of columns depend
            ours = self._ours(call)
            if as_text:
                yes, no = " = TRUE THEN 'Yes' WHEN ", " = FALSE THEN 'No' END"
                ours = ["CASE WHEN ", *ours, yes, *ours, no]
            return self.weaver.write(*ours, alias)

        self.weaver.add(Form(call.start, call.stop, write))

    def _ours(self, call: _Call) -> list[str | tuple[int, int]]:
        if call.question is None:
            return ["llm_summary(", call.column, ")"]
        function = "llm_answer(" if self._is_list(*call.column) else "llm_map("
        return [function, (call.question, call.question + 1), ", ", call.column, ")"]

    def _is_list(self, start: int, stop: int) -> bool:
        """The value is a list of texts, which is read item by item."""
        if self.reader.column_end(start) == stop:
            kind = self.columns.type(start, stop)
            return kind is not None and is_list(kind)
        return self.reader.word(start) in _MAKES_LIST

    def _check(self, at: int) -> None:
        """``check(a, b, '==')`` of HProPro."""
        reader = self.reader
        if reader.word(at) != "CHECK" or not reader.opens(at + 1):
            return
        stop = reader.close[at + 1] + 1
        parts = reader.parts(at + 2, stop - 1)
        if len(parts) != 3 or reader.kind(parts[2][0]) != TokenType.STRING:
            return  # a constraint of CREATE TABLE
        if "llm_compare" not in self.columns.known.ingredients:
            raise reader.refusal(at, "check: comparisons by meaning are not there yet")
        theirs = reader.tokens[parts[2][0]].text.strip()
        operator = sql_string(_OPERATORS.get(theirs, theirs))
        self.weaver.rewrite(at, stop, "llm_compare(", parts[0], f", {operator}, ", parts[1], ")")

    # --- yes and no -------------------------------------------------------------------------------

    def _truths(self, call: _Call) -> list[Form]:
        """The literals Yes and No that an answer is compared with, as booleans."""
        reader, found = self.reader, []
        start, behind = self._in_parentheses(call)
        before = start - 1
        if reader.kind(behind) in _COMPARISONS:
            found.append(behind + 1)
        elif reader.kind(before) in _COMPARISONS:
            found.append(before - 1)
        else:
            negated = reader.word(behind) == "NOT"
            among = behind + negated
            if reader.word(among) == "IN" and reader.opens(among + 1):
                found += [a for a, _ in reader.parts(among + 2, reader.close[among + 1])]
        if reader.word(before) == "CASE":
            found += self._branches(behind)
        truths = [self._truth(at) for at in found]
        return [] if None in truths else [t for t in truths if t is not None]

    def _in_parentheses(self, call: _Call) -> tuple[int, int]:
        """The call with the parentheses around it alone."""
        start, stop = call.start, call.stop
        reader = self.reader
        while reader.close.get(start - 1) == stop and not reader.is_called(start - 1):
            start, stop = start - 1, stop + 1
        return start, stop

    def _is_compared(self, call: _Call) -> bool:
        """It is compared with something that is no boolean."""
        reader = self.reader
        if self._is_typed(call):
            return False
        start, stop = self._in_parentheses(call)
        sides = reader.kind(stop) in _ORDERED or reader.kind(start - 1) in _ORDERED
        word = reader.word(stop + (reader.word(stop) == "NOT"))
        return sides or word in ("IN", "LIKE", "ILIKE", "BETWEEN", "SIMILAR")

    def _branches(self, at: int) -> list[int]:
        """Where the values of ``CASE x WHEN value`` stand."""
        found, depth = [], 0
        while at < len(self.reader.tokens) and depth >= 0:
            depth += (self.reader.word(at) == "CASE") - (self.reader.word(at) == "END")
            if depth == 0 and self.reader.word(at) == "WHEN":
                found.append(at + 1)
            at = self.reader.close.get(at, at) + 1
        return found

    def _truth(self, at: int) -> Form | None:
        reader = self.reader
        first = at = reader.open.get(at, at)  # before the operator stands its end
        while reader.opens(at):
            at += 1
        if reader.close.get(first, at) != 2 * at - first or reader.kind(at) != TokenType.STRING:
            return None
        truth = _TRUTH.get(reader.tokens[at].text.strip().rstrip(".").lower())
        return None if truth is None else Form(at, at + 1, lambda: [truth])

    def _is_typed(self, call: _Call) -> bool:
        """A cast, or a comparison with a boolean, says what the answer is."""
        reader = self.reader
        cast = reader.word(call.start - 2) == "CAST" and reader.word(call.stop) == "AS"
        boolean = reader.kind(call.stop) in _COMPARISONS and reader.word(call.stop + 1) in (
            "TRUE",
            "FALSE",
        )
        tested = reader.word(call.stop) == "IS"
        return reader.kind(call.stop) == TokenType.DCOLON or cast or boolean or tested
