"""Aggregates whose order and separator stand elsewhere than in DataFusion."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.services.dialects.functions.call import FunctionCall, Span, Write, Written


def _clause(call: FunctionCall, words: tuple[str, ...], start: int, stop: int) -> int:
    """Where the first of the clauses begins among the tokens; ``stop`` for none."""
    reader, at = call.reader, start
    while at < stop:
        if reader.word(at) in words:
            return at
        at = reader.close.get(at, at) + 1
    return stop


def is_over_rows(call: FunctionCall) -> bool:
    """It is a function over a window, or of rows that FILTER leaves."""
    return call.reader.word(call.stop) in ("OVER", "FILTER")


def _value(call: FunctionCall) -> tuple[str, Span, str, int]:
    """DISTINCT, the value's tokens, the separator, and where the value's clauses begin."""
    reader = call.reader
    start, last = call.at + 2, call.stop - 1
    distinct = "DISTINCT " if reader.word(start) == "DISTINCT" else ""
    start += reader.word(start) in ("DISTINCT", "ALL")
    clauses = _clause(call, ("ORDER", "SEPARATOR", "LIMIT", "IGNORE", "RESPECT"), start, last)
    parts = reader.parts(start, clauses)
    separator = call.weaver.text(*parts[1]) if len(parts) > 1 else ""
    return distinct, parts[0], separator, clauses


def texts_in_one(default: str, *, empty: bool = False, alone: bool = True) -> Write:
    """STRING_AGG, LISTAGG and GROUP_CONCAT as ``string_agg``.

    ``default``: the separator where none is given. ``empty``: of no rows it is an empty text, not
    NULL. ``alone``: commas part the value and the separator; else values are joined."""

    def write(call: FunctionCall) -> Written:
        reader, last = call.reader, call.stop - 1
        distinct, value, separator, clauses = _value(call)
        if not alone and separator:
            raise call.refusal("it takes one value here", "Write CONCAT(a, b).")
        order = _clause(call, ("ORDER",), clauses, last)
        separated = _clause(call, ("SEPARATOR",), clauses, last)
        if _clause(call, ("LIMIT",), clauses, last) < last:
            raise call.refusal("LIMIT within an aggregate of texts has no equal here")
        if separated < last:
            separator = call.weaver.text(separated + 1, last)
        ordered = f" {call.weaver.text(order, min(last, separated))}" if order < last else ""
        if reader.word(call.stop) == "WITHIN" and reader.opens(call.stop + 2):
            ordered = f" {call.weaver.text(call.stop + 3, reader.close[call.stop + 2])}"
        text = call.weaver.text(*value)
        if not (value[1] == value[0] + 1 and reader.kind(value[0]) == TokenType.STRING):
            text = f"CAST({text} AS VARCHAR)" if not (distinct and ordered) else text
        sql = f"string_agg({distinct}{text}, {separator or default}{ordered})"
        return [f"coalesce({sql}, '')" if empty else sql]

    return write


def items_in_one(*, nulls: bool, empty: bool = False) -> Write:
    """ARRAY_AGG and COLLECT_LIST. ``nulls``: NULL is an item, too. ``empty``: of no rows it is an
    empty list, not NULL."""

    def write(call: FunctionCall) -> Written:
        reader, last = call.reader, call.stop - 1
        distinct, value, _, clauses = _value(call)
        distinct = "DISTINCT " if call.name in ("COLLECT_SET", "ARRAY_UNIQUE_AGG") else distinct
        ignores = reader.word(clauses) == "IGNORE"
        clauses += 2 * (reader.word(clauses) in ("IGNORE", "RESPECT"))
        limit = _clause(call, ("LIMIT",), clauses, last)
        ordered = f" {call.weaver.text(clauses, limit)}" if limit > clauses else ""
        if reader.word(call.stop) == "WITHIN" and reader.opens(call.stop + 2):
            ordered = f" {call.weaver.text(call.stop + 3, reader.close[call.stop + 2])}"
        text = call.weaver.text(*value)
        kept = "" if nulls and not ignores else f" FILTER (WHERE {text} IS NOT NULL)"
        filtered = kept and reader.word(call.stop) == "FILTER"
        if is_over_rows(call) and (limit < last or empty or filtered):
            raise call.refusal("OVER and FILTER have no equal here")
        sql = f"array_agg({distinct}{text}{ordered}){kept}"
        if limit < last:
            sql = f"array_slice({sql}, 1, {call.weaver.text(limit + 1, last)})"
        return [f"coalesce({sql}, make_array())" if empty else sql]

    return write


def row_with(direction: str) -> Write:
    """MAX_BY and MIN_BY: the first value in the row with the largest or smallest second one."""

    def write(call: FunctionCall) -> Written:
        if is_over_rows(call):
            raise call.refusal("OVER and FILTER have no equal here")
        order = "DESC" if direction == "max" else "ASC"
        sql = f"first_value({{0}} ORDER BY {{1}} {order}) FILTER (WHERE {{1}} IS NOT NULL)"
        return call.fill(sql)

    return write


def end_of(call: FunctionCall) -> int:
    """The end of a call, with the WITHIN GROUP (…) behind it, if there is one."""
    reader = call.reader
    within = reader.word(call.stop) == "WITHIN" and reader.opens(call.stop + 2)
    return reader.close[call.stop + 2] + 1 if within else call.stop
