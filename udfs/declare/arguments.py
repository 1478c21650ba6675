"""The arguments of a call, as SQL or Python gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Literal: TypeAlias = "str | int | float | bool | list[Literal] | dict[str, Literal] | None"
"""A literal argument, as a Python object."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value argument: a column or an expression; ``name`` is '' for an expression."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal argument."""

    value: Literal


INFERRED = "/* inferred */"
"""A comment in a subquery for options that the user did not ask for: if they are too many, answers
are free texts."""


@dataclass(frozen=True, slots=True)
class Query:
    """A subquery in the place of a literal. It is read at run time; its rows are the literal."""

    text: str

    @property
    def sql(self) -> str:
        """The subquery on one line, in parentheses."""
        return f"({' '.join(self.text.split())})"


@dataclass(frozen=True, slots=True)
class OwnValues(Query):
    """``array_agg(x)`` in the place of options: the values of the group that is asked about."""

    @property
    def sql(self) -> str:
        return self.text


Option: TypeAlias = "Literal | Query"
"""The value of a named argument."""

Argument: TypeAlias = "Value | Constant"
"""A positional argument."""


def sql_string(text: str) -> str:
    """``text`` as a SQL literal.

    >>> print(sql_string("it's"))
    'it''s'
    """
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def quoted_name(name: str) -> str:
    """``name`` as a SQL identifier that means exactly it.

    >>> print(quoted_name('a "b" c'))
    "a ""b"" c"
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def sql_literal(value: object) -> str:
    """A Python value as a literal of a call: tuples and lists as ``[…]``, mappings as ``{…}``.

    >>> sql_literal(["a", 2.0, True, None]), sql_literal({"a": "b"})
    ("['a', 2.0, true, NULL]", "{'a': 'b'}")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Query):
        return value.sql
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(sql_literal, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{sql_literal(k)}: {sql_literal(v)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    return sql_string(value) if isinstance(value, str) else str(value)
