"""SQL text of expressions and aggregates over named columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from substrait.proto import AggregateFunction, SortField
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.builders import cast_to_text, literal
from blendfusion.planner.ir.literals import literal_text, type_text
from blendfusion.planner.ir.messages import ZONED_LITERAL, frame_text, zoned_type
from blendfusion.planner.ir.nodes import Ask, Expr, Field, Measure, Node, StoredRows, walk
from blendfusion.udfs.declare.arguments import sql_string

_LOOSEST, _OR, _AND, _NOT, _COMPARISON, _BITS, _SUM, _PRODUCT, _SIGN, _ATOM = range(10)
"""Precedence levels of operators, from the loosest."""

_INFIX = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    "equal": ("=", _COMPARISON),
    "not_equal": ("<>", _COMPARISON),
    "lt": ("<", _COMPARISON),
    "lte": ("<=", _COMPARISON),
    "gt": (">", _COMPARISON),
    "gte": (">=", _COMPARISON),
    "is_not_distinct_from": ("IS NOT DISTINCT FROM", _COMPARISON),
    "is_distinct_from": ("IS DISTINCT FROM", _COMPARISON),
    "regex_match": ("~", _COMPARISON),
    "regex_imatch": ("~*", _COMPARISON),
    "regex_not_match": ("!~", _COMPARISON),
    "regex_not_imatch": ("!~*", _COMPARISON),
    "bitwise_and": ("&", _BITS),
    "bitwise_or": ("|", _BITS),
    "bitwise_xor": ("^", _BITS),
    "bitwise_shift_left": ("<<", _BITS),
    "bitwise_shift_right": (">>", _BITS),
    "str_concat": ("||", _BITS),
    "add": ("+", _SUM),
    "subtract": ("-", _SUM),
    "multiply": ("*", _PRODUCT),
    "divide": ("/", _PRODUCT),
    "modulus": ("%", _PRODUCT),
}
_POSTFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_unknown": "IS UNKNOWN",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
    "is_not_unknown": "IS NOT UNKNOWN",
}
_LIKE = {"like": "LIKE", "ilike": "ILIKE"}


class Text(str):
    """SQL text with the precedence of its outermost operator."""

    binds: int

    def __new__(cls, text: str, binds: int = _ATOM) -> Self:
        new = super().__new__(cls, text)
        new.binds = binds
        return new


class _ListText(Text):
    """The text of an array_agg. A call on the list shows the items of the aggregate instead."""

    value: str
    order: str
    condition: str


def expression_text(expr: Expr, names: Sequence[str], queries: Sequence[Node] = ()) -> str:
    """``expr`` as SQL over columns with ``names``; a call in the user's notation.

    ``queries`` are the subqueries shown below it; several ones are named by their positions.
    """
    return _Writer(names, queries).text(expr)


def conjunct(expr: Expr, names: Sequence[str], queries: Sequence[Node] = ()) -> str:
    """The text of ``expression_text`` as an operand of AND."""
    return _Writer(names, queries).within(expr, _AND + 1)


def measure_text(measure: Measure, names: Sequence[str]) -> str:
    """An aggregate with its DISTINCT, ORDER BY and FILTER."""
    return _Writer(names, ()).measure(measure)


def sort_text(expr: Expr, direction: int, names: Sequence[str], queries: Sequence[Node]) -> str:
    """A sort key with its direction, and with its NULLs if they differ from DataFusion's
    default."""
    return expression_text(expr, names, queries) + _DIRECTIONS.get(direction, "")


_DIRECTIONS = {
    SortField.SORT_DIRECTION_ASC_NULLS_FIRST: " NULLS FIRST",
    SortField.SORT_DIRECTION_DESC_NULLS_FIRST: " DESC",
    SortField.SORT_DIRECTION_DESC_NULLS_LAST: " DESC NULLS LAST",
}


def subqueries(exprs: Iterable[Expr]) -> list[Node]:
    """The distinct subqueries in expressions, in the written order."""
    found = (e for expr in exprs for e in walk(expr) if isinstance(e, Node) and e.rels)
    return list(dict.fromkeys(found))


class _Writer:
    def __init__(self, names: Sequence[str], queries: Sequence[Node]) -> None:
        self.names = names
        self.queries = queries

    def text(self, expr: Expr) -> str:
        if isinstance(expr, Field):
            return self.names[expr.index] if expr.index < len(self.names) else f"#{expr.index}"
        if isinstance(expr, Ask):
            return self._call(expr)
        name = expr.name.removeprefix("window:").removeprefix("row:")
        if expr.rels:
            return self._subquery(expr)
        if name == "literal":
            return literal_text(ExpressionMessage.FromString(expr.template).literal)
        if name in ("cast", ZONED_LITERAL):
            return self._cast(expr)
        if name in _LIKE:
            return self._like(expr, "")
        if name in _INFIX and len(expr.children) > 1:
            return self._infix(name, expr.children)
        if name in _POSTFIX:
            operand = self.within(expr.children[0], _COMPARISON + 1)
            return Text(f"{operand} {_POSTFIX[name]}", _COMPARISON)
        if name == "not":
            return self._not(expr.children[0])
        if name == "negate":
            return Text(f"-{self.within(expr.children[0], _ATOM)}", _SIGN)
        if name == "if_then":
            return self._case(expr.children)
        if name == "singular_or_list":
            return self._in(expr, "")
        if name == "make_array":
            return f"[{self._list(expr.children)}]"
        if name in ("array_element", "get_field"):
            whole, *keys = expr.children
            return self.within(whole, _ATOM) + "".join(f"[{self.text(key)}]" for key in keys)
        if expr.name.startswith("window:"):
            return self._window(name, expr)
        return f"{name}({self._list(expr.children)})"

    def within(self, expr: Expr, least: int) -> str:
        """The text of an operand, in parentheses if its precedence is below ``least``."""
        text = self.text(expr)
        return f"({text})" if isinstance(text, Text) and text.binds < least else text

    def _list(self, exprs: Iterable[Expr]) -> str:
        return ", ".join(map(self.text, exprs))

    def _infix(self, name: str, operands: Sequence[Expr]) -> Text:
        word, binds = _INFIX[name]
        if binds in (_OR, _AND):  # parentheses around AND inside OR too: easier to read
            return Text(f" {word} ".join(self.within(o, _AND + 1) for o in operands), binds)
        chain = isinstance(operands[0], Node) and operands[0].name == name
        loose = binds in (_SUM, _PRODUCT) or (binds == _BITS and chain)
        first = self.within(operands[0], binds if loose else binds + 1)
        rest = (self.within(o, binds + 1) for o in operands[1:])
        return Text(f" {word} ".join((first, *rest)), binds)

    def _not(self, expr: Expr) -> Text:
        if isinstance(expr, Node) and expr.name in _LIKE:
            return self._like(expr, "NOT ")
        if isinstance(expr, Node) and expr.name == "singular_or_list":
            return self._in(expr, "NOT ")
        return Text(f"NOT {self.within(expr, _ATOM)}", _NOT)

    def _like(self, expr: Node, negation: str) -> Text:
        value, pattern, *escape = expr.children
        text = f"{self.within(value, _COMPARISON + 1)} {negation}{_LIKE[expr.name]} "
        text += self.within(pattern, _COMPARISON + 1)
        if escape and literal(escape[0]) is not None:
            text += f" ESCAPE {self.text(escape[0])}"
        return Text(text, _COMPARISON)

    def _in(self, expr: Node, negation: str) -> Text:
        value = self.within(expr.children[0], _COMPARISON + 1)
        return Text(f"{value} {negation}IN ({self._list(expr.children[1:])})", _COMPARISON)

    def _cast(self, expr: Node) -> str:
        cast = ExpressionMessage.FromString(expr.template).cast
        lenient = cast.failure_behavior == ExpressionMessage.Cast.FAILURE_BEHAVIOR_RETURN_NULL
        zoned = zoned_type(cast.type)
        if zoned is not None and not lenient:
            zone = zoned.partition('"')[2].removesuffix('")')
            operand = self.within(expr.children[0], _ATOM)
            return Text(f"{operand} AT TIME ZONE {sql_string(zone)}", _SIGN)
        word = "TRY_CAST" if lenient else "CAST"
        return f"{word}({self.text(expr.children[0])} AS {type_text(cast.type)})"

    def _case(self, parts: Sequence[Expr]) -> str:
        texts = list(map(self.text, parts))
        pairs = zip(texts[0::2], texts[1::2], strict=False)
        text = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
        return f"CASE {text}{f' ELSE {texts[-1]}' if len(texts) % 2 else ''} END"

    def _subquery(self, expr: Node) -> Text:
        place = f" {self.queries.index(expr) + 1}" if len(self.queries) > 1 else ""
        query = f"(subquery{place})"
        message = ExpressionMessage.FromString(expr.template).subquery
        kind = message.WhichOneof("subquery_type")
        if kind == "set_predicate":
            return Text(f"EXISTS {query}")
        if kind == "in_predicate":
            needles = ", ".join(self.within(c, _COMPARISON + 1) for c in expr.children)
            if isinstance(expr.rels[0], StoredRows):
                query = f"(stage {expr.rels[0].stage + 1})"
            return Text(f"{needles} IN {query}", _COMPARISON)
        return Text(query)

    # --- functions of several rows ---------------------------------------------------------------

    def measure(self, measure: Measure) -> str:
        holder = RelMessage.FromString(measure.template).aggregate.measures[0]
        function = holder.measure
        distinct = function.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
        args = measure.args
        if measure.name == "array_agg":
            args = tuple(cast_to_text(a) or a for a in args)
        values = self._list(args)
        if measure.name == "count" and values == "1":
            values = "*"
        values = ("DISTINCT " if distinct else "") + values
        keys = zip(measure.exprs[: measure.n_sorts], function.sorts, strict=True)
        order = self._order_by((e, s.direction) for e, s in keys)
        condition = self.text(measure.exprs[-1]) if holder.HasField("filter") else ""
        parts = [p for p in (values, order) if p]
        text = f"{measure.name}({' '.join(parts)})" + _filter(condition)
        if measure.name != "array_agg":
            return text
        gathered = _ListText(text)
        gathered.value, gathered.order, gathered.condition = values, order, condition
        return gathered

    def _call(self, ask: Ask) -> str:
        """A call in the user's notation, without the plan's casts to text and lists around its
        values."""
        values = [self.text(cast_to_text(arg) or arg) for arg in ask.args]
        if ask.domain is not None:
            return self._match(ask, values)
        lists = [v for v in values if isinstance(v, _ListText)]
        text = ask.call.to_sql([v.value if isinstance(v, _ListText) else v for v in values])
        if not lists:
            return text
        # Every list of a call has the same order and filter.
        order = f" {lists[0].order}" if lists[0].order else ""
        return f"{text.removesuffix(')')}{order}){_filter(lists[0].condition)}"

    def _match(self, ask: Ask, values: Sequence[str]) -> str:
        """The match of a join by meaning: its value and key, and the stage of the candidates."""
        held = "the other side"
        if isinstance(ask.domain, StoredRows):
            held = f"stage {ask.domain.stage + 1}"
        pairing = ask.call.pairing
        value, *keys = values
        if ask.call.ingredient.kind.whole_column:
            held = "its column" if held == "the other side" else held
            beside = f" with equal {', '.join(keys)}" if keys else ""
            return f"{ask.call.to_sql([value])} among the values of {held}{beside}"
        nearest = "" if pairing is None else f"{pairing.k} nearest of "
        if pairing is not None and pairing.labelling is not None:
            nearest = "labels of "
            _, *keys = keys
        beside = f" beside {', '.join(keys)}" if keys else ""
        parts = [value, f"{nearest}{held}{beside}", *ask.call.written_options(without="k")]
        return f"{ask.call.ingredient.name}({', '.join(parts)})"

    def _window(self, name: str, expr: Node) -> str:
        window = ExpressionMessage.FromString(expr.template).window_function
        n_keys, n_sorts, n_args = map(len, (window.partitions, window.sorts, window.arguments))
        keys = expr.children[:n_keys]
        sorts = expr.children[n_keys : n_keys + n_sorts]
        args = self._list(expr.children[len(expr.children) - n_args :])
        name, _, clause = name.partition(" ")
        if name == "count" and args == "1":
            args = "*"
        if clause.endswith("DISTINCT"):
            args = f"DISTINCT {args}"
        nulls = " IGNORE NULLS" if clause.startswith("IGNORE NULLS") else ""
        directions = (s.direction for s in window.sorts)
        parts = [
            f"PARTITION BY {self._list(keys)}" if keys else "",
            self._order_by(zip(sorts, directions, strict=True)),
            _frame(window),
        ]
        return f"{name}({args}){nulls} OVER ({' '.join(p for p in parts if p)})"

    def _order_by(self, keys: Iterable[tuple[Expr, int]]) -> str:
        by = [sort_text(expr, way, self.names, self.queries) for expr, way in keys]
        return f"ORDER BY {', '.join(by)}" if by else ""


def _filter(condition: str) -> str:
    return f" FILTER (WHERE {condition})" if condition else ""


def _frame(window: ExpressionMessage.WindowFunction) -> str:
    """The frame of a window; '' for the default frame."""
    bounded = frame_text(window)
    if bounded is not None:
        return bounded
    low = _bound_text(window.lower_bound, "PRECEDING")
    high = _bound_text(window.upper_bound, "FOLLOWING")
    rows = window.bounds_type == ExpressionMessage.WindowFunction.BOUNDS_TYPE_ROWS
    whole = low == "UNBOUNDED PRECEDING" and high == "UNBOUNDED FOLLOWING"
    so_far = low == "UNBOUNDED PRECEDING" and high == "CURRENT ROW" and not rows
    if so_far if window.sorts else whole:
        return ""
    return f"{'ROWS' if rows else 'RANGE'} BETWEEN {low} AND {high}"


def _bound_text(bound: ExpressionMessage.WindowFunction.Bound, side: str) -> str:
    kind = bound.WhichOneof("kind")
    if kind in ("preceding", "following"):
        return f"{getattr(bound, kind).offset} {kind.upper()}"
    return "CURRENT ROW" if kind == "current_row" else f"UNBOUNDED {side}"
