"""Does a model find the right query likelier than wrong ones, with linked values and without?

    python benchmarks/bench_query_ranking.py FOLDER --model llama:FILE.gguf [--questions 40]
        [--texts] [--results FILE.jsonl] [--gpu] [--share K/N]

FOLDER as for ``bench_text_to_sql.py``; questions of the part ``report``. Nine queries beside the
right one differ from it by one mistake: another column of the table, another stored value of the
column or another number, another aggregate, another comparison, the other order. The model writes
none of them: the logarithms of the probabilities of a query's tokens add up, behind the prompt that
``session.ask`` sends. *first* is the share of questions whose right query is the likeliest of the
ten; *links* are the stored values that the question names (``ask.links``). Queries without
nine mistakes are left out; ``--texts`` asks only those whose right query has a text literal.
Printed with Wilson's intervals at 95 %, also for the questions whose right query has a text
literal, and with the exact sign test of both."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partialmethod
from itertools import chain, zip_longest
from pathlib import Path
from unittest.mock import patch

import numpy as np
from bench_text_to_sql import Databases, interval, questions, without
from local_settings import add_arguments, add_share, own_share, settings
from sqlglot import exp, parse_one, transpile
from sqlglot.optimizer.scope import traverse_scope

from blendfusion.errors import BlendFusionError
from blendfusion.models.services.llama.batch import Row
from blendfusion.models.services.llama.context import Logits
from blendfusion.models.services.llama.generate import TextDecoder
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.schema.catalog import Catalog, Table
from blendfusion.services.evaluate.intervals import sign_test
from blendfusion.types import Answer

WRONG = 9
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def mistakes(tree: exp.Expr, catalog: Catalog) -> list[list[str]]:
    """The query with one mistake each, a list for each kind of mistake, in no order of meaning."""
    tables = {table.name.casefold(): table for table in catalog.tables}
    sources, kinds = _sources(tree, tables), defaultdict[type, set[str]](set)
    for node in tree.walk():
        for other in _others(node, sources):
            copy = tree.copy()
            place = next(c for n, c in zip(tree.walk(), copy.walk(), strict=True) if n is node)
            place.replace(other)
            kind = next((k for k in (exp.Literal, exp.AggFunc) if isinstance(node, k)), type(node))
            kinds[kind].add(copy.sql("postgres"))
    return [sorted(kinds[kind], key=_digest) for kind in sorted(kinds, key=str)]


def _others(node: exp.Expr, sources: dict[str, Table]) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Column):
        for table in _tables_of(node, sources):
            for column in table.columns:
                if column.name.casefold() != node.name.casefold():
                    yield exp.column(exp.to_identifier(column.name), node.args.get("table"))
    elif isinstance(node, exp.Literal) and node.is_string:
        compared = node.parent.find(exp.Column) if node.parent else None
        for value in _stored(compared, sources):
            if value != node.name:
                yield exp.Literal.string(value)
    elif isinstance(node, exp.Literal):
        yield exp.Literal.number(int(float(node.name)) + 1)
    elif isinstance(node, _AGGREGATES) and not isinstance(node.this, exp.Star | exp.Distinct):
        yield from (kind(this=node.this.copy()) for kind in _AGGREGATES if kind is not type(node))
    elif isinstance(node, _COMPARISONS):
        both = {"this": node.this.copy(), "expression": node.expression.copy()}
        yield from (kind(**both) for kind in _COMPARISONS if kind is not type(node))
    elif isinstance(node, exp.Ordered):
        yield exp.Ordered(this=node.this.copy(), desc=not node.args.get("desc"))


def _sources(tree: exp.Expr, tables: dict[str, Table]) -> dict[str, Table]:
    """The tables by the names that they have in the query."""
    named: dict[str, Table] = {}
    for scope in traverse_scope(tree):
        for name, source in scope.sources.items():
            if isinstance(source, exp.Table) and source.name.casefold() in tables:
                named[name.casefold()] = tables[source.name.casefold()]
    return named


def _tables_of(column: exp.Column, sources: dict[str, Table]) -> list[Table]:
    """The tables that have the column."""
    named = sources.get(column.table.casefold())
    own = column.name.casefold()
    among = [named] if named else list(sources.values())
    return [table for table in among if any(c.name.casefold() == own for c in table.columns)]


def _stored(column: exp.Column | None, sources: dict[str, Table]) -> Sequence[str]:
    if column is None:
        return ()
    own = column.name.casefold()
    return [
        value
        for table in _tables_of(column, sources)
        for one in table.columns
        if one.name.casefold() == own
        for value in one.values
    ]


def ten(gold: exp.Expr, catalog: Catalog) -> list[str]:
    """The right query and nine wrong ones, by kind of mistake in turn; [] if there are fewer."""
    for name in gold.find_all(exp.Identifier):
        name.set("quoted", False)  # as those of the mistakes
    right = gold.sql("postgres")
    in_turn = chain.from_iterable(zip_longest(*mistakes(gold, catalog)))
    wrong = [sql for sql in dict.fromkeys(in_turn) if sql not in (None, right)]
    return [right, *wrong[:WRONG]] if len(wrong) >= WRONG else []


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class Ranking:
    """In place of ``TextDecoder.decide``: the log probability of each query is kept, and the right
    one is the answer."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.found: list[float] = []

    def __call__(self, decoder: TextDecoder, rows: Sequence[Row]) -> None:
        asking = decoder._asking
        written = [
            asking.context.tokenize(asking.layout.lead + sql, special=False) for sql in self.queries
        ]
        totals, seen = [0.0] * len(written), [0] * len(written)

        def step(place: int, logits: Logits) -> Sequence[int]:
            tokens, at = written[place], seen[place]
            seen[place] += 1
            most = logits.max()
            totals[place] += float(logits[tokens[at]] - most - np.log(np.exp(logits - most).sum()))
            return tokens[at : at + 1] if at + 1 < len(tokens) else ()

        if not self.found:
            asking.run([rows[0]] * len(written), step, [len(tokens) for tokens in written])
            self.found = totals
        for row in rows:
            asking.settle(row, Answer(self.queries[0]))


def ranked(
    databases: Databases, asked: Sequence[tuple[str, str, str]]
) -> Iterator[dict[str, object]]:
    """The rank of each question's right query, with links and without."""
    ranking = Ranking()
    for database, question, gold in asked:
        session = databases.session(database)
        [sql] = transpile(databases.spelled(database, gold), read="mysql", write="postgres")
        tree = parse_one(sql, read="postgres")
        queries = ten(tree, read_catalog(session))
        if not queries:
            continue
        ranks: list[int] = []
        for step in ("", "links"):
            ranking.queries, ranking.found = queries, []
            with without(step), patch.object(TextDecoder, "decide", partialmethod(ranking)):
                try:
                    session.ask(question)
                except BlendFusionError as problem:
                    print(f"{question}: {problem.message}", file=sys.stderr)
            if ranking.found:
                right, *wrong = ranking.found
                ranks.append(sum(other >= right for other in wrong))
        if not ranks:
            continue
        yield {
            "question": question,
            "linked": ranks[0],
            "unlinked": ranks[-1],  # without a link, the prompt is the same, and not sent again
            "text": _has_text(tree),
        }


def _has_text(tree: exp.Expr) -> bool:
    return any(literal.is_string for literal in tree.find_all(exp.Literal))


def print_shares(name: str, found: Sequence[dict[str, object]]) -> None:
    with_links = [one["linked"] == 0 for one in found]
    alone = [one["unlinked"] == 0 for one in found]
    gained = sum(a and not b for a, b in zip(with_links, alone, strict=True))
    lost = sum(b and not a for a, b in zip(with_links, alone, strict=True))
    print(
        f"{name}: right query first {interval(sum(with_links), len(found))} with links, "
        f"{interval(sum(alone), len(found))} without (p = {sign_test(gained, lost):.3f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--questions", type=int, default=40)
    add_arguments(parser)
    add_share(parser)
    parser.add_argument("--texts", action="store_true", help="right queries with a text literal")
    parser.add_argument("--results", type=Path, help="a file of ranks, to go on from")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    asked = questions(arguments.folder, "report", sys.maxsize)
    if arguments.texts:
        asked = [one for one in asked if _has_text(parse_one(one[2], read="mysql"))]
    asked = asked[: arguments.questions]
    found = []
    if arguments.results is not None and arguments.results.exists():
        found = [json.loads(line) for line in arguments.results.read_text("utf-8").splitlines()]
    known = {one["question"] for one in found}
    databases = Databases(arguments.folder, arguments.model, settings(arguments))
    for one in ranked(
        databases, sorted(one for one in own_share(asked, arguments.share) if one[1] not in known)
    ):
        found.append(one)
        if arguments.results is not None:
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
    print_shares("all", found)
    print_shares("with a text literal", [one for one in found if one["text"]])


if __name__ == "__main__":
    main()
