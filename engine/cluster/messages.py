"""The messages between a session and the workers of its cluster, and their bytes."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, TypeAlias

import pyarrow as pa

from blendfusion.execution.pipeline import Counts
from blendfusion.models.protocol.model import Values
from blendfusion.options import Options
from blendfusion.planner.ir.nodes import Block
from blendfusion.types import Answer, Task
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
    """Run it on; ``answers`` are those that it wants, if it wants some."""

    answers: list[Answer] | None = None


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


@dataclass(frozen=True)
class Pose:
    """Put these values to a model."""

    model: bytes
    """Its name or itself, and the options, encoded."""
    task: Task
    values: list[Values]


@dataclass(frozen=True)
class Posed:
    """The answers by place; with an error, some are missing."""

    answers: dict[int, Answer]
    error: BaseException | None = None


Message: TypeAlias = "Begin | Continue | Cancel | Pose"
Reply: TypeAlias = "Wants | Rows | Done | Posed"

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
    return out.getvalue()


def decoded(data: bytes) -> Any:
    """The message of these bytes, which must come from ``encoded``: pickle trusts them."""
    return pickle.loads(data)


def has_bytes(thing: object) -> bool:
    """Whether a thing can travel to another process."""
    try:
        encoded(thing)
    except Exception:
        return False
    return True
