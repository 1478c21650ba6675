"""The functions, settings and tables of a user's own DataFusion context, which a session takes
over."""

from __future__ import annotations

import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import Any

from datafusion import ScalarUDF, SessionContext

from blendfusion.errors import OptionError, QueryError
from blendfusion.udfs.declare.call_registry import is_call_name
from blendfusion.udfs.register.user_functions import known_ingredients

_sessions: dict[str, weakref.ReferenceType[Any]] = {}
"""The newest session of each context, by DataFusion's identity of the context."""


class UserContext:
    """The functions and settings of a context that its user made. Functions that the user adds to
    the context later count, too."""

    def __init__(self, context: SessionContext) -> None:
        if not isinstance(context, SessionContext):
            raise OptionError(
                f"ctx is a datafusion.SessionContext, not {type(context).__name__}",
                hint="A model is the first argument: bf.connect(model, ctx=context).",
            )
        if hasattr(context, "options"):
            raise OptionError("ctx is a session of BlendFusion already", hint="Use it as it is.")
        self.inner = context.ctx
        self._context = SessionContext.__new__(SessionContext)
        self._context.ctx = self.inner

    def claim(self, session: object) -> None:
        """Make ``session`` the session of this context; an earlier one is over."""
        _sessions[self._context.session_id()] = weakref.ref(session)

    def check_owner(self, session: object) -> None:
        """Raise QueryError if another session has taken this context since."""
        owner = _sessions.get(self.inner.session_id())
        if owner is not None and owner() is not session:
            raise QueryError(
                "another session was opened over this session's context",
                hint="Use the newest one: a context has one session at a time.",
            )

    def functions(self) -> list[ScalarUDF]:
        """The user's scalar functions."""
        names = set(self._context.udfs()) - _builtin().scalar
        known = known_ingredients()
        kept = (n for n in sorted(names) if n not in known and not is_call_name(n, known))
        return [self._context.udf(name) for name in kept]

    def own_names(self) -> set[str]:
        """The names of the user's functions and aggregates. A name of an ingredient means the
        ingredient: ``bf.register`` adds them as plain functions."""
        scalar = set(self._context.udfs()) - _builtin().scalar
        aggregate = set(self._context.udafs()) - _builtin().aggregate
        return (scalar | aggregate) - set(known_ingredients())

    def table_functions(self) -> set[str]:
        """The names of the user's table functions."""
        return _table_functions(self._context) - _builtin().table

    def reads_paths(self) -> bool:
        """Whether the context reads files by their paths in a query (``enable_url_table``)."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "probe.csv"
            file.write_text("a\n1\n", encoding="ascii")
            try:
                self._context.table(f'"{file.as_posix()}"')
            except Exception:  # no such table, or no such schema
                return False
            return True


class _Builtin:
    """The functions that every DataFusion context has."""

    def __init__(self) -> None:
        context = SessionContext()
        self.scalar, self.aggregate = set(context.udfs()), set(context.udafs())
        self.table = _table_functions(context)


@cache
def _builtin() -> _Builtin:
    return _Builtin()


def _table_functions(context: SessionContext) -> set[str]:
    """Names of table functions, which only the information schema lists."""
    query = (
        "SELECT DISTINCT routine_name FROM information_schema.routines "
        "WHERE function_type = 'TABLE'"
    )
    try:
        found = SessionContext.sql(context, query)
    except Exception:  # the context has no information schema: it gets one for this query
        SessionContext.sql(context, "SET datafusion.catalog.information_schema = true")
        try:
            found = SessionContext.sql(context, query)
            return set(found.to_pydict()["routine_name"])
        finally:
            SessionContext.sql(context, "SET datafusion.catalog.information_schema = false")
    return set(found.to_pydict()["routine_name"])
