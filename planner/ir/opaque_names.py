"""Names of leaves: parts of a plan that DataFusion runs unchanged and rules see as tables."""

from __future__ import annotations

from collections.abc import Sequence

CATALOG = "__blendfusion"
TABLES = "tables"
"""Schema of leaves that are a user's table, with columns of types that survive."""
QUERIES = "queries"
"""Schema of leaves that are a query without another form here."""
UNNAMED = "unnamed"
"""Schema of the tables of frames, files and batches."""


def unnamed_stem(names: Sequence[str]) -> str | None:
    """The name that is shown for a table of ``UNNAMED``, from the parts of its own; None for other
    tables.

    >>> unnamed_stem(["__blendfusion", "unnamed", "df_12"])
    'df'
    """
    is_unnamed = len(names) == 3 and names[0] == CATALOG and names[1] == UNNAMED
    return names[2].rpartition("_")[0] if is_unnamed else None


def leaf_name(serial: int, text: str) -> str:
    """The name of a leaf in its schema; ``text`` describes it."""
    return f"{serial} {text}"


def leaf_text(names: Sequence[str], schema: str) -> str | None:
    """The description of a leaf of ``schema``, from the parts of a table's name; None for other
    tables."""
    if is_leaf(names) and names[1] == schema:
        return names[2].partition(" ")[2]
    return None


def is_leaf(names: Sequence[str]) -> bool:
    """Whether the parts of a name are those of a leaf."""
    return len(names) == 3 and names[0] == CATALOG and names[1] in (TABLES, QUERIES)
