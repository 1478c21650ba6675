"""Finds the place in a query that an error of DataFusion's is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Translation
from blendfusion.language.query_text.tokenizer import identifier, tokenize
from blendfusion.udfs.declare.arguments import quoted_name

_UNKNOWN = re.compile(r"unknown (?:column|table|function) '(.+)'")
_AT = re.compile(r" at Line: (\d+), Column: (\d+)")
_NAMED = re.compile(
    r"^(?:line \d+: )?(\w+)(?: does not take|: | belongs in )|column '([^']+)' is in neither"
)
_AMBIGUOUS = re.compile(r"column '([^']+)' is ambiguous")
_OPERATOR = re.compile(r"operation \w+ (\S+) \w+|expression \w+ (\S+) \w+ to valid types")
_PARAMETER = re.compile(r"the parameter (\S+) has no value")
_OPERAND = (TokenType.STRING, TokenType.NUMBER)


def either(name: str, spelled: Sequence[str]) -> tuple[str, str]:
    """The message and the hint for a name that may be any of ``spelled``."""
    listed = " or ".join(map(quoted_name, spelled))
    return f"'{name}' may be {listed}", "Write the one that is meant in double quotes."


def named_place(message: str, text: str) -> tuple[int, int] | None:
    """Where the name, the function or the operator stands in ``text`` that ``message`` is about;
    None for other messages. An unknown name is the first of that name, also as in
    ``'table::column'``; anything else is known only where it stands once."""
    from blendfusion.language.query_text.clause_places import clause_place

    found = _UNKNOWN.search(message)
    if found is not None:
        last = found[1].split(".")[-1].strip("\"'")
        named = (t for t in tokenize(text) if last in (t.text, identifier(t), *t.text.split("::")))
        return next(((t.start, t.end + 1) for t in named), None)
    found = _AMBIGUOUS.search(message)
    tree = Reader(text)
    if not tree.tokens:
        return None
    if found is not None:
        return next((tree.span(at, at + 1) for at in tree.unqualified_places(found[1])), None)
    places = list(_places(message, tree))
    if "one statement, and here are several" in message:
        ends = [i for i, t in enumerate(tree.tokens) if t.token_type == TokenType.SEMICOLON]
        places = [(ends[0] + 1, len(tree.tokens))]
    place = places[0] if len(places) == 1 else clause_place(message, tree)
    return None if place is None else tree.span(*place)


def whole_place(text: str) -> tuple[int, int] | None:
    """All of a statement, for an error that says no place in it."""
    from blendfusion.language.query_text.clause_places import statement_place

    tree = Reader(text)
    place = statement_place(tree)
    return None if place is None else tree.span(*place)


def owners(
    name: str, at: int, text: str, columns: Callable[[str, str], Collection[str] | None]
) -> list[str]:
    """The relations around the character ``at`` of ``text`` that have a column ``name``.
    ``columns``: see ``lateral.Columns``."""
    reader = Reader(text)
    place = next((i for i, t in enumerate(reader.tokens) if t.start == at), 0)
    common = reader.visible_tables(place)
    for select, _ in reader.around(place):
        found = [
            reader.name_of(source) or reader.one_line(source.start, source.stop)
            for source in reader.sources(select)
            if name in (columns(common, reader.source_text(source.start, source.stop)) or ())
        ]
        if found:
            return found
    return []


def _places(message: str, tree: Reader) -> Iterator[tuple[int, int]]:
    named, operator = _NAMED.search(message), _OPERATOR.search(message)
    parameter = _PARAMETER.search(message)
    for at, token in enumerate(tree.tokens):
        if named is not None and named[1]:
            if named[1] == token.text.lower() and tree.opens(at + 1):
                yield at, tree.close[at + 1] + 1
        elif named is not None and tree.column_end(at) is not None:
            if identifier(tree.tokens[at]) == named[2].split(".")[-1]:
                yield at, at + 1
        elif operator is not None and at and _is_operator(token, operator[1] or operator[2]):
            yield tree.operand_before(at), tree.operand_after(at + 1)
        elif parameter is not None and tree.source_text(at, at + 1) == parameter[1]:
            yield at, at + 1
        elif "LIMIT takes" in message and tree.word(at) == "LIMIT":
            yield at, tree.operand_after(at + 1)


def _is_operator(token: Token, operator: str) -> bool:
    return token.text == operator and token.token_type not in _OPERAND


def syntax_place(problem: str, ours: Translation) -> tuple[int, int] | None:
    """Where DataFusion stops to understand ``ours.sql``, in its source; None if it does not say."""
    if "found: EOF" in problem:
        end = len(ours.sql.rstrip())
        return ours.origin(end - 1, end) if end else None
    found = _AT.search(problem)
    lines = ours.sql.splitlines(keepends=True)
    if found is None or not 0 < int(found[1]) <= len(lines):
        return None
    start = sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1
    return ours.origin(start, start + 1)
