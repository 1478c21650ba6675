"""Reads the columns of USING and NATURAL joins as SQL has them: one column for both sides.

DataFusion 55 takes that of the left side, which is NULL where a RIGHT or FULL JOIN has a row of the
right side alone, and calls it ambiguous in WHERE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.lateral import Columns
from blendfusion.language.query_text.query_tree import Query, Reader, Select, Source
from blendfusion.language.query_text.repeated_names import alias_of
from blendfusion.language.query_text.source_map import edit
from blendfusion.udfs.declare.arguments import quoted_name


class _SharedColumn(NamedTuple):
    """A column of both sides: its value, and whether DataFusion takes the left side for it."""

    value: str
    is_left: bool


class _Relation(NamedTuple):
    alias: str
    columns: Sequence[str]


_RENAMES = {"REPLACE", "RENAME", "ILIKE"}


def using_columns(sql: str, columns: Columns) -> str:
    """``sql`` in which the names of such columns have their values."""
    reader = Reader(sql)
    edits = [
        edit
        for *_, select, query in reader.selects
        for edit in _edits(reader, select, query, columns)
    ]
    return edit(sql, edits).sql if edits else sql


def _edits(
    reader: Reader, select: Select, query: Query, columns: Columns
) -> Iterator[tuple[int, int, str]]:
    relations = _relations(reader, select, columns)
    merged = _merged_columns(reader, select, relations)
    for at in _names(reader, select, query) if merged else ():
        column = merged.get(reader.name(at))
        where = select.where is not None and select.where[0] <= at < select.where[1]
        if column is None or (column.is_left and not where):
            continue
        alone = at < select.items[1] and reader.is_item(at, at + 1)
        alias = f" AS {quoted_name(reader.name(at))}" if alone else ""
        yield *reader.span(at, at + 1), f"{column.value}{alias}"
    for start, end in reader.items(select) if merged else ():
        words = {reader.word(at) for at in range(start, end)}
        plain = end == start + 1 and all(column.is_left for column in merged.values())
        if reader.kind(start) == TokenType.STAR and not plain and not words & _RENAMES:
            hidden = {reader.name(at) for at in range(start + 1, end) if reader.is_name(at)}
            yield *reader.span(start, end), ", ".join(_every(relations, merged, hidden))


def _every(
    relations: Sequence[_Relation], merged: dict[str, _SharedColumn], hidden: set[str]
) -> Iterator[str]:
    """The columns of ``*``, each of both sides once, without those that are hidden."""
    seen = hidden
    for alias, columns in relations:
        for name in columns:
            if name in merged and name not in seen:
                seen = seen | {name}
                yield f"{merged[name].value} AS {quoted_name(name)}"
            elif name not in merged and name not in hidden:
                yield f"{quoted_name(alias)}.{quoted_name(name)}"


def _names(reader: Reader, select: Select, query: Query) -> Iterator[int]:
    """Where names of columns stand without a relation: outside of FROM and of queries inside, and
    in an ORDER BY unless the result has them."""
    last = max(source.on[1] if source.on else source.stop for source in select.sources)
    skipped = {*range(select.sources[0].start, last)}
    skipped.update(at for q in (*select.below(), *query.inner) for at in range(q.start, q.end))
    results = set()
    for start, end in reader.items(select):
        alias = alias_of(reader, start, end)
        skipped.update(() if alias is None else (alias,))
        if reader.is_name(end - 1) and (alias is not None or end - start == 1):
            results.add(reader.name(end - 1))
        results.update({"*"} if reader.kind(start) == TokenType.STAR else ())
    end = query.end if len(query.branches) == 1 else select.end
    for at in range(select.start + 1, end):
        if at in skipped or not reader.is_name(at):
            continue
        if at >= select.end and (reader.name(at) in results or "*" in results):
            continue
        before = reader.word(at - 1) == "AS" or reader.kind(at - 1) == TokenType.DCOLON
        dotted = TokenType.DOT in (reader.kind(at - 1), reader.kind(at + 1))
        literal = reader.kind(at + 1) == TokenType.STRING
        if not (before or dotted or literal or reader.opens(at + 1)):
            yield at


def _relations(reader: Reader, select: Select, columns: Columns) -> list[_Relation]:
    """The relations of such joins; none where one has no name, or columns that are not known."""
    sources = select.sources
    if not any(map(partial(_is_merging, reader), sources)):
        return []
    if any({"SEMI", "ANTI"} & {*source.words} or source.group for source in sources):
        return []
    common, found = reader.visible_tables(select.start), []
    for source in sources:
        name = reader.name_of(source)
        known = columns(common, str(reader.source_text(source.start, source.stop)))
        if name is None or known is None:
            return []
        found.append(_Relation(name, known))
    return found


def _merged_columns(
    reader: Reader, select: Select, relations: Sequence[_Relation]
) -> dict[str, _SharedColumn]:
    """The columns of both sides by name; none where it is not clear of which relations they are."""
    found: dict[str, _SharedColumn] = {}
    for i, relation in enumerate(relations):
        source, before = select.sources[i], relations[:i]
        if not _is_merging(reader, source):
            continue
        names = [n for n in relation.columns if any(n in r.columns for r in before)]
        if "NATURAL" not in source.words and source.on is not None:
            names = [reader.name(at) for at in range(*source.on) if reader.is_name(at)][1:]
        for name in names:
            owners = [own.alias for own in before if name in own.columns]
            if name in found or len(owners) != 1:
                return {}
            found[name] = _merge(name, owners[0], relation.alias, source)
    return found


def _is_merging(reader: Reader, source: Source) -> bool:
    using = source.on is not None and reader.word(source.on[0]) == "USING"
    return using or "NATURAL" in source.words


def _merge(name: str, left: str, right: str, source: Source) -> _SharedColumn:
    one, other = (f"{quoted_name(side)}.{quoted_name(name)}" for side in (left, right))
    if "FULL" in source.words:
        return _SharedColumn(f"coalesce({one}, {other})", is_left=False)
    right_side = "RIGHT" in source.words
    return _SharedColumn(other if right_side else one, is_left=not right_side)
