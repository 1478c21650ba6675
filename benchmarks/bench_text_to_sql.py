"""How often does ``session.ask`` write a query that runs, and the right one?

    python benchmarks/bench_text_to_sql.py FOLDER --model llama:FILE.gguf [--questions 40] [--part report]
        [--candidates 3] [--examples] [--without links|grammar|rules] [--results FILE.jsonl]
        [--gpu] [--share K/N]
    python benchmarks/bench_text_to_sql.py FOLDER --links

FOLDER holds ``questions.csv`` (database, question, sql) and DATABASE/data/TABLE.csv, as Spider does
(Yu et al., EMNLP 2018). Questions are split in two by a digest of their text; nothing was chosen on
the part ``report``. *runs* is the share of drafts that plan and execute, *right* the share with the
rows of the right query: in order if that has ORDER BY, columns in any order (Zhong et al., EMNLP
2020). *first* is the model's first draft alone, *chosen* the query after at most two rounds of
repair; both come from one call, so that they are pairs. *untouched* are the questions whose right
query no question of the part ``choose`` has: Spider asks for most queries twice.

``--examples`` accepts the questions of the same database whose right query is another. ``--without``
leaves one step out. ``--results`` keeps the drafts, and goes on behind those that it has. ``--links`` asks no model: of the stored values that right queries name, the share among the
first five and the first eight links of the question. Printed with Wilson's intervals at 95 %."""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path
from unittest.mock import patch

import pyarrow.csv as csv_files
from local_settings import LocalSettings, add_arguments, add_share, own_share, settings
from sqlglot import exp, parse_one, transpile

import blendfusion as bf
from blendfusion.errors import BlendFusionError
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.services.ask import draft as drafting
from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.templates import Templates
from blendfusion.services.evaluate.intervals import sign_test, wilson

CPU = LocalSettings(threads=0, n_gpu_layers=0)
MISSED = sys.maxsize
MYSQL = csv_files.ConvertOptions(null_values=["NULL"], strings_can_be_null=True)
"""MySQL exports a NULL as this word."""
_WIDEST = 6
"""Columns of a result whose orders are tried."""


def part_of(question: str) -> str:
    return "report" if hashlib.sha256(question.encode()).digest()[0] % 2 else "choose"


def questions(folder: Path, part: str, most: int) -> list[tuple[str, str, str]]:
    """(database, question, right query) of a part, spread over the databases."""
    with (folder / "questions.csv").open(encoding="utf-8") as file:
        rows = [(r["database"], r["question"], r["sql"]) for r in csv.DictReader(file)]
    own = [row for row in rows if part_of(row[1]) == part]
    own.sort(key=lambda row: hashlib.sha256(row[1].encode()).digest())
    return own[:most]


def opened(
    folder: Path, database: str, model: bf.Model | str, local: LocalSettings | None = None
) -> bf.Session:
    session = bf.connect(
        model, cache=None, progress="off", names_in_any_case=True, **(local or CPU)
    )
    for file in sorted((folder / database / "data").glob("*.csv")):
        rows = csv_files.read_csv(file, convert_options=MYSQL)
        session.register_record_batches(file.stem, [rows.to_batches()])
    return session


def rows_of(frame: bf.Frame) -> list[tuple[object, ...]]:
    def plain(value: object) -> object:
        return round(float(value), 4) if isinstance(value, int | float) else value

    return [tuple(map(plain, row.values())) for row in frame.to_pylist()]


def equal(a: list[tuple[object, ...]], b: list[tuple[object, ...]], *, ordered: bool) -> bool:
    """Whether both are the same rows, with the columns of ``a`` in some order."""
    width = len(b[0]) if b else 0
    if len(a) != len(b) or (a and len(a[0]) != width) or width > _WIDEST:
        return a == b
    expected = b if ordered else Counter(map(repr, b))
    for order in permutations(range(width)):
        moved = [tuple(row[place] for place in order) for row in a]
        if (moved if ordered else Counter(map(repr, moved))) == expected:
            return True
    return False


def interval(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits / n:.2f} [{low:.2f}, {high:.2f}] ({hits} of {n})" if n else "-"


@dataclass(frozen=True)
class Drafts:
    """The first draft of a question and the query that was chosen; '' where none plans."""

    question: str
    first: str
    chosen: str


@dataclass(frozen=True)
class Outcome:
    """Whether the drafts of a question run and have the right rows."""

    drafts: Drafts
    gold: str
    untouched: bool
    first_runs: bool
    first_right: bool
    runs: bool
    right: bool


class Databases:
    """A session for each database, opened when it is first needed."""

    def __init__(self, folder: Path, model: bf.Model | str, local: LocalSettings) -> None:
        self._folder = folder
        self._local = local
        self._model = model
        self._sessions: dict[str, bf.Session] = {}
        self._spellings: dict[str, dict[str, str]] = {}

    def session(self, database: str) -> bf.Session:
        if database not in self._sessions:
            self._sessions[database] = opened(self._folder, database, self._model, self._local)
        return self._sessions[database]

    def spelled(self, database: str, mysql: str) -> str:
        """A right query with its literals as they are stored: MySQL compares texts without regard
        to letter case."""
        if database not in self._spellings:
            _, stored = _index(self.session(database))
            self._spellings[database] = {value.casefold(): value for value in sorted(stored)}
        tree = parse_one(mysql, read="mysql")
        for literal in tree.find_all(exp.Literal):
            if literal.is_string and isinstance(literal.parent, exp.EQ | exp.NEQ | exp.In):
                known = self._spellings[database].get(literal.name.casefold(), literal.name)
                literal.set("this", known)
        for like in list(tree.find_all(exp.Like)):
            like.replace(exp.ILike(this=like.this, expression=like.expression))
        return tree.sql("mysql")


def drafts(
    databases: Databases,
    asked: Sequence[tuple[str, str, str]],
    candidates: int,
    examples: Sequence[tuple[str, str, str]],
) -> Iterator[Drafts]:
    """What ``ask`` writes for each question. ``examples``: questions that may be accepted before."""
    for database, question, gold in asked:
        session = databases.session(database)
        session.templates = _accepted(database, gold, examples)
        try:
            draft = session.ask(question, candidates=candidates)
            yield Drafts(question, draft.tried[0].sql, draft.sql)
        except BlendFusionError:
            yield Drafts(question, "", "")


def judged(
    databases: Databases,
    asked: Sequence[tuple[str, str, str]],
    found: Mapping[str, Drafts],
    seen: frozenset[str],
) -> Iterator[Outcome]:
    """The outcome of each question with drafts. ``seen``: right queries that something was chosen
    on."""
    for database, question, gold in asked:
        if question not in found:
            continue
        session, both = databases.session(database), found[question]
        try:
            expected = rows_of(session.sql(databases.spelled(database, gold), dialect="mysql"))
        except BlendFusionError as error:
            print(f"the right query does not run: {gold}: {error.message}")
            continue
        ordered = "ORDER BY" in gold.upper()
        results = [
            _right(session, sql, expected, ordered=ordered) for sql in (both.first, both.chosen)
        ]
        yield Outcome(both, gold, gold not in seen, *results[0], *results[1])


def _accepted(database: str, gold: str, examples: Sequence[tuple[str, str, str]]) -> Templates:
    """The pairs that a user may have accepted, none of which has the right query."""
    kept = Templates()
    for other, question, sql in examples:
        if other == database and sql != gold:
            kept.pairs[question] = transpile(sql, read="mysql", write="postgres")[0]
    return kept


def _right(
    session: bf.Session, sql: str, expected: list[tuple[object, ...]], *, ordered: bool
) -> tuple[bool, bool]:
    """(runs, has the right rows)"""
    try:
        found = rows_of(session.sql(sql, read_only=True)) if sql else None
    except BlendFusionError:
        found = None
    return found is not None, found is not None and equal(found, expected, ordered=ordered)


def without(step: str) -> ExitStack:
    """Leaves one step of drafting out while it is open."""
    stack = ExitStack()
    if step == "links":
        stack.enter_context(patch.object(ValueIndex, "links", lambda *_, **_more: []))
    if step == "rules":
        stack.enter_context(patch.object(drafting, "by_rule", lambda *_: None))
    if step == "grammar":
        own: property = vars(LlamaModel)["abilities"]
        plain = property(lambda model: replace(own.__get__(model), follows_grammars=False))
        stack.enter_context(patch.object(LlamaModel, "abilities", plain))
    return stack


def measure(arguments: argparse.Namespace) -> list[Outcome]:
    """The outcomes of the questions of a part, those with kept drafts among them."""
    every = {part: questions(arguments.folder, part, sys.maxsize) for part in ("choose", "report")}
    asked = every[arguments.part][: arguments.questions]
    found: dict[str, Drafts] = {}
    if arguments.results is not None and arguments.results.exists():
        lines = arguments.results.read_text(encoding="utf-8").splitlines()
        found = {one.question: one for one in (Drafts(**json.loads(line)) for line in lines)}
    databases = Databases(arguments.folder, arguments.model, settings(arguments))
    own = own_share(asked, arguments.share)
    missing = sorted(one for one in own if one[1] not in found)  # a database's tables once
    examples = [*every["choose"], *every["report"]] if arguments.examples else []
    for one in drafts(databases, missing, arguments.candidates, examples):
        found[one.question] = one
        if arguments.results is not None:
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    seen = frozenset(gold for _, _, gold in every["choose"])
    outcomes = list(judged(databases, asked, found, seen))
    for outcome in outcomes if arguments.shows else ():
        if not outcome.right:
            print(
                f"- {outcome.drafts.question}\n  {outcome.drafts.chosen}\n  right: {outcome.gold}"
            )
    return outcomes


def print_outcomes(name: str, found: Sequence[Outcome]) -> None:
    n = len(found)
    for draft, runs, right in (
        ("first", [o.first_runs for o in found], [o.first_right for o in found]),
        ("chosen", [o.runs for o in found], [o.right for o in found]),
    ):
        print(f"{name}, {draft}: runs {interval(sum(runs), n)}, right {interval(sum(right), n)}")
    gained = sum(o.right and not o.first_right for o in found)
    lost = sum(o.first_right and not o.right for o in found)
    print(f"{name}: {gained} gained by repair, {lost} lost (p = {sign_test(gained, lost):.3f})")


def _never(request: bf.Request) -> str:
    raise AssertionError(f"links ask no model: {request}")


def _index(session: bf.Session) -> tuple[ValueIndex, frozenset[str]]:
    """(the links of a database, its stored values)"""
    catalog = read_catalog(session)
    columns = [column for table in catalog.tables for column in table.columns]
    stored = frozenset(value for column in columns for value in column.values)
    return ValueIndex(catalog), stored


def print_links(folder: Path) -> None:
    """The recall of links on either part."""
    known: dict[str, tuple[ValueIndex, frozenset[str]]] = {}
    for part in ("choose", "report"):
        ranks: list[int] = []
        others: list[int] = []
        for database, question, gold in questions(folder, part, sys.maxsize):
            if database not in known:
                known[database] = _index(opened(folder, database, bf.ScriptedModel(_never)))
            index, values = known[database]
            stored = {value.casefold() for value in values}
            literals = parse_one(gold, read="mysql").find_all(exp.Literal)
            named = {one.this.casefold() for one in literals if one.is_string} & stored
            found = [link.value.casefold() for link in index.links(question)]
            ranks += [found.index(value) if value in found else MISSED for value in named]
            others.append(sum(value not in named for value in found))
        for most in (5, 8):
            hits = sum(rank < most for rank in ranks)
            print(f"{part}: recall of links at {most}: {interval(hits, len(ranks))}")
        free = sum(not count for count in others)
        print(
            f"{part}: {sum(others) / len(others):.2f} links a question to values that its query lacks;"
        )
        print(f"{part}: questions without such a link: {interval(free, len(others))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--part", choices=("choose", "report"), default="report")
    parser.add_argument("--links", action="store_true", help="the recall of links alone")
    add_arguments(parser)
    add_share(parser)
    parser.add_argument("--candidates", type=int, default=1)
    parser.add_argument("--examples", action="store_true", help="accept other questions before")
    parser.add_argument("--without", choices=("", "links", "grammar", "rules"), default="")
    parser.add_argument("--results", type=Path, help="a file of drafts, to go on from")
    parser.add_argument("--shows", action="store_true", help="print what went wrong")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.links:
        print_links(arguments.folder)
        return
    with without(arguments.without):
        found = measure(arguments)
    print_outcomes("all", found)
    print_outcomes("untouched", [outcome for outcome in found if outcome.untouched])


if __name__ == "__main__":
    main()
