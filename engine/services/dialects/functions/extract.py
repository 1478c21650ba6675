"""EXTRACT and DATE_PART: the parts of dates and times, by the names that a system gives them."""

from __future__ import annotations

from blendfusion.services.dialects.functions.call import FunctionCall, Write, Written
from blendfusion.services.dialects.functions.dates import moment


def _part(call: FunctionCall, name: str, at: int) -> str:
    name = " ".join(name.split())
    sql = call.system.parts.get(name)
    if sql is None:
        known = ", ".join(sorted(call.system.parts))
        raise call.refusal(f"the part '{name}' has no equal here", f"Parts: {known}.", at=at)
    return sql


def extract(call: FunctionCall) -> Written:
    """``EXTRACT(part FROM time)``."""
    reader = call.reader
    start, stop = call.arguments[0]
    behind = next(
        (i for i in range(start, stop) if reader.word(i) == "FROM" and not reader.depth(start, i)),
        None,
    )
    if behind is None or behind == start:
        raise call.refusal("FROM is expected", "Write EXTRACT(year FROM time).")
    if any(reader.word(i) == "AT" for i in range(behind, stop)):
        raise call.refusal("AT TIME ZONE has no equal here", at=behind)
    name = "".join(reader.tokens[i].text for i in range(start, behind)).upper()
    value = call.weaver.text(behind + 1, stop)
    literal = stop == behind + 2 and reader.tokens[behind + 1].text and _is_text(call, behind + 1)
    return [_part(call, name, start).replace("{0}", moment(value) if literal else value)]


def _is_text(call: FunctionCall, at: int) -> bool:
    return call.reader.source_text(at, at + 1).startswith("'")


def named_part(*, part: int, time: int) -> Write:
    """``DATE_PART('year', time)``."""

    def write(call: FunctionCall) -> Written:
        sql = _part(call, call.words(part), call.arguments[part][0])
        value = moment(f"{{{time}}}") if call.literal(time) is not None else f"{{{time}}}"
        return call.fill(sql.replace("{0}", value))

    return write


def part_of(name: str) -> Write:
    """``YEAR(time)``: a part by the name of its function."""

    def write(call: FunctionCall) -> Written:
        sql = _part(call, name, call.at)
        return call.fill(sql.replace("{0}", moment("{0}")) if call.literal(0) is not None else sql)

    return write


def parts_by_name(*names: str) -> dict[str, str | Write]:
    """Functions of a time that are named after its parts."""
    return {f"{name}(time)": part_of(name) for name in names}
