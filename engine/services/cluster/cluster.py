"""A session's cluster: its workers, what runs there, and what does not."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import pyarrow as pa

from blendfusion.errors import OptionError
from blendfusion.models.protocol.model import Model
from blendfusion.models.stores.memory import AnswerStore, MemoryStore
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.options import Options
from blendfusion.places.private_folder import private_folder
from blendfusion.planner.stages.split import Stage, StagedPlan
from blendfusion.run.execution.pipeline import Counts
from blendfusion.run.observe.progress import count_noun
from blendfusion.services.cluster.divide import SHIPPED_BYTES, Division, Files, Whole, divide
from blendfusion.services.cluster.local import LocalWorkers
from blendfusion.services.cluster.messages import Fragment, has_bytes
from blendfusion.services.cluster.model_pool import ModelPool, PooledModel
from blendfusion.services.cluster.protocol import BackEnd
from blendfusion.services.cluster.range_questions import RangePlaces, RangeRun
from blendfusion.services.cluster.spread import spread
from blendfusion.services.cluster.tasks import Tasks
from blendfusion.udfs.ask.dispatcher import Dispatcher

if TYPE_CHECKING:
    from blendfusion.planner.ir.nodes import Block

_RATE_LIMITS = ("requests_per_minute", "tokens_per_minute")
"""Options that hold for all workers together: each gets an equal share."""
_HINT = "Write cluster='local', 'local:4', 'ray' or 'ray://host:10001'."


class Tables(Protocol):
    """The tables of a session, as far as workers can read them."""

    @property
    def own_names(self) -> set[str]:
        """The names of the functions that only this process has."""
        ...

    @property
    def time_zone(self) -> str | None:
        """The time zone of timestamps without one; None: DataFusion's own."""
        ...

    def files_of(self, name: str) -> Files | None:
        """The files behind a table; None for another one."""
        ...

    def small_rows(self, name: str, most_bytes: int) -> pa.Table | None:
        """The rows of a table in memory; None for a larger one."""
        ...


class Cluster:
    """Workers that run parts of scans and hold models. They start with the first query."""

    def __init__(self, name: str, back_end: BackEnd) -> None:
        self.name = name
        self.back_end = back_end
        self.pool = ModelPool(back_end)
        self.ranges: RangePlaces | None = None
        """The places that own ranges; None before the first query."""
        self.moved = 0
        """Bytes between workers in all queries so far."""

    @property
    def size(self) -> int:
        """The number of workers."""
        return self.back_end.size

    @staticmethod
    def share(store: AnswerStore) -> AnswerStore:
        """The store of a session: one that workers can open, in the place of memory."""
        return TemporaryStore() if isinstance(store, MemoryStore) else store

    def pool_model(self, spec: object, model: Model, options: Options) -> Model:
        """The model in the workers; ``model`` itself, which is asked here, where it cannot
        travel."""
        if not (spec is None or isinstance(spec, str) or has_bytes(spec)):
            return model
        limits = {name: getattr(options, name) for name in _RATE_LIMITS}
        shares = {name: -(-limit // self.size) for name, limit in limits.items() if limit}
        return PooledModel(model, spec, options.with_(**shares), self.pool)

    def division(
        self, block: Block, tables: Tables, options: Options, *, adaptive: bool = True
    ) -> Division:
        """The fragments of a stage. Raises Whole, with the reason."""
        if options.accuracy or options.recall or options.precision:
            raise Whole("a cascade needs all values at once")
        return divide(
            block,
            tables.files_of,
            lambda name: tables.small_rows(name, SHIPPED_BYTES),
            tables.own_names,
            options,
            adaptive=adaptive,
            time_zone=tables.time_zone,
        )

    def tables(
        self,
        stage: Stage,
        tables: Tables,
        dispatcher: Dispatcher,
        options: Options,
        counts: Counts,
        *,
        adaptive: bool,
    ) -> Generator[pa.Table, None, None] | None:
        """The output of a stage that workers run; None for one that they cannot."""
        try:
            division = self.division(stage.block, tables, options, adaptive=adaptive)
        except Whole:
            return None
        run = uuid4().hex
        fragments = [replace(fragment, run=run) for fragment in division.fragments]
        return self._rows(fragments, dispatcher, counts)

    def _rows(
        self, fragments: list[Fragment], dispatcher: Dispatcher, counts: Counts
    ) -> Generator[pa.Table, None, None]:
        if self.ranges is None:
            self.ranges = RangePlaces(self.back_end)
        ranged = RangeRun(self.ranges, self.pool, dispatcher)
        try:
            yield from Tasks(fragments, self.back_end, dispatcher, counts, ranged).tables()
        finally:
            self.moved += ranged.moved

    def spread(self, plan: StagedPlan, tables: Tables, options: Options) -> StagedPlan:
        """The plan as the session runs it: the operators above a divided part are a stage of their
        own."""
        return spread(plan, lambda block: self.division(block, tables, options))

    def line(self, block: Block, tables: Tables, options: Options) -> str:
        """Where a stage runs, for EXPLAIN."""
        try:
            division = self.division(block, tables, options)
        except Whole as reason:
            return here(reason)
        return (
            f"in the cluster ({self.name}): {len(division.fragments):,} files of {division.table}, "
            f"{count_noun(self.size, 'worker')}"
        )

    def close(self) -> None:
        """End the workers; the next query starts others."""
        self.pool.close()
        if self.ranges is not None:
            self.ranges.close()
        self.back_end.close()


def here(reason: object) -> str:
    """A line of EXPLAIN about a stage that workers do not run."""
    return f"in this process: {reason}"


class TemporaryStore(SqliteStore):
    """Answers for as long as the session lives, in a file that the workers of this machine open."""

    def __init__(self) -> None:
        folder = private_folder(self, "blendfusion-answers-")
        super().__init__(folder / "answers.sqlite", is_durable=False)


def cluster_of(name: str | None) -> Cluster | None:
    """The cluster of ``connect(cluster=…)``. Nothing is started yet. Raises OptionError."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise OptionError(f"cluster={name!r} is not possible", hint=_HINT)
    kind, _, rest = name.partition(":")
    if kind == "local" and (not rest or (rest.isdigit() and 1 <= int(rest) <= 256)):
        size = (
            int(rest) if rest else len(os.sched_getaffinity(0)) if _LINUX else os.cpu_count() or 1
        )
        return Cluster(name, LocalWorkers(size))
    if kind == "ray" and (not rest or rest.startswith("//")):
        from blendfusion.services.cluster.ray_workers import RayWorkers

        return Cluster(name, RayWorkers(name if rest else None))
    raise OptionError(f"cluster={name!r} is not possible", hint=_HINT)


_LINUX = hasattr(os, "sched_getaffinity")
