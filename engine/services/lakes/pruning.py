"""The parts of a filter by which the readers of lakes leave out files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from blendfusion.services.scans.scan_filters import Application, Constant, Field, Tree, conjuncts

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_PRUNING = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date)
"""The types whose comparisons leave out files; others are compared here alone."""


class ColumnTest(NamedTuple):
    """A comparison of a column with one value, ``is_in`` with some, or ``is_valid`` with none."""

    name: str
    column: str
    values: Sequence[Any]


def column_tests(tree: Tree | None, schema: pa.Schema) -> Iterator[ColumnTest]:
    """Tests that all rows of a filter meet."""
    for part in conjuncts(tree) if tree is not None else ():
        found = _test(part, schema)
        if found is not None:
            yield found


def _test(tree: Tree, schema: pa.Schema) -> ColumnTest | None:
    if not isinstance(tree, Application) or not tree.arguments:
        return None
    field, other = tree.arguments[0], tree.arguments[-1]
    if not isinstance(field, Field):
        return None
    kind = schema.field(field.name).type
    if not any(prunes(kind) for prunes in _PRUNING):
        return None
    if tree.name == "is_valid":
        return ColumnTest(tree.name, field.name, ())
    if tree.name == "is_in":
        members = [member.as_py() for member in tree.members if member.is_valid]
        return ColumnTest(tree.name, field.name, members) if members else None
    if tree.name in COMPARISONS and isinstance(other, Constant) and other.value.is_valid:
        return ColumnTest(tree.name, field.name, (other.value.as_py(),))
    return None
