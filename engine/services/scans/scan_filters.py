"""Reads the filters of scans in Python: expressions of pyarrow as trees."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads


@dataclass(frozen=True, slots=True)
class Field:
    """A column, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, as a scalar of Arrow."""

    value: Any


@dataclass(frozen=True, slots=True)
class Application:
    """A function of Arrow on arguments: ``and_kleene``, ``equal``, ``is_in``, …. ``options`` are
    those of the function."""

    name: str
    arguments: tuple[Tree, ...]
    options: Any = None

    @property
    def members(self) -> pa.Array:
        """The values of ``is_in``."""
        return self.options["value_set"].values


Tree: TypeAlias = Field | Constant | Application


def tree_of(where: pads.Expression) -> Tree | None:
    """The tree of an expression; None for one of a form that is not known here."""
    try:
        batch = pa.ipc.open_file(where.__reduce__()[1][0]).get_batch(0)
        found: Tree = _read(iter(_entries(batch.schema)), batch, "")[0]
        return found
    except (pa.ArrowException, LookupError, TypeError, ValueError, StopIteration):
        return None


def _read(entries: Iterator[tuple[str, str]], batch: pa.RecordBatch, call: str) -> list[Any]:
    """The arguments of a call, and its options at the end; outside of one, the whole expression."""
    found: list[Any] = []
    for key, value in entries:
        if key == "field_ref":
            found.append(Field(value))
        elif key == "literal":
            found.append(Constant(batch.column(int(value))[0]))
        elif key == "call":
            found.append(_apply(value, _read(entries, batch, value)))
        elif key == "options":
            found.append(_Options(batch.column(int(value))[0]))
        elif key == "end" and value == call:
            return found
        else:
            raise ValueError(key)
    if call:
        raise ValueError(call)
    return found


@dataclass(frozen=True, slots=True)
class _Options:
    value: Any


def _apply(name: str, parts: list[Any]) -> Application:
    options = [part.value for part in parts if isinstance(part, _Options)]
    arguments = tuple(part for part in parts if not isinstance(part, _Options))
    return Application(name, arguments, options[0] if options else None)


def _entries(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The metadata of a schema with keys that repeat, of which pyarrow's own dict keeps one."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"arrow_schema")
    at = ctypes.c_void_p.from_address(address + 2 * struct.calcsize("P")).value
    if at is None:
        return

    def text(start: int) -> tuple[str, int]:
        (length,) = struct.unpack("=i", ctypes.string_at(start, 4))
        return ctypes.string_at(start + 4, length).decode(), start + 4 + length

    (count,) = struct.unpack("=i", ctypes.string_at(at, 4))
    at += 4
    for _ in range(count):
        key, at = text(at)
        value, at = text(at)
        yield key, value


def conjuncts(tree: Tree) -> list[Tree]:
    """The parts of a conjunction, each of which a row must meet."""
    if isinstance(tree, Application) and tree.name == "and_kleene":
        return [part for argument in tree.arguments for part in conjuncts(argument)]
    return [tree]


def columns_of(tree: Tree) -> set[str]:
    """The columns that a tree reads."""
    if isinstance(tree, Field):
        return {tree.name}
    parts = tree.arguments if isinstance(tree, Application) else ()
    return {name for part in parts for name in columns_of(part)}


def has_lists(tree: Tree) -> bool:
    """Whether a tree asks for a member of a list."""
    if not isinstance(tree, Application):
        return False
    return tree.name == "is_in" or any(map(has_lists, tree.arguments))


def expression_of(tree: Tree, schema: pa.Schema) -> pads.Expression:
    """A tree as pyarrow evaluates it, with SQL's meaning: NULL is in no list and outside of none,
    and NaN is equal to NaN and above all other numbers, as in DataFusion."""
    if isinstance(tree, Field):
        return pc.field(tree.name)
    if isinstance(tree, Constant):
        return pc.scalar(tree.value)
    if tree.name == "is_in":
        return _member(tree, schema)
    parts = [expression_of(argument, schema) for argument in tree.arguments]
    if tree.name in _COMPARED and any(_may_be_nan(part, schema) for part in tree.arguments):
        return _compare(tree.name, *parts)
    made: pads.Expression = pads.Expression._call(tree.name, parts)
    return made


def _member(tree: Application, schema: pa.Schema) -> pads.Expression:
    (argument,) = tree.arguments
    value, members = expression_of(argument, schema), tree.members
    known = members.drop_null()
    found = value.isin(known)
    otherwise = (
        pc.scalar(False) if len(known) == len(members) else pc.scalar(pa.scalar(None, pa.bool_()))
    )
    unknown = pc.scalar(pa.scalar(None, pa.bool_()))
    return pc.if_else(value.is_null(), unknown, pc.if_else(found, pc.scalar(True), otherwise))


_COMPARED = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def _may_be_nan(tree: Tree, schema: pa.Schema) -> bool:
    kind = schema.field(tree.name).type if isinstance(tree, Field) else None
    kind = tree.value.type if isinstance(tree, Constant) else kind
    return kind is not None and pa.types.is_floating(kind)


def _compare(name: str, a: pads.Expression, b: pads.Expression) -> pads.Expression:
    """A comparison of numbers of which one may be NaN."""
    nan_a, nan_b = pc.is_nan(a), pc.is_nan(b)
    made: pads.Expression = pads.Expression._call(name, [a, b])
    either = nan_a | nan_b
    unknown = pc.scalar(pa.scalar(None, pa.bool_()))
    truth = {
        "equal": nan_a & nan_b,
        "not_equal": ~(nan_a & nan_b),
        "less": ~nan_a & nan_b,
        "less_equal": nan_b,
        "greater": nan_a & ~nan_b,
        "greater_equal": nan_a,
    }[name]
    return pc.if_else(a.is_null() | b.is_null(), unknown, pc.if_else(either, truth, made))
