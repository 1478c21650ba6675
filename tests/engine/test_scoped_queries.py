"""Random queries with colliding names against DataFusion with plain functions, and DuckDB.

``pytest tests/engine/test_scoped_queries.py --cases 50000`` runs more, SCOPED_FROM=100000 others. The
oracles know nothing of how calls are found and typed: in them, plain functions stand for the calls,
of the types that the generator knows. DataFusion's rows must be ours; where DuckDB's are others, the
difference is of a class in ``support/duckdb_differences.py``, each of which DataFusion has without
BlendFusion.
"""

from __future__ import annotations

import datetime
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from zlib import crc32

import datafusion
import pyarrow as pa
import pytest
from duckdb_differences import class_of
from random_choices import Choices
from scoped_parts import TABLES, Asked, Scoped, rewritten
from scoped_queries import scoped_query
from scripts import comparable, tuples, unordered

import blendfusion as bf
from blendfusion.language.query_text.counted_sets import counted_sets
from blendfusion.language.query_text.set_comparisons import set_comparisons
from blendfusion.language.query_text.subquery_conditions import (
    conditions_above_aggregates,
    subquery_conditions,
)
from blendfusion.language.query_text.using_columns import using_columns
from blendfusion.models.prompts.canonical import Value
from blendfusion.udfs.declare.call import Call

PARTS = 4
SESSION = 100
"""The queries of a session: DataFusion takes longer to plan, the more functions it knows."""
ORDERED = re.compile(r"(.*)( ORDER BY [^()]*)")
"""A query and its own ORDER BY and LIMIT."""
UNKNOWN = "a difference to DuckDB of no known class"
TYPES = {
    "text": pa.string(),
    "regex": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
ARROW = {"int": pa.int64(), "num": pa.float64(), "text": pa.string(), "bool": pa.bool_()}
ROWS = 5


def answer(question: str, value: str | None, kind: str) -> Value:
    """What a model says; None is no valid answer."""
    if value is None or not value.strip():
        return None
    number = crc32(f"{question}|{value}|{kind}".encode()) >> 3
    if number % 9 == 0:
        return None
    return {
        "text": ("ab", "b", "az", "7")[number % 4],
        "regex": ("AB", "CD", "EF")[number % 3],
        "integer": number % 5,
        "number": number % 7 / 2,
        "boolean": number % 2 == 0,
        "date": datetime.date(2024, 1, 1 + number % 4),
    }[kind]


def tables() -> dict[str, pa.Table]:
    made = {}
    for name, columns in TABLES.items():
        data: dict[str, pa.Array] = {}
        for column, kind in columns.items():
            numbers = [crc32(f"{name}{column}{row}".encode()) >> 3 for row in range(ROWS)]
            values: list[object] = {
                "int": [n % 4 for n in numbers],
                "num": [n % 5 / 2 for n in numbers],
                "text": ["a", "ab", "b", "c"],
                "bool": [n % 2 == 0 for n in numbers],
                "date": [datetime.date(2024, 1, 1 + n % 4) for n in numbers],
            }[kind]
            if kind == "text":
                values = [values[n % 4] for n in numbers]
            values = [None if n % 6 == 0 else v for n, v in zip(numbers, values, strict=True)]
            if column == "id":
                values = list(range(1, ROWS + 1))
            data[column] = pa.array(values, ARROW.get(kind, pa.date32()))
        made[name] = pa.table(data)
    return made


class Ours:
    """A session; what it asks is kept by question."""

    def __init__(self, *, planner: bool) -> None:
        self.model = bf.ScriptedModel(self._answer)
        self.calls: Sequence[Call] = ()
        self.session = bf.connect(self.model, cache=None, planner=planner, progress="off")
        for name, table in tables().items():
            self.session.from_arrow(table, name=name)

    @staticmethod
    def _answer(call: bf.Request) -> Value:
        return answer(call.question, call.values[0], call.constraint.kind)

    def table(self, sql: str) -> pa.Table:
        self.model.calls.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.AnswerWarning)
            frame = self.session.sql(sql)
            self.calls = frame.prepared.calls
            return frame.to_arrow_table()

    def kinds(self) -> dict[str, set[str]]:
        """Those of the answers to each question: of what is planned, and of what is asked."""
        found: dict[str, set[str]] = {}
        for planned in self.calls:
            found.setdefault(planned.task.question, set()).add(planned.task.constraint.kind)
        for call in self.model.calls:
            found.setdefault(call.question, set()).add(call.constraint.kind)
        return found


@cache
def ours(planner: bool) -> Ours:
    return Ours(planner=planner)


@cache
def raw(without: str = "", hash_joins: str = "true") -> datafusion.SessionContext:
    """DataFusion with a plain function for each kind of answers, and without a rule."""
    config = datafusion.SessionConfig().set("datafusion.optimizer.prefer_hash_join", hash_joins)
    context = datafusion.SessionContext(config)
    if without:
        assert context.remove_optimizer_rule(without)
    for name, table in tables().items():
        context.from_arrow(table, name=name)
    for kind, type_ in TYPES.items():

        def run(
            questions: pa.Array, values: pa.Array, kind: str = kind, type_: pa.DataType = type_
        ) -> pa.Array:
            pairs = zip(questions.to_pylist(), values.to_pylist(), strict=True)
            return pa.array([answer(q, v, kind) for q, v in pairs], type_)

        function = datafusion.udf(run, [pa.string(), pa.string()], type_, "volatile", f"f_{kind}")
        context.register_udf(function)
    return context


def run(context: datafusion.SessionContext, sql: str) -> datafusion.DataFrame:
    """A query in DataFusion, in which EXCEPT ALL and INTERSECT ALL count equal rows, ANY and ALL
    compare with the column of their subquery, and IN and EXISTS know NULL and aggregates of no
    row."""

    def columns(common: str, relation: str) -> Sequence[str] | None:
        try:
            return list(context.sql(f"{common}SELECT * FROM {relation}").schema().names)
        except Exception:
            return None

    sql = using_columns(counted_sets(sql, columns, lambda problem: None), columns)
    sql = subquery_conditions(set_comparisons(sql), columns)
    return context.sql(conditions_above_aggregates(sql, columns))


@cache
def duck() -> Any:
    """DuckDB with the same; None where it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    connection.execute("SET threads = 1")
    for name, table in tables().items():
        connection.register(f"arrow_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_{name}")
    kinds = {"text": "VARCHAR", "regex": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE"}
    for kind in TYPES:
        connection.create_function(
            f"f_{kind}",
            _of_kind(kind),
            ["VARCHAR", "VARCHAR"],
            kinds.get(kind, kind.upper()),
            null_handling="special",
        )
    return connection


def _of_kind(kind: str) -> Callable[[str, str], Value]:
    def function(question: str, value: str) -> Value:
        return answer(question, value, kind)

    return function


def as_plain(call: Asked, kind: str = "") -> str:
    return f"f_{kind or call.kind}('{call.question}', {call.value})"


def as_asked(call: Asked) -> str:
    return f"{call.function}('{call.question}', {call.value})"


def as_call(call: Asked, choices: Choices) -> str:
    """A call in one of the ways in which people write it."""
    name, asked, value = call.function, f"'{call.question}'", call.value
    if choices.chance(25):
        name = choices.pick([name, f'"{name}"'])
        quoted = [f"$${call.question}$$", f"({asked})", f"$q${call.question}$q$", f"E{asked}"]
        asked = choices.pick([asked, *quoted])
        value = choices.pick([value, f"({value})", f"(({value}))"])
    whole = f"{name}({asked}, {value})"
    return choices.pick([whole, f"({whole})"]) if choices.chance(20) else whole


def difference(number: int, seen: Counter[str]) -> str | None:
    """What is wrong with the result of query ``number``, with both texts; None for nothing."""
    query = scoped_query(number)
    if not query.calls:
        seen["without calls"] += 1
        return None
    plain = query.rendered(as_plain, " NULLS LAST")
    choices = Choices.seeded(number)
    written = query.rendered(lambda call: as_call(call, choices), "")
    written = rewritten(written, choices)
    one = ours(number % 25 == 0)
    try:
        expected = run(raw(), plain).to_arrow_table()
    except Exception:  # DataFusion has no plan for it
        seen["refused"] += 1
        return None
    seen["compared"] += 1
    try:
        found = one.table(written)
    except Exception as problem:
        return f"refused: {problem}\n{written}\n{plain}"
    wanted = {call.question: call.kind for call in query.calls}
    # What a query before this one has in flight, ended by its LIMIT, may come in late.
    asked = {question: kinds for question, kinds in one.kinds().items() if question in wanted}
    other = {q: kinds for q, kinds in asked.items() if kinds != {wanted[q]}}
    if other:
        cast = _as_cast(query, plain, other)
        if cast is None:
            return f"{other} are not {wanted}\n{written}\n{plain}"
        seen["cast by DataFusion"] += 1
        plain, expected = cast
    seen["asking"] += bool(one.model.calls)
    # Without rows, DataFusion says what types the columns had before it made those of a union one.
    if len(expected) and found.schema.types != expected.schema.types:
        return f"{found.schema.types} are not {expected.schema.types}\n{written}\n{plain}"
    if same(query, tuples(found), tuples(expected)) or _is_unsettled(query, plain, found):
        if number // PARTS % 3 == 0:
            seen.update(_in_duckdb(query, plain, tuples(found)))
        return None
    if _is_unsorted(query, plain, tuples(expected), tuples(found)):
        seen["unsorted in DataFusion"] += 1
        return None
    return f"{tuples(found)} are not {tuples(expected)}\n{written}\n{plain}"


def _as_cast(
    query: Scoped, plain: str, kinds: Mapping[str, set[str]]
) -> tuple[str, pa.Table] | None:
    """The query with answers of these kinds, and its rows, where DataFusion casts to just these what
    the generator takes for text; None where it does not."""
    one = {question: next(iter(some)) for question, some in kinds.items() if len(some) == 1}
    calls = {call.question: call for call in query.calls}
    if len(one) < len(kinds) or any(calls[question].kind != "text" for question in one):
        return None
    other, before = _with_kinds(query, one), _casts(plain)
    texts = [c.question for c in query.calls if c.kind == "text" and c.question not in one]
    for kind in set(one.values()):
        # A second call may be compared with the first.
        ways = [other, *(_with_kinds(query, {**one, question: kind}) for question in texts)]
        # Cast to whole numbers and to others, answers are numbers; another column's cast may come.
        gone = {kind, "integer"} if kind == "number" and kind in _kinds(before) else {kind}
        if not any(_kinds(before - behind) & gone for behind in map(_casts, ways)):
            return None
    return other, run(raw(), other).to_arrow_table()


def _with_kinds(query: Scoped, kinds: Mapping[str, str]) -> str:
    """The query with plain functions, of these kinds for some questions."""
    return query.rendered(
        lambda call: as_plain(call, kinds.get(call.question, "")),
        " NULLS LAST",
    )


def _casts(sql: str) -> Counter[tuple[str, str]]:
    """What DataFusion casts in a query, and to which types."""
    try:
        plan = run(raw(), sql).optimized_logical_plan().display_indent()
    except Exception:  # these types do not go together
        return Counter({("", kind): 99 for kind in ("Int64", "Float64", "Boolean", "Date32")})
    plan = re.sub(r"\bf_\w+\(", "f(", plan)
    found: Counter[tuple[str, str]] = Counter()
    for cast in re.finditer(r"\bCAST\(", plan):
        depth, end = 1, cast.end()
        while depth:
            depth += (plan[end] == "(") - (plan[end] == ")")
            end += 1
        what, _, to = plan[cast.end() : end - 1].rpartition(" AS ")
        found[what, to] += 1
    return found


def _kinds(casts: Counter[tuple[str, str]]) -> set[str]:
    """Those of the answers to which something is cast."""
    return {k for _, to in casts for k, pattern in CASTS.items() if pattern.fullmatch(to)}


CASTS = {
    "integer": re.compile(r"U?Int\d+"),
    "number": re.compile(r"Float\d+|Decimal\d+(?:\(.*\))?"),
    "boolean": re.compile("Boolean"),
    "date": re.compile("Date32"),
}


def _is_unsettled(query: Scoped, plain: str, found: pa.Table) -> bool:
    """DataFusion's own rows come in another order now and then, sorted or not; and with other ranks,
    where it does not sort a window by what was constant before a grouping set."""
    rows = tuples(found)
    again = [list(tuples(run(raw(), plain).to_arrow_table())) for _ in range(5)]
    if " OVER " in plain and any(unordered(one) != unordered(again[0]) for one in again):
        return len(rows) == len(again[0])
    return any(unordered(one) == unordered(list(rows)) and same(query, rows, one) for one in again)


def _is_unsorted(
    query: Scoped,
    plain: str,
    expected: Sequence[tuple[object, ...]],
    found: Sequence[tuple[object, ...]],
) -> bool:
    """DataFusion does not sort its own rows as the query says, so that equal ones come anyhow, and
    LIMIT takes any: see ``sort keys`` in duckdb_differences.py. Without both, the rows are equal."""
    template, order = ORDERED.fullmatch(query.template), ORDERED.fullmatch(plain)
    if template is None or order is None:
        return False
    every = run(raw(), order[1]).to_arrow_table()
    if _sorted(every, order[2]) == list(expected):
        return False
    whole = Scoped(template[1], query.calls, ordered=False)
    mine = ours(True).table(whole.rendered(as_asked, ""))
    taken = len(found) == len(expected) and not Counter(found) - Counter(tuples(every))
    return taken and same(whole, tuples(mine), tuples(every))


def _sorted(table: pa.Table, order: str) -> list[tuple[object, ...]]:
    """The rows of a table in DataFusion's order."""
    context = datafusion.SessionContext()
    context.from_arrow(table, name="stored")
    return list(tuples(context.sql(f"SELECT * FROM stored{order}").to_arrow_table()))


def same(
    query: Scoped, some: Sequence[tuple[object, ...]], others: Sequence[tuple[object, ...]]
) -> bool:
    if query.ordered:
        return list(some) == list(others)
    return unordered(list(some)) == unordered(list(others))


def _in_duckdb(query: Scoped, plain: str, found: Sequence[tuple[object, ...]]) -> Counter[str]:
    """Whether DuckDB has the same rows; it differs from DataFusion in places of its own."""
    database = duck()
    if database is None:
        return Counter()
    try:
        text = plain.replace("LEFT SEMI", "SEMI")
        rows = database.execute(text.replace("LEFT ANTI", "ANTI")).fetchall()
    except Exception:
        return Counter({"refused by DuckDB": 1})
    theirs = [tuple(map(comparable, row)) for row in rows]
    if same(query, theirs, found):
        return Counter({"as in DuckDB": 1})

    kind = class_of(plain, theirs, found, _evidence(query, plain, theirs))
    if kind is None:
        return Counter({f"{UNKNOWN}: {plain}": 1})
    return Counter({"otherwise in DuckDB": 1, kind: 1})


def _evidence(
    query: Scoped, plain: str, theirs: Sequence[tuple[object, ...]]
) -> dict[str, Callable[[], bool]]:
    """What shows that a difference is of a class of ``duckdb_differences.CLASSES``, by its name."""
    whole = ORDERED.fullmatch(plain)

    def among(context: datafusion.SessionContext) -> bool:
        return same(query, theirs, tuples(run(context, plain).to_arrow_table()))

    def stored() -> bool:
        found = whole and _sorted(run(raw(), whole[1]).to_arrow_table(), whole[2])
        return bool(found and same(query, theirs, found))

    def unordered_lists() -> bool:
        if whole is None or "array_agg(" not in plain:
            return False
        rows = [tuple(map(comparable, row)) for row in duck().execute(whole[1]).fetchall()]
        return unordered(rows) == unordered(list(tuples(run(raw(), whole[1]).to_arrow_table())))

    return {
        "predicates without columns": lambda: among(raw("push_down_filter")),
        "sides": lambda: among(raw("", "false")),
        "sort keys": stored,
        "lists": unordered_lists,
    }


@pytest.mark.parametrize("part", range(PARTS))
def test_names_mean_what_datafusion_means(part: int, cases: int) -> None:
    first, seen = int(os.environ.get("SCOPED_FROM", "0")), Counter[str]()
    for at, number in enumerate(range(first + part, first + cases, PARTS)):
        if at % SESSION == 0:
            ours.cache_clear()
        wrong = difference(number, seen)
        assert wrong is None, f"query {number}: {wrong}"
    assert seen["compared"] >= 0.7 * cases / PARTS - 3, f"too few queries are compared: {seen}"
    assert seen["asking"] >= 0.5 * seen["compared"] - 3, f"too few queries ask: {seen}"
    if duck() is None:
        pytest.skip("DuckDB is not installed: DataFusion alone was compared")
    assert not [text for text in seen if text.startswith(UNKNOWN)], "0 differences that are ours"
    assert seen["otherwise in DuckDB"] <= 0.03 * seen["as in DuckDB"] + 2, f"DuckDB differs: {seen}"
