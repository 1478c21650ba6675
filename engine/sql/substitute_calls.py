"""Puts functions in the places of a query's calls: among its tokens, and in its text, which stays
unchanged around them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.sql.call_sites import Site
from blendfusion.udfs.declare.arguments import quoted

_ROWS = "bf_rows_"
"""Stands for the lists that an aggregate reads."""
_NO_TEXT = "(no text is given: answer from general knowledge)"
_BRACKETS = {
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    ",": TokenType.COMMA,
}


def in_tokens(tokens: Sequence[Token], sites: Sequence[Site], names: Sequence[str]) -> list[Token]:
    """The tokens of a query in which site i is a call of the function ``names[i]`` on its values.
    They keep their offsets."""
    starts = [token.start for token in tokens]

    def write(start: int, end: int, among: Sequence[int]) -> list[Token]:
        out: list[Token] = []
        for i in among:
            site = sites[i]
            if site.start < start or site.end > end:
                continue
            out += tokens[bisect_left(starts, start) : bisect_left(starts, site.start)]
            first = tokens[bisect_left(starts, site.start)]
            inner = [j for j in among if site.start < sites[j].start < site.stop]
            out += call(site, names[i], first, inner)
            start = site.stop
        return [*out, *tokens[bisect_left(starts, start) : bisect_left(starts, end)]]

    def call(site: Site, name: str, first: Token, inner: Sequence[int]) -> list[Token]:
        def made(text: str, kind: TokenType = TokenType.VAR) -> Token:
            kind = _BRACKETS.get(text, kind)
            return Token(kind, text, first.line, first.col, first.start, first.end)

        inside: list[Token] = []
        for span in site.values:
            inside += [*([made(",")] if inside else []), *write(*span, inner)]
        if site.ingredient.kind.aggregate:
            inside += write(*site.order, inner) if site.order else []
            inside = [made(_ROWS), made("("), *inside, made(")")]
            inside += write(*site.clauses, inner) if site.clauses else []
        fields = site.part[0] if site.part else ()
        taken = [t for f in fields for t in (made("["), made(f, TokenType.STRING), made("]"))]
        return [made(name), made("("), *inside, made(")"), *taken]

    end = tokens[-1].end + 1 if tokens else 0
    return write(0, end, range(len(sites)))


def in_text(
    sql: str, sites: Sequence[Site], name: Callable[[int], str], nulls_last: Sequence[int] = ()
) -> str:
    """``sql`` with site i written as a call of the function ``name(i)`` on its values, and NULLS
    LAST at some offsets.

    An aggregate becomes a function of lists, ``name(array_agg(value))``, one list a value, and its
    clauses (ORDER BY, FILTER, OVER) go to the lists: DataFusion orders, filters and groups.
    """

    def copied(start: int, end: int) -> str:
        stops = [at for at in nulls_last if start < at <= end]
        parts = [sql[a:b] for a, b in zip([start, *stops], [*stops, end], strict=True)]
        return " NULLS LAST".join(parts)

    def write(start: int, end: int, among: Sequence[int]) -> str:
        out, at = [], start
        for i in among:
            site = sites[i]
            if site.start < at or site.end > end:
                continue
            inner = [j for j in among if site.start < sites[j].start < site.stop]
            values = [write(a, b, inner) for a, b in site.values] or [_no_value(site)]
            kind = site.ingredient.kind
            if kind.aggregate:
                order, clauses = (
                    f" {write(*span, inner)}" if span else "" for span in (site.order, site.clauses)
                )
                values = [
                    f"array_agg({_cast(v, kind.cast(place))}{order}){clauses}"
                    for place, v in enumerate(values)
                ]
            else:
                values = [_cast(v, kind.cast(place)) for place, v in enumerate(values)]
            part = "".join(f"[{quoted(field)}]" for field in site.part[0]) if site.part else ""
            call = f"{name(i)}({', '.join(values)}){part}"
            # Lines keep their numbers, which DataFusion's messages name.
            missing_lines = sql.count("\n", site.start, site.stop) - call.count("\n")
            out += [copied(at, site.start), call, "\n" * missing_lines]
            at = site.stop
        return "".join([*out, copied(at, end)])

    return write(0, len(sql), range(len(sites)))


def _no_value(site: Site) -> str:
    """What a question without a value is put about, as SQL."""
    return f"DISTINCT {quoted(_NO_TEXT)}" if site.ingredient.kind.aggregate else quoted(_NO_TEXT)


def _cast(value: str, to: pa.DataType | None) -> str:
    if to is None:
        return value
    distinct, _, rest = value.partition(" ")
    if distinct.upper() == "DISTINCT":
        return f"DISTINCT arrow_cast({rest}, '{_cast_name(to)}')"
    return f"arrow_cast({value}, '{_cast_name(to)}')"


def _cast_name(to: pa.DataType) -> str:
    """An Arrow type as ``arrow_cast`` names it."""
    if pa.types.is_list(to):
        return f"List({_cast_name(to.value_type)})"
    return _CAST_NAMES[to]


_CAST_NAMES = {
    pa.string(): "Utf8",
    pa.binary(): "Binary",
    pa.bool_(): "Boolean",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
    pa.timestamp("us"): "Timestamp(Microsecond, None)",
}
"""The types of value columns, as ``arrow_cast`` names them."""
