"""Queries with functions of decision models, as other systems have them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from golden import FOLDER, cases, check

import blendfusion as bf

SYSTEMS = ("pg-jev", "duckdb-jev", "duckdb-jev-structs", "anofox", "greptimedb")


def weigh(request: bf.Request) -> Any:
    """Nine tenths for a yes; later options weigh more; the middle of a scale."""
    kind = request.constraint.kind
    if kind == "boolean":
        return {True: 0.9, False: 0.1}
    if kind == "choice":
        return {option: at for at, option in enumerate(request.constraint.options, 1)}
    return {0: 1, 1: 1}


@pytest.fixture
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(weigh), progress="off", cache=None)
    bodies = ["It crashes!", "Money back!", None]
    tickets = {"id": [1, 2, 3], "open": [True, False, True], "body": bodies, "message": ["a"] * 3}
    session.from_pydict(tickets, "tickets")
    session.from_pydict(
        {"id": [1], "name": ["Ann"], "bio": ["I work."], "likes": ["sun"]}, "people"
    )
    at = [datetime.datetime(2026, 11, 1, 10), datetime.datetime(2026, 11, 1, 10, 30)]
    session.from_pydict({"ts": [1, 2], "at": at, "message": ["still failing", "fine"]}, "events")
    session.from_arrow(pa.table({"name": ["a"], "data": [b"\x00"]}), name="files")
    return session


def outcome(session: bf.Session, dialect: str) -> Callable[[str], str]:
    def comes_out(text: str) -> str:
        try:
            return session.translated(text, dialect)
        except bf.BlendFusionError as error:
            return f"{type(error).__name__}: {error}"

    return comes_out


@pytest.mark.parametrize("dialect", SYSTEMS)
def test_what_a_query_is_in_our_sql(dialect: str, session: bf.Session, update_golden: bool) -> None:
    page = FOLDER / "dialects" / f"{dialect}.txt"
    check(page, outcome(session, dialect), update=update_golden)


CASES = [
    (dialect, case.given, "Error" in case.expected)
    for dialect in SYSTEMS
    for case in cases(FOLDER / "dialects" / f"{dialect}.txt")
]


@pytest.mark.parametrize(("dialect", "query", "refused"), CASES)
def test_what_is_translated_runs(
    dialect: str, query: str, refused: bool, session: bf.Session
) -> None:
    """Refusals come before anything is asked."""
    if refused:
        with pytest.raises(bf.BlendFusionError):
            session.sql(query, dialect=dialect)
    else:
        session.sql(query, dialect=dialect).collect()


def rows(session: bf.Session, dialect: str, query: str) -> list[dict[str, Any]]:
    return session.sql(query, dialect=dialect).to_pylist()


def test_answers_are_those_of_the_documentation(session: bf.Session) -> None:
    """A threshold counts from its own value on; choices are texts, scores expected levels; NULL is
    not asked about, and gives NULL."""
    asked = "SELECT id FROM tickets WHERE jev(body, 'is late', {}) ORDER BY id"
    assert rows(session, "pg-jev", asked.format(0.9)) == [{"id": 1}, {"id": 2}]
    assert rows(session, "jevql", asked.format(0.91)) == []
    found = rows(
        session,
        "duckdb-jev",
        "SELECT jev_ask(body, {team: MAP{'billing': 'money', 'bugs': 'crashes'}, "
        "level: ['low', 'high'], late: MAP{'true': 'late'}}) AS a FROM tickets ORDER BY id",
    )
    answered = {"team": "bugs", "level": 0.5, "late": 0.9}
    assert [row["a"] for row in found[:2]] == [answered, answered]
    assert found[2]["a"] == {"team": None, "level": None, "late": None}
    (best, *_) = rows(
        session,
        "greptimedb",
        """SELECT ai_score(message, 'how bad?', '["none", "some", "blocking"]') AS r FROM events""",
    )
    assert best["r"] == {"score": 0.5, "probabilities": [0.5, 0.5, 0.0]}


def test_a_row_is_read_with_the_names_of_its_columns() -> None:
    model = bf.ScriptedModel(weigh)
    session = bf.connect(model, progress="off", cache=None)
    session.from_pydict({"Full name": ["Ann"], "age": [41]}, "people")
    rows(session, "pg-jev", "SELECT jev_prob(p, 'is an adult') FROM people AS p")
    (request,) = model.calls
    assert (request.task.columns, request.values) == (("Full name", "age"), ("Ann", "41"))


def test_one_field_asks_one_question(session: bf.Session) -> None:
    model = bf.ScriptedModel(weigh)
    session = bf.connect(model, progress="off", cache=None)
    session.from_pydict({"t": ["text"]}, "r")
    query = (
        """SELECT d:response.answers.late.probability::DOUBLE AS p FROM (SELECT ai_decide(t, """
        """'{"late": {"type": "noul", "instructions": "Late?"}, "team": {"type": "choice", """
        """"instructions": "Which?", "criteria": {"a": null, "b": null}}}') AS d FROM r)"""
    )
    assert rows(session, "databricks", query) == [{"p": 0.9}]
    assert len(model.calls) == 1


T = pa.table(
    {
        "id": [1, 2, 3, 4],
        "x": ["hello", "a,b", None, ""],
        "n": [-2, 0, 3, None],
        "f": [2.5, 3.5, -2.5, None],
    }
)
OF_DUCKDB = [
    *(
        "CAST(2.5 AS INT)",
        "CAST(3.5 AS INT)",
        "CAST(-2.5 AS BIGINT)",
        "CAST(f AS INT)",
        "f::BIGINT",
    ),
    *(
        "TRY_CAST(f AS INTEGER)",
        "CAST('7' AS INT)",
        "CAST(f AS VARCHAR)",
        "CAST(f / 5 AS SMALLINT)",
    ),
    *("2^3", "n^2", "7/2", "n/4", "n%2", "-7%3", "round(f)"),
    *("substr(x, -3, 2)", "substr(x, n)", "substr(x, n, 2)", "substring('hello', -7, 3)"),
    *("substring('hello', 0, 2)", "substr('hello', 2)", "left(x, 2)", "strpos(x, 'l')"),
    *("x SIMILAR TO 'h.*'", "x NOT SIMILAR TO 'a.b'", "x SIMILAR TO 'ell'", "x ~ 'ell'"),
    *("length(x)", "length([])", "length([1, 2])", "concat(x, '-')", "concat([1], [2])"),
    *("split_part(x, ',', 2)", "string_to_array(x, ',')", "to_hex(255)", "list_sort([1, NULL, 0])"),
    *("greatest(n, 1)", "concat_ws('-', x, 'a')", "regexp_replace(x, 'l', 'L')", "lpad(x, 7, '*')"),
]


@pytest.mark.parametrize("expression", OF_DUCKDB)
@pytest.mark.parametrize("dialect", ["duckdb-jev", "anofox"])
def test_functions_and_operators_of_duckdb(dialect: str, expression: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    session = bf.connect(bf.ScriptedModel(weigh), progress="off", cache=None)
    session.from_arrow(T, name="t")
    connection = duckdb.connect()
    connection.register("t", T)
    query = f"SELECT {expression} AS v FROM t ORDER BY id"
    found = [row["v"] for row in rows(session, dialect, query)]
    assert found == [value for (value,) in connection.execute(query).fetchall()]


@pytest.mark.parametrize(
    "expression", ["list_distinct([1])", "char_length('a')", "substr('hello', 3, -2)", "2^3^2"]
)
def test_what_duckdb_means_otherwise_is_refused(session: bf.Session, expression: str) -> None:
    with pytest.raises(bf.QueryError, match=r"translation|literal"):
        session.sql(f"SELECT {expression} AS v", dialect="duckdb-jev")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2.5::float8::int", 2),
        ("3.5::float8::int", 4),
        ("2.5::int", 3),
        ("(-2.5)::int", -3),
        ("(-2.5)::float8::int", -2),
        ("0.5::float8::bigint", 0),
        ("2.6::float8::int", 3),
    ],
)
def test_postgres_rounds_halves_of_doubles_to_even(
    session: bf.Session, expression: str, value: int
) -> None:
    assert rows(session, "pg-jev", f"SELECT {expression} AS v") == [{"v": value}]
