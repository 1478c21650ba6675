"""Plans as text, one line per operator, for EXPLAIN and for golden pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain

from substrait.proto import Rel as RelMessage
from substrait.proto import SetRel

from blendfusion.planner.explain.expression_text import (
    Text,
    conjunct,
    expression_text,
    measure_text,
    sort_text,
    subqueries,
)
from blendfusion.planner.explain.truncate import cut, list_items
from blendfusion.planner.ir.aggregates import Aggregation, aggregation
from blendfusion.planner.ir.builders import fetch_bounds, literal, project, table_names
from blendfusion.planner.ir.document_tables import documents_of
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.lineage import base_names, read_names
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    StoredRows,
    Take,
    conjuncts,
    needs_model,
)
from blendfusion.planner.ir.opaque_names import QUERIES, TABLES, leaf_text, unnamed_stem
from blendfusion.planner.ir.search_tables import search_of
from blendfusion.planner.ir.traversal import expressions, subplans
from blendfusion.udfs.declare.arguments import sql_string

Stages = Mapping[int, Sequence[str]]
"""The column names of stored stages."""


_LONGEST_NAME = 1000
"""Maximum characters of a name: names of nested expressions would double with each level."""


def names_of(plan: Plan, stages: Stages) -> list[str]:
    """A readable name for each column of a plan."""
    return _Names(stages).of(plan)


class _Names:
    """The names of the columns of relations, each relation visited once."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._known: dict[int, tuple[Plan, list[str]]] = {}

    def of(self, plan: Plan) -> list[str]:
        # Keyed by identity; the plan is kept beside it so that its id stays unique.
        if id(plan) not in self._known:
            self._known[id(plan)] = (plan, [_short(name) for name in self._find(plan)])
        return self._known[id(plan)][1]

    def _find(self, plan: Plan) -> Sequence[str]:
        if isinstance(plan, StoredRows):
            known = self._stages.get(plan.stage, ())
            return known or [f"stage {plan.stage + 1} #{i}" for i in range(plan.width)]
        if isinstance(plan, Block):
            return [expression_text(e, self.of(plan.source)) for e in plan.select]
        inputs = [self.of(below) for below in plan.inputs]
        if plan.kind == "read":
            table = _table(plan)
            return [f"{table}.{name}" if table else name for name in _read_names(plan)]
        if plan.kind == "project":
            queries = subqueries(plan.exprs)
            return [expression_text(e, inputs[0], queries) for e in plan.exprs]
        if plan.kind in ("join", "cross"):
            return _of_join(join_type(plan), *inputs)
        if plan.kind == "set":
            return [_of_branches(names) for names in zip(*inputs, strict=True)]
        if plan.kind == "aggregate":
            agg = aggregation(plan)
            keys = [expression_text(k, inputs[0]) for k in agg.keys]
            sets = ["grouping set"] * (agg.n_before_measures - len(keys))
            return keys + sets + [measure_text(m, inputs[0]) for m in agg.measures]
        return inputs[0] if inputs else [f"#{i}" for i in range(plan.width)]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else Text(name[: _LONGEST_NAME - 1] + "…", binds=0)


def _of_join(kind: str, left: Sequence[str], right: Sequence[str]) -> Sequence[str]:
    if kind in ("left_semi", "left_anti"):
        return left
    if kind in ("right_semi", "right_anti"):
        return right
    if kind != "left_mark":
        return [*left, *right]
    place = 1 + sum(name.startswith("mark") for name in left)
    return [*left, f"mark {place}"]


def _by_side(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The names of the columns of both sides; names on both sides get their side as a prefix."""
    shared = {name for name in set(left) & set(right) if _PLAIN.fullmatch(name)}
    sides = [("left", left), ("right", right)]
    return [f"{side}.{n}" if n in shared else n for side, names in sides for n in names]


_PLAIN = re.compile(r"[\w.]+")


def _of_branches(names: Sequence[str]) -> str:
    """The name of a union's column, from the branches that contribute rows."""
    if all(name.isdigit() for name in names) and len(set(names)) == len(names):
        return "branch"
    several = list(dict.fromkeys(n for n in names if n != "NULL"))
    return Text(" | ".join(several), binds=0) if len(several) > 1 else (*several, "NULL")[0]


def _table(plan: Rel) -> str:
    """The name of the table in a read; '' for literal rows and for an unnamed plan."""
    names = table_names(plan)
    if leaf_text(names, QUERIES) is not None:
        return ""
    search = search_of(names)
    if search is not None:
        return search.index
    if documents_of(names) is not None:
        return "read_documents"
    return leaf_text(names, TABLES) or unnamed_stem(names) or ".".join(names)


def _read_names(plan: Rel) -> list[str]:
    """The names of the columns that a read returns, as SQL."""
    return list(map(_name_writer(plan), read_names(plan)))


def _base_names(plan: Rel) -> list[str]:
    """The names of all columns of the table in a read, as SQL."""
    return list(map(_name_writer(plan), base_names(plan)))


def _name_writer(plan: Rel) -> Callable[[str], str]:
    return _identifier if leaf_text(table_names(plan), QUERIES) is None else _expression


def _identifier(name: str) -> str:
    """A name as SQL, in quotes if necessary."""
    if re.fullmatch(r"\w+", name):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _expression(name: str) -> str:
    """DataFusion's name of an expression, with its literals as SQL."""
    texts = _TEXT_LITERAL.sub(lambda found: sql_string(found[1]), name)
    return _OTHER_LITERAL.sub(r"\1", texts)


_TEXT_LITERAL = re.compile(r'\b(?:Large)?Utf8(?:View)?\("([^"]*)"\)')
_OTHER_LITERAL = re.compile(r"\b(?:U?Int\d+|Float\d+|Boolean)\(([\w.+-]*)\)")


def lines(plan: Plan, stages: Stages, *, full: bool = False) -> Iterator[str]:
    """The plan as an indented tree, one line per relation; unless ``full``, long lines are cut.

    A projection that only selects columns of another one is merged with it.
    """
    return _Tree(stages, full).lines(plan)


def changed_trees(before: Plan, after: Plan) -> tuple[list[str], list[str]]:
    """Both plans as trees, relation by relation, with the filters inside scans.

    The relations below those that they have in common are left out.
    """
    tree = _Tree({}, full=True, common=set(subplans(before)) & set(subplans(after)))
    return list(tree.lines(before)), list(tree.lines(after))


class _Tree:
    """Writes plans as trees; ``common`` relations are abbreviated in comparisons, see
    ``changed_trees``."""

    def __init__(self, stages: Stages, full: bool, common: Collection[Plan] | None = None) -> None:
        self._names = _Names(stages)
        self._full = full
        self._common = common

    def lines(self, plan: Plan) -> Iterator[str]:
        if self._common is None:
            plan = _one_projection(plan)
        elif plan in self._common:
            yield self._line(plan) + (" …" if plan.inputs else "")
            return
        yield self._line(plan)
        queries = subqueries(expressions(plan))
        for place, query in enumerate(queries, 1):
            yield f"  subquery{f' {place}' if len(queries) > 1 else ''}:"
            for line in chain.from_iterable(map(self.lines, query.rels)):
                yield "    " + line
        for line in chain.from_iterable(map(self.lines, plan.inputs)):
            yield "  " + line

    def _line(self, plan: Plan) -> str:
        if isinstance(plan, StoredRows):
            return f"stage {plan.stage + 1}"
        if isinstance(plan, Block):
            return self._block(plan)
        if plan.kind == "read":
            return self._read(plan)
        names = [n for below in plan.inputs for n in self._names.of(below)]
        queries = subqueries(plan.exprs)
        texts = [expression_text(e, names, queries) for e in plan.exprs]
        if plan.kind == "aggregate":
            return self._aggregate(aggregation(plan), names)
        if plan.kind == "fetch":
            return _limit(*fetch_bounds(plan))
        if plan.kind == "set":
            op = RelMessage.FromString(plan.template).set.op
            return str(SetRel.SetOp.Name(op)).removeprefix("SET_OP_").replace("_", " ").lower()
        if plan.kind == "project":
            return f"project [{self._list(texts)}]" if texts else "keep no columns"
        if plan.kind == "filter":
            return f"filter {self._conditions(plan.exprs, names)}"
        if plan.kind in ("cross", "join"):
            if join_type(plan) == "inner" and all(literal(e) is True for e in plan.exprs):
                return "cross join"
            kind = join_type(plan).replace("_", " ").replace("outer", "full")
            mark = f" as {self._names.of(plan)[-1]}" if kind == "left mark" else ""
            sides = _by_side(*map(self._names.of, plan.inputs))
            return f"{kind} join on {self._conditions(plan.exprs, sides)}{mark}"
        if plan.kind == "sort":
            sorts = RelMessage.FromString(plan.template).sort.sorts
            keys = zip(plan.exprs, sorts, strict=True)
            by = [sort_text(expr, sort.direction, names, queries) for expr, sort in keys]
            return f"sort by {self._list(by)}"
        return f"{plan.kind} {self._list(texts)}".rstrip()

    def _list(self, items: Sequence[str]) -> str:
        return list_items(items, self._full)

    def _conditions(self, exprs: Sequence[Expr], names: Sequence[str]) -> str:
        queries = subqueries(exprs)
        terms = [term for expr in exprs for term in conjuncts(expr)]
        write = conjunct if len(terms) > 1 else expression_text
        return list_items([write(t, names, queries) for t in terms], self._full, " AND ")

    def _read(self, plan: Rel) -> str:
        opaque = leaf_text(table_names(plan), QUERIES)
        if opaque is not None:
            return cut(f"run as it is: {opaque}", self._full)
        columns = _read_names(plan)
        table = _table(plan) or "values"
        search = search_of(table_names(plan))
        if search is not None:
            return f"{cut(str(search), self._full)} [{self._list(columns)}]"
        documents = documents_of(table_names(plan))
        shown_as = f"scan {table}" if documents is None else cut(str(documents), self._full)
        text = f"{shown_as} [{self._list(columns)}]" if columns else f"{shown_as}, no columns"
        if self._common is None or not plan.exprs:
            return text
        every = [f"{table}.{name}" for name in _base_names(plan)]
        return f"{text} hint: {self._conditions(plan.exprs, every)}"

    def _aggregate(self, agg: Aggregation, names: Sequence[str]) -> str:
        keys = [expression_text(k, names) for k in agg.keys]
        groupings = RelMessage.FromString(agg.template).aggregate.groupings
        by = f" by [{self._list(keys)}]" if keys else ""
        if len(groupings) > 1:
            sets = [f"({', '.join(keys[i] for i in g.expression_references)})" for g in groupings]
            by = f" by each of [{self._list(sets)}]"
        elif not agg.measures and keys:
            return f"distinct [{self._list(keys)}]"
        return f"aggregate [{self._list([measure_text(m, names) for m in agg.measures])}]{by}"

    def _block(self, block: Block) -> str:
        names = self._names.of(block.source)
        parts = ["block"]
        computed = [expression_text(e, names) for e in block.select if needs_model(e)]
        if computed:
            parts.append(f"compute {self._list(computed)}")
        if block.where:
            parts.append(f"filter {self._conditions(block.where, names)}")
        if limit := limit_text(block):
            parts.append(limit)
        if block.once:
            parts.append(ONE_OF_EQUAL)
        if block.until is not None:
            parts.append(UNTIL_DECIDED)
        return " ".join(parts)


def _one_projection(plan: Plan) -> Plan:
    """``plan`` merged with its input projection, if it only selects columns of it."""
    while isinstance(plan, Rel) and plan.kind == "project":
        below = plan.inputs[0]
        chosen = [e.index for e in plan.exprs if isinstance(e, Field)]
        if len(chosen) < plan.width or not isinstance(below, Rel) or below.kind != "project":
            break
        plan = project(below.inputs[0], tuple(below.exprs[i] for i in chosen))
    return plan


def _limit(offset: int, count: int | None) -> str:
    text = "" if count is None else f"limit {count}"
    return f"{text} offset {offset}".strip() if offset else text


ONE_OF_EQUAL = "one of equal rows is enough"
UNTIL_DECIDED = "until its groups are decided"


def limit_text(block: Block) -> str:
    """The limit of a block; '' without one."""
    parts = [_limit(block.offset, block.count), *map(_take, block.takes)]
    return ", then ".join(part for part in parts if part)


def _take(take: Take) -> str:
    counted = f"{take.count} in order" if take.dense else str(take.count)
    ties = " with ties" if take.ties and not take.dense else ""
    return f"limit {counted}{ties}{' of each group' if take.per else ''}"
