"""How often does ``session.ask`` write a query that runs, and the right one?

    python benchmarks/bench_text_to_sql.py FOLDER --model llama:FILE.gguf [--questions 40] [--part report]
    python benchmarks/bench_text_to_sql.py FOLDER --links

FOLDER holds ``questions.csv`` (database, question, sql) and DATABASE/data/TABLE.csv, as Spider does
(Yu et al., EMNLP 2018). Questions are split in two by a digest of their text; nothing was chosen on
the part ``report``. *runs* is the share of drafts that plan and execute, *right* the share with the
rows of the right query, in order if that has ORDER BY. ``free`` is the model's first draft alone;
``repaired`` adds at most two rounds. ``--links`` asks no model: of the stored values that right
queries name, the share among the first five and the first eight links of the question. Printed with
Wilson's intervals at 95 %."""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sqlglot import exp, parse_one, transpile

import blendfusion as bf
from blendfusion.errors import BlendFusionError
from blendfusion.evaluate.intervals import wilson
from blendfusion.text_to_sql.links import ValueIndex
from blendfusion.text_to_sql.schema.catalog import read_catalog

MISSED = sys.maxsize


def part_of(question: str) -> str:
    return "report" if hashlib.sha256(question.encode()).digest()[0] % 2 else "choose"


def questions(folder: Path, part: str, most: int) -> list[tuple[str, str, str]]:
    """(database, question, right query) of a part, spread over the databases."""
    with (folder / "questions.csv").open(encoding="utf-8") as file:
        rows = [(r["database"], r["question"], r["sql"]) for r in csv.DictReader(file)]
    own = [row for row in rows if part_of(row[1]) == part]
    own.sort(key=lambda row: hashlib.sha256(row[1].encode()).digest())
    return own[:most]


def opened(folder: Path, database: str, model: bf.Model | str) -> bf.Session:
    session = bf.connect(model, cache=None, progress="off", names_in_any_case=True)
    for file in sorted((folder / database / "data").glob("*.csv")):
        session.register_csv(file.stem, str(file))
    return session


def right_rows(session: bf.Session, mysql: str) -> tuple[list[tuple[object, ...]], bool]:
    """The rows of a query of MySQL, and whether their order counts."""
    sql = transpile(mysql, read="mysql", write="postgres", identify=True)[0]
    return rows_of(session.sql(sql)), "ORDER BY" in sql


def rows_of(frame: bf.Frame) -> list[tuple[object, ...]]:
    def plain(value: object) -> object:
        return round(float(value), 4) if isinstance(value, int | float) else value

    return [tuple(map(plain, row.values())) for row in frame.to_pylist()]


def equal(a: list[tuple[object, ...]], b: list[tuple[object, ...]], *, ordered: bool) -> bool:
    return a == b if ordered else Counter(map(repr, a)) == Counter(map(repr, b))


def interval(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits / n:.2f} [{low:.2f}, {high:.2f}] ({hits} of {n})" if n else "-"


def outcomes(
    folder: Path, asked: list[tuple[str, str, str]], model: str, rounds: int, *, shows: bool
) -> Iterator[tuple[bool, bool]]:
    """(runs, is right) of each question whose right query runs."""
    sessions: dict[str, bf.Session] = {}
    for database, question, gold in asked:
        session = sessions.get(database) or opened(folder, database, model)
        sessions[database] = session
        try:
            expected, ordered = right_rows(session, gold)
        except BlendFusionError as error:
            print(f"the right query does not run: {gold}: {error.message}")
            continue
        try:
            draft = session.ask(question, rounds=rounds)
            found = rows_of(draft.frame)
        except BlendFusionError as error:
            if shows:
                print(f"- {question}\n  {error}")
            yield False, False
            continue
        right = equal(found, expected, ordered=ordered)
        if shows and not right:
            print(f"- {question}\n  {draft.sql}\n  right: {gold}")
        yield True, right


def _never(request: bf.Request) -> str:
    raise AssertionError(f"links ask no model: {request}")


def _index(session: bf.Session) -> tuple[ValueIndex, frozenset[str]]:
    """(the links of a database, its stored values)"""
    catalog = read_catalog(session)
    columns = [column for table in catalog.tables for column in table.columns]
    stored = frozenset(value.casefold() for column in columns for value in column.values)
    return ValueIndex(catalog), stored


def print_links(folder: Path) -> None:
    """The recall of links on either part."""
    known: dict[str, tuple[ValueIndex, frozenset[str]]] = {}
    for part in ("choose", "report"):
        ranks: list[int] = []
        for database, question, gold in questions(folder, part, sys.maxsize):
            if database not in known:
                known[database] = _index(opened(folder, database, bf.ScriptedModel(_never)))
            index, stored = known[database]
            literals = parse_one(gold, read="mysql").find_all(exp.Literal)
            named = {one.this.casefold() for one in literals if one.is_string} & stored
            found = [link.value.casefold() for link in index.links(question)]
            ranks += [found.index(value) if value in found else MISSED for value in named]
        for most in (5, 8):
            hits = sum(rank < most for rank in ranks)
            print(f"{part}: recall of links at {most}: {interval(hits, len(ranks))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--part", choices=("choose", "report"), default="report")
    parser.add_argument("--links", action="store_true", help="the recall of links alone")
    parser.add_argument("--shows", action="store_true", help="print what went wrong")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.links:
        print_links(arguments.folder)
        return
    asked = questions(arguments.folder, arguments.part, arguments.questions)
    for name, rounds in (("free", 0), ("repaired", 2)):
        shows = arguments.shows and bool(rounds)
        found = list(outcomes(arguments.folder, asked, arguments.model, rounds, shows=shows))
        runs, right = (sum(column) for column in zip(*found, strict=True))
        print(f"{name}: runs {interval(runs, len(found))}, right {interval(right, len(found))}")


if __name__ == "__main__":
    main()
