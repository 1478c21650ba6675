"""Replaces aliases of the select list in WHERE, which SQLite allows, by their expressions."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader, Select
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.language.query_text.source_map import Translation
from blendfusion.services.dialects.common.catalog import SessionFacts


def aliases_in_where(reader: Reader, known: SessionFacts) -> Translation:
    """A text with the expression of each alias in its place in WHERE.

    As in SQLite, a column of the tables hides an alias of its name."""
    weaver = Weaver(reader)
    for _, _, select, _ in reader.selects if "WHERE" in reader.words else ():
        for at, (start, stop) in _uses(reader, select).items():
            if not _is_column(reader, select, at, known):
                weaver.rewrite(at, at + 1, "(", (start, stop), ")")
    return weaver.whole()


def _uses(reader: Reader, select: Select) -> dict[int, tuple[int, int]]:
    """Where WHERE names an alias, with the place of its expression."""
    aliases = {
        reader.name(stop - 1).lower(): (start, stop - 2)
        for start, stop in reader.items(select)
        if stop - start > 2 and reader.word(stop - 2) == "AS" and reader.is_name(stop - 1)
    }
    found: dict[int, tuple[int, int]] = {}
    if select.where is None or not aliases:
        return found
    for at in range(select.where[0] + 1, select.where[1]):
        alone = TokenType.DOT not in (reader.kind(at - 1), reader.kind(at + 1))
        if not (alone and reader.is_name(at)) or reader.opens(at + 1):
            continue
        expression = aliases.get(reader.name(at).lower())
        around = reader.around(at)
        if expression is not None and around and around[0][0] is select:
            found[at] = expression
    return found


def _is_column(reader: Reader, select: Select, at: int, known: SessionFacts) -> bool:
    """Whether a relation of the SELECT has a column of the name at ``at``."""
    assert select.where is not None
    relations = reader.source_text(select.items[1], select.where[0])
    tables = reader.visible_tables(select.start + 1)
    return known.schema(f"{tables}SELECT {reader.source_text(at, at + 1)} {relations}") is not None
