"""Looks into the bytes of Substrait plans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from google.protobuf.message import DecodeError, Message
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Plan as PlanMessage
from substrait.proto import Type as TypeMessage

from blendfusion.errors import PlanError
from blendfusion.planner.ir.messages import is_repeated


def parsed_plan(data: bytes) -> PlanMessage:
    """The message of a plan, however deeply it is nested. Raises PlanError for invalid bytes."""
    _allow_deep_nesting(True)
    try:
        return PlanMessage.FromString(data)
    except DecodeError as problem:
        raise PlanError("a plan that is nested too deeply for protobuf") from problem
    finally:
        _allow_deep_nesting(False)


def _allow_deep_nesting(allow: bool) -> None:
    # Protobuf stops at 100 nested messages, a chain of 25 joins, unless its limit is raised. Its C
    # implementation has this switch; the Python one needs none.
    with suppress(ImportError):
        from google._upb import _message  # type: ignore[import-untyped]

        _message.SetAllowOversizeProtos(allow)


def read_relation(data: bytes) -> bytes:
    """The bytes of the relation of a plan that only reads one table."""
    return bytes(PlanMessage.FromString(data).relations[0].root.input.SerializeToString())


def has_unreadable_types(data: bytes) -> bool:
    """Whether a plan has columns or casts of types that DataFusion writes but cannot read back.

    The literal NULL has such a type too; ``read`` takes it for a NULL of text.
    """
    message = parsed_plan(data)
    types = (e.extension_type for e in message.extensions)
    unreadable = {t.type_anchor for t in types if t.name in _UNREADABLE_TYPES}
    return bool(unreadable) and any(
        t.user_defined.type_reference in unreadable for t in _types(message)
    )


def compares_struct_literal(data: bytes) -> bool:
    """Whether an argument of a function is a struct's literal: the names of its fields are lost,
    and DataFusion cannot compare it with a struct that has names."""
    return any(
        argument.value.literal.WhichOneof("literal_type") == "struct"
        for function in _functions(parsed_plan(data))
        for argument in function.arguments
    )


def _functions(message: Message) -> Iterator[ExpressionMessage.ScalarFunction]:
    if isinstance(message, ExpressionMessage.ScalarFunction):
        yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for item in value if is_repeated(value) else (value,):
                if isinstance(item, Message):
                    yield from _functions(item)


_UNREADABLE_TYPES = frozenset({"fp16", "null"})


def _types(message: Message) -> Iterator[TypeMessage]:
    """The user-defined types in a message, except those of literals and of functions' results."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.name in ("literal", "output_type"):
            continue
        for item in value if is_repeated(value) else (value,):
            if isinstance(item, TypeMessage) and item.WhichOneof("kind") == "user_defined":
                yield item
            elif isinstance(item, Message):
                yield from _types(item)
