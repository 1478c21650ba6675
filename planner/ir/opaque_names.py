"""The names of opaque leaves: plans that DataFusion runs as they are, and that rules see as tables."""

from __future__ import annotations

from collections.abc import Sequence

CATALOG = "__blendfusion"
TABLES = "tables"
"""A table of the user's, with columns of types that survive."""
QUERIES = "queries"
"""A plan that has no other form here."""


def leaf_name(serial: int, text: str) -> str:
    """The name of a leaf in its schema; ``text`` says what it is."""
    return f"{serial} {text}"


def leaf_text(names: Sequence[str], schema: str) -> str | None:
    """What a leaf of ``schema`` is, by the parts of a table's name; None for any other table."""
    if is_leaf(names) and names[1] == schema:
        return names[2].partition(" ")[2]
    return None


def is_leaf(names: Sequence[str]) -> bool:
    """True for the name of a leaf, by its parts."""
    return len(names) == 3 and names[0] == CATALOG and names[1] in (TABLES, QUERIES)
