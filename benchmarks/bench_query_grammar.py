"""Does every query of ``session.ask``'s grammar plan, and how fast is it to write under?

    python benchmarks/bench_query_grammar.py [FOLDER] [--walks 500] [--model smollm2]

FOLDER holds DATABASE/data/TABLE.csv, as Spider does (Yu et al., EMNLP 2018). For each database, for
TPC-H (if ``tpchgen-cli`` is installed) and for the example tables, ``--walks`` random queries of the
grammar are planned; the model may not be asked. If there is a ``questions.csv``, the share of its
right queries that the grammar admits is printed, too. Then a grammar of 2,000 columns and 60,000
values is made and followed over the vocabulary of ``--model``. Seconds are those of the
CPU."""

from __future__ import annotations

import argparse
import csv
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from sqlglot import exp, parse_one

import blendfusion as bf
from blendfusion.errors import BlendFusionError
from blendfusion.models.constraints.grammar import admits, limits, with_edges
from blendfusion.models.registry.load import load
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.services.ask.grammar.lark import grammar_of
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table
from blendfusion.services.ask.schema.keys import Key
from blendfusion.services.ask.shown_tables import TableChoice
from blendfusion.udfs.register.user_functions import known_ingredients

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import tpch  # noqa: E402
from grammar_walks import walk  # noqa: E402

QUESTION = "How many of table 7 are in each of table 8?"
KINDS = ("TEXT", "DOUBLE", "INTEGER", "DATE", "TEXT", "TEXT")


def _never(request: bf.Request) -> str:
    raise AssertionError(f"planning asks no model: {request}")


def opened(files: list[Path]) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(_never), cache=None, progress="off", show_values="on")
    for file in files:
        session.register_csv(
            file.stem, str(file)
        ) if file.suffix == ".csv" else session.register_parquet(file.stem, str(file))
    return session


def databases(folder: Path | None) -> Iterator[tuple[str, list[Path]]]:
    if tpch.generator() is not None:
        made = Path(tempfile.mkdtemp())
        tpch.generate(made, 0.01)
        yield "TPC-H", [made / f"{table}.parquet" for table in tpch.TABLES]
    yield "examples", sorted((ROOT / "examples").glob("*.csv"))
    if folder is not None:
        for database in sorted(path for path in folder.iterdir() if path.is_dir()):
            yield database.name, sorted((database / "data").glob("*.csv"))


def _plain(node: exp.Expr) -> exp.Expr:
    """Names without quotes, as models write them."""
    if isinstance(node, exp.Identifier) and node.name.replace("_", "a").isalnum():
        node.set("quoted", False)
    return node


def right_queries(folder: Path | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if folder is not None and (folder / "questions.csv").is_file():
        with (folder / "questions.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                tree = parse_one(row["sql"], read="mysql").transform(_plain)
                found.setdefault(row["database"], []).append(tree.sql("postgres"))
    return found


def walks(folder: Path | None, count: int) -> None:
    right, planned, total, inside, golds = right_queries(folder), 0, 0, 0, 0
    for name, files in databases(folder):
        session = opened(files)
        grammar = grammar_of(read_catalog(session), known_ingredients().values())
        dice = random.Random(name)
        failed = []
        for _ in range(count):
            query = walk(grammar, dice)
            try:
                session.sql(query, read_only=True)
            except BlendFusionError as error:
                failed.append(f"{query!r}: {error}")
        own = right.get(name, [])
        held = sum(admits(grammar, query.replace(" NULLS FIRST", "")) for query in own)
        inside, golds = inside + held, golds + len(own)
        planned, total = planned + count - len(failed), total + count
        print(
            f"{name}: {count - len(failed)} of {count} plan; {held} of {len(own)} right queries are inside",
            flush=True,
        )
        for text in failed[:3]:
            print(f"  {text[:600]}")
    print(f"all: {planned} of {total} plan; {inside} of {golds} right queries are inside")


def large() -> Catalog:
    """A hundred tables of twenty columns, each with a key to the next, and 60,000 values."""
    dice = random.Random(3)
    syllables = [
        a + b
        for a in "ba ke li mo nu ra se ti vo za".split()
        for b in "ban der fin gol hes".split()
    ]
    tables = []
    for at in range(100):
        columns = [Column("id", "INTEGER"), Column(f"table_{(at + 1) % 100}_id", "INTEGER")]
        for number in range(18):
            kind = KINDS[number % len(KINDS)]
            words = (
                f"{dice.choice(syllables)} {dice.choice(syllables)} {dice.randrange(9999)}"
                for _ in range(67)
            )
            values = tuple(dict.fromkeys(words)) if kind == "TEXT" else ()
            name = f"{dice.choice(syllables)}_{dice.choice(syllables)}_{number}"
            columns.append(Column(name, kind, values=values, complete=True))
        tables.append(Table(f"table_{at}", tuple(columns)))
    keys = (
        Key(f"table_{at}.table_{(at + 1) % 100}_id", f"table_{(at + 1) % 100}.id")
        for at in range(100)
    )
    return Catalog(tuple(tables), tuple(keys))


def speed(name: str) -> None:
    """The time until a grammar of the ``large`` catalogue is ready: of the whole, and of the tables
    that the model sees, which is the one that ``ask`` makes."""
    model = load(name, bf.Options())
    assert isinstance(model, LlamaModel)
    vocabulary = model._ready().context.guide()
    catalog = large()
    window = model.info.window
    for name, tables in (
        ("whole", catalog),
        ("visible", TableChoice(catalog, window).visible(QUESTION, ()).catalog),
    ):
        follow(name, tables, vocabulary)


def follow(name: str, catalog: Catalog, vocabulary: LLTokenizer) -> None:
    """Make the grammar of a catalogue, and write random queries under it."""
    begun = time.thread_time()
    grammar = grammar_of(catalog, known_ingredients().values())
    made = time.thread_time()
    source = LLMatcher.grammar_from_lark(with_edges(grammar))
    first = LLMatcher(vocabulary, source, log_level=0, limits=limits())
    first.deep_copy().compute_bitmask()
    ready = time.thread_time()
    assert not first.is_error(), first.get_error()
    dice, times = random.Random(5), []
    for _ in range(40):
        matcher = first.deep_copy()
        for _ in range(120):
            begins = time.thread_time()
            mask = np.frombuffer(matcher.compute_bitmask(), np.uint8)
            times.append(1_000 * (time.thread_time() - begins))
            allowed = np.flatnonzero(np.unpackbits(mask, bitorder="little"))
            if not len(allowed) or (matcher.is_accepting() and dice.random() < 0.2):
                break
            matcher.consume_token(int(dice.choice(list(allowed))))
            if matcher.is_stopped():
                break
    columns = sum(len(table.columns) for table in catalog.tables)
    values = sum(len(column.values) for table in catalog.tables for column in table.columns)
    print(
        f"{name}: {columns:,} columns, {values:,} values: ready in {ready - begun:.2f} s ({made - begun:.2f} s to write it); "
        f"a mask takes {statistics.median(times):.3f} ms (median of {len(times):,}), "
        f"{statistics.quantiles(times, n=20)[-1]:.2f} ms (95 %), {max(times):.0f} ms (most)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--walks", type=int, default=500)
    parser.add_argument("--model", default="smollm2", help="a local model, for its vocabulary")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    speed(arguments.model)
    walks(arguments.folder, arguments.walks)


if __name__ == "__main__":
    main()
