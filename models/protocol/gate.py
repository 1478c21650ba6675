"""One gate for what comes from outside: files, stores, servers and other processes.

JSON, its shape, Arrow and answers are checked here before anything is done with them. A checksum
says that data is unchanged, not that it is valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

import pyarrow as pa

from blendfusion.models.constraints.constraint import Json, holds
from blendfusion.types import Answer, Constraint, FinishReason, Usage

MOST_DEPTH = 64
"""A JSON text that is nested deeper is refused."""
MOST_TOKENS = 1 << 40
"""A count beyond this is a mistake."""
STORED_ENDS: tuple[str, ...] = tuple(end for end in get_args(FinishReason) if end != "error")
_ROUNDING = 1e-6
_ROOT = "it"

Shape: TypeAlias = "type | tuple[Shape, ...] | list[Shape] | dict[str, Shape] | None"
"""A type; several alternatives; a list of one kind of items; an object with at least these members,
where ``...`` stands for the name of any member; None for null."""


class Unfit(ValueError):
    """Something from outside is not what it must be; the text says what and where."""


def json_of(text: str | bytes | bytearray) -> Json:
    """The value of a JSON text. Raises Unfit."""
    try:
        found = _quickly(text) if isinstance(text, bytes) else cast("Json", json.loads(text))
    except RecursionError:
        raise Unfit("nested too deeply") from None
    except UnicodeDecodeError:
        raise Unfit("no text in UTF-8") from None
    except ValueError as problem:
        raise Unfit(f"no JSON ({problem})") from None
    if not _is_shallow(text) and _is_deep(found):
        raise Unfit(f"nested more than {MOST_DEPTH} deep")
    return found


def object_of(text: str | bytes | bytearray, shape: Mapping[str, Shape] | None = None) -> Any:
    """The JSON object in ``text``, checked against ``shape``. Raises Unfit."""
    found = json_of(text)
    if not isinstance(found, dict):
        raise Unfit("no JSON object")
    check_shape(found, dict(shape or {}))
    return found


def check_shape(value: object, shape: Shape, at: str = _ROOT) -> None:
    """Raises Unfit, with the place, for a value of another shape. A bool is no number."""
    if isinstance(shape, tuple):
        if not any(_fits(value, one, at) for one in shape):
            raise Unfit(f"{at} is not as it must be")
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            raise Unfit(f"{at} is no list")
        for place, item in enumerate(value):
            check_shape(item, shape[0], f"{at}[{place}]")
    elif isinstance(shape, dict):
        _check_members(value, shape, at)
    elif shape is None:
        if value is not None:
            raise Unfit(f"{at} is not null")
    elif not _is_a(value, shape):
        raise Unfit(f"{at} is no {shape.__name__}")


def _check_members(value: object, shape: Mapping[str, Shape], at: str) -> None:
    if not isinstance(value, dict):
        raise Unfit(f"{at} is no object")
    for name, inner in shape.items():
        if name == "...":
            for other, member in value.items():
                if other not in shape:
                    check_shape(member, inner, _below(at, str(other)))
        elif name not in value:
            raise Unfit(f"{_below(at, name)} is missing")
        else:
            check_shape(value[name], inner, _below(at, name))


def _below(at: str, name: str) -> str:
    return f"'{name[:60]}'" if at == _ROOT else f"{at}.{name[:60]!r}"


def _fits(value: object, shape: Shape, at: str) -> bool:
    try:
        check_shape(value, shape, at)
    except Unfit:
        return False
    return True


def _is_a(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))


def _quickly(text: bytes) -> Json:
    """As ``json.loads``, which also takes what msgspec refuses: NaN, halves of surrogate pairs, a
    byte order mark."""
    import msgspec

    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return cast("Json", json.loads(text))


def _is_shallow(text: str | bytes | bytearray) -> bool:
    """Whether there are too few brackets in a text for a deep value."""
    if isinstance(text, str):
        return text.count("[") + text.count("{") <= MOST_DEPTH
    return text.count(b"[") + text.count(b"{") <= MOST_DEPTH


def _is_deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


# ---------------------------------------------------------------- answers


def stored_answer(text: object, finish: object, logprob: object) -> Answer:
    """An answer as files and stores hold one. Raises Unfit for parts of wrong types. Whether it
    fits its question is checked where that is known."""
    if not (text is None or isinstance(text, str)):
        raise Unfit("'text' is no text")
    if not isinstance(finish, str) or finish not in STORED_ENDS:
        raise Unfit(f"'finish' is none of {', '.join(STORED_ENDS)}")
    if not (logprob is None or _is_a(logprob, float)):
        raise Unfit("'logprob' is no number")
    if not is_logprob(logprob):
        raise Unfit("'logprob' is no logarithm of a probability")
    return Answer(text, cast("FinishReason", finish), cast("float | None", logprob))


def is_logprob(value: object) -> bool:
    """Whether a value is the logarithm of a probability, or None."""
    if value is None:
        return True
    return _is_a(value, float) and cast("float", value) <= _ROUNDING


def has_types(answer: object) -> bool:
    """Whether ``answer`` is an answer without an error, whose fields have the right types."""
    if not isinstance(answer, Answer) or answer.error is not None:
        return False
    text, finish = cast("object", answer.text), cast("object", answer.finish)
    ends = isinstance(finish, str) and finish in STORED_ENDS
    return ends and is_logprob(answer.logprob) and (text is None or isinstance(text, str))


def fits_question(constraint: Constraint, answer: Answer) -> bool:
    """Whether the text of an answer is canonical under a constraint, or None."""
    text = answer.text
    if text is None:
        return True
    if answer.finish == "decided" and constraint.kind in ("text", "regex"):
        return holds(Constraint(), text)  # the beginning of a text
    return holds(constraint, text)


def bounded_usage(usage: object) -> Usage:
    """A usage as a model states it, whose counts are possible: 0 for one that is not."""
    if not isinstance(usage, Usage):
        return Usage()
    *counts, seconds = usage.numbers
    if all(type(n) is int and 0 <= n <= MOST_TOKENS for n in counts) and _is_time(seconds):
        return usage
    kept = [n if type(n) is int and 0 <= n <= MOST_TOKENS else 0 for n in counts]
    return replace(Usage(*kept), seconds=seconds if _is_time(seconds) else 0.0)


def _is_time(seconds: object) -> bool:
    return _is_a(seconds, float) and 0 <= cast("float", seconds) < MOST_TOKENS


# ---------------------------------------------------------------- Arrow


def arrow_of(source: Path | bytes) -> pa.Table:
    """The table in a file of Arrow's IPC format, whose buffers lie where they say. Raises Unfit."""
    try:
        held = pa.py_buffer(source) if isinstance(source, bytes) else pa.memory_map(str(source))
        with pa.ipc.open_file(held) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as problem:
        raise Unfit(f"no sound file of Arrow ({_first_line(problem)})") from None
    return table


def _first_line(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:120]
