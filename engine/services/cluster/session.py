"""The part of a session that has a cluster: its workers, and the tables that they can read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.models.protocol.model import Model
    from blendfusion.options import Options
    from blendfusion.planner.stages.split import StagedPlan
    from blendfusion.run.execution.executor import Elsewhere
    from blendfusion.services.cluster.cluster import Cluster
    from blendfusion.services.cluster.divide import Files
    from blendfusion.services.cluster.file_tables import FileTables


class Clustering(FrameSources):
    """A context whose stages and models may be those of a cluster."""

    cluster: Cluster | None = None
    """The workers; None: everything runs in this process."""

    @cached_property
    def file_tables(self) -> FileTables:
        """The files that were registered as tables."""
        from blendfusion.services.cluster.file_tables import FileTables

        return FileTables(self)

    def register_parquet(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        from blendfusion.datafusion.parquet_folders import folder_arguments

        if not args:  # workers read the folder as it is read here
            kwargs = {"table_partition_cols": []} | kwargs | folder_arguments(path, args, kwargs)
        super().register_parquet(name, path, *args, **kwargs)
        self._note("register_parquet", name, path, args, kwargs)

    def register_csv(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        self._forget(name)
        super().register_csv(name, path, *args, **kwargs)
        if self.cluster is None:
            return
        from blendfusion.files.parts import SniffedOptions

        options = kwargs.get("options")
        if isinstance(options, SniffedOptions) and options.are_plain:
            self.file_tables.note("register_csv", name, path, options.as_arguments())

    def register_view(self, name: str, df: DataFrame) -> None:
        self._forget(name)
        super().register_view(name, df)

    def register_json(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        super().register_json(name, path, *args, **kwargs)
        self._note("register_json", name, path, args, kwargs)

    def register_table(self, name: str, table: Any) -> None:
        super().register_table(name, table)
        if self.cluster is not None:
            self.file_tables.note_table(name, table)

    def _forget(self, name: str) -> None:
        if self.cluster is not None:
            self.file_tables.forget(name)

    def _note(self, method: str, name: str, path: object, args: object, kwargs: Any) -> None:
        if self.cluster is None:
            return
        if not args and not {"object_store", "options"} & kwargs.keys():
            self.file_tables.note(method, name, path, kwargs)

    @property
    def time_zone(self) -> str | None:
        """The time zone of timestamps without one; None: DataFusion's own."""
        moment = SessionContext.sql(self, "SELECT CAST(NULL AS TIMESTAMPTZ)").schema().types[0]
        zone: str | None = moment.tz
        return zone

    def files_of(self, name: str) -> Files | None:
        """The files behind a table; None for another one. Raises Whole where workers would read
        them in another way."""
        from blendfusion.services.cluster.divide import Whole

        if self.configured:
            raise Whole("the session has a configuration of DataFusion's of its own")
        return self.file_tables.of(name)

    def small_rows(self, name: str, most_bytes: int) -> pa.Table | None:
        """The rows of a table in memory; None for one of more bytes."""
        table = SessionContext.table(self, f'"{name}"')
        if "partition_sizes" not in table.execution_plan().display_indent():
            return None
        rows = pa.table(table)
        return rows if rows.nbytes <= most_bytes else None

    def as_run(self, plan: StagedPlan) -> StagedPlan:
        """A plan as this session runs it."""
        return plan if self.cluster is None else self.cluster.spread(plan, self, self.options)

    def places_of(self, plan: StagedPlan | None) -> list[list[str]]:
        """Where each stage of a plan runs, for EXPLAIN; nothing without a cluster. None stands for
        a query without stages."""
        if self.cluster is None:
            return super().places_of(plan)
        from blendfusion.planner.run_switches import LIMITED_STAGES
        from blendfusion.planner.stages.interleave import limited_stages
        from blendfusion.services.cluster.cluster import here
        from blendfusion.services.cluster.divide import ENDED

        if plan is None:
            return [[here("the query has no stages")]]
        off = LIMITED_STAGES in self.plans.rules_off
        ended = {} if off else limited_stages(plan)
        return [
            [here(ENDED) if s.number in ended else self.cluster.line(s.block, self, self.options)]
            for s in plan.stages
        ]

    def elsewhere(self) -> Elsewhere | None:
        """The function that runs a stage in the cluster; without one, that of other services."""
        cluster = self.cluster
        if cluster is None:
            return super().elsewhere()
        from blendfusion.planner.run_switches import PREDICATE_ORDER

        adaptive = PREDICATE_ORDER not in self.plans.rules_off
        return lambda stage, dispatcher, counts, _: cluster.tables(
            stage, self, dispatcher, self.options, counts, adaptive=adaptive
        )

    def pool_model(self, spec: object, model: Model, options: Options) -> Model:
        """A model as the session asks it: in its cluster, or here."""
        return model if self.cluster is None else self.cluster.pool_model(spec, model, options)
