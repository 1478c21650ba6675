"""Expressions without a truth value: ``and`` between two of DataFusion's is the second alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, NoReturn

from datafusion import Expr
from datafusion.col import Col

from blendfusion.errors import ArgumentError


class CheckedExpr(Expr):
    """An expression of DataFusion whose misuse as a truth value is an error.

    Python reads ``a and b``, ``not a``, ``1 < a < 3`` and ``a in [1, 2]`` by the truth value of
    ``a``, which is true for any object: a predicate would be lost. What its methods return is
    checked, too. An operator with a value on the left keeps its sides: DataFusion takes ``10 - a``
    for ``a - 10``.
    """

    def __bool__(self) -> NoReturn:
        raise ArgumentError(
            "an expression has no truth value: it is computed for each row",
            hint="Write & for and, | for or, ~ for not, with parentheses around each side; "
            "x.between(1, 3) for 1 <= x <= 3; functions.in_list(x, [lit(1), lit(2)]) for x in [1, 2].",
        )


def _check_result(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        made = method(*arguments, **named)
        return CheckedExpr(made.expr) if type(made) is Expr else made

    return call


def _reflect(operator: Callable[..., Any]) -> Callable[..., Any]:
    def call(right: CheckedExpr, left: object) -> Any:
        return operator(left if isinstance(left, Expr) else Expr.literal(left), right)

    return _check_result(call)


for _name, _method in vars(Expr).items():
    if isinstance(_method, FunctionType) and _name != "__init__":
        _plain = "__" + _name[3:]
        if _name.startswith("__r") and _plain in vars(Expr):
            setattr(CheckedExpr, _name, _reflect(getattr(Expr, _plain)))
        else:
            setattr(CheckedExpr, _name, _check_result(_method))


class CheckedCol(Col):
    """Columns as expressions: ``col("stars")``, ``col.stars``."""

    def __call__(self, value: str) -> CheckedExpr:
        """The column of a name, in double quotes if it is not to be found in any letter case."""
        return CheckedExpr(Expr.column(value).expr)

    def __getattr__(self, value: str) -> Expr:
        found = super().__getattr__(value)
        return CheckedExpr(found.expr) if isinstance(found, Expr) else found


col = CheckedCol()
