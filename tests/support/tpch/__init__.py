"""TPC-H: its 22 queries with the validation parameters, each with places for a model predicate.

A file holds the query and, for each of its places, SQL that counts the values which a model
predicate there may ask. A place is a comment, ``/* 1: AND holds('word', column) */``, so that the
file is plain SQL."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from datafusion import SessionContext

TABLES = (
    "region",
    "nation",
    "supplier",
    "customer",
    "part",
    "partsupp",
    "orders",
    "lineitem",
)
_PLACE = re.compile(r"/\* (\d): (AND |OR )?holds\('(\w+)', ([\w.]+)\)( AND)? \*/")


@dataclass(frozen=True, slots=True)
class Placed:
    """A query with one model predicate. ``asked`` counts the distinct values that can matter."""

    name: str
    sql: str
    """The predicate is a question that ``scripts.spoken`` answers."""
    twin: str
    """The predicate is a function of DataFusion's."""
    asked: str


def queries() -> dict[str, str]:
    """The 22 queries by name, q01 to q22, without a call."""
    return {name: statements[0] for name, statements in _files()}


def placed() -> dict[str, Placed]:
    """Every query with every one of its places, by name; the first place is ``q01``, then
    ``q02.2``."""
    found = {}
    for query, (plain, *counts) in _files():
        places = sorted(place[1] for place in _PLACE.finditer(plain))
        assert places == [str(i + 1) for i in range(len(counts))], f"{query} has places {places}"
        for place, count in zip(places, counts, strict=True):
            name = query if place == "1" else f"{query}.{place}"
            found[name] = Placed(
                name,
                _with(plain, place, "llm_filter('holds {word}', {column})"),
                _with(plain, place, "strpos({column}, '{word}') > 0"),
                count,
            )
    return found


def _files() -> Iterator[tuple[str, list[str]]]:
    for path in sorted(Path(__file__).parent.glob("q*.sql")):
        yield (
            path.stem,
            [part.strip() for part in path.read_text("utf-8").split(";") if part.strip()],
        )


def _with(plain: str, place: str, predicate: str) -> str:
    def written(found: re.Match[str]) -> str:
        number, before, word, column, after = found.groups(default="")
        if number != place:
            return ""
        return before + predicate.format(word=word, column=column) + after

    return _PLACE.sub(written, plain)


def generator() -> str | None:
    """The path of ``tpchgen-cli``; None where it is not installed."""
    return shutil.which("tpchgen-cli", path=sysconfig.get_path("scripts")) or shutil.which(
        "tpchgen-cli"
    )


def generate(folder: Path, scale: float) -> None:
    """Write the tables as Parquet files into ``folder``; raises CalledProcessError."""
    command = generator()
    assert command is not None
    subprocess.run([command, "parquet", "--quiet", "-s", str(scale), "-o", str(folder)], check=True)


def register(context: SessionContext, folder: Path) -> None:
    """Register the tables of ``folder``."""
    for table in TABLES:
        context.register_parquet(table, str(folder / f"{table}.parquet"))
