"""Grants: which tables and functions each user of a server has, and what each may spend."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from datafusion import SessionContext

from blendfusion.budget import Budget
from blendfusion.errors import OptionError, close_matches
from blendfusion.services.server.catalogs import tables_of
from blendfusion.session import Session
from blendfusion.udfs.declare.arguments import quoted_name
from blendfusion.udfs.register.user_functions import known_ingredients

_OWN = "datafusion"
_KEYS = {"token": str, "tables": list, "functions": list, "budget": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The rights of one user."""

    user: str
    token: str
    tables: tuple[str, ...] = ()
    """Names of tables, such as ``reviews`` and ``shop.orders``; ``shop.*`` is all of a database,
    and ``*`` all there is."""
    functions: tuple[str, ...] = ()
    """Names of functions that ask a model, such as ``llm_filter``; ``*`` is all of them."""
    budget: Budget | None = None

    def has_table(self, *names: str) -> bool:
        """Whether a table is granted that goes by these names."""
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.tables)

    def restrict(self, session: Session) -> None:
        """Take out of a session what is not granted, and make the user's budget its own. Raises
        OptionError for a table that is not there."""
        attached = getattr(session, "attached", {})  # of a service, too
        for name, attachment in attached.items():
            attachment.catalog.is_shown = self._shows(name, attachment.database.default_schema)
        self._check_tables(session)
        for row in tables_of(session):
            catalog, schema, table = (
                row[f"table_{part}"] for part in ("catalog", "schema", "name")
            )
            if catalog == _OWN and schema not in attached and not self.has_table(*_names(row)):
                path = ".".join(map(quoted_name, (catalog, schema, table)))
                SessionContext.deregister_table(session, path)
        session.change_option("views_folder", os.devnull)
        if "*" not in self.functions:
            session.calls.granted = frozenset(self.functions)
        session.user = self.user
        session.budget = self.budget

    def _shows(self, database: str, default: str) -> Any:
        def is_shown(schema: str, table: str) -> bool:
            short = [f"{database}.{table}"] * (schema == default)
            return self.has_table(f"{database}.{schema}.{table}", *short)

        return is_shown

    def _check_tables(self, session: Session) -> None:
        known = {name for row in tables_of(session) for name in _names(row)}
        for pattern in self.tables:
            if not any(fnmatchcase(name, pattern) for name in known):
                raise OptionError(
                    f"the grant of '{self.user}' names the table '{pattern}', and there is none",
                    hint=close_matches(pattern, known) or None,
                )


def _names(row: Mapping[str, str]) -> Iterator[str]:
    """The names by which a grant may mean a table."""
    catalog, schema, table = (row[f"table_{part}"] for part in ("catalog", "schema", "name"))
    if (catalog, schema) == (_OWN, "public"):
        yield table
    elif catalog == _OWN:
        yield f"{schema}.{table}"
    else:
        yield f"{catalog}.{schema}.{table}"


def read_grants(file: Path) -> list[Grant]:
    """The grants of a TOML file that has a table for each user. Raises OptionError."""
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise OptionError(f"cannot read '{file}': {problem.strerror}") from problem
    except ValueError as problem:
        raise OptionError(f"'{file}' has no grants: {problem}") from problem
    grants = [_grant(user, entry) for user, entry in found.items()]
    tokens = [grant.token for grant in grants]
    if not grants or len({*tokens}) < len(tokens):
        raise OptionError(f"'{file}' has no user, or two with the same token")
    return grants


def _grant(user: str, entry: Any) -> Grant:
    problem = _problem(entry)
    if problem is not None:
        raise OptionError(
            f"the grant of '{user}' is wrong: {problem}",
            hint='[ann] token = "…", tables = ["reviews", "shop.*"], functions = ["llm_filter"], '
            'budget = "values=1000".',
        )
    budget = Budget.parsed(entry["budget"]) if "budget" in entry else None
    return Grant(
        user=user,
        token=entry["token"],
        tables=tuple(entry.get("tables", ())),
        functions=tuple(entry.get("functions", ())),
        budget=budget,
    )


def _problem(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "a user is a table"
    for key, value in entry.items():
        if not isinstance(value, _KEYS.get(key, ())):
            return f"'{key}' is not known" if key not in _KEYS else f"'{key}' has another type"
        if isinstance(value, list) and not all(isinstance(name, str) for name in value):
            return f"'{key}' is a list of names"
    if not entry.get("token", "").strip():
        return "the token is missing"
    known = {"*", *known_ingredients()}
    return next(
        (f"there is no function '{n}'" for n in entry.get("functions", ()) if n not in known), None
    )
