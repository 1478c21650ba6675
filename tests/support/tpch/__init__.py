"""TPC-H: its 22 queries with the validation parameters, each with the place of a model predicate.

A file holds two statements: the query, and the number of values that its model predicate may ask.
The predicate stands in a comment, ``/* AND holds('word', column) */``, so that the file is plain SQL.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
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
_PREDICATE = re.compile(r"/\* (AND|OR) holds\('(\w+)', (\w+)\) \*/")


@dataclass(frozen=True, slots=True)
class TpchQuery:
    """One query. ``asked`` is SQL that counts the distinct values which can change the result."""

    name: str
    plain: str
    asked: str

    @property
    def with_model(self) -> str:
        """With a question that ``scripts.spoken`` answers."""
        return self._with(r"\1 llm_filter('holds \2', \3)")

    @property
    def twin(self) -> str:
        """With a function of DataFusion's in the place of the question."""
        return self._with(r"\1 strpos(\3, '\2') > 0")

    def _with(self, predicate: str) -> str:
        text, places = _PREDICATE.subn(predicate, self.plain)
        assert places == 1, f"{self.name} has {places} places for a model predicate"
        return text


def queries() -> dict[str, TpchQuery]:
    """The queries by name, q01 to q22."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("q*.sql")):
        plain, asked, rest = path.read_text().split(";")
        assert not rest.strip()
        found[path.stem] = TpchQuery(path.stem, plain.strip(), asked.strip())
    return found


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
