"""The materialised views of a session: made, refreshed, dropped, and tables of their names."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from blendfusion.errors import (
    BlendFusionError,
    ModelWarning,
    QueryError,
    close_matches,
    level_of_caller,
)
from blendfusion.language.query_text.statements import is_planned_only
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.prepare.session_text import SessionText
from blendfusion.prepare.translators import OURS
from blendfusion.services.replay.digests import table_digest
from blendfusion.services.scans.lance_table import lance_table
from blendfusion.services.views.database_tables import DatabaseTable
from blendfusion.services.views.drift import Draw, Drift
from blendfusion.services.views.folder import View, ViewFolder, history_with, names_in, stamps_in
from blendfusion.services.views.growth import GrownTables
from blendfusion.services.views.kept_answers import UNLIMITED_MB, store_of
from blendfusion.services.views.kept_names import KeptNames, with_group_names
from blendfusion.services.views.kept_rows import KeptRows
from blendfusion.services.views.question_checks import check_questions, describe, stored_questions
from blendfusion.services.views.sources import (
    inputs_of,
    models_of,
    other_models,
    reasons,
    settings_of,
    tables_in,
    volatile_call,
)
from blendfusion.types import Task
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.run.execution.executor import Elsewhere
    from blendfusion.run.reports.trace import Trace
    from blendfusion.services.views.registered_tables import RegisteredTables

T = TypeVar("T")
_OWN: Mapping[str, Any] = {"grows": {}, "in_database": False, "format": "parquet"}
"""The settings that the statement of a view made, with their defaults."""
Stamp = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Refresh:
    """A refresh that is done."""

    view: View
    """The version that is served now."""
    reasons: tuple[str, ...]
    """The reasons for which the query ran; () if it did not: nothing changed."""
    is_rewritten: bool
    """Whether there is a new version: its rows differ from those before."""
    trace: Trace | None
    """The trace of the query; None: it did not run."""
    again: int = 0
    """Kept answers that were asked again: see the option ``drift_checks``."""
    checked: int = 0
    """Labelled values that were asked: see ``StoredQuestion.checks``."""

    @property
    def why(self) -> str:
        """The reasons in one line."""
        return "; ".join(self.reasons) or "nothing changed"


@dataclass(frozen=True, slots=True)
class _Facts:
    """A view's query as it is now, before it runs."""

    frame: Frame
    columns: Sequence[str]
    inputs: Mapping[str, str | None]
    settings: Mapping[str, Any]
    names: KeptNames


class KeptViews:
    """The views in the folder of a session."""

    def __init__(self, session: RegisteredTables) -> None:
        self._session = session
        self._tables: dict[str, tuple[Path, Stamp]] = {}
        """The views that are tables of the session: their places, and their versions."""
        self._kept_rows: ContextVar[KeptRows | None] = ContextVar("kept rows", default=None)
        self._seen: dict[Path, tuple[int, int]] = {}
        """The places of all views as they were seen last, with their versions."""

    @property
    def _folder(self) -> Path:
        return Path(self._session.options.views_folder).expanduser().absolute()

    @property
    def rows_of_stages(self) -> Elsewhere | None:
        """The function that runs the stages of the refresh under way in this thread; None outside
        of one."""
        kept = self._kept_rows.get()
        return None if kept is None else kept.tables

    def place(self, name: str) -> ViewFolder:
        return ViewFolder(self._folder, name)

    def all(self) -> dict[str, View]:
        """The views by name. Raises QueryError."""
        found = {name: self.place(name).load() for name in names_in(self._folder)}
        return {name: view for name, view in found.items() if view is not None}

    def has(self, name: str) -> bool:
        """Whether there is a view of this name, even a damaged one."""
        return self.place(name).stamp() is not None

    def find(self, name: str) -> View:
        """The view of this name, in any letter case if only one fits. Raises QueryError."""
        view = self.place(name).load()
        if view is not None:
            return view
        others = names_in(self._folder)
        alike = [other for other in others if other.lower() == name.lower()]
        if len(alike) == 1 and (view := self.place(alike[0]).load()) is not None:
            return view
        near = close_matches(name, others) or "CREATE MATERIALIZED VIEW … AS SELECT … makes one."
        raise QueryError(f"no materialised view '{name}' in '{self._folder}'", hint=near)

    def update(self) -> None:
        """Register the newest version of each view as a table. A table of the session with the
        same name is kept, and files that are no views are ignored."""
        folder = self._folder
        seen = stamps_in(folder)
        if seen == self._seen:  # every query comes here
            return
        self._seen, names = seen, names_in(folder)
        for name in [*self._tables]:
            if name not in names or self._tables[name][0] != self.place(name).path:
                self._forget(name)
        for name in names:
            place = self.place(name)
            stamp = place.stamp()
            if self._tables.get(name) != (place.path, stamp):
                with suppress(QueryError):
                    self._serve(place, stamp)

    def _serve(self, place: ViewFolder, stamp: Stamp) -> None:
        quoted = quoted_name(place.name)
        view = place.load()
        if view is None or view.settings.get("in_database") or not place.is_whole(view):
            return
        if place.name in self._tables:
            self._forget(place.name)
        elif self._session.table_exist(quoted):
            return
        rows = place.rows_of(view)
        if rows.suffix == ".lance":
            self._session.register_table(quoted, lance_table(rows))
        else:
            self._session.register_parquet(quoted, str(rows))
        self._tables[place.name] = place.path, stamp

    def _forget(self, name: str) -> None:
        self._session.deregister_table(quoted_name(name))
        self.release(name)

    def release(self, name: str) -> None:
        """Leave the name of a view to another table."""
        self._tables.pop(name, None)

    # --- changes ---------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        query: str,
        *,
        replaces: bool,
        grows: Mapping[str, str] | None = None,
        in_database: bool = False,
        kept_as: str = "parquet",
    ) -> Refresh:
        """Keep the rows of ``query`` as the view ``name``. ``grows``: tables that only grow, and
        the columns that do. ``in_database``: other programs read the view as a table of an attached
        database. ``kept_as``: 'parquet' or 'lance'. Raises QueryError for a name that is taken, and
        for a query whose rows cannot be kept."""
        self.update()
        place = self.place(name)
        own = {"grows": {**(grows or {})}, "in_database": in_database, "format": kept_as}
        if name not in self._tables and self._session.table_exist(quoted_name(name)):
            raise QueryError(
                f"the session has a table '{name}' already", hint="Choose another name."
            )
        if in_database and not place.stamp():
            DatabaseTable(self._session, name).check_new()
        with place.writing():
            before = place.load() if not replaces else self._version_before(place)
            if before is not None and not replaces:
                raise QueryError(
                    f"there is a materialised view '{name}' already",
                    hint=f"REFRESH {name} brings it up to date, CREATE OR REPLACE replaces it.",
                )
            version, history = (0, ()) if before is None else (before.version, before.history)
            questions = self._questions_of(before)
            empty = View(name, query.strip(), version, 0, "", 0, 0, "", {}, own, history=history)
            growth = self._growth(empty)
            growth.clear()
            with growth.tables():
                facts = self._facts(empty, growth)
                if name in facts.inputs:
                    raise QueryError(
                        f"the view '{name}' cannot read itself", hint="Choose another name."
                    )
                checked = self._check(place, query)
                made = self._run(place, empty, facts, ("it is new",), questions)
        self.update()
        return replace(made, checked=checked)

    def _version_before(self, place: ViewFolder) -> View | None:
        with suppress(QueryError):  # a damaged one is replaced, too
            return place.load()
        return None

    def refresh(self, name: str) -> Refresh:
        """Bring a view up to date: ask the values that are new, and serve the new rows once they
        are whole. Raises QueryError for an unknown view and as its query does."""
        place = self.place(self.find(name).name)
        with place.writing():
            view = self.find(place.name)
            checked, growth = self._check(place, view.query), self._growth(view)
            with growth.tables():
                facts = self._facts(view, growth)
                why = self._reasons(view, facts)
                drifts = self._session.options.drift_checks and facts.frame.prepared.calls
                if not why and not drifts:
                    return Refresh(view, (), is_rewritten=False, trace=None, checked=checked)
                done = self._run(place, view, facts, tuple(why))
        self.update()
        return replace(done, checked=checked)

    def _growth(self, view: View) -> GrownTables:
        columns = view.settings.get("grows", {})
        return GrownTables(self._session, view.name, self.place(view.name).path, columns)

    def _check(self, place: ViewFolder, query: str) -> int:
        """Ask the checks of the stored questions of a query: the number of values asked. Raises
        CheckFailed."""
        before = self._session.ledger.usage.values
        if any(call.checks for call in stored_questions(self._session, query).values()):
            with self._answers(place, Draw(0, Random())):
                check_questions(self._session, query)
        return self._session.ledger.usage.values - before

    def explain(self, name: str) -> list[str]:
        """The lines of EXPLAIN REFRESH; nothing is asked."""
        view = self.find(name)
        growth = self._growth(view)
        with growth.tables():
            return self._explain(view, self._facts(view, growth))

    def _explain(self, view: View, facts: _Facts) -> list[str]:
        why = self._reasons(view, facts)
        rows = f"{view.rows:,} rows" if view.rows != 1 else "1 row"
        lines = [f"Refresh of {view.name}, version {view.version}: {rows}, {view.refreshed}"]
        questions = stored_questions(self._session, view.query).items()
        lines += [f"  asks {describe(*one)}" for one in questions]
        if not why:
            return [*lines, "  nothing changed: 0 values are asked, and the rows stay"]
        lines += [f"  {reason}" for reason in why]
        return [*lines, *self._plan(view.name, facts.frame)]

    def explain_query(self, name: str, query: str) -> list[str]:
        """The plan of a query beside the answers that the view ``name`` keeps; nothing is asked."""
        empty = View(name, query, 0, 0, "", 0, 0, "", {}, {})
        return self._plan(name, self._facts(empty, self._growth(empty)).frame)

    def _plan(self, name: str, frame: Frame) -> list[str]:
        if not frame.prepared.calls:
            return ["  the query asks no model"]
        with self._answers(self.place(name), Draw(0, Random())):
            return frame.explain_text().splitlines()

    def drop(self, name: str) -> None:
        """Delete a view with its answers. Raises QueryError for an unknown one."""
        view = self.find(name)
        place = self.place(view.name)
        with place.writing():
            if view.settings.get("in_database"):
                DatabaseTable(self._session, view.name).drop()
            place.remove()
        self.update()

    def _facts(self, view: View, growth: GrownTables) -> _Facts:
        """Raises QueryError for a text that is no query, or that cannot be planned."""
        name, query = view.name, view.query
        if not is_planned_only(query):
            raise QueryError(
                "a materialised view is made of a query",
                hint="CREATE MATERIALIZED VIEW v AS SELECT ….",
            )
        session, own = self._session, growth.within(query)
        frame = SessionText(own, None, OURS, None, read_only=False).plan(session, None, {})
        if session.renew_tables(tables_in(frame)):
            frame = SessionText(own, None, OURS, None, read_only=False).plan(session, None, {})
        names, text = frame.schema().names, with_group_names(name, own)
        if text != own:
            frame = SessionText(text, None, OURS, None, read_only=False).plan(session, None, {})
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise QueryError(
                f"two columns of the view are called '{twice[0]}'", hint="Name one: … AS other."
            )
        questions = stored_questions(session, query)
        settings = settings_of(session, frame, questions) | {
            "volatile": volatile_call(frame, query)
        }
        settings |= {key: view.settings.get(key) or default for key, default in _OWN.items()}
        kept = KeptNames(session, self.place(name).path, text)
        kept.load()
        inputs = inputs_of(session, frame)
        return _Facts(frame, names, growth.names_of(inputs) | kept.digests(), settings, kept)

    def _reasons(self, view: View, facts: _Facts) -> list[str]:
        found, place = reasons(view, facts.inputs, facts.settings), self.place(view.name)
        if not place.is_whole(view):
            found.append("the file of its rows is damaged")
        if view.settings.get("in_database"):
            found += DatabaseTable(self._session, view.name).reasons(place)
        if not facts.frame.prepared.calls:
            return found
        model = other_models(self._session, view.settings.get("models", {"own": [], "named": {}}))
        return found if model is None else [*found, model]

    @contextmanager
    def _answers(
        self, place: ViewFolder, draw: Draw, before: Sequence[Task] = ()
    ) -> Iterator[None]:
        """Within this context, models answer from what a view keeps. ``before``: the questions of
        its query before."""
        kept = SqliteStore(place.answers, limit_mb=UNLIMITED_MB)
        store = partial(store_of, kept=kept, draw=draw, before=before)
        try:
            with self._session.models.answering_from(store):
                yield
        finally:
            kept.close()

    def _questions_of(self, view: View | None) -> list[Task]:
        """The questions of a view's query; none of one that cannot be planned any more."""
        with suppress(BlendFusionError):
            if view is not None:
                with (growth := self._growth(view)).tables():
                    frame = self._facts(view, growth).frame
                return [call.task.in_full for call in frame.prepared.calls]
        return []

    def _run(
        self,
        place: ViewFolder,
        view: View,
        facts: _Facts,
        why: tuple[str, ...],
        before: Sequence[Task] = (),
    ) -> Refresh:
        """Run the query of a view whose lock is held, and serve its rows."""
        frame, settings = facts.frame, dict(facts.settings)
        draw = Draw(self._session.options.drift_checks, Random())
        kept = self._rows_to_keep(place, view, facts, draw)
        with self._answers(place, draw, before), _value_of(self._kept_rows, kept):
            try:
                rows = frame.to_arrow_table().rename_columns([*facts.columns])
            finally:
                facts.names.save()
        trace = frame.trace
        if frame.prepared.calls:
            settings["models"] = models_of(self._session, trace.vectors)
        digest = table_digest(rows)
        table = DatabaseTable(self._session, view.name) if settings["in_database"] else None
        is_new = digest != view.digest or not place.is_whole(view)
        is_new = is_new or (table is not None and bool(table.reasons(place)))
        now = replace(
            view,
            version=view.version + is_new,
            rows=rows.num_rows,
            refreshed=datetime.now(UTC).isoformat(timespec="seconds"),
            values=trace.usage.values,
            failed=trace.failed,
            digest=digest,
            inputs={**facts.inputs, **facts.names.digests()},
            settings=settings,
        )
        now = replace(now, history=history_with(now))
        if is_new:
            place.write_rows(now, _plain(rows))
            if table is not None:
                place.unfinished_file.touch(mode=0o600)
                table.write(_plain(rows))
        place.serve(now)  # a budget may end what follows
        if kept is not None and not trace.failed:
            with suppress(OSError):  # a full disk; the next refresh computes them again
                kept.save(_tag_of(settings))
        again = self._session.ledger.usage.values
        if draw.most:
            drift = self._drift(view, settings, draw)
            now = replace(now, drift={} if drift.is_alarm else asdict(drift))
            place.serve(now)
        return Refresh(now, why, is_new, trace, self._session.ledger.usage.values - again)

    def _rows_to_keep(
        self, place: ViewFolder, view: View, facts: _Facts, draw: Draw
    ) -> KeptRows | None:
        """The rows that a run may take from the one before; None: it runs as any other query."""
        if draw.most or facts.settings["volatile"]:
            return None
        alone = replace(view, inputs={})
        others = {**facts.settings, "plan": view.settings.get("plan")}  # each stage has its own
        same = view.version and not self._reasons(alone, replace(facts, inputs={}, settings=others))
        return KeptRows(place.path, reads=_tag_of(view.settings) if same else None)

    def _drift(self, view: View, settings: Mapping[str, Any], draw: Draw) -> Drift:
        """Ask some kept answers again. Warns (ModelWarning) where the model is another one."""
        same = settings.get("models") == view.settings.get("models")
        before = Drift(**view.drift) if same else Drift()
        drift = draw.ask_again(self._session.ledger.for_query(), before)
        if drift.is_alarm:
            models = ", ".join(name for name, _ in settings["models"]["own"]) or "of the view"
            warnings.warn(
                f"view {view.name}: the model {models} does not answer as it did: of {drift.again:,} "
                f"values that were asked again, {drift.kept_odd:,} have another answer by now, twice. "
                "Its kept answers are those of another model behind the same name: "
                "session.clear_cache(), DROP and CREATE the view to ask all again.",
                ModelWarning,
                stacklevel=level_of_caller(),
            )
        return drift


@contextmanager
def _value_of(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Within this context, ``variable`` has this value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _tag_of(settings: Mapping[str, Any]) -> str:
    """A digest of the settings and the models with which rows were made."""
    text = json.dumps({**settings, "plan": None}, sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def inner_first(views: Mapping[str, View]) -> list[str]:
    """The names of views in an order in which each stands behind those that it reads."""
    reads = {name: sorted({*view.inputs} & views.keys() - {name}) for name, view in views.items()}
    try:
        return list(TopologicalSorter(reads).static_order())
    except CycleError:  # each was replaced by one that reads the other
        return list(views)


def _plain(rows: pa.Table) -> pa.Table:
    """Rows as they are written: without the metadata of where they came from."""
    return rows.replace_schema_metadata(None).combine_chunks()
