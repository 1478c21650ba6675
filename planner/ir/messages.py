"""Substrait messages: their bytes, the places of nested ones, time zones and frames of windows."""

from __future__ import annotations

from functools import cache
from typing import Literal

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Plan as PlanMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import Type as TypeMessage

_HOLES = (RelMessage, ExpressionMessage)
_HOLE_NAMES = frozenset(kind.DESCRIPTOR.full_name for kind in _HOLES)


def holes(message: Message) -> list[Message]:
    """The relations and expressions directly inside ``message``, in the order of its fields."""
    found: list[Message] = []
    for field, value in message.ListFields():
        held = _contents(field)
        if held == "nothing":
            continue
        items = value if is_repeated(value) else (value,)
        if held == "holes":
            found.extend(items)
        else:
            for item in items:
                found.extend(holes(item))
    return found


@cache
def _contents(field: FieldDescriptor) -> Literal["holes", "more", "nothing"]:
    """The contents of a field: holes, messages with more holes inside, or neither, as in a type
    and a literal."""
    name = field.message_type and field.message_type.full_name
    if name in _HOLE_NAMES:
        return "holes"
    return "more" if name in _AROUND_HOLES else "nothing"


def _around(holes: frozenset[str], start: Descriptor) -> frozenset[str]:
    """The names of the messages below ``start`` in which a message of the names ``holes`` may
    be, and ``holes``."""
    inside: dict[str, set[str]] = {}
    waiting = [start]
    while waiting:
        kind = waiting.pop()
        if kind.full_name not in inside:
            below = [f.message_type for f in kind.fields if f.message_type is not None]
            inside[kind.full_name] = {message.full_name for message in below}
            waiting += below
    found, more = holes, True
    while more:
        wider = found | {name for name, names in inside.items() if names & found}
        found, more = wider, wider != found
    return found


_AROUND_HOLES = _around(_HOLE_NAMES, PlanMessage.DESCRIPTOR)


def is_repeated(value: object) -> bool:
    """Whether a field's value may hold several messages."""
    return not isinstance(value, Message)


def serialize(message: Message) -> bytes:
    """The bytes of a message, deterministically."""
    return bytes(message.SerializeToString(deterministic=True))


ZONED_LITERAL = "zoned_literal"
"""The name of a literal with a time zone: a node over the literal of the same moment in UTC."""


def zoned_type(kind: TypeMessage) -> str | None:
    """The type of a cast to a zone, in Arrow's notation; None for any other type."""
    if kind.WhichOneof("kind") != "user_defined" or not kind.user_defined.type_parameters:
        return None
    return str(kind.user_defined.type_parameters[0].string)


def frame_text(window: ExpressionMessage.WindowFunction) -> str | None:
    """The frame of a window that Substrait lacks, as SQL; None for one that it has."""
    return (window.options[0].preference[0] or None) if window.options else None
