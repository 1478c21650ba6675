"""The part of a session that knows of what version its tables are: those of lakes and of Lance, and
of files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, SessionContext

from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.prepare.frame_sources import FrameSources
from blendfusion.services.replay.session import name_in_plans

if TYPE_CHECKING:
    from blendfusion.datafusion.scan_run import ScanRun
    from blendfusion.frame import Frame
    from blendfusion.language.opaque.views import Views
    from blendfusion.services.replay.registrations import Registration

UNNAMED = "__blendfusion.unnamed."
"""The names of the scans of frames that are no tables begin so."""
_AGAIN = "Build its frame again: session.sql(…) and session.table(…) read files as they are."
_OPERATORS = ("DatasetExec: ", "DeltaScanExec")


class RegisteredTables(FrameSources):
    """A context that remembers what was registered as its tables."""

    if TYPE_CHECKING:  # what ``Session`` has

        @cached_property
        def views(self) -> Views: ...

        def registration_of(self, name: str) -> Registration | None: ...

    def register_table(self, name: str, table: Any) -> None:
        super().register_table(name, table)
        self.registered_tables[name.strip('"')] = table

    @cached_property
    def registered_tables(self) -> dict[str, Any]:
        """The objects that were registered as tables, by their names; others may have the names by
        now."""
        return {}

    def deregister_table(self, name: str) -> None:
        super().deregister_table(name)
        self._files.pop(name_in_plans(name), None)

    def note_registration(
        self, method: str, name: str, path: object, arguments: Mapping[str, Any]
    ) -> None:
        from blendfusion.services.replay.registrations import of_objects, registration_of

        super().note_registration(method, name, path, arguments)
        found = registration_of(method, path, arguments) or of_objects(method, path, arguments)
        if found is not None and method != "register_documents":  # which are read in each query
            self._files[name_in_plans(name)] = found, self._state(found)

    @cached_property
    def _files(self) -> dict[str, tuple[Registration, list[object] | None]]:
        """How files became tables, and what these were then; others may have the names by now."""
        return {}

    def read_parquet(self, path: Any, *args: Any, **kwargs: Any) -> Frame:
        from blendfusion.services.replay.registrations import registration_of

        found = registration_of("register_parquet", path, {})
        if found is not None:
            self._read[found.path] = found, self._read.get(found.path, (found, None))[1]
            self._forget_replaced({found.path})
        frame: Frame = super().read_parquet(path, *args, **kwargs)
        return frame

    @cached_property
    def _read(self) -> dict[str, tuple[Registration, object]]:
        """The files of tables by their names, and those of frames by their paths, as they were when
        DataFusion planned their last scan."""
        return {}

    def scan_run(self) -> ScanRun:
        """A run that reads files as they are now."""
        run = super().scan_run()
        run.before = partial(self._renew_files, set())
        return run

    def _renew_files(self, listed: set[str], frame: DataFrame) -> None:
        """Have DataFusion read the files of ``frame`` as they are now. The files of an object store
        are listed once a run, and their tables added to ``listed``."""
        from blendfusion.datafusion.scans import scans

        scanned = {scan.split(" projection=")[0] for scan in scans(frame.logical_plan())}
        names = (scanned & self._files.keys()) - listed
        listed |= {name for name in names if _keys(self._files[name])}
        for name in names:
            if name not in self._read or self._read[name][0] != self._files[name][0]:
                self._read[name] = self._files[name]
        if any(name.startswith(UNNAMED) for name in scanned):
            names |= self._read.keys() - self._files.keys()
        if self._forget_replaced(names):
            self.renew_tables(names)
        for name in names & self._new_registrations:
            self._check_form(name, frame)
        if names & self._new_registrations:
            self._check_copies(scanned & self._files.keys(), frame)

    def _forget_replaced(self, names: Iterable[str]) -> bool:
        """Have DataFusion forget what it knows of files if some of these are others by now; whether
        they are."""
        now = {name: (self._read[name][0], self._state(self._read[name][0])) for name in names}
        replaced = any(self._read[name] != state for name, state in now.items())
        if replaced:
            from blendfusion.datafusion.file_caches import forget_files

            forget_files(self)
        self._read.update(now)
        return replaced

    @cached_property
    def _new_registrations(self) -> set[str]:
        """The tables that were registered again."""
        return set()

    def _check_form(self, name: str, frame: DataFrame) -> None:
        """Raise QueryError if ``frame`` reads the columns that a table had when it was planned, and
        has no longer: DataFusion takes those of CSV by their places, and cuts off fractions."""
        from blendfusion.udfs.declare.arguments import quoted_name

        now = _columns(SessionContext.table(self, quoted_name(name)), name)
        if _columns(frame, name) - now:
            raise QueryError(
                f"the files of '{name}' have other columns than when this query was planned",
                hint=_AGAIN,
            )

    def _check_copies(self, names: Iterable[str], frame: DataFrame) -> None:
        """Raise QueryError if ``frame`` reads copies of files that were others then."""
        now = set().union(*(_copies(_plan_of(self, name)) for name in names))
        if _copies(frame.execution_plan().display_indent()) - now:
            raise QueryError("files have changed since this query was planned", hint=_AGAIN)

    def update_tables(self, text: str) -> None:
        """Register again the tables whose files changed, if ``text`` names them, or a view over
        them. Then plan the views over them again. A new file may have another form, and copies of
        files are no longer equal to them."""
        super().update_tables(text)
        views, text = self.views.statements, text.lower()
        for name in reversed(views):  # which read those before them
            if _is_word(name, text):
                text = f"{text}\n{views[name].lower()}"
        self.renew_tables([name for name in self._files if _is_word(name.lower(), text)])
        for name in [name for name in views if name in self._stale and _is_word(name, text)]:
            self._create_again(name)

    @cached_property
    def _stale(self) -> set[str]:
        """The views that read tables as these were before they were registered again."""
        return set()

    def _note_stale(self, table: str) -> None:
        changed = {table.lower()}
        for name, statement in self.views.statements.items():
            if any(_is_word(one, statement.lower()) for one in changed):
                changed.add(name)
                self._stale.add(name)

    def _create_again(self, name: str) -> None:
        """Plan a view over the tables that there are now. Raises QueryError where it cannot be."""
        from blendfusion.datafusion.error_translation import translate_error

        statement = self.views.statements[name]
        try:
            SessionContext.sql(self, statement)
        except Exception as problem:
            error = translate_error(problem, self, statement, self.options.redaction)
            raise QueryError(
                f"view '{name}' does not fit the files as they are now: {error.message}",
                hint="Create it again, or drop it.",
            ) from problem
        self._stale.discard(name)

    def renew_tables(self, names: Iterable[str]) -> bool:
        """Register those tables again whose files changed since: DataFusion and this session
        remember what they found in them. Whether there were any. Raises QueryError for files that
        are no table any more."""
        from blendfusion.datafusion.file_caches import forget_files
        from blendfusion.services.replay.registrations import register_again
        from blendfusion.udfs.declare.arguments import quoted_name

        changed = [name for name in sorted({*names} & self._files.keys()) if self._is_changed(name)]
        if changed:
            forget_files(self)
        for name in changed:
            quoted, (found, state) = quoted_name(name), self._files[name]
            before = self.catalog().schema().table(name)
            self.deregister_table(quoted)
            try:
                register_again(
                    self, quoted, found.path, {"method": found.method, "options": found.options}
                )
            except BlendFusionError:
                SessionContext.register_table(self, quoted, before)
                self._files[name] = found, state
                raise
            self._note_stale(name)
            self._new_registrations.add(name)
        return bool(changed)

    def _is_changed(self, name: str) -> bool:
        found, before = self._files[name]
        now = self._state(found)
        gone = set(before or ()) - set(now or ())
        return now != before and not self._is_other(name, found, gone)

    def _is_other(self, name: str, found: Registration, gone: Collection[object]) -> bool:
        """Whether another table has the name by now. The scan of a file that is ``gone`` is one of
        no rows."""
        keys = _keys(self._files[name])
        if keys:
            plan = _plan_of(self, name)
            is_ours = any(key in plan for key in keys) or (gone and "EmptyExec" in plan)
            return name.lower() in self.views.statements or not is_ours
        if "." in name or self.registration_of(name) == found:
            return False
        plan = _plan_of(self, name)
        return not gone or "EmptyExec" not in plan or "DataSourceExec: partitions=" in plan

    def _state(self, found: Registration) -> list[object] | None:
        """The state of the files of a table; None where there are none yet, or no access."""
        from blendfusion.files.objects import list_objects
        from blendfusion.places.remote import scheme_of

        try:
            if scheme_of(found.path) is not None:
                return [(f.url, f.size, f.changed) for f in list_objects(found.path).files]
            return _stamps(found.files(self))
        except (BlendFusionError, OSError):
            return None

    def lance_place(self, name: str) -> str | None:
        """The place of the Lance table ``name``; None if the session has no such table now."""
        place: str | None = getattr(self.registered_tables.get(name), "place", None)
        return place if place is not None and _is_scanned(self, name) else None

    def version_of(self, name: str) -> str | None:
        """The version of the table ``name`` of a lake or of Lance; None for another table."""
        found: str | None = getattr(self.registered_tables.get(name), "version", None)
        if found is not None and _is_scanned(self, name):
            return found
        place = self.lance_place(name)
        if place is None:
            return None
        from blendfusion.services.scans.lance_table import opened_table

        table = opened_table(place)
        files = [file.path for part in table.get_fragments() for file in part.data_files()]
        return f"{place}@{table.version} of {files}"  # one made anew has its numbers again


def _keys(known: tuple[Registration, list[Any] | None]) -> list[str]:
    """The parts of a plan that show files of a table in an object store: their keys, or the place
    of their copies; nothing of other files."""
    from blendfusion.files.conversions import PREFIX
    from blendfusion.places.remote import key_of, scheme_of

    found, stamps = known
    if scheme_of(found.path) is None:
        return []
    return [*(key_of(url).partition("/")[2] for url, *_ in stamps or ()), PREFIX]


def _copies(plan: str) -> set[str]:
    """The folders of copies of files that the text of a plan names."""
    from blendfusion.files.conversions import PREFIX

    return set(re.findall(rf"{PREFIX}\w+", plan))


def _columns(frame: DataFrame, table: str) -> set[str]:
    """The columns with their types of ``table``, as each scan of all of them in a plan has them."""
    scan = re.escape(f'TableScan {{ table_name: Bare {{ table: "{table}" }}, source: "..."')
    whole = rf"{scan}, projection: None, projected_schema: (.*?), filters: \["
    return set(re.findall(whole, repr(frame.logical_plan()), re.DOTALL))


def _is_word(name: str, text: str) -> bool:
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _stamps(files: Iterable[Path]) -> list[object]:
    """A value that differs where a file is another one, or has other content, even of equal size
    and time of change."""
    found = [(str(file), os.stat(file)) for file in files if file.exists()]
    return [(f, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for f, s in found]


def _is_scanned(session: FrameSources, name: str) -> bool:
    """Whether the table ``name`` is one of a lake or of Lance, and no other that has the name."""
    plan = _plan_of(session, name)
    return any(operator in plan for operator in _OPERATORS)


def _plan_of(session: FrameSources, name: str) -> str:
    """The text of the plan that reads the table ``name``; '' if there is none."""
    from blendfusion.udfs.declare.arguments import quoted_name

    quoted = quoted_name(name)
    if not session.table_exist(quoted):
        return ""
    return SessionContext.table(session, quoted).execution_plan().display_indent()
