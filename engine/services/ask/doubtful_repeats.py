"""Rows that a join repeats before they are summed, averaged or counted."""

from __future__ import annotations

import re

from sqlglot import exp

from blendfusion.services.ask.column_origins import group_keys, relations
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.links import stem, words_of

_ROW = "blendfusion_row"
_COUNTED = re.compile(
    r"\b(?:how many|(?:the |total |a )number of|count (?:of )?(?:the |all )?)\s*(?:different |distinct )?"
    r"([\w ]+)",
    re.IGNORECASE,
)
_VERBS = frozenset(
    "are is was were do does did have has had can could will would that which who whose with in of from for "
    "there by on at to and or each per made owned".split()
)


def summed_twice(case: Case) -> Doubt | None:
    """A sum or a mean over a table whose rows a join repeats within a group: each repetition counts
    again. Which rows are repeated is seen from the data."""
    for select in case.selects:
        if not select.args.get("joins"):
            continue
        for call in _calls(select, exp.Sum, exp.Avg):
            relation = _only_relation(case, call)
            if relation is None or isinstance(call.this, exp.Distinct):
                continue
            if _repeats(case, select, relation):
                return _doubt(call.sql("postgres"), relation)
    return None


def counted_twice(case: Case) -> Doubt | None:
    """A count of the rows of a join, where the question counts those of a table that it repeats."""
    found = _COUNTED.search(case.question)
    if found is None:
        return None
    noun = _noun(found[1])
    for select in case.selects:
        calls = [c for c in _calls(select, exp.Count) if not isinstance(c.this, exp.Distinct)]
        if not calls or not select.args.get("joins") or select.args.get("having"):
            continue
        for relation in relations(select):
            table = case.origins.table(relation)
            if table is None or tuple(map(stem, words_of(table.name.replace("_", " ")))) != noun:
                continue
            if _repeats(case, select, relation):
                return _doubt(calls[0].sql("postgres"), relation)
    return None


def _doubt(call: str, relation: exp.Expr) -> Doubt:
    name = relation.name
    return (
        f"{call} counts rows of {name} more than once: a join repeats them",
        f"Aggregate {name} before the join, or leave out the join that the question does not need.",
    )


def _noun(text: str) -> tuple[str, ...]:
    """The words of what is counted, without what follows.

    >>> _noun("car makers are there")
    ('car', 'maker')
    """
    found: list[str] = []
    for word in words_of(text):
        if word in _VERBS:
            break
        found.append(stem(word))
    return tuple(found)


def _calls(select: exp.Select, *kinds: type[exp.Expr]) -> list[exp.Expr]:
    """The aggregates of a query itself, without those of its subqueries and windows."""
    return [
        call
        for call in select.find_all(*kinds)
        if call.parent_select is select and call.find_ancestor(exp.Window, exp.Select) is select
    ]


def _only_relation(case: Case, call: exp.Expr) -> exp.Expr | None:
    """The table whose columns alone an aggregate reads."""
    found = {id(r): r for c in call.find_all(exp.Column) if (r := case.origins.relation(c))}
    if len(found) != 1:
        return None
    (relation,) = found.values()
    return relation if case.origins.table(relation) is not None else None


def _repeats(case: Case, select: exp.Select, relation: exp.Expr) -> bool:
    """Whether some group of a query has a row of a relation more than once."""
    probe = select.copy()
    for place, own in enumerate(relations(select)):
        if own is relation:
            inner = list(relations(probe))[place]
            inner.replace(_number_rows(inner))
    root = select.root()
    if probe.args.get("with_") is None and root.args.get("with_") is not None:
        probe.set("with_", root.args["with_"].copy())
    for clause in ("order", "limit", "offset", "distinct", "having", "windows", "qualify"):
        probe.set(clause, None)
    if (group := probe.args.get("group")) is not None:
        group.set("expressions", [key.unalias().copy() for key in group_keys(probe)])
    row = exp.column(_ROW, relation.alias_or_name)
    counted = exp.GT(
        this=exp.Count(this=row), expression=exp.Count(this=exp.Distinct(expressions=[row.copy()]))
    )
    probe.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    probe.set("having", exp.Having(this=counted))
    probe.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return case.has_rows(probe.sql("postgres")) is True


def _number_rows(table: exp.Expr) -> exp.Subquery:
    """A table with the numbers of its rows, under its own name."""
    bare = exp.Table(
        this=table.this.copy(), db=table.args.get("db"), catalog=table.args.get("catalog")
    )
    number = exp.Window(this=exp.RowNumber())
    inner = exp.Select(expressions=[exp.Star(), exp.alias_(number, _ROW)]).from_(bare)
    named = table.args.get("alias") or table
    alias = exp.TableAlias(this=named.this.copy())
    return exp.Subquery(this=inner, alias=alias)
