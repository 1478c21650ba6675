"""The part of a session that compares recorded runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, SessionContext

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.replay.manifest import Manifest
    from blendfusion.services.replay.registrations import Registration

    Run = Manifest | str | os.PathLike[str]


_IN_MEMORY = ("DataSourceExec: partitions=", "EmptyExec", "PlaceholderRowExec")
"""The sources of such rows in DataFusion's plans."""


class Comparing(FrameSources):
    """A context that compares recorded runs, and knows which files its tables are."""

    def register_parquet(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        super().register_parquet(name, path, *args, **kwargs)
        self._note_call("register_parquet", name, path, args, kwargs)

    def register_csv(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        super().register_csv(name, path, *args, **kwargs)
        self._note_call("register_csv", name, path, args, kwargs)

    def register_json(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        super().register_json(name, path, *args, **kwargs)
        self._note_call("register_json", name, path, args, kwargs)

    def register_arrow(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        super().register_arrow(name, path, *args, **kwargs)
        self._note_call("register_arrow", name, path, args, kwargs)

    def register_listing_table(self, name: str, path: Any, *args: Any, **kwargs: Any) -> None:
        super().register_listing_table(name, path, *args, **kwargs)
        self._note_call("register_listing_table", name, path, args, kwargs)

    def register_table(self, name: str, table: Any) -> None:
        super().register_table(name, table)
        self._registrations.pop(name_in_plans(name), None)

    def register_view(self, name: str, df: DataFrame) -> None:
        super().register_view(name, df)
        self._registrations.pop(name_in_plans(name), None)

    def deregister_table(self, name: str) -> None:
        super().deregister_table(name)
        self._registrations.pop(name_in_plans(name), None)

    def note_registration(
        self, method: str, name: str, path: object, arguments: Mapping[str, Any]
    ) -> None:
        from blendfusion.services.replay.registrations import registration_of

        super().note_registration(method, name, path, arguments)
        self._registrations[name_in_plans(name)] = registration_of(method, path, arguments)

    def registration_of(self, name: str) -> Registration | None:
        """How files became the table ``name``, as plans write it, or the index that the inputs of a
        manifest call so; None for a table in memory."""
        from blendfusion.services.replay.registrations import is_workbook, opened_index

        found = self._registrations.get(name)
        if found is None:
            return opened_index(self, name)
        # The rows of a workbook are in memory; else a statement has replaced the table.
        return found if is_workbook(found.path) or not self.is_in_memory(name) else None

    def is_in_memory(self, name: str) -> bool:
        """Whether this process alone has the rows of the table ``name``, as plans write it."""
        from blendfusion.udfs.declare.arguments import quoted_name

        path = ".".join(map(quoted_name, name.split(".")))
        plan = SessionContext.table(self, path).execution_plan().display_indent()
        return any(source in plan for source in _IN_MEMORY)

    @cached_property
    def _registrations(self) -> dict[str, Registration | None]:
        """By tables of files; None: no manifest can hold how the files became this table."""
        return {}

    def _note_call(self, method: str, name: str, path: object, args: Any, kwargs: Any) -> None:
        from blendfusion.services.replay.registrations import arguments_of

        inherited = getattr(SessionContext, method)
        self.note_registration(method, name, path, arguments_of(inherited, args, kwargs))

    def diff(self, before: Run, now: Run) -> Frame:
        """The rows in which the results of two recorded runs differ, as a frame that one can query.

        ``before`` and ``now`` are manifests, or the paths of their files. A row has ``change``:
        'added', 'removed', or 'changed' where both results have its key (the first column of
        distinct values); ``cause``: 'value' (a table), 'wording' (a text in a call), 'threshold' (a
        number of the query, or a promised accuracy, recall or precision), 'query', 'model',
        'option', or 'answer' where the model gave another one to the same question, and several
        with 'or' where the records do not tell them apart; the changed ``columns``; and the rows
        ``before`` and ``now`` as structs. Nothing is asked. Raises QueryError for a file that is no
        manifest.
        """
        from blendfusion.services.replay.differences import difference

        return self.new_table(difference(_manifest(before), _manifest(now)))


def name_in_plans(name: str) -> str:
    """The name of a table as plans write it, from that of SQL.

    >>> name_in_plans("Sales"), name_in_plans('"Sales"')
    ('sales', 'Sales')
    """
    return name.strip('"') if '"' in name else name.lower()


def _manifest(run: Run) -> Manifest:
    from blendfusion.services.replay.manifest import Manifest

    return run if isinstance(run, Manifest) else Manifest.load(run)
