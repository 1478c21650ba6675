"""The groups that a question asks for, and those that a query makes."""

from __future__ import annotations

import re

from sqlglot import exp

from blendfusion.services.ask.column_origins import group_keys
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.links import name_stems, stem, words_of

_PER = re.compile(
    r"\b(?:per|(?:for|in|of|by|at|from|to|with) (?:each|every)|grouped by)\s+(?:of the |the |different |distinct )*(\w+)(?:\s+(\w+))?",
    re.I,
)
_TIMES = ("year", "quarter", "month", "week", "day", "hour")


def other_groups(case: Case) -> Doubt | None:
    """A doubt about GROUP BY without the column that the question names after *per* or *each*."""
    for found in _PER.finditer(case.question):
        words = [stem(word.casefold()) for word in found.groups() if word]
        group = [g for s in case.selects if (g := s.args.get("group")) is not None]
        if not group or words[0] not in case.names:
            continue
        if _groups_by(case, words[0]) or (len(words) > 1 and _groups_by(case, words[1])):
            continue
        return (
            f"the question says {found[0].strip()!r}, and the query groups by {_keys(group[0])}",
            f"Group by the {found[1]}.",
        )
    return None


def _keys(group: exp.Group) -> str:
    return ", ".join(key.sql("postgres") for key in group.expressions)


def _groups_by(case: Case, word: str) -> bool:
    """Whether a group has a column of this name, or one of a table of this name, or of a key that
    leads to it."""
    for select in case.selects:
        for key in group_keys(select):
            if word in {stem(w) for w in words_of(key.sql("postgres").replace("_", " "))}:
                return True
            for column in key.find_all(exp.Column):
                origin = case.origins.of(column)
                if origin is None or word in name_stems(origin[0].name) | name_stems(
                    origin[1].name
                ):
                    return True
                place = f"{origin[0].name}.{origin[1].name}".lower()
                for one in case.catalog.keys:
                    sides = (one.left.lower(), one.right.lower())
                    if place in sides and any(word in name_stems(side) for side in sides):
                        return True
    return False


def merged_years(case: Case) -> Doubt | None:
    """Months or weeks of all years in one group, where the question names no such year."""
    for select in case.selects:
        group = select.args.get("group")
        keys = list(group.find_all(exp.Extract)) if group is not None else []
        parts = {part.this.name.casefold() for part in keys}
        text = group.sql("postgres").casefold() if group is not None else ""
        if parts & {"month", "quarter", "week"} and "year" not in parts and "year" not in text:
            where = select.args.get("where")
            if where is not None and re.search(r"\b(?:19|20)\d\d\b", where.sql("postgres")):
                continue
            (part,) = sorted(parts & {"month", "quarter", "week"})[:1]
            return (
                f"the groups by {part} hold that of every year together",
                f"Group by date_trunc('{part}', …).",
            )
    return None


def groups_of_equal_names(case: Case) -> Doubt | None:
    """Groups by a name that several rows of its table have, where the table is what is grouped."""
    for select in case.selects:
        group = select.args.get("group")
        columns = list(group.expressions) if group is not None else []
        if (
            len(columns) != 1
            or not isinstance(columns[0], exp.Column)
            or not select.args.get("joins")
        ):
            continue
        origin = case.origins.of(columns[0])
        if origin is None or "name" not in name_stems(origin[1].name):
            continue
        table, column = origin
        if not name_stems(table.name) & case.stems:
            continue
        name = exp.column(exp.to_identifier(column.name, quoted=True))
        twice = (
            exp.select("1")
            .from_(exp.to_identifier(table.name, quoted=True))
            .group_by(name)
            .having("count(*) > 1")
            .limit(1)
        )
        if case.has_rows(twice.sql("postgres")):
            return (
                f"several rows of {table.name} have one {column.name}, and the query makes one group of them",
                "Group by the key, too.",
            )
    return None


def table_left_out(case: Case) -> Doubt | None:
    """A table that the question names by a word of no other table or column, and the query does
    not read."""
    read = {table.name.lower() for table in case.tree.find_all(exp.Table)}
    others = [name_stems(t.name) for t in case.catalog.tables if t.name.lower() in read]
    columns = {s for t in case.catalog.tables for c in t.columns for s in name_stems(c.name)}
    for table in case.catalog.tables:
        stems = name_stems(table.name)
        if table.name.lower() in read or not stems <= case.stems or any(stems & o for o in others):
            continue
        if stems & columns:
            continue
        return (
            f"the question names {table.name}, and the query does not read it",
            f"Join {table.name}.",
        )
    return None
