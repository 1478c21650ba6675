"""The messages between a session and the workers of its cluster, and their bytes."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias

import pyarrow as pa

from blendfusion.models.protocol.model import Values
from blendfusion.options import Options
from blendfusion.planner.ir.nodes import Block
from blendfusion.run.execution.pipeline import Counts
from blendfusion.services.cluster.compact import (
    ANSWERS,
    COSTS_BY_PLACE,
    ROWS,
    USAGE,
    VALUES,
    Compact,
)
from blendfusion.services.cluster.packing import compress, decompress
from blendfusion.services.cluster.protocol import PlaceGone
from blendfusion.types import Answer, Task, Usage
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions.declarations import INGREDIENTS


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
    time_zone: str | None = None
    """The session's time zone; None: it has none of its own."""


@dataclass(frozen=True)
class Begin(Compact):
    """Run a fragment as far as the first reply."""

    fragment: Fragment


@dataclass(frozen=True)
class Continue(Compact):
    """Run it on; ``answers``, of which nobody there needs the costs, are those that it wants, if it
    wants some."""

    answers: list[Answer] | None = field(default=None, metadata=ANSWERS)


@dataclass(frozen=True)
class Route(Compact):
    """The owners of the values of a question; no addresses: the session itself answers."""

    key: bytes = b""
    addresses: tuple[str, ...] = ()
    every: int = 1
    """One request of so many is listed in the trace; 0: none."""


@dataclass(frozen=True)
class Cancel(Compact):
    """Nobody wants the rest of a fragment."""


@dataclass(frozen=True)
class Wants(Compact):
    """A fragment needs answers to these distinct values."""

    call: Call | None
    task: Task
    values: list[Values] = field(metadata=VALUES)
    stops: bool


@dataclass(frozen=True)
class FindRoute(Compact):
    """A fragment wants to know who answers a call."""

    call: Call | None
    task: Task


@dataclass(frozen=True)
class NewValues(Compact):
    """A fragment waits for the owners of ranges; it has these numbers of new values for them, by
    range.

    So many ``hits`` were stored before; some of them are listed."""

    key: bytes
    new: dict[int, int]
    hits: int
    listed: dict[Values, Answer] = field(metadata=ROWS)
    every: int
    example: Values
    """One of the values."""


@dataclass(frozen=True)
class LostOwner(Compact):
    """The owner of a range is gone from this address."""

    key: bytes
    number: int
    address: str


@dataclass(frozen=True)
class Rows(Compact):
    """A chunk of a fragment's output."""

    table: pa.Table


@dataclass(frozen=True)
class FragmentEnd(Compact):
    """A fragment has ended, perhaps with an error."""

    counts: Counts | None = None
    failures: dict[Task, dict[Values, Answer]] = field(default_factory=dict)
    withheld: dict[Call, set[Values]] = field(default_factory=dict)
    error: BaseException | None = None
    moved: int = 0
    """Bytes to and from the owners of ranges."""


@dataclass(frozen=True)
class Pose(Compact):
    """Put these values to a model."""

    question: tuple[bytes, Task] | None
    """The model's name or itself, with the options, encoded; and the task. None: as in the last
    message of this kind."""
    values: list[Values] = field(metadata=VALUES)


@dataclass(frozen=True)
class AskedAnswers(Compact):
    """The answers by place; with an error, some are missing."""

    answers: dict[int, Answer] = field(metadata=COSTS_BY_PLACE)
    error: BaseException | None = None


@dataclass(frozen=True)
class AskRange(Compact):
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
class Outcome(Compact):
    """The outcome of a batch: the answers that the trace lists, those that failed besides, and the
    number and usage of the others."""

    number: int = 0
    listed: dict[Values, Answer] = field(default_factory=dict, metadata=ROWS)
    failed: dict[Values, Answer] = field(default_factory=dict, metadata=ROWS)
    others: Usage = field(default_factory=Usage, metadata=USAGE)
    gone: bool = False
    """Whether the range's owner is gone."""
    error: BaseException | None = None
    moved: int = 0


Message: TypeAlias = "Begin | Continue | Route | Cancel | Pose | AskRange"
Reply: TypeAlias = (
    "FindRoute | NewValues | LostOwner | Wants | Rows | FragmentEnd | AskedAnswers | Outcome"
)

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


def encode_message(thing: object) -> bytes:
    """The bytes of a message or a part of one. Raises what pickle raises where it has none."""
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(thing)
    return compress(out.getvalue())


def decode_message(data: bytes) -> Any:
    """The message of these bytes, which must come from ``encode_message``: pickle trusts them.
    Raises PlaceGone for bytes that are damaged: whoever sent them is of no use."""
    try:
        return pickle.loads(decompress(data))
    except ImportError:  # of a class of the user's, which this process lacks
        raise
    except Exception as problem:
        raise PlaceGone(f"a message cannot be read ({type(problem).__name__})") from None


def has_bytes(thing: object) -> bool:
    """Whether a thing can travel to another process."""
    try:
        encode_message(thing)
    except Exception:
        return False
    return True
