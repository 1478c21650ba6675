"""The places at which services change the runs of a session. Without services, they change
nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datafusion import DataFrame
    from datafusion.catalog import Schema, SchemaProvider, Table

    from blendfusion.models.embedders.cache import LazyEmbedder
    from blendfusion.models.protocol.model import Model
    from blendfusion.models.stores.memory import AnswerStore
    from blendfusion.options import Options
    from blendfusion.planner.rules.similar_first import Pays
    from blendfusion.planner.stages.split import StagedPlan
    from blendfusion.run.execution.executor import Elsewhere
    from blendfusion.udfs.ask.named_results import NamedResults


class Workers(Protocol):
    """Processes that run parts of plans, and hold models."""

    def share(self, store: AnswerStore) -> AnswerStore:
        """The store of a session: one that workers can open."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class Hooks:
    """The places at which a service changes how plans run. A service overrides them."""

    options: Options
    lazy_embedder: LazyEmbedder
    kept: NamedResults
    """The groups and entities that queries keep by names."""
    cluster: Workers | None = None
    """The workers; None: everything runs in this process."""
    configured = False
    """Whether DataFusion has settings that workers do not know."""

    def add_hidden_schema(self, name: str, schema: Schema | SchemaProvider) -> None:
        """Add a schema whose tables no list shows."""
        raise NotImplementedError

    def as_run(self, plan: StagedPlan) -> StagedPlan:
        """A plan as this session runs it."""
        return plan

    def places_of(self, plan: StagedPlan | None) -> list[list[str]]:
        """Where each stage of a plan runs, for EXPLAIN; nothing without a cluster. None stands for
        a query without stages."""
        return [[]] * (1 if plan is None else len(plan.stages))

    def release(self) -> None:
        """Close what services hold until it is next used."""

    def scan_notes(self, frame: DataFrame) -> list[str]:
        """The queries that scans of a DataFusion frame send to other systems, for EXPLAIN."""
        return []

    def foreign_table(self, value: object) -> Table | None:
        """A table of another library as a table of DataFusion; None for any other value."""
        return None

    def elsewhere(self) -> Elsewhere | None:
        """The function that runs a stage in the cluster; None without one."""
        return None

    def pool_model(self, spec: object, model: Model, options: Options) -> Model:
        """A model as the session asks it: in its cluster, or here."""
        return model

    def telling(self) -> AbstractContextManager[None]:
        """Raise the original exceptions of what scans inside DataFusion, which passes on only their
        text."""
        return nullcontext()

    @property
    def similar_first_pays(self) -> Pays:
        """Where the rule ``similar_first`` orders rows."""
        from blendfusion.planner.rules.similar_first import always, never

        return always if self.options.similar_first is True else never
