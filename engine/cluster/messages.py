"""The messages between a session and the workers of its cluster, and their bytes."""

from __future__ import annotations

import copyreg
import io
import pickle
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias

import pyarrow as pa

from blendfusion.cluster.packing import (
    Packed,
    compressed,
    decompressed,
    packed_answers,
    packed_values,
    unpacked_answers,
    unpacked_values,
)
from blendfusion.execution.pipeline import Counts
from blendfusion.models.protocol.model import Values
from blendfusion.options import Options
from blendfusion.planner.ir.nodes import Block
from blendfusion.types import Answer, Task, Usage
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions import INGREDIENTS


@dataclass(frozen=True)
class FileTable:
    """A table of files, as a worker registers it."""

    method: str
    """The name of a method of DataFusion's context: ``register_parquet``, …."""
    path: str
    arguments: dict[str, Any]
    schema: pa.Schema


@dataclass(frozen=True)
class Fragment:
    """The part of a stage that reads one file of its largest table."""

    plan: bytes
    """The stage's source as Substrait."""
    block: Block
    """The row-wise work above; its own source is left out."""
    tables: dict[str, FileTable | pa.Table]
    """The tables of the plan by name; a table of Arrow is small, and travels along."""
    options: Options
    adaptive: bool = True
    run: str = ""
    """The run that it belongs to: a worker remembers the answers of one."""


@dataclass(frozen=True)
class Begin:
    """Run a fragment as far as the first reply."""

    fragment: Fragment


@dataclass(frozen=True)
class Continue:
    """Run it on; ``answers``, of which nobody there needs the costs, are those that it wants, if it
    wants some."""

    answers: list[Answer] | None = None

    def __reduce__(self) -> _Form:
        answers = self.answers
        return _continue, (None if answers is None else packed_answers(answers, costs=False),)


@dataclass(frozen=True)
class Route:
    """The owners of the values of a question; no addresses: the session itself answers."""

    key: bytes = b""
    addresses: tuple[str, ...] = ()
    every: int = 1
    """One request of so many is listed in the trace; 0: none."""


@dataclass(frozen=True)
class Cancel:
    """Nobody wants the rest of a fragment."""


@dataclass(frozen=True)
class Wants:
    """A fragment needs answers to these distinct values."""

    call: Call | None
    task: Task
    values: list[Values]
    stops: bool

    def __reduce__(self) -> _Form:
        return _wants, (self.call, self.task, packed_values(self.values), self.stops)


@dataclass(frozen=True)
class FindRoute:
    """A fragment wants to know who answers a call."""

    call: Call | None
    task: Task


@dataclass(frozen=True)
class NewValues:
    """A fragment waits for owners, which have so many new values, by range.

    So many ``hits`` were stored before; some of them are listed."""

    key: bytes
    new: dict[int, int]
    hits: int
    listed: dict[Values, Answer]
    every: int
    example: Values
    """One of the values."""


@dataclass(frozen=True)
class LostOwner:
    """The owner of a range is gone from this address."""

    key: bytes
    number: int
    address: str


@dataclass(frozen=True)
class Rows:
    """A chunk of a fragment's output."""

    table: pa.Table


@dataclass(frozen=True)
class Done:
    """A fragment has ended, perhaps with an error."""

    counts: Counts | None = None
    failures: dict[Task, dict[Values, Answer]] = field(default_factory=dict)
    withheld: dict[Call, set[Values]] = field(default_factory=dict)
    error: BaseException | None = None
    moved: int = 0
    """Bytes to and from the owners of ranges."""


@dataclass(frozen=True)
class Pose:
    """Put these values to a model."""

    question: tuple[bytes, Task] | None
    """The model's name or itself, with the options, encoded; and the task. None: as in the last
    message of this kind."""
    values: list[Values]

    def __reduce__(self) -> _Form:
        return _pose, (self.question, packed_values(self.values))


@dataclass(frozen=True)
class Posed:
    """The answers by place; with an error, some are missing."""

    answers: dict[int, Answer]
    error: BaseException | None = None

    def __reduce__(self) -> _Form:
        places = array("I", self.answers)
        known = None if places == array("I", range(len(places))) else places.tobytes()
        packed = packed_answers([*self.answers.values()], costs=True)
        return _posed, (known, packed, self.error)


@dataclass(frozen=True)
class AskRange:
    """Ask a model about the next values of a range."""

    question: tuple[bytes, Task, bytes] | None
    """As in ``Pose``, with the store, encoded."""
    key: bytes
    address: str
    """The address of the range's owner."""
    batch: int
    most: int
    every: int
    """As in ``Route``."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a batch: the answers that the trace lists, those that failed besides, and the
    number and usage of the others."""

    number: int = 0
    listed: dict[Values, Answer] = field(default_factory=dict)
    failed: dict[Values, Answer] = field(default_factory=dict)
    others: Usage = field(default_factory=Usage)
    gone: bool = False
    """Whether the range's owner is gone."""
    error: BaseException | None = None
    moved: int = 0

    def __reduce__(self) -> _Form:
        rows = [
            (packed_values([*rows]), packed_answers([*rows.values()], costs=True))
            for rows in (self.listed, self.failed)
        ]
        rest = self.others.numbers if self.others.values else ()
        return _outcome, (self.number, *rows, rest, self.gone, self.error, self.moved)


def _outcome(
    number: int,
    listed: tuple[Packed, Packed],
    failed: tuple[Packed, Packed],
    others: tuple[Any, ...],
    gone: bool,
    error: BaseException | None,
    moved: int,
) -> Outcome:
    return Outcome(number, _rows(*listed), _rows(*failed), Usage(*others), gone, error, moved)


def _rows(values: Packed, answers: Packed) -> dict[Values, Answer]:
    return dict(zip(unpacked_values(values), unpacked_answers(answers), strict=True))


def _continue(packed: Packed | None) -> Continue:
    return Continue(None if packed is None else unpacked_answers(packed))


def _wants(call: Call | None, task: Task, packed: Packed, stops: bool) -> Wants:
    return Wants(call, task, unpacked_values(packed), stops)


def _pose(question: tuple[bytes, Task] | None, packed: Packed) -> Pose:
    return Pose(question, unpacked_values(packed))


def _posed(known: bytes | None, packed: Packed, error: BaseException | None) -> Posed:
    answers = unpacked_answers(packed)
    places = array("I", range(len(answers)) if known is None else ())
    places.frombytes(known or b"")
    return Posed(dict(zip(places, answers, strict=True)), error)


Message: TypeAlias = "Begin | Continue | Route | Cancel | Pose | AskRange"
Reply: TypeAlias = "FindRoute | NewValues | LostOwner | Wants | Rows | Done | Posed | Outcome"
_Form: TypeAlias = "tuple[Callable[..., object], tuple[object, ...]]"
"""How pickle makes a message again."""

_BY_NAME = {ingredient.name: ingredient for ingredient in INGREDIENTS}


def _ingredient(name: str) -> Ingredient:
    return _BY_NAME[name]


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: object) -> Any:
        if isinstance(thing, Ingredient) and _BY_NAME.get(thing.name) is thing:
            return _ingredient, (thing.name,)  # its options hold functions, which have no bytes
        if isinstance(thing, FunctionType | type) and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"{thing.__qualname__} is known to this process only")
        return NotImplemented


def encoded(thing: object) -> bytes:
    """The bytes of a message or a part of one. Raises what pickle raises where it has none."""
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(thing)
    return compressed(out.getvalue())


def decoded(data: bytes) -> Any:
    """The message of these bytes, which must come from ``encoded``: pickle trusts them."""
    return pickle.loads(decompressed(data))


def has_bytes(thing: object) -> bool:
    """Whether a thing can travel to another process."""
    try:
        encoded(thing)
    except Exception:
        return False
    return True


for _code, _name in enumerate((_continue, _wants, _pose, _posed, _outcome), 250):
    # Pickle writes these numbers, which are for private use, in the place of names.
    copyreg.add_extension(__name__, _name.__name__, _code)
