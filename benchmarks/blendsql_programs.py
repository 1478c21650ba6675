"""The programs that BlendSQL publishes, planned and run: ``python benchmarks/blendsql_programs.py CHECKOUT``.

CHECKOUT is a clone of github.com/parkervg/blendsql: the queries of TAG-bench (research/), SemBench's
movies, HybridQA, OTT-QA and FEVEROUS (docs/examples) and its benchmark folder. Their databases lie
elsewhere, so that tables with the columns and types that the queries use are made in their place, and
a model answers by a hash. A program passes if it gives the rows that it gives without the planner,
every call being evaluated on every row, and asks about no more values than then."""

from __future__ import annotations

import argparse
import itertools
import re
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from blendsql_suite import said, typed

import blendfusion as bf

ROWS = 12
TAG_BENCH = {
    "california_schools": {
        "schools": (
            "CDSCode, County, City, School, Phone, GSoffered, AdmFName1, Virtual, Longitude=float, "
            "Magnet=int"
        ),
        "satscores": (
            "cds, cname, AvgScrMath=int, AvgScrRead=int, AvgScrWrite=int, NumTstTakr=int, "
            "NumGE1500=int"
        ),
        "frpm": (
            "CDSCode, Educational Option Type, Free Meal Count (K-12)=float, "
            "Enrollment (K-12)=float, Free Meal Count (Ages 5-17)=float, "
            "Enrollment (Ages 5-17)=float"
        ),
    },
    "codebase_community": {
        "posts": (
            "Id=int, OwnerUserId=int, ParentId=int, Title, Body, Score=int, ViewCount=int, "
            "FavoriteCount=int, CreationDate=date"
        ),
        "users": (
            "Id=int, DisplayName, Location, AboutMe, Age=int, UpVotes=int, Views=int, "
            "CreationDate=date"
        ),
        "comments": "Id=int, PostId=int, UserId=int, Score=int, Text, CreationDate=date",
        "badges": "Id=int, UserId=int, Name",
        "tags": "Id=int, TagName, Count=int, ExcerptPostId=int",
        "votes": "Id=int, PostId=int, UserId=int",
    },
    "formula_1": {
        "races": "raceId=int, year=int, circuitId=int, name, date=date",
        "circuits": "circuitId=int, name, location, country",
        "drivers": "driverId=int, forename, surname, dob=date, nationality",
        "results": "raceId=int, driverId=int, constructorId=int, rank=int, position=int, time",
        "constructors": "constructorId=int, name",
    },
    "european_football_2": {
        "Player": "player_api_id=int, player_name, birthday=date, height=float, weight=int",
        "Player_Attributes": (
            "player_api_id=int, preferred_foot, overall_rating=int, volleys=int, "
            "heading_accuracy=int, date=date"
        ),
        "League": "id=int, country_id=int, name",
        "Country": "id=int, name",
        "Match": "id=int, country_id=int, season, away_team_api_id=int, away_team_goal=int",
        "Team": "team_api_id=int, team_long_name",
    },
    "debit_card_specializing": {
        "customers": "CustomerID=int, Segment, Currency",
        "yearmonth": "CustomerID=int, Date=int, Consumption=float",
        "transactions_1k": "GasStationID=int, Price=float",
        "gasstations": "GasStationID=int, Country",
    },
}
MOVIES = {
    "Movies": "id, title, originalLanguage",
    "Reviews": "id, reviewId=int, reviewText, creationDate=date, isTopCritic=bool",
}
DOCUMENTS = {"documents": "title, content"}
PAPERS = {
    "hybridqa": {
        "w": "state, common name, name, city, remarks, venue, capacity",
        **DOCUMENTS,
    },
    "ottqa": {
        "./List of Rangers F.C. records and statistics (0)": "player, fee",
        "./List of Rangers F.C. records and statistics (1)": "player, fee",
        "./Cuba at the UCI Track Cycling World Championships (2)": "name, event",
        "./List of African films (4)": "title, director",
        **DOCUMENTS,
    },
    "feverous": {
        "w0": "family:, order:, born, parent institution, established, dean",
        **DOCUMENTS,
    },
}
FOLDERS = {
    "1966_nba_draft": {
        "w": "player, pos, previous team, career with the franchise, years of nba experience=int",
        **DOCUMENTS,
    },
    "national_parks": {"parks": "Name, Image=bytes, Location, Area, Description"},
    "rugby": {"w": "city, venue, score, date, rival", **DOCUMENTS},
}
WORDS = ("taken_3", "European Grand Prix", "Alaska", "csgillespie", "sydney", "£100")


class Program(NamedTuple):
    suite: str
    name: str
    text: str
    tables: Mapping[str, str]


def programs(checkout: Path) -> Iterator[Program]:
    """Everything that is published, with the tables that it needs."""
    research = checkout / "research"
    for path in ("tag_queries.py", "annotated_programs/tag_bench_programs.py"):
        listed = next(v for v in runpy.run_path(str(research / path)).values() if _is_listed(v))
        for one in listed:
            if one["BlendSQL"]:
                tables = TAG_BENCH[one["DB used"]]
                yield Program(f"TAG-bench, {path}", str(one["Query ID"]), one["BlendSQL"], tables)
    movies = research / "movies_sembench" / "src" / "queries" / "blendsql"
    for file in sorted(movies.glob("*.sql")):
        yield Program("SemBench movies", file.stem, file.read_text(), MOVIES)
    for name, tables in PAPERS.items():
        page = (checkout / "docs" / "examples" / f"{name}.md").read_text()
        for i, text in enumerate(re.findall(r"```sql\n(.*?)```", page, re.DOTALL), 1):
            yield Program(name, str(i), text, tables)
    for name, tables in FOLDERS.items():
        for file in sorted((checkout / "benchmark" / name / "queries").glob("*.sql")):
            yield Program(name, file.stem, file.read_text(), tables)


def _is_listed(value: object) -> bool:
    return isinstance(value, list) and bool(value) and "BlendSQL" in value[0]


def table(columns: str, rows: int) -> pd.DataFrame:
    """Rows of the columns, which are texts where no other kind is named."""
    words = [word for word, _ in zip(itertools.cycle(WORDS), range(rows), strict=False)]
    kinds: dict[str, list[object]] = {
        "": [*words],
        "int": [i % 5 for i in range(rows)],
        "float": [i * 1.5 for i in range(rows)],
        "bool": [i % 2 == 0 for i in range(rows)],
        "bytes": [b"\x89PNG" for _ in range(rows)],
        "date": [f"20{i + 10}-09-14" for i in range(rows)],
    }
    named = (column.partition("=") for column in columns.split(", "))
    return pd.DataFrame({name: kinds[kind] for name, _, kind in named})


def run(program: Program, *, planner: bool) -> tuple[list[str], int]:
    """The rows of a program, in any order, and how many values it asks about."""

    def answer(call: bf.Request) -> object:
        constraint = call.task.constraint
        if call.task.ingredient == "llm_join" and constraint.kind == "boolean":
            return call.values[0] == call.values[1]
        options = list(constraint.options or (constraint.item.options if constraint.item else ()))
        return typed(said(call.task.question, call, options), constraint.kind)

    model = bf.ScriptedModel(answer)
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        bf.connect(model, cache=None, progress="off", embedder=None, planner=planner) as session,
    ):
        warnings.simplefilter("ignore")
        for name, columns in program.tables.items():
            # A claim of FEVEROUS is about one page, and reads it as a scalar.
            session.from_pandas(table(columns, 1 if name == "w0" else ROWS), name=name)
        if "MATCH" in program.text:
            session.index("documents", path=Path(folder) / "index", vectors=False)
        found = session.sql(program.text, dialect="blendsql").to_pylist()
    return sorted(str([*row.values()]) for row in found), len(model.calls)


def judged(program: Program) -> str:
    """What is wrong with a program; "" if nothing is."""
    try:
        rows, values = run(program, planner=True)
        right, most = run(program, planner=False)
    except bf.BlendFusionError as error:
        return " ".join(str(error).split())
    if rows != right:
        return f"rows {rows}, without the planner {right}"
    return f"{values} values, without the planner {most}" if values > most else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    found = [(p, judged(p)) for p in programs(parser.parse_args().checkout.resolve())]
    for suite in dict.fromkeys(p.suite for p, _ in found):
        mine = [(p, why) for p, why in found if p.suite == suite]
        print(f"{suite}: {sum(not why for _, why in mine)} of {len(mine)} pass")
        for program, why in mine:
            if why:
                print(f"  {program.name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
