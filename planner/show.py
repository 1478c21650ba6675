"""Plans and expressions as text, for EXPLAIN and for golden pages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import SortField
from substrait.proto import Type as TypeMessage

from blendfusion.planner.leaf import QUERIES, TABLES, leaf_text
from blendfusion.planner.plan import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    Stored,
    aggregation,
    cast_to_text,
    fetch_bounds,
    is_union_all,
    join_type,
    needs_model,
    table_names,
)
from blendfusion.planner.tree import subplans
from blendfusion.udfs.call import quoted

_INFIX = {
    "and": "AND",
    "or": "OR",
    "equal": "=",
    "not_equal": "<>",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulus": "%",
    "like": "LIKE",
    "ilike": "ILIKE",
    "is_not_distinct_from": "IS NOT DISTINCT FROM",
    "is_distinct_from": "IS DISTINCT FROM",
    "concat_operator": "||",
}
_POSTFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}

Stages = Mapping[int, Sequence[str]]
"""The column names of stored stages."""


def shown(expr: Expr, names: Sequence[str]) -> str:
    """``expr`` as SQL-like text over columns with ``names``; a call as the user wrote it."""
    if isinstance(expr, Field):
        return names[expr.index] if expr.index < len(names) else f"#{expr.index}"
    if isinstance(expr, Ask):
        return expr.call.written([_value(arg, names) for arg in expr.args])
    parts = [shown(child, names) for child in expr.children]
    if expr.name == "literal":
        return _literal(expr)
    if expr.name == "cast":
        kind = ExpressionMessage.FromString(expr.template).cast.type.WhichOneof("kind")
        return f"CAST({parts[0]} AS {kind})"
    if expr.name in ("like", "ilike"):
        return f"{parts[0]} {_INFIX[expr.name]} {parts[1]}"
    if expr.name in _INFIX and len(parts) > 1:
        return f" {_INFIX[expr.name]} ".join(
            f"({p})" if _is_connective(c) else p for p, c in zip(parts, expr.children, strict=True)
        )
    if expr.name in _POSTFIX:
        return f"{parts[0]} {_POSTFIX[expr.name]}"
    if expr.name == "not":
        return f"NOT {parts[0]}"
    if expr.name == "if_then":
        return _case(parts)
    if expr.name == "singular_or_list":
        return f"{parts[0]} IN ({', '.join(parts[1:])})"
    if expr.name == "subquery":
        return "(subquery)"
    return f"{expr.name.removeprefix('window:')}({', '.join(parts)})"


def _value(arg: Expr, names: Sequence[str]) -> str:
    """A call's argument, without the cast to text or the list that the plan puts around it."""
    text = shown(cast_to_text(arg) or arg, names)
    return (
        text.removeprefix("array_agg(").removesuffix(")") if text.startswith("array_agg(") else text
    )


def _is_connective(expr: Expr) -> bool:
    return isinstance(expr, Node) and expr.name in ("and", "or")


def _case(parts: Sequence[str]) -> str:
    pairs = zip(parts[0::2], parts[1::2], strict=False)
    text = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
    otherwise = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
    return f"CASE {text}{otherwise} END"


def _literal(expr: Node) -> str:
    literal = ExpressionMessage.FromString(expr.template).literal
    kind = literal.WhichOneof("literal_type")
    if kind is None or kind == "null":
        return "NULL"
    value = getattr(literal, kind)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value) if isinstance(value, int | float) else f"{kind} literal"


def names_of(plan: Plan, stages: Stages) -> list[str]:
    """A readable name for each column of a plan."""
    if isinstance(plan, Stored):
        known = list(stages.get(plan.stage, ()))
        return known or [f"stage {plan.stage + 1} #{i}" for i in range(plan.width)]
    if isinstance(plan, Block):
        below = names_of(plan.source, stages)
        return [shown(e, below) for e in plan.select]
    inputs = [names_of(below, stages) for below in plan.inputs]
    if plan.kind == "read":
        table = _table(plan)
        return [f"{table}.{name}" if table else name for name in _read_names(plan)]
    if plan.kind == "project":
        return [shown(e, inputs[0]) for e in plan.exprs]
    if plan.kind in ("join", "cross"):
        both = [*inputs[0], *inputs[1]]
        kind = join_type(plan)
        if kind in ("left_semi", "left_anti"):
            both = inputs[0]
        elif kind in ("right_semi", "right_anti"):
            both = inputs[1]
        elif kind == "left_mark":
            both = [*inputs[0], "mark"]
        return both
    if plan.kind == "set":
        return [_of_branches(names) for names in zip(*inputs, strict=True)]
    if plan.kind == "aggregate":
        agg = aggregation(plan)
        keys = [shown(k, inputs[0]) for k in agg.keys]
        sets = ["grouping set"] * (agg.n_before_measures - len(keys))
        return keys + sets + [_measure(m.name, m.args, inputs[0]) for m in agg.measures]
    return inputs[0] if inputs else [f"#{i}" for i in range(plan.width)]


def _of_branches(names: Sequence[str]) -> str:
    """The name of a column of a union: those that it has in the branches which bring something."""
    if all(name.isdigit() for name in names) and len(set(names)) == len(names):
        return "branch"
    return " | ".join(dict.fromkeys(n for n in names if n != "NULL")) or "NULL"


def _measure(name: str, args: Sequence[Expr], names: Sequence[str]) -> str:
    return f"{name}({', '.join(shown(cast_to_text(a) or a, names) for a in args)})"


def _table(plan: Rel) -> str:
    """The name of the table that is read; '' for literal rows and for a plan that has no name."""
    names = table_names(plan)
    if leaf_text(names, QUERIES) is not None:
        return ""
    return leaf_text(names, TABLES) or ".".join(names)


def _read_names(plan: Rel) -> list[str]:
    body = RelMessage.FromString(plan.template).read
    every, at, names = list(body.base_schema.names), 0, []
    for kind in body.base_schema.struct.types:
        names.append(every[at])
        at += 1 + _names_inside(kind)
    if body.HasField("projection"):
        return [names[item.field] for item in body.projection.select.struct_items]
    return names


def _names_inside(kind: TypeMessage) -> int:
    """How many names of fields follow the name of a column of this type."""
    if kind.HasField("struct"):
        return sum(1 + _names_inside(field) for field in kind.struct.types)
    if kind.HasField("list"):
        return _names_inside(kind.list.type)
    if kind.HasField("map"):
        return _names_inside(kind.map.key) + _names_inside(kind.map.value)
    return 0


def lines(plan: Plan, stages: Stages, known: Collection[Plan] = ()) -> Iterator[str]:
    """The plan as an indented tree, a relation a line; of those in ``known`` only the first line."""
    if plan in known:
        yield _line(plan, stages) + (" …" if plan.inputs else "")
        return
    yield _line(plan, stages)
    for below in plan.inputs:
        for line in lines(below, stages, known):
            yield "  " + line


def changed(before: Plan, after: Plan) -> tuple[list[str], list[str]]:
    """Both plans as trees, without what lies below the relations that they have in common."""
    common = set(subplans(before)) & set(subplans(after))
    return list(lines(before, {}, common)), list(lines(after, {}, common))


def _line(plan: Plan, stages: Stages) -> str:
    if isinstance(plan, Stored):
        return f"stage {plan.stage + 1}"
    if isinstance(plan, Block):
        return _block(plan, names_of(plan.source, stages))
    names = [n for below in plan.inputs for n in names_of(below, stages)]
    if plan.kind == "read":
        opaque = leaf_text(table_names(plan), QUERIES)
        if opaque is not None:
            return f"run as it is: {opaque}"
        return f"scan {_table(plan) or 'values'} [{', '.join(_read_names(plan))}]"
    if plan.kind == "aggregate":
        agg = aggregation(plan)
        measures = ", ".join(_measure(m.name, m.args, names) for m in agg.measures)
        keys = ", ".join(shown(k, names) for k in agg.keys)
        return f"aggregate [{measures}]" + (f" by [{keys}]" if keys else "")
    if plan.kind == "fetch":
        offset, count = fetch_bounds(plan)
        return _limit(offset, count)
    if is_union_all(plan):
        return "union all"
    if plan.kind == "project":
        return f"project [{', '.join(shown(e, names) for e in plan.exprs)}]"
    if plan.kind == "join":
        on = ", ".join(shown(e, names) for e in plan.exprs)
        return f"{join_type(plan).replace('_', ' ')} join on {on}"
    if plan.kind == "sort":
        pairs = zip(plan.exprs, _directions(plan), strict=True)
        return f"sort by {', '.join(shown(e, names) + way for e, way in pairs)}"
    text = ", ".join(shown(e, names) for e in plan.exprs)
    return f"{plan.kind} {text}".rstrip()


def _block(block: Block, names: Sequence[str]) -> str:
    parts = ["block"]
    computed = [e for e in block.select if needs_model(e)]
    if computed:
        parts.append(f"compute {', '.join(shown(e, names) for e in computed)}")
    if block.where:
        parts.append(f"filter {' AND '.join(shown(e, names) for e in block.where)}")
    if block.limited:
        parts.append(limit_text(block))
    return " ".join(parts)


def _limit(offset: int, count: int | None) -> str:
    text = "" if count is None else f"limit {count}"
    return f"{text} offset {offset}".strip() if offset else text


_DIRECTIONS = {
    "SORT_DIRECTION_ASC_NULLS_FIRST": " NULLS FIRST",
    "SORT_DIRECTION_ASC_NULLS_LAST": "",
    "SORT_DIRECTION_DESC_NULLS_FIRST": " DESC NULLS FIRST",
    "SORT_DIRECTION_DESC_NULLS_LAST": " DESC NULLS LAST",
}


def _directions(plan: Rel) -> list[str]:
    sorts = RelMessage.FromString(plan.template).sort.sorts
    return [_DIRECTIONS.get(SortField.SortDirection.Name(s.direction), "") for s in sorts]


def limit_text(block: Block) -> str:
    """The limit of a block; '' where it has none."""
    return _limit(block.offset, block.count)
