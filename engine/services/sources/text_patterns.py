"""LIKE in the words of a database: ``%`` and ``_`` mean the same everywhere, the rest does not."""

from __future__ import annotations

import re

from sqlglot import exp

from blendfusion.services.sources.database import Column

_TOKEN = re.compile(r"\\[%_]|[^\\]", re.DOTALL)
_LONGEST = 1000


def by_bytes(column: Column, dialect: str) -> exp.Expr:
    """A column of texts as an expression that a database compares, sorts and groups by bytes."""
    if dialect == "mysql":
        return exp.cast(exp.cast(column.here, "CHAR"), "BINARY", dialect="mysql")
    names = {"sqlite": exp.var("BINARY"), "duckdb": exp.to_identifier("binary", quoted=True)}
    return exp.Collate(
        this=column.here, expression=names.get(dialect) or exp.to_identifier("C", quoted=True)
    )


def like(column: Column, pattern: str, dialect: str) -> tuple[exp.Expr, bool] | None:
    """The condition that a text is LIKE a pattern, and whether it also holds for texts with a
    character NUL, which functions of SQLite take for the end. None for a pattern with a backslash
    whose meaning differs."""
    tokens = _TOKEN.findall(pattern)
    if "\0" in pattern or len(pattern) > _LONGEST or "".join(tokens) != pattern:
        return None
    if dialect == "sqlite":
        return _glob(column, tokens)
    here = by_bytes(column, dialect)
    if dialect == "mysql":
        here = exp.Collate(this=exp.cast(column.here, "CHAR"), expression=exp.var("utf8mb4_bin"))
    escaped = "".join(f"!{t[-1]}" if len(t) == 2 or t == "!" else t for t in tokens)
    found: exp.Expr = exp.Like(this=here, expression=exp.Literal.string(escaped))
    if "!" in escaped:
        found = exp.Escape(this=found, expression=exp.Literal.string("!"))
    return found, True


def _glob(column: Column, tokens: list[str]) -> tuple[exp.Expr, bool]:
    words = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    text = "".join(words.get(token, token[-1]) for token in tokens)
    found = exp.Glob(this=column.here, expression=exp.Literal.string(text))
    inner = {*tokens[:-1]} & {"%", "_"}
    return found, bool(tokens) and tokens[-1] == "%" and not inner
