"""BlendSQL's own tests, run against BlendFusion: ``python benchmarks/blendsql_suite.py CHECKOUT``.

CHECKOUT is a clone of github.com/parkervg/blendsql with its history: two of its databases are taken
from there. The others lie on a hub; tables with the columns that the tests use are made in their
place, with NULLs and duplicates. The test files run unchanged, on a package ``blendsql`` made here,
whose ``execute`` is ``session.sql(query, dialect="blendsql")``. A function of theirs,
``{{starts_with('Z', c)}}``, is asked as ``LLMMap('@@starts_with|Z', c)``, and their own code
answers; with ``--own``, the three that most tests use are functions of a user's (``@bf.ingredient``),
and the values that they see count as asked. A searcher of theirs is a function of the user's whose result is one value more. Two
comparisons are ours: rows are compared as multisets where the query has no order, and
fewer values than they expect pass. Their expected rows come from SQLite and DuckDB (pip install
duckdb pandas polars)."""

from __future__ import annotations

import argparse
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.udfs.register import user_functions

WORK = Path(tempfile.mkdtemp(prefix="blendsql_suite_"))
CHECKOUT = Path()
OWN = False
HISTORY: list[str] = []
_FROM_HISTORY = {
    "single_table.db": "tests/data/single_table.db",
    "1884_New_Zealand_rugby_union_tour_of_New_South_Wales_1.db": (
        "examples/1884_New_Zealand_rugby_union_tour_of_New_South_Wales_1.db"
    ),
}


# --- databases ----------------------------------------------------------------------------------------


def from_history(name: str) -> Path:
    """A file that the peer's repository once held."""
    path, place = _FROM_HISTORY[name], WORK / name
    git = ["git", "-C", str(CHECKOUT)]
    log = ["log", "--all", "--format=%H", "-1", "--diff-filter=AM", "--", path]
    commit = subprocess.run([*git, *log], capture_output=True, text=True, check=True).stdout.strip()
    content = subprocess.run([*git, "show", f"{commit}:{path}"], capture_output=True, check=True)
    place.write_bytes(content.stdout)
    return place


def made(name: str) -> dict[str, pd.DataFrame]:
    """Tables with the columns that the tests use."""
    pick = random.Random(name)
    if name == "multi_table.db":
        symbols = [
            "AAPL",
            "AMZN",
            "CSCO",
            "FSLR",
            "FTNT",
            "HPQ",
            "F",
            "TYL",
            "AMD",
            "HD",
            "FB",
            "AMGN",
        ]
        names = [
            "Apple",
            "Amazon",
            "Cisco",
            "First Solar",
            "Fortinet",
            "HP",
            "Ford",
            "Tyler",
            "AMD",
        ]
        names += ["Home Depot", "Facebook", "Amgen"]
        sectors = ["Information Technology", "Consumer Discretionary", "Health Care"]
        actions = [
            "DIVIDEND RECEIVED",
            "YOU BOUGHT",
            "YOU SOLD",
            "REINVESTMENT",
            "Qualified Dividend",
        ]
        return {
            "constituents": pd.DataFrame(
                {
                    "Symbol": symbols,
                    "Name": names,
                    "Sector": [sectors[i % 3] for i in range(len(symbols))],
                }
            ),
            "portfolio": pd.DataFrame(
                {
                    "Symbol": [*symbols[:8], *symbols[3:6], None],
                    "Description": [
                        f"{s[0]} description {s}" for s in (*symbols[:8], *symbols[3:6], "x")
                    ],
                    "Quantity": [float(50 * i) for i in range(12)],
                    "Today's Gain/Loss Percent": [round(0.02 * i - 0.1, 2) for i in range(12)],
                    "Percent of Account": [round(0.03 * i, 2) for i in range(12)],
                }
            ),
            "geographic": pd.DataFrame(
                {
                    "Symbol": symbols[2:10],
                    "North America": [i * 1.5 for i in range(8)],
                    "Japan": [i * 0.5 for i in range(8)],
                }
            ),
            "returns": pd.DataFrame(
                {
                    "Annualized Returns": ["Fidelity A", "1 year", None],
                    "Month Ending": ["a", "b", "c"],
                }
            ),
            "account_history": pd.DataFrame(
                [
                    {
                        "Run Date": f"202{i % 4}-0{1 + i % 9}-1{i % 10}",
                        "Account": pick.choice(["Fidelity A", "Fidelity B", "Roth", None]),
                        "Action": f"{pick.choice(actions)} {i}",
                        "Symbol": pick.choice([*symbols, None]),
                        "Security Description": pick.choice(["a stock", "cash", "a fund"]),
                        "Quantity": float(i),
                        "Amount ($)": 10.125 * i,
                        "Settlement Date": pick.choice(["2022-01-01", None]),
                    }
                    for i in range(120)
                ]
            ),
        }
    if name == "european_football_2.sqlite":
        names = ["Lionel Messi", *(f"Player {i}" for i in range(1_500))]
        ids = list(range(100, 100 + len(names)))
        players = {
            "player_api_id": ids,
            "player_name": names,
            "birthday": ["1987-06-24"] * len(ids),
        }
        return {
            "Player": pd.DataFrame(players),
            "Player_Attributes": pd.DataFrame(
                {"player_api_id": [*ids, *ids[:50]], "overall_rating": [80] * (len(ids) + 50)}
            ),
        }
    if name == "codebase_community.sqlite":
        bodies = [f"This is {w}" for w in ("good", "bad", "fine", "odd") for _ in range(5)]
        return {"posts": pd.DataFrame({"Id": range(20), "Body": bodies})}
    kinds = ["shoes", "bottoms", "tops", "accessories"]
    styles = [
        {
            "id": i,
            "productDisplayName": f"Brand{i % 2} {kinds[i % 4]}",
            "productDescriptors": {"description": {"value": f"a {kinds[i % 4]}"}},
            "price": 100 + i,
            "baseColour": "Black",
        }
        for i in range(12)
    ]
    links = [{"id": str(i), "link": f"https://images.example/{i}.png"} for i in range(12)]
    return {"styles_details": pd.DataFrame(styles), "image_mapping": pd.DataFrame(links)}


_LAST_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*$", re.IGNORECASE)


class Frame:
    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def to_pandas(self) -> pd.DataFrame:
        return self.frame


class Database:
    """Tables, and an engine of the peer's that says what a query in plain SQL gives."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self.tables = dict(tables)

    def rows(self, query: str) -> pd.DataFrame:
        import duckdb

        connection = duckdb.connect()
        for name, table in self.tables.items():
            connection.register(name, table)
        return connection.execute(query).df()

    def execute_to_df(self, query: str, params: object = None, lazy: bool = False) -> Frame:
        rows = self.rows(query)
        rows.attrs["every"] = lambda: self.rows(_LAST_LIMIT.sub("", query))
        rows.attrs["query"] = query
        return Frame(rows)

    def execute_to_list(self, query: str, to_type: Any = str) -> list[Any]:
        return [to_type(value) for value in self.rows(query).iloc[:, 0]]

    def has_temp_table(self, name: str) -> bool:
        pytest.skip("temporary tables are the peer's own way")

    _reset_connection = has_temp_table


class DuckDB(Database):
    @classmethod
    def from_pandas(cls, tables: Mapping[str, Any]) -> DuckDB:
        return cls({n: t.to_pandas() if isinstance(t, Frame) else t for n, t in tables.items()})

    @classmethod
    def from_sqlite(cls, path: str) -> DuckDB:
        return cls(SQLite(path).tables)


class Pandas(Database):
    pass


class SQLite(Database):
    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path)
        listed = "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'documents_%'"
        names = [name for (name,) in self.connection.execute(listed)]
        super().__init__({n: pd.read_sql(f'SELECT * FROM "{n}"', self.connection) for n in names})

    def rows(self, query: str) -> pd.DataFrame:
        return pd.read_sql(query, self.connection)


def fetch_from_hub(name: str) -> str:
    short = Path(name).name
    place = WORK / short
    if not place.exists():
        if name in _FROM_HISTORY:
            from_history(name)
        elif short.endswith(".duckdb"):
            pass
        else:
            with sqlite3.connect(place) as connection:
                for table, rows in made(name).items():
                    rows.to_sql(table, connection, index=False)
    return str(place)


# --- the peer's classes --------------------------------------------------------------------------------


class InvalidBlendSQL(Exception):
    pass


class LMFunctionException(Exception):
    pass


class TypeResolutionException(Exception):
    pass


class Refused(InvalidBlendSQL, LMFunctionException, TypeResolutionException):
    """What BlendFusion refuses."""


class Ingredient:
    prompt_style = "basic"
    ours = "LLMMap"

    def __init__(self, **options: object) -> None:
        self.num_values_passed = 0
        self.__dict__.update(options)

    @classmethod
    def from_args(cls, **options: object) -> type[Ingredient]:
        return type(cls.__name__, (cls,), options)


class MapIngredient(Ingredient):
    pass


class QAIngredient(Ingredient):
    ours = "LLMQA"


class JoinIngredient(Ingredient):
    ours = "LLMJoin"


class AliasIngredient(Ingredient):
    pass


class LLMMap(MapIngredient):
    pass


class LLMQA(QAIngredient):
    pass


class LLMJoin(JoinIngredient):
    pass


class AtMost(int):
    """A count that equals every count that is not smaller: to ask less is no failure."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and int(self) <= int(other)

    __hash__ = int.__hash__


class ModelBase:
    def __init__(self, model_name_or_path: str = "scripted", **options: object) -> None:
        self.model_name_or_path = model_name_or_path
        self.caching = False
        self.prompt_tokens = self.completion_tokens = 0
        self.store = bf.MemoryStore()
        self.cache = types.SimpleNamespace(clear=lambda: None)

    def reset_stats(self) -> None:
        pass


class Meta:
    def __init__(self, calls: Sequence[Any], seconds: float) -> None:
        mapped = [c for c in calls if not c.task.aggregate and c.task.ingredient != "llm_qa"]
        self.num_values_passed = AtMost(len(mapped))
        self.num_generation_calls = AtMost(len(calls))
        self.process_time_seconds = seconds
        self.completion_tokens = 0


class Smoothie:
    def __init__(self, frame: pd.DataFrame, meta: Meta) -> None:
        self._frame, self.meta = frame, meta

    def df(self) -> pd.DataFrame:
        return self._frame.map(lambda v: v.tolist() if isinstance(v, np.ndarray) else v)

    def print_summary(self) -> None:
        pass


class Searcher:
    """The peer's search, by the words that a document has of the value."""

    def __init__(self, documents: Sequence[str], k: int = 3, **options: object) -> None:
        self.documents, self.k = list(documents), k

    def found(self, value: str) -> str:
        words = set(re.findall(r"\w+", value.lower()))
        ranked = sorted(
            self.documents, key=lambda d: -len(words & set(re.findall(r"\w+", d.lower())))
        )
        return "\n".join(ranked[: self.k])


class BlendSQL:
    def __init__(
        self, db: Any = None, model: Any = None, ingredients: Iterable[Any] = (), **options: object
    ) -> None:
        if isinstance(db, str):
            db = DuckDB(made(Path(db).name)) if db.endswith(".duckdb") else SQLite(db)
        self.db = db if isinstance(db, Database) else Pandas(db or {})
        self.model, self.ingredients = model, list(ingredients) or [LLMMap, LLMQA, LLMJoin]

    def execute(
        self,
        query: str,
        params: Sequence[object] | None = None,
        *,
        model: Any = None,
        ingredients: Iterable[Any] = (),
        **options: object,
    ) -> Smoothie:
        known = [*self.ingredients, *ingredients]
        searcher = next(
            (s for s in (getattr(i, "context_searcher", None) for i in known) if s), None
        )
        text = rewritten(query, known)
        if searcher is not None:  # a function of the user's, whose result is one value more
            user_functions._defined.pop("searched", None)
            text = _MAPPED.sub(r"\1, searched(\2))", text)

            @bf.ingredient(name="searched")
            def searched(model: bf.UserModel, value: pa.StringArray) -> pa.StringArray:
                return pa.array([searcher.found(v.as_py()) for v in value], pa.string())

        values = [own_function(kind) for kind in known if _is_own(kind)] if OWN else []
        asked = bf.ScriptedModel(lambda call: answer(call, known), fingerprint="peer")
        model = model or self.model
        cache = model.store if model is not None and model.caching else None
        start = time.perf_counter()
        try:
            with (
                warnings.catch_warnings(),
                bf.connect(asked, cache=cache, progress="off", embedder=None) as session,
            ):
                warnings.simplefilter("ignore")
                for name, table in self.db.tables.items():
                    session.from_pandas(table, name=name)
                    if name == "documents" and "MATCH" in query:
                        session.index(name, path=WORK / "documents.index", vectors=False)
                frame = session.sql(text, dialect="blendsql", param_values=params).to_pandas()
        except bf.BlendFusionError as error:
            raise Refused(str(error)) from error
        meta = Meta(asked.calls, time.perf_counter() - start)
        seen = sum(map(len, values))
        meta.num_values_passed = AtMost(int(meta.num_values_passed) + seen)
        return Smoothie(frame, meta)

    def _warmup(self, model: Any) -> None:
        pass


_OWN = {
    "test_starts_with": (pa.bool_(), lambda text, prefix: text.startswith(prefix)),
    "get_length": (pa.int64(), lambda text, _: len(text)),
    "return_true_map": (pa.bool_(), lambda text, _: True),
}
"""Functions of the tests that are functions of a user's with ``--own``: their type and body."""


def _is_own(kind: Any) -> bool:
    return getattr(kind, "__name__", "") in _OWN


def own_function(kind: Any) -> list[str]:
    """Registers a function of the tests; the values that it will see."""
    result, body = _OWN[kind.__name__]
    seen: list[str] = []

    def computed(text: Any, prefix: str) -> Any:
        values = text.to_pylist()
        seen.extend(values)
        return pa.array([body(value, prefix) for value in values], result)

    user_functions._defined.pop(kind.__name__.lower(), None)
    if kind.__name__ == "test_starts_with":

        def made(model: bf.UserModel, prefix: str, text: pa.StringArray) -> pa.Array:
            return computed(text, prefix)

    else:

        def made(model: bf.UserModel, text: pa.StringArray) -> pa.Array:
            return computed(text, "")

    made.__annotations__ |= {"model": bf.UserModel, "text": pa.StringArray}
    made.__annotations__["return"] = pa.BooleanArray if result == pa.bool_() else pa.Int64Array
    if kind.__name__ == "test_starts_with":
        made.__annotations__["prefix"] = str
    bf.ingredient(name=kind.__name__.lower())(made)
    return seen


_MAPPED = re.compile(r"(LLMMap\('(?:[^']|'')*',\s*([^,()]+))\)")
"""A call about one column."""
_CALL = re.compile(r"\{\{\s*(\w+)\s*\(")
_TEXT = re.compile(r"\s*('(?:[^']|'')*')\s*(?=[,)])")


def rewritten(query: str, known: Sequence[Any]) -> str:
    """The query with the peer's own functions as questions that name them."""
    by_name = {getattr(i, "__name__", ""): i for i in known if isinstance(i, type)}
    written, at = "", 0
    for call in _CALL.finditer(query):
        name = call[1]
        kind = by_name.get(name)
        if name in ("LLMMap", "LLMQA", "LLMJoin") or (OWN and name in _OWN):
            continue
        if kind is None:  # a variable that holds one with other settings
            kind = next((i for i in known if isinstance(i, type) and i.__mro__[1] in _THEIRS), None)
            if kind is None:
                continue
        written += query[at : call.start()] + "{{" + kind.ours + "("
        at = call.end()
        if kind.__name__ not in ("LLMMap", "LLMQA", "LLMJoin") and kind.ours != "LLMJoin":
            text = _TEXT.match(query, at)
            question = text[1][1:-1] if text else ""
            at = text.end() if text else at
            rest = "" if text or query[at:].lstrip().startswith(")") else ", "
            written += f"'@@{kind.__name__}|{question}'{rest}"
    return written + query[at:]


_THEIRS = (LLMMap, LLMQA, LLMJoin)


# --- answers ------------------------------------------------------------------------------------------


def answer(call: Any, known: Sequence[Any]) -> object:
    """What the peer's function gives, or what a good model would say."""
    question, constraint = call.task.question, call.constraint
    options = list(constraint.options or (constraint.item.options if constraint.item else ()))
    shown = [int(o) if o.isdigit() else o for o in options]
    HISTORY.append(f"{question} {shown}")
    if question.startswith("@@"):
        name, _, argument = question[2:].partition("|")
        kind = next(i for i in known if getattr(i, "__name__", "") == name)
        made = kind()
        if kind.ours == "LLMQA":
            context = [pd.DataFrame({"value": list(call.values)})] if call.values else []
            given = made.run(question=argument, context=context, options=set(options))
        else:
            given = made.run(question=argument, values=list(call.values))[0]
        if isinstance(given, str) and given[:1] == given[-1:] == "'":
            given = given[1:-1].replace("''", "'")
        return typed(given, constraint.kind)
    return typed(said(question, call, options), constraint.kind)


def typed(value: object, kind: str) -> object:
    if kind == "boolean" and isinstance(value, int):
        return bool(value)
    if kind == "integer" and isinstance(value, bool | int | float):
        return int(value)
    if kind == "number" and isinstance(value, bool | int | float):
        return float(value)
    if kind in ("text", "choice") and not isinstance(value, str):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def said(question: str, call: Any, options: Sequence[str]) -> object:
    constraint, values = call.constraint, call.values
    if call.task.ingredient == "llm_join":  # theirs joins what is equal, which needs no call here
        return "none"
    if call.task.images:
        name = next((v for v in values if bf.image_bytes(v)), "")
        return "Red" if b"\xff\x00\x00" in (bf.image_bytes(name) or b"") else "Blue"
    if constraint.kind == "boolean":
        return True
    if constraint.kind in ("integer", "number"):
        found = re.findall(r"\d+", " ".join(values[1:] or values))
        return int(found[0]) if found else 7
    if constraint.kind == "list":
        most = constraint.max_items or 3
        words = list(options) or [*_KNOWN.get(question, [str(i) for i in range(1, 4)])]
        if constraint.item.kind in ("integer", "number"):
            return [1, 2, 3][: max(constraint.min_items, min(3, most))]
        return words[: max(constraint.min_items, min(len(words), most))]
    if constraint.kind == "struct":
        return {f.name: _field(f.constraint.kind) for f in constraint.fields}
    if constraint.kind == "choice":
        return next((o for o in options if o == "Lionel Messi"), options[0])
    if constraint.kind == "date":
        return "1987-06-24"
    quotes = re.search(r"Say '(.+?)'", question)
    if quotes:
        return quotes[1]
    return values[0] if values else "an answer"


_KNOWN = {"Who are your top 3 favorite players?": ("Lionel Messi", "Xavi", "Johan Cruyff")}
"""What a model knows that is given no text."""


def _field(kind: str) -> object:
    return {"integer": 30, "number": 1.0, "boolean": True, "list": []}.get(kind, "x")


def llmmap(
    self: pd.DataFrame,
    question: str,
    context_cols: Sequence[str],
    return_type: Any = None,
    options: Sequence[str] | None = None,
) -> pd.Series:
    """The peer's method of pandas frames, by its own query."""
    for column in context_cols:
        if column not in self.columns:
            raise ValueError(f"{column} not in dataframe")
    extra = ""
    if return_type is not None:
        extra = f", return_type='{getattr(return_type, '__name__', return_type)}'"
        if str(return_type).startswith("list["):
            extra = f", return_type='{return_type}'"
    if options:
        extra += f", options=({', '.join(repr(o) for o in options)})"
    columns = ", ".join(f'"{c}"' for c in context_cols)
    text = question.replace("'", "''")
    query = f"SELECT {{{{LLMMap('{text}', {columns}{extra})}}}} AS answer FROM t"
    return BlendSQL({"t": self}).execute(query).df()["answer"]


# --- the package ---------------------------------------------------------------------------------------


def skipped(*arguments: object, **named: object) -> Any:
    pytest.skip("a part of the peer that is no interface")


def install() -> None:
    """Modules by the names that the tests import."""
    contents: dict[str, dict[str, Any]] = {
        "": {"BlendSQL": BlendSQL, "GLOBAL_HISTORY": HISTORY, "config": lambda **options: None},
        "blendsql": {"_blend": skipped},
        "common": {},
        "common.utils": {"fetch_from_hub": fetch_from_hub},
        "common.exceptions": {
            "LMFunctionException": LMFunctionException,
            "InvalidBlendSQL": InvalidBlendSQL,
            "TypeResolutionException": TypeResolutionException,
        },
        "configure": {"set_deterministic": lambda on: None},
        "db": {"Database": Database, "DuckDB": DuckDB, "SQLite": SQLite, "Pandas": Pandas},
        "db.utils": {"single_quote_escape": lambda text: text.replace("'", "''")},
        "ingredients": {
            "AliasIngredient": AliasIngredient,
            "Ingredient": Ingredient,
            "JoinIngredient": JoinIngredient,
            "MapIngredient": MapIngredient,
            "QAIngredient": QAIngredient,
            "LLMMap": LLMMap,
            "LLMQA": LLMQA,
            "LLMJoin": LLMJoin,
        },
        "models": {"ModelBase": ModelBase, "VLLM": ModelBase},
        "models.model_base": {"ModelBase": ModelBase},
        "pandas_api": {"_resolve_return_type": skipped},
        "parse": {"SubqueryContextManager": skipped},
        "parse.dialect": {
            "_parse_one": skipped,
            **dict.fromkeys(
                ["BlendSQLDuckDB", "BlendSQLSQLite", "BlendSQLPostgres", "BlendSQLDialect"], object
            ),
        },
        "search": {"FaissVectorStore": Searcher, "HybridSearch": Searcher},
        "smoothie": {"Smoothie": Smoothie},
        "types": {},
        "types.types": {"DataTypes": types.SimpleNamespace(INT=skipped, STR=skipped)},
    }
    for name, names in contents.items():
        full = f"blendsql.{name}" if name else "blendsql"
        module = types.ModuleType(full)
        module.__path__ = []
        module.__dict__.update(names)
        sys.modules[full] = module
    pd.DataFrame.llmmap = llmmap  # type: ignore[attr-defined]


def same_rows(smoothie: Smoothie, sql_df: pd.DataFrame, args: object = None) -> None:
    """The same rows, in any order, numbers by value. Where LIMIT takes some of several rows that
    sort alike, or of rows without an order, others of them are right, too."""
    found, expected = _rows(smoothie.df()), _rows(sql_df)
    if found != expected and _LAST_LIMIT.search(sql_df.attrs["query"]):
        assert found.total() == expected.total()
        assert found <= _rows(sql_df.attrs["every"]())
        ordered = re.search(r"ORDER BY (?:\w+\.)?(\w+)", sql_df.attrs["query"])
        if ordered:
            place = [str(name).lower() for name in sql_df.columns].index(ordered[1].lower())
            keys = [sorted(map(_shown, f.iloc[:, place])) for f in (smoothie.df(), sql_df)]
            assert keys[0] == keys[1]
        return
    assert found == expected


def _rows(frame: pd.DataFrame) -> Counter[tuple[str, ...]]:
    return Counter(tuple(_shown(value) for value in row) for row in frame.itertuples(index=False))


def _shown(value: Any) -> str:
    """A value as text: an answer without a type is text here, and a number or truth value there."""
    try:
        if pd.isna(value):
            return "NULL"
    except (TypeError, ValueError):
        return str(value)
    text = {"true": "1", "false": "0"}.get(str(value).lower(), str(value))
    text = text.removesuffix(" 00:00:00")
    try:
        return f"{float(text):.6f}"
    except ValueError:
        return text


class Counts:
    """How tests ended, and why those failed that did."""

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()
        self.failed: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.skipped or (report.when == "setup" and report.failed):
            self.ended[report.outcome] += 1
            if report.failed:
                why = getattr(report.longrepr, "reprcrash", None)
                text = why.message if why else str(report.longrepr)
                self.failed.append((report.nodeid, text.splitlines()[0] if text else ""))

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        utils = sys.modules.get("tests.query_optimizations.utils")
        if utils is not None:
            utils.assert_equality = same_rows  # type: ignore[attr-defined]


def main() -> int:
    global CHECKOUT, OWN
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument(
        "--own", action="store_true", help="functions of a user's are own functions"
    )
    arguments, rest = parser.parse_known_args()  # the rest is for pytest
    CHECKOUT, OWN = arguments.checkout.resolve(), arguments.own
    install()
    sys.path.insert(0, str(CHECKOUT))
    counts = Counts()
    not_portable = ["models/test_model_caching_ll.py", "search/test_options_search.py"]
    ignored = [f"--ignore={CHECKOUT / 'tests' / name}" for name in not_portable]
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"--rootdir={CHECKOUT}"]
    options += ["-o", "addopts=", "-o", "filterwarnings=ignore", "-c", "/dev/null", *ignored]
    pytest.main([str(CHECKOUT / "tests"), *options, *rest], plugins=[counts])
    print()
    for test, why in counts.failed:
        print(f"{test.split('tests/')[-1]}: {why[:200]}")
    total = sum(counts.ended.values())
    print(f"{total} tests: {dict(counts.ended)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
