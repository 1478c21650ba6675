"""Puts functions in the places of a query's calls: among its tokens, and in its text, which stays
unchanged around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.call_sites import Site
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Form, Weaver, Written, join_parts
from blendfusion.language.query_text.source_map import Piece, Translation
from blendfusion.udfs.ask.media import NAME_OF_BYTES
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.declare.call import Call

_ROWS = "bf_rows_"
"""Stands for the lists that an aggregate reads."""
NO_TEXT = "(no text is given: answer from general knowledge)"
"""Stands for the text of a question without one."""
_ZONED = ("WITH", "WITHOUT")
_BRACKETS = {
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    ",": TokenType.COMMA,
}


def in_tokens(tree: Reader, sites: Sequence[Site], names: Sequence[str]) -> list[Token]:
    """The tokens of a query in which site i is a call of the function ``names[i]`` on its values.
    They keep their offsets."""
    starting = {site.start: i for i, site in enumerate(sites)}

    def write(start: int, stop: int) -> Iterable[Token]:
        while start < stop:
            i = starting.get(start)
            if i is None:
                yield tree.tokens[start]
                start += 1
            else:
                yield from call(sites[i], names[i], tree.tokens[start])
                start = sites[i].stop

    def call(site: Site, name: str, first: Token) -> Iterable[Token]:
        def make(text: str, kind: TokenType = TokenType.VAR) -> Token:
            kind = _BRACKETS.get(text, kind)
            return Token(kind, text, first.line, first.col, first.start, first.end)

        inside: list[Token] = []
        for span in site.values:
            inside += [*([make(",")] if inside else []), *write(*span)]
        if site.ingredient.kind.aggregate:
            inside += write(*site.order) if site.order else []
            inside = [make(_ROWS), make("("), *inside, make(")")]
            inside += write(*site.clauses) if site.clauses else []
        fields = site.part[0] if site.part else ()
        taken = [t for f in fields for t in (make("["), make(f, TokenType.STRING), make("]"))]
        return [make(name), make("("), *inside, make(")"), *taken]

    return list(write(0, len(tree.tokens)))


def in_text(
    tree: Reader, calls: Sequence[tuple[Site, Call]], behind: Mapping[int, str]
) -> Translation:
    """A text with each site written as the function of its call on its values, and some text behind
    tokens.

    A cast of moments to TIMESTAMP is left out: they are of that type, and DataFusion would cast
    them to nanoseconds, which fails before the year 1678. An aggregate becomes a function of lists,
    ``name(array_agg(value))``, one list a value, and its clauses (ORDER BY, FILTER, OVER) go to the
    lists: DataFusion orders, filters and groups.
    """
    weaver = Weaver(tree, behind=dict(behind))

    def form(site: Site, call: Call) -> Form:
        def write() -> Iterable[Piece | str]:
            named = call.in_bytes if call.names_bytes else ()
            places = range(len(site.values) or 1)
            values = [_value(weaver, site, place, named=place in named) for place in places]
            fields = site.part[0] if site.part else ()
            yield f"{call.name}("
            yield from join_parts(values)
            yield ")" + "".join(f"[{sql_string(field)}]" for field in fields)

        start, stop = site.start, site.stop
        if call.type == pa.timestamp("us"):
            start, stop = _with_cast(tree, start, stop)
        return Form(start, stop, write)

    for site, call in calls:
        weaver.add(form(site, call))
    return weaver.whole()


def _with_cast(tree: Reader, start: int, stop: int) -> tuple[int, int]:
    """The span of a call with the cast to TIMESTAMP around it."""
    if tree.kind(stop) == TokenType.DCOLON and tree.kind(stop + 1) == TokenType.TIMESTAMP:
        more = tree.kind(stop + 2) == TokenType.L_PAREN or tree.word(stop + 2) in _ZONED
        return (start, stop) if more else (start, stop + 2)
    around = (tree.kind(start - 1), *(tree.kind(stop + further) for further in range(3)))
    moment = (TokenType.L_PAREN, TokenType.ALIAS, TokenType.TIMESTAMP, TokenType.R_PAREN)
    if tree.word(start - 2) in ("CAST", "TRY_CAST") and around == moment:
        return start - 2, stop + 3
    return start, stop


def _value(weaver: Weaver, site: Site, place: int, *, named: bool) -> Written:
    """A value as the argument of a function, or as an aggregate's list; a question without a value
    is asked about a text that says so. ``named``: the value is bytes, and their name is it."""
    kind = site.ingredient.kind
    start, stop = site.values[place] if site.values else (0, 0)
    distinct = weaver.reader.kind(start) == TokenType.DISTINCT if site.values else kind.aggregate
    written: Written = [*weaver.weave(start + (start < stop and distinct), stop)]
    written = written or [sql_string(NO_TEXT)]
    if named:
        written = [f"{NAME_OF_BYTES}(", *written, ")"]
    to = kind.cast(place)
    if to is not None:
        written = ["arrow_cast(", *written, f", '{_cast_name(to)}')"]
    if distinct:
        written.insert(0, "DISTINCT ")
    if not kind.aggregate:
        return written

    def behind(span: tuple[int, int] | None) -> Written:
        return [" ", *weaver.weave(*span)] if span else []

    return ["array_agg(", *written, *behind(site.order), ")", *behind(site.clauses)]


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
