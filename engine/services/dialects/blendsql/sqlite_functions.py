"""Translates SQLite features of BlendSQL's queries that DataFusion lacks: MATCH, EXISTS among the
items of a SELECT, GROUP_CONCAT, IIF, and sums of conditions."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Query, Reader, Select, Source
from blendfusion.language.query_text.rewriter import Form, Weaver
from blendfusion.language.query_text.source_map import Piece, Translation
from blendfusion.udfs.declare.arguments import sql_string

MOST_MATCHES = 1000
"""Rows that a search gives where the query has more to say than how many it wants."""

_SCORE, _RANK = "_score", "_rank"
"""Columns that llm_search adds. SQLite's rank ascends where the score descends."""

_ENDS = (
    *("AND", "OR", "ORDER", "LIMIT", "GROUP", "HAVING", "UNION", "INTERSECT", "EXCEPT", "OFFSET"),
    "WINDOW",
)
_COMPARES = {
    *("=", "==", "<>", "!=", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IN", "LIKE", "IS"),
    *("BETWEEN", "EXISTS"),
}
"""Operators whose results are conditions."""
_CONDITIONS = ("GROUP", "HAVING", "DISTINCT", "QUALIFY")


def in_our_words(reader: Reader) -> Translation:
    """A text with DataFusion's forms in the place of SQLite's. Calls in ``{{…}}`` are unchanged."""
    return _SQLite(reader).weaver.whole()


class _SQLite:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.weaver = Weaver(reader)
        for at in range(len(reader.tokens)):
            word = reader.word(at)
            if word == "MATCH":
                self._match(at)
            elif word == "EXISTS" and reader.opens(at + 1):
                self._exists(at)
            elif word in ("GROUP_CONCAT", "IIF") and reader.opens(at + 1):
                self._function(at, word)
            elif word in ("SUM", "AVG") and reader.opens(at + 1):
                self._sum(at)

    # --- functions --------------------------------------------------------------------------------

    def _function(self, at: int, word: str) -> None:
        close = self.reader.close[at + 1]
        parts = self.reader.parts(at + 2, close)
        if word == "GROUP_CONCAT" and parts:
            self.weaver.rewrite(at, at + 1, "string_agg")
            if len(parts) == 1:
                self.weaver.behind[close - 1] = ", ','"
        elif word == "IIF" and len(parts) in (2, 3):
            condition, then, *other = parts
            end: list[str | tuple[int, int]] = [" ELSE ", *other] if other else []
            self.weaver.rewrite(
                at, close + 1, "CASE WHEN ", condition, " THEN ", then, *end, " END"
            )

    def _sum(self, at: int) -> None:
        """A condition is 1 or 0 in SQLite."""
        start, close = at + 2, self.reader.close[at + 1]
        start += self.reader.word(start) in ("DISTINCT", "ALL")
        words = self._open_words(start, close)
        if not words & _COMPARES or "CASE" in words:
            return
        function = self.reader.source_text(at, start) + " " * (start > at + 2)
        self.weaver.rewrite(at, close + 1, f"{function}CAST((", (start, close), ") AS INT))")

    def _exists(self, at: int) -> None:
        """DataFusion has EXISTS in conditions only; here it is a count of one row at most."""
        around = self.reader.around(at)
        if not around:
            return
        select = around[0][0]
        first, last = select.items
        if not first <= at < last or select.sources:
            return
        close = self.reader.close[at + 1]
        counted = "(SELECT count(1) > 0 FROM (SELECT 1 FROM "
        inside = at + 1, close + 1
        self.weaver.rewrite(at, close + 1, counted, inside, " AS found LIMIT 1))")

    # --- MATCH ------------------------------------------------------------------------------------

    def _match(self, at: int) -> None:
        reader = self.reader
        start = reader.operand_before(at)
        if start == at or reader.column_end(start) != at:
            return
        around = reader.around(at)
        if not around or around[0][0].where is None:
            raise reader.refusal(at, "MATCH is outside of WHERE", _SPELLING)
        select, query = around[0]
        where = select.where or (0, 0)
        stop = self._expression_end(at + 1, where[1])
        depth = reader.depth(where[0], start)
        open_words = self._open_words(*where)
        if depth or "OR" in open_words or reader.word(start - 1) == "NOT" or stop == at + 1:
            raise reader.refusal(at, "MATCH must be a condition of every row", _SPELLING)
        source = self._searched_table(start, at, select)
        alone = (start, stop) == (where[0] + 1, where[1])
        parameter = reader.source_text(at + 1, stop).startswith("$")
        literal = stop == at + 2 and (reader.kind(at + 1) == TokenType.STRING or parameter)
        k = self._most(select, query, alone=alone)
        self._replace(source, select, at, stop, k, literal=literal)
        self.weaver.rewrite(*(where if alone else (start, stop)), "" if alone else "TRUE")
        self._rank(query, select)
        self._stars(select)

    def _expression_end(self, at: int, end: int) -> int:
        while at < end and self.reader.word(at) not in _ENDS:
            at = self.reader.close.get(at, at) + 1
        return at

    def _open_words(self, start: int, end: int) -> set[str]:
        """The words that stand in no bracket."""
        words, at = set(), start
        while at < end:
            words.add(self.reader.word(at))
            at = self.reader.close.get(at, at) + 1
        return words

    def _searched_table(self, start: int, at: int, select: Select) -> Source:
        """The table that is searched."""
        for source in select.sources:
            named = self.reader.name_of(source) == self.reader.name(start)
            if named and source.kind == "table" and at == start + 1:
                return source
        name = self.reader.source_text(start, at)
        raise self.reader.refusal(start, f"MATCH: no table '{name}' in FROM", _SPELLING)

    def _most(self, select: Select, query: Query, *, alone: bool) -> int:
        """The number of rows that the search must give: that of LIMIT, if nothing else selects
        rows."""
        reader = self.reader
        words = self._open_words(select.start, select.end)
        chooses = not alone or any(s.on for s in select.sources) or words & set(_CONDITIONS)
        if chooses or len(query.branches) != 1:
            return MOST_MATCHES
        at = select.end
        while at < query.end:
            if reader.kind(at) == TokenType.ORDER_BY and not self._best_first(at + 1):
                return MOST_MATCHES
            if reader.word(at) == "LIMIT" and reader.kind(at + 1) == TokenType.NUMBER:
                skipped = reader.word(at + 2) == "OFFSET"
                most = int(reader.tokens[at + 1].text)
                more = reader.tokens[at + 3].text if skipped else "0"
                return most + int(more) if more.isdigit() else MOST_MATCHES
            at = reader.close.get(at, at) + 1
        return MOST_MATCHES

    def _replace(
        self, source: Source, select: Select, at: int, stop: int, k: int, *, literal: bool
    ) -> None:
        reader = self.reader
        table = ".".join(reader.name(i) for i in range(source.start, source.end, 2))
        alias = reader.source_text(
            *((source.alias, source.alias + 1) if source.alias else (source.end - 1, source.end))
        )
        search = (
            f"llm_search({sql_string(table)}, ",
            (at + 1, stop),
            f", k => {k}, mode => 'text') AS {alias}",
        )
        if literal:
            self.weaver.rewrite(source.start, source.stop, *search)
            return
        # What the text of the query is made of comes first.
        first, *others = select.sources
        second = others[0] if len(others) == 1 else first
        if second is first or second.on or second.words not in (("JOIN",), (",",)):
            raise reader.refusal(at, "MATCH with a text made of columns", _SPELLING)
        if source is first:
            moved = Piece(
                reader.source_text(second.start, second.stop),
                *reader.span(second.start, second.stop),
                copied=True,
            )
            self.weaver.add(Form(first.start, first.stop, lambda: [moved]))
        self.weaver.rewrite(second.start, second.stop, *search)
        if second.words == ("JOIN",):
            self.weaver.rewrite(second.before, second.before + 1, "CROSS JOIN")

    def _stars(self, select: Select) -> None:
        """``*`` has the columns of the table only."""
        for start, stop in self.reader.items(select):
            if self.reader.kind(stop - 1) == TokenType.STAR and stop == start + 1:
                self.weaver.behind[start] = f" EXCLUDE ({_SCORE}, {_RANK})"

    def _best_first(self, at: int) -> bool:
        """``rank`` or ``t.rank`` stands at ``at``, and ascends."""
        at += 2 if self.reader.kind(at + 1) == TokenType.DOT else 0
        return self.reader.word(at) == "RANK" and self.reader.word(at + 1) != "DESC"

    def _rank(self, query: Query, select: Select) -> None:
        """``ORDER BY rank``: the best matches first."""
        reader = self.reader
        for at in range(select.end, query.end):
            if reader.word(at) != "RANK":
                continue
            start = at - 2 if reader.kind(at - 1) == TokenType.DOT else at
            stop = at + 1
            direction = "ASC" if reader.word(stop) == "DESC" else "DESC"
            stop += reader.word(stop) in ("ASC", "DESC")
            self.weaver.rewrite(start, stop, f"{_SCORE} {direction}")


_SPELLING = "Write FROM llm_search('documents', 'words', k => 5, mode => 'text'), which gives rows and their _score."
