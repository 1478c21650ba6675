"""SUQL's own tests and queries, run against BlendFusion: ``python benchmarks/suql_suite.py CHECKOUT``.

CHECKOUT is a clone of github.com/stanford-oval/suql. Its checks run unchanged, on a package ``suql``
made here, whose ``suql_execute`` is ``session.sql(query, dialect="suql")`` on tables with the columns
that they use. A check of the package's own functions is no test of ours: its query is run in its
place. The queries of the paper and of the prompt run on a made table of restaurants; DuckDB, with
``answer`` and ``summary`` as functions of its own, says which rows are right (pip install duckdb)."""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import runpy
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa

import blendfusion as bf

EVENTS = {
    "id": [*range(40)],
    "event_id_cnty": [f"COL{i}" for i in range(40)],
    "event_date": [f"20{18 + i % 5}-0{1 + i % 9}-11" for i in range(40)],
    "country": ["Colombia" if i % 2 else "Peru" for i in range(40)],
    "notes": [f"note {i} of the event" for i in range(40)],
}
OTHER = {"oid": ["COL1", "COL3"], "description": ["a", "b"]}


def said(question: str, text: str) -> str:
    """Yes or No, by a hash."""
    found = hashlib.sha256(f"{question}|{text}".encode()).digest()[0]
    return "Yes" if found % 2 else "No"


def answered(call: bf.Request) -> object:
    """The answer that DuckDB's functions give."""
    question, text = call.task.question, "|".join(value or "" for value in call.values)
    kind = call.constraint.kind
    if kind == "list":  # which values of an enum mean a text: no others than itself
        return []
    if kind == "regex":  # the times of the week that a phrase means
        return "Monday 14:00-24:00"
    if "summar" in question.lower() or call.task.ingredient == "llm_summary":
        return f"S:{text[:20]}"
    found = said(question, text)
    return found == "Yes" if kind == "boolean" else found


def made(tables: dict[str, Any]) -> bf.Session:
    """A session with tables."""
    session = bf.connect(bf.ScriptedModel(answered), cache=None, progress="off", embedder=None)
    for name, table in tables.items():
        session.from_arrow(table if isinstance(table, pa.Table) else pa.table(table), name=name)
    return session


# --- the checks -----------------------------------------------------------------------------------


class InternalError(Exception):
    """A check calls a function of the package, about a query."""


def checks(file: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The checks of a file, in its order."""
    names = runpy.run_path(str(file))
    for kind in ("UNIT_CHECKS", "INTEGRATION_CHECKS", "END_TO_END_CHECKS"):
        yield from ((check.__name__, check) for check in names.get(kind, []))
    if "check_issue_44_repro_no_crash" in names:
        yield "check_issue_44_repro_no_crash", names["check_issue_44_repro_no_crash"]


def install(session: bf.Session, parsed: list[str]) -> None:
    """Modules by the names that the checks import."""

    def suql_execute(query: str, *places: object, **options: object) -> tuple[Any, list[str], None]:
        table = session.sql(query, dialect="suql").to_arrow_table()
        rows = [tuple(row.values()) for row in table.to_pylist()]
        return rows, table.schema.names, None

    def parse_sql(query: str) -> None:
        parsed.append(query)
        raise InternalError

    class Visitor:
        def __init__(self, *given: object, **named: object) -> None:
            self._table_columns_cache: dict[str, list[str]] = {}
            self.cte_column_lineage: dict[str, object] = {}

        def __getattr__(self, name: str) -> object:
            raise InternalError

    for name in ("pglast", "pglast.ast", "pglast.enums", "pglast.enums.parsenodes"):
        sys.modules[name] = MagicMock()
    sys.modules["pglast.stream"] = MagicMock()
    sys.modules["pglast"].parse_sql = parse_sql  # type: ignore[attr-defined]
    for name in ("suql", "suql.sql_free_text_support"):
        sys.modules[name] = types.ModuleType(name)
    module: Any = types.ModuleType("suql.sql_free_text_support.execute_free_text_sql")
    module.suql_execute = suql_execute
    module._SelectVisitor = module._Replace_Original_Target_Visitor = Visitor
    sys.modules[module.__name__] = module
    sys.modules.setdefault("requests", MagicMock())


def own_tests(checkout: Path) -> Counter[str]:
    """How the checks ended, printed where they did not pass."""
    session = made({"events": EVENTS, "base": EVENTS, "other": OTHER})
    parsed: list[str] = []
    install(session, parsed)
    ended: Counter[str] = Counter()
    for file in sorted((checkout / "tests").glob("test_*.py")):
        for name, check in checks(file):
            parsed.clear()
            try:
                check()
                end, why = "passed", ""
            except InternalError:
                end, why = _planned(session, parsed)
            except (AssertionError, bf.BlendFusionError) as problem:
                end, why = "failed", str(problem) or type(problem).__name__
                if "expected NotImplementedError" in why:
                    end = "runs here, where SUQL refuses"
            ended[end] += 1
            if why:
                print(f"  {name}: {end}: {' '.join(why.split())[:150]}")
    return ended


def _planned(session: bf.Session, queries: Sequence[str]) -> tuple[str, str]:
    """How the query of an internal check ends here."""
    if not queries:
        return "of internals, without a query", ""
    try:
        for query in queries:
            session.sql(query.replace("public.", ""), dialect="suql").to_arrow_table()
    except bf.BlendFusionError as problem:
        return "of internals, query refused", str(problem)
    return "of internals, query runs", ""


# --- the published queries ------------------------------------------------------------------------


def restaurants(queries: Sequence[str]) -> pa.Table:
    """Rows in the schema that SUQL's parser reads, with the places and cuisines of queries."""
    text = " ".join(queries)
    places = sorted(set(re.findall(r"location = '([^']*)'", text)))
    kinds = sorted(set(re.findall(r"'([^']*)' = ANY", text))) or ["thai"]
    return pa.Table.from_pylist(
        [
            {
                "_id": i,
                "name": f"Place {i}",
                "cuisines": [kinds[i % len(kinds)], kinds[i // len(places) % len(kinds)]],
                "price": ["cheap", "moderate", "expensive", "luxury"][i // 3 % 4],
                "rating": [5.0, 4.5, 4.0, 3.5][i // 2 % 4],
                "num_reviews": i * 37 % 2003,
                "popular_dishes": [f"dish {i}", f"dish {i + 1}"],
                "phone_number": f"+1 650 {i:04}",
                "reviews": [f"review {i} of many", f"another of {i % 7}"],
                "opening_hours": "Mon-Fri 9:00-17:00" if i % 3 else "Sunday 10:00-14:00",
                "location": places[i % len(places)],
            }
            for i in range(4_000)
        ]
    )


def published(checkout: Path) -> Iterator[tuple[str, str, str]]:
    """(suite, name, query)."""
    with (checkout / "paper_data" / "restaurants_single_turn_SUQL.csv").open() as lines:
        for row in csv.DictReader(lines):
            if row["Predicted SUQL"].strip():
                yield "paper", row["Unique ID"], row["Predicted SUQL"]
    prompt = (checkout / "src" / "suql" / "prompts" / "parser_suql.prompt").read_text()
    for i, query in enumerate(re.findall(r"^Target: (SELECT .*)$", prompt, re.MULTILINE), 1):
        yield "prompt", str(i), query


def judged(query: str, ours: pa.Table, engine: Any) -> str:
    """Whether the rows are right: "equal" (of those that LIMIT may choose from), "empty" where
    right rows are none, else what differs."""
    limit = re.search(r"\bLIMIT (\d+)", query)
    every = engine.execute(re.sub(r"\bLIMIT \d+", "", query).rstrip("; ")).fetchall()
    expected, found = Counter(map(str, every)), Counter(map(str, _tuples(ours)))
    most = min(len(every), int(limit[1])) if limit else len(every)
    if found.total() != most or not found <= expected:
        return f"{found.total()} rows, of {most} expected"
    order = re.search(r"ORDER BY (\w+)( DESC)?", query)
    if order and order[1] in ours.schema.names:
        best = engine.execute(query).fetchall()
        at = ours.schema.names.index(order[1])
        if sorted(str(r[at]) for r in best) != sorted(str(r[at]) for r in _tuples(ours)):
            return "other rows at the top of the order"
    return "equal" if most else "empty"


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def duckdb(table: pa.Table) -> Any:
    """DuckDB with the functions of SUQL."""
    import duckdb

    def text_of(value: object) -> str:
        return "|".join(map(str, value)) if isinstance(value, list) else str(value)

    engine = duckdb.connect()
    engine.register("restaurants", table)
    kinds: Any = duckdb.sqltypes
    answer = lambda value, question: said(question, text_of(value))  # noqa: E731
    summary = lambda value: f"S:{text_of(value)[:20]}"  # noqa: E731
    engine.create_function("answer_text", answer, [kinds.VARCHAR] * 2, kinds.VARCHAR)
    engine.create_function(
        "answer_list", answer, [engine.list_type(kinds.VARCHAR), kinds.VARCHAR], kinds.VARCHAR
    )
    engine.create_function("summary", summary, [engine.list_type(kinds.VARCHAR)], kinds.VARCHAR)
    return engine


def in_duckdb(query: str) -> str:
    """The query with a function for lists and one for texts."""
    return re.sub(r"\banswer\((reviews|popular_dishes)", r"answer_list(\1", query).replace(
        "answer(", "answer_text("
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout.resolve()
    warnings.simplefilter("ignore")
    print(f"tests: {dict(own_tests(checkout))}")
    table = restaurants([query for _, _, query in published(checkout)])
    engine = duckdb(table)
    ended: dict[str, Counter[str]] = {}
    for suite, name, query in published(checkout):
        session = made({"restaurants": table})
        session.register_enum("restaurants", "cuisines", "price")
        try:
            ours = session.sql(query, dialect="suql").to_arrow_table()
            hours = re.search(r"'[^']*' = opening_hours", query)
            end = "opening hours" if hours else judged(in_duckdb(query), ours, engine)
            if hours and not ours.num_rows:
                end = "opening hours without rows"
        except bf.BlendFusionError as problem:
            end = f"refused: {' '.join(str(problem).split())}"
        known = end in ("equal", "empty", "opening hours")
        ended.setdefault(suite, Counter())[end if known else "other"] += 1
        if not known:
            print(f"  {suite} {name}: {end[:150]}\n    {query}")
    for suite, counts in ended.items():
        print(f"{suite}: {counts.total()} queries: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
