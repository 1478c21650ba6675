"""How many wrong queries do the rules of ``services/ask/doubt_rules.py`` doubt, and how many right ones?

    python benchmarks/bench_draft_doubts.py FOLDER [--part choose|report]

FOLDER is as for bench_text_to_sql.py. Right queries are those of the questions; wrong ones are made
of them by one change each, where that gives other rows. No model is asked. Printed are, for each
rule, its doubts of right and of wrong queries, and for each change the share that is doubted."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench_text_to_sql import CPU, Databases, interval, questions, rows_of
from sqlglot import exp, transpile

import blendfusion as bf
from blendfusion.errors import BlendFusionError
from blendfusion.services.ask.doubt_case import Case
from blendfusion.services.ask.doubt_rules import RULES, Rule, doubts
from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.where import parse

_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.Max: exp.Min,
    exp.Min: exp.Max,
    exp.Avg: exp.Sum,
    exp.Sum: exp.Avg,
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
    exp.NEQ: exp.EQ,
    exp.EQ: exp.NEQ,
}


def changes(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Copies of a query with one change each, and its name."""
    for kind, other in _SWAPPED.items():
        yield from _changed(tree, kind, f"{kind.__name__} → {other.__name__}", _as(other))
    yield from _changed(tree, exp.Ordered, "order turned", _turn)
    for clause in (exp.Limit, exp.Group, exp.Order, exp.Where):
        yield from _changed(tree, clause, f"no {clause.__name__}", _drop)
    yield from _changed(tree, exp.Distinct, "no Distinct", _drop)
    yield from _changed(tree, exp.Literal, "another number", _raise)


def _changed(
    tree: exp.Expr, kind: type[exp.Expr], name: str, change: Callable[[exp.Expr], object]
) -> Iterator[tuple[str, exp.Expr]]:
    for place, _ in enumerate(tree.find_all(kind)):
        copy = tree.copy()
        node = list(copy.find_all(kind))[place]
        joins = node.find_ancestor(exp.Join) is not None and kind is exp.EQ
        text = isinstance(node, exp.Literal) and (node.is_string or node.name in ("0", "1"))
        if not joins and not text:
            change(node)
            yield name, copy


def _as(other: type[exp.Expr]) -> Callable[[exp.Expr], object]:
    return lambda node: node.replace(
        other(**{k: v.copy() for k, v in node.args.items() if isinstance(v, exp.Expr)})
    )


def _drop(node: exp.Expr) -> None:
    node.pop()


def _turn(node: exp.Expr) -> None:
    node.set("desc", not node.args.get("desc"))


def _raise(node: exp.Expr) -> None:
    node.set("this", str(round(3 * float(node.name) + 7)))


def _never(request: bf.Request) -> str:
    raise AssertionError(f"no model is asked: {request}")


class Checks:
    """The rules over the databases of a folder."""

    def __init__(self, folder: Path) -> None:
        self._databases = Databases(folder, bf.ScriptedModel(_never), CPU)
        self._known: dict[str, tuple[Catalog, ValueIndex]] = {}

    def right(self, database: str, gold: str) -> exp.Expr | None:
        spelled = self._databases.spelled(database, gold)
        return parse(transpile(spelled, read="mysql", write="postgres")[0])

    def rows(self, database: str, tree: exp.Expr) -> list[str] | None:
        """The rows of a query, in some order; None if it does not run."""
        try:
            frame = self._databases.session(database).sql(tree.sql("postgres"), read_only=True)
            return list(map(repr, rows_of(frame.limit(1_000))))
        except BlendFusionError:
            return None

    def rules(self, database: str, question: str, tree: exp.Expr) -> list[Rule]:
        session = self._databases.session(database)
        if database not in self._known:
            catalog = read_catalog(session)
            self._known[database] = (catalog, ValueIndex(catalog))
        catalog, index = self._known[database]

        def has_rows(sql: str) -> bool | None:
            try:
                return bool(session.sql(sql, read_only=True).limit(1).to_arrow_table().num_rows)
            except BlendFusionError:
                return None

        case = Case(question, tree, catalog, has_rows, tuple(index.links(question)))
        return [rule for rule, _ in doubts(case)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=("choose", "report"), default="choose")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    checks = Checks(arguments.folder)
    right, wrong = Counter[str](), Counter[str]()
    alarms = right_queries = 0
    made, caught = Counter[str](), Counter[str]()
    for database, question, gold in questions(arguments.folder, arguments.part, sys.maxsize):
        tree = checks.right(database, gold)
        if tree is None:
            continue
        found = checks.rules(database, question, tree)
        right_queries += 1
        right.update(rule.name for rule in found)
        alarms += any(rule.is_strong for rule in found)
        expected = checks.rows(database, tree)
        for name, changed in changes(tree):
            rows = checks.rows(database, changed)
            if rows is None or rows == expected:
                continue
            found = checks.rules(database, question, changed)
            made[name] += 1
            caught[name] += bool(found) or not rows
            wrong.update(rule.name for rule in found)
    print(f"right queries with a strong doubt: {interval(alarms, right_queries)}")
    print(f"wrong queries with a doubt or without rows: {interval(caught.total(), made.total())}")
    for name, n in made.most_common():
        print(f"  {name}: {interval(caught[name], n)}")
    print("rule: doubts of wrong queries, of right ones")
    for rule in RULES:
        strength = "strong" if rule.is_strong else "weak"
        print(f"  {rule.name} ({strength}): {wrong[rule.name]}, {right[rule.name]}")


if __name__ == "__main__":
    main()
