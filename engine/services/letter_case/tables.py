"""The tables of a session that a path means, in any letter case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from blendfusion.services.letter_case.names_in_text import Column, Table
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources


class SessionTables:
    """Finds tables in all catalogs and schemas of a session. ``hidden`` are tables that stand for
    frames, by the names that the text has for them."""

    def __init__(self, session: FrameSources, hidden: Mapping[str, str]) -> None:
        self.session = session
        self.hidden = hidden

    def __call__(self, path: Sequence[str]) -> list[Table]:
        """See ``names_in_text.Tables``."""
        hidden = _alike(path[-1], self.hidden)
        if hidden:
            return [self._table((*path[:-1], name), self.hidden[name]) for name in hidden]
        try:
            found = [self._table(p, ".".join(map(quoted_name, p))) for p in self._paths(path)]
        except Exception:  # whatever is wrong with a catalog shows when the query is planned
            return []
        return found

    def _paths(self, path: Sequence[str]) -> list[tuple[str, ...]]:
        session = self.session
        catalogs = [session.catalog()]
        before: list[tuple[str, ...]] = [()]
        if len(path) > 2:
            names = _alike(path[-3], session.catalog_names())
            catalogs, before = [session.catalog(n) for n in names], [(n,) for n in names]
        found: list[tuple[str, ...]] = []
        for catalog, prefix in zip(catalogs, before, strict=True):
            if len(path) == 1:
                found += [(n,) for n in _alike(path[0], catalog.schema().names())]
                continue
            for schema in _alike(path[-2], catalog.names()):
                tables = _alike(path[-1], catalog.schema(schema).names())
                found += [(*prefix, schema, table) for table in tables]
        exact = [p for p in found if p == tuple(path)]
        return exact or found

    def _table(self, path: tuple[str, ...], name: str) -> Table:
        try:
            schema = self.session.table(name).schema()
        except Exception:
            return Table(path, ())
        return Table(path, tuple(Column(f.name, f.type) for f in schema))


def _alike(name: str, names: Iterable[str]) -> list[str]:
    """The names that are equal but for case; only the exact one if there is one."""
    known = list(names)
    return [name] if name in known else [n for n in known if n.lower() == name.lower()]
