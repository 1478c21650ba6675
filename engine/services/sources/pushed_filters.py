"""Writes the filter of a scan in the words of a database, as far as it means the same there."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from blendfusion.services.scans.scan_filters import Application, Constant, Field, Tree, conjuncts
from blendfusion.services.sources.database import Column
from blendfusion.services.sources.scan_advice import SortKey
from blendfusion.services.sources.sort_keys import order_keys
from blendfusion.services.sources.text_patterns import by_bytes, like

_COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "equal": exp.EQ,
    "not_equal": exp.NEQ,
    "less": exp.LT,
    "less_equal": exp.LTE,
    "greater": exp.GT,
    "greater_equal": exp.GTE,
}
_TURNED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
_MOST_MEMBERS = 1000
"""The longest list that a query of a database has."""


class PushedCondition(NamedTuple):
    """A condition there. Rows that meet the filter meet it; if ``is_exact``, no others do."""

    condition: exp.Expr
    is_exact: bool


class DividedFilter(NamedTuple):
    """A filter in two: what a database checks, and what is checked here."""

    there: tuple[exp.Expr, ...]
    here: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class FilterWriter:
    """Writes filters over the columns of one table."""

    columns: Mapping[str, Column]
    dialect: str

    def divide(self, tree: Tree) -> DividedFilter:
        """``tree`` as what the database checks, and what is left to check here."""
        there, here = [], []
        for part in conjuncts(tree):
            pushed = self._push(part)
            if pushed is not None:
                there.append(pushed.condition)
            if pushed is None or not pushed.is_exact:
                here.append(part)
        return DividedFilter(tuple(there), tuple(here))

    def _push(self, tree: Tree) -> PushedCondition | None:
        if isinstance(tree, Field):
            return self._push_truth(tree)
        if isinstance(tree, Constant):
            return None
        if tree.name in ("and_kleene", "or_kleene"):
            return self._push_connective(tree)
        if tree.name == "invert":
            inner = self._push(tree.arguments[0])
            exact = inner is not None and inner.is_exact
            return (
                PushedCondition(exp.not_(exp.paren(inner.condition)), True)
                if exact and inner
                else None
            )
        if tree.name in ("is_null", "is_valid"):
            return self._push_null_test(tree)
        if tree.name == "is_in":
            return self._push_list(tree)
        if tree.name == "in_query":
            return self._push_query(tree)
        if tree.name in ("like", "not_like"):
            return self._push_pattern(tree)
        return self._push_comparison(tree) if tree.name in _COMPARISONS else None

    def _push_truth(self, field: Field) -> PushedCondition | None:
        column = self.columns[field.name]
        if column.kind != "boolean":
            return None
        if self.dialect in ("sqlite", "mysql"):
            return PushedCondition(
                exp.NEQ(this=column.here, expression=exp.Literal.number(0)), True
            )
        return PushedCondition(column.here, column.is_exact)

    def _push_connective(self, tree: Application) -> PushedCondition | None:
        parts = [self._push(argument) for argument in tree.arguments]
        known = [part for part in parts if part is not None]
        conditions = [exp.paren(part.condition) for part in known]
        exact = len(known) == len(parts) and all(part.is_exact for part in known)
        if tree.name == "and_kleene":
            return PushedCondition(exp.and_(*conditions), exact) if known else None
        return PushedCondition(exp.or_(*conditions), exact) if len(known) == len(parts) else None

    def _push_null_test(self, tree: Application) -> PushedCondition | None:
        (argument,) = tree.arguments
        if not isinstance(argument, Field):
            return None
        column = self.columns[argument.name]
        test = exp.Is(this=column.here, expression=exp.Null())
        if tree.name == "is_null":
            return PushedCondition(test, True) if self._has_same_nulls(column) else None
        return PushedCondition(exp.not_(test), self._has_same_nulls(column))

    def _has_same_nulls(self, column: Column) -> bool:
        return column.is_exact or column.kind == "text"

    def _push_list(self, tree: Application) -> PushedCondition | None:
        (argument,) = tree.arguments
        members = tree.members
        if not isinstance(argument, Field) or not 0 < len(members) <= _MOST_MEMBERS:
            return None
        column = self.columns[argument.name]
        texts = [
            exp.Null() if not member.is_valid else self._literal(column, member)
            for member in members
        ]
        if any(text is None for text in texts):
            return None
        test = exp.In(this=self.by_bytes(column), expressions=texts)
        return PushedCondition(test, column.is_exact)

    def _push_query(self, tree: Application) -> PushedCondition | None:
        """A test for a key that another query of the database finds, of the same type."""
        (argument,) = tree.arguments
        assert isinstance(argument, Field)
        column = self.columns[argument.name]
        if column.kind == "text" and self.dialect != "mysql":
            return PushedCondition(
                exp.In(this=by_bytes(column, self.dialect), query=tree.options.subquery()), True
            )
        if column.kind not in ("number", "date", "timestamp") or not column.is_exact:
            return None
        return PushedCondition(exp.In(this=column.here, query=tree.options.subquery()), True)

    def _push_pattern(self, tree: Application) -> PushedCondition | None:
        field, pattern = tree.arguments
        if not (isinstance(field, Field) and isinstance(pattern, Constant)):
            return None
        column, known = self.columns[field.name], pattern.value.as_py()
        if column.kind != "text" or not isinstance(known, str):
            return None
        if self.dialect == "mysql" and "\\" in known:
            return None
        found = like(column, known, self.dialect)
        if found is None:
            return None
        condition, is_exact = found
        if tree.name == "not_like":
            condition = exp.not_(exp.paren(condition))
        if not is_exact:
            end = exp.func("instr", column.here, exp.func("char", exp.Literal.number(0)))
            condition = exp.or_(condition, exp.GT(this=end, expression=exp.Literal.number(0)))
        return PushedCondition(condition, is_exact)

    def _push_comparison(self, tree: Application) -> PushedCondition | None:
        left, right = tree.arguments
        name = tree.name
        if isinstance(left, Constant):
            left, right, name = right, left, _TURNED.get(name, name)
        if (
            isinstance(left, Application)
            and left.name == "as_double"
            and isinstance(right, Constant)
        ):
            return self._push_double(left, right, name)
        if not (isinstance(left, Field) and isinstance(right, Constant)):
            return None
        column = self.columns[left.name]
        literal = self._literal(column, right.value)
        if literal is None or column.kind == "boolean":
            return None
        if self.dialect == "mysql" and column.kind == "text" and name != "equal":
            other = exp.cast(literal, "BINARY", dialect="mysql")
            here = by_bytes(column, self.dialect)
            return PushedCondition(_COMPARISONS[name](this=here, expression=other), True)
        if not column.is_exact and name != "equal":
            return None
        here = self.by_bytes(column, is_ordered=name not in ("equal", "not_equal"))
        return PushedCondition(_COMPARISONS[name](this=here, expression=literal), column.is_exact)

    def _push_double(
        self, cast: Application, constant: Constant, name: str
    ) -> PushedCondition | None:
        """A comparison of whole numbers as DOUBLE, which rounds them the same everywhere."""
        (field,) = cast.arguments
        if not isinstance(field, Field) or not pa.types.is_integer(self.columns[field.name].type):
            return None
        column, value = self.columns[field.name], constant.value.as_py()
        literal = _float(value, self.dialect)
        if column.kind != "number" or column.read is not None or literal is None:
            return None
        here = exp.cast(column.here, "DOUBLE")
        return PushedCondition(_COMPARISONS[name](this=here, expression=literal), column.is_exact)

    def by_bytes(self, column: Column, *, is_ordered: bool = False) -> exp.Expr:
        """The column, where texts are compared by their bytes if it is exact."""
        if column.kind != "text" or not column.is_exact:
            return column.here
        if self.dialect == "postgres" and not is_ordered:  # equal texts have equal bytes
            return column.here
        return by_bytes(column, self.dialect)

    def has_order(self, column: Column) -> bool:
        """Whether the database can sort by a column as DataFusion does."""
        if column.kind == "text":
            return column.is_sortable and (column.is_exact or self.dialect == "mysql")
        return column.kind != "other" and column.is_exact

    def order(self, column: Column, key: SortKey) -> list[exp.Expr]:
        """The keys of ORDER BY for a column."""
        return order_keys(column, key, self.dialect)

    def _literal(self, column: Column, value: Any) -> exp.Expr | None:
        """A literal of Arrow for a comparison with a column; None where it is none there."""
        if not value.is_valid:
            return None
        try:
            known = value.as_py()
        except (ValueError, OverflowError):  # a date that Python does not have
            return None
        if column.kind == "number":
            return _number(known)
        if column.kind == "float":
            return _float(known, self.dialect)
        if column.kind == "text":
            is_text = isinstance(known, str) and "\0" not in known
            is_text = is_text and (column.has_all_letters or known.isascii())
            escaped = self.dialect == "mysql" and "\\" in str(known)
            return exp.Literal.string(known) if is_text and not escaped else None
        if column.kind == "date" and type(known) is datetime.date:
            text = exp.Literal.string(known.isoformat())
            return text if self.dialect == "sqlite" else exp.cast(text, "DATE")
        if column.kind == "timestamp" and pa.types.is_timestamp(value.type):
            return _timestamp(value, column)
        return None


def _number(value: Any) -> exp.Expr | None:
    if isinstance(value, (bool, float)):
        return None
    text = f"{value:f}" if not isinstance(value, int) else str(value)
    return _signed_number(text)


def _signed_number(text: str) -> exp.Expr:
    number = exp.Literal.number(text.lstrip("-"))
    return exp.Neg(this=number) if text.startswith("-") else number


def _float(value: Any, dialect: str) -> exp.Expr | None:
    """A literal for numbers with a fraction. Zero has a sign here, and none there."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        return None
    text = repr(value) if "e" in repr(value) else f"{value!r}e0"
    number = _signed_number(text)
    return number if dialect in ("sqlite", "mysql") else exp.cast(exp.paren(number), "DOUBLE")


def _timestamp(value: Any, column: Column) -> exp.Expr | None:
    try:
        moment = value.cast(pa.timestamp("us", value.type.tz)).as_py()
    except pa.ArrowInvalid:  # with parts of a microsecond
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC)
    text = moment.isoformat(sep=" ")
    zoned = getattr(column.type, "tz", None) is not None
    if zoned != (moment.tzinfo is not None):
        return None
    return exp.cast(exp.Literal.string(text), "TIMESTAMPTZ" if zoned else "TIMESTAMP")
