"""Reads ``{{Name(arguments)}}``: the calls of BlendSQL, as they nest."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader

_NAMED_BY = (TokenType.EQ, TokenType.FARROW)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: the tokens from ``start`` up to ``stop``, and the name it was given by."""

    name: str | None
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Braces:
    """One call. ``start`` and ``stop`` hold its braces, if it has any of its own."""

    name: str
    at: int
    """Where the name stands."""
    start: int
    stop: int
    given: tuple[Argument, ...]


def is_call(reader: Reader, at: int) -> bool:
    """``{{`` stands at ``at``."""
    return (
        reader.kind(at) == TokenType.L_BRACE
        and reader.kind(at + 1) == TokenType.L_BRACE
        and reader.tokens[at].end + 1 == reader.tokens[at + 1].start
    )


def read_call(reader: Reader, at: int) -> Braces:
    """The call whose ``{{`` stands at ``at``. Raises QueryError with the place of the error."""
    inner, outer = reader.close.get(at + 1), reader.close.get(at)
    if inner is None or outer is None:
        raise reader.refusal(at, "'{{' is not closed", "Write {{LLMMap('question', column)}}.")
    if outer != inner + 1:
        raise reader.refusal(inner, "'}}' is expected", "Write {{LLMMap('question', column)}}.")
    call = read_named(reader, at + 2)
    if call is None or call.stop != inner:
        where = at + 2 if call is None else call.stop
        raise reader.refusal(
            where,
            "one call is expected between '{{' and '}}'",
            "Write {{LLMMap('question', column)}}.",
        )
    return Braces(call.name, call.at, at, outer + 1, call.given)


def read_named(reader: Reader, at: int) -> Braces | None:
    """The call whose name stands at ``at``; None if no call does."""
    if not reader.is_name(at) or not reader.opens(at + 1):
        return None
    close = reader.close[at + 1]
    return Braces(
        reader.tokens[at].text, at, at, close + 1, tuple(_arguments_between(reader, at + 2, close))
    )


def _arguments_between(reader: Reader, at: int, end: int) -> list[Argument]:
    found = []
    while at < end:
        name = None
        if reader.is_name(at) and reader.kind(at + 1) in _NAMED_BY:
            name, at = reader.tokens[at].text.lower(), at + 2
        stop = _argument_end(reader, at, end)
        if stop == at:
            raise reader.refusal(at, "an argument is missing")
        found.append(Argument(name, at, stop))
        at = stop + (reader.kind(stop) == TokenType.COMMA and stop < end)
    return found


def _argument_end(reader: Reader, at: int, end: int) -> int:
    """One past the argument: up to a comma, or, as in queries of the papers, to where a subquery or
    a named argument follows without one."""
    first = at
    while at < end and reader.kind(at) != TokenType.COMMA:
        at = reader.close.get(at, at) + 1
        complete = reader.kind(at - 1) in (
            TokenType.STRING,
            TokenType.IDENTIFIER,
            TokenType.R_PAREN,
        )
        subquery = reader.opens(at) and reader.is_query(at, reader.close[at] + 1)
        named = reader.is_name(at) and reader.kind(at + 1) in _NAMED_BY
        if at < end and complete and ((subquery and at == first + 1) or named):
            return at
    return at
