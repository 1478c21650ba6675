"""The semantic layer of a TOML file: meanings of names, other words for them, keys, metrics and
questions with their queries."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blendfusion.errors import QueryError

_FORM = """Write
[tables.sales]
description = "one row a receipt"
synonyms = ["receipts"]
columns.price = { description = "in euros", synonyms = ["cost"] }
[metrics.revenue]
sql = "sum(price * pieces)"
table = "sales"
[[keys]]
left = "sales.product_id"
right = "products.id"
[[examples]]
question = "What did we sell in May?"
sql = "SELECT sum(pieces) FROM sales WHERE month = 5\""""


@dataclass(frozen=True, slots=True)
class Note:
    """The description of a table, a column or a metric, and other words for it."""

    description: str = ""
    synonyms: tuple[str, ...] = ()

    def __str__(self) -> str:
        also = f"also {', '.join(self.synonyms)}" if self.synonyms else ""
        return "; ".join(filter(None, (" ".join(self.description.split()), also)))


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure that has a name: an expression over a table."""

    name: str
    sql: str
    table: str
    note: Note = Note()

    def __str__(self) -> str:
        note = str(self.note)
        return f"metric {self.name} of {self.table}: {self.sql}" + (f" ({note})" if note else "")


@dataclass(frozen=True, slots=True)
class Layer:
    """The notes of tables by name and of columns by ``table.column``, both in lower case; keys as
    pairs of ``table.column``."""

    tables: Mapping[str, Note] = field(default_factory=dict)
    columns: Mapping[str, Note] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    """Questions with right queries."""


def read_layer(path: str | os.PathLike[str]) -> Layer:
    """The layer of a TOML file. Raises QueryError, with the form of the file, for any other."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return _layer(tomllib.load(file))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise QueryError(f"cannot read the semantic layer '{path}': {problem}") from problem
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise QueryError(
            f"the semantic layer '{path}' has another form: {problem}", hint=_FORM
        ) from problem


def _layer(found: Mapping[str, Any]) -> Layer:
    unknown = sorted(set(found) - {"tables", "metrics", "keys", "examples"})
    if unknown:
        raise ValueError(f"it has {unknown[0]!r} beside tables, metrics, keys and examples")
    tables, columns = {}, {}
    for table, entry in found.get("tables", {}).items():
        tables[table.lower()] = _note(entry, "columns")
        for column, own in entry.get("columns", {}).items():
            columns[f"{table}.{column}".lower()] = _note(own)
    metrics = tuple(
        Metric(name, _text(entry["sql"]), _text(entry["table"]), _note(entry, "sql", "table"))
        for name, entry in found.get("metrics", {}).items()
    )
    keys = tuple((_text(key["left"]), _text(key["right"])) for key in found.get("keys", ()))
    examples = tuple(
        (_text(pair["question"]), _text(pair["sql"])) for pair in found.get("examples", ())
    )
    return Layer(tables, columns, metrics, keys, examples)


def _note(entry: Mapping[str, Any], *others: str) -> Note:
    unknown = sorted(set(entry) - {"description", "synonyms", *others})
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known")
    words = entry.get("synonyms", [])
    if not isinstance(words, list):
        raise TypeError("synonyms are a list")
    return Note(_text(entry.get("description", "")), tuple(map(_text, words)))


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{given!r} is no text")
    return given
