"""Users of a server have the tables, functions and budgets of their grants, and nothing else."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from scripts import hashed

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.server.grants import read_grants
from blendfusion.services.server.listener import serving
from blendfusion.services.server.statements import Statements

adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
from adbc_driver_flightsql import DatabaseOptions  # noqa: E402
from adbc_driver_manager import Error  # noqa: E402

GRANTS = """
[ann]
token = "ann's"
tables = ["reviews", "shop.orders"]
functions = ["llm_filter"]
budget = "values=3"

[bob]
token = "bob's"
tables = ["notes", "shop.*"]
functions = ["llm_map", "llm_int"]
budget = "values=2"
"""


def opened(folder: Path) -> bf.Session:
    session = bf.connect(
        bf.ScriptedModel(hashed),
        cache=None,
        read_only=True,
    )
    session.from_pydict({"id": [1, 2, 3], "x": ["good", "bad", "so so"]}, name="reviews")
    session.from_pydict({"id": [1, 2], "x": ["good note", "bad note"]}, name="notes")
    session.attach(folder / "shop.db", "shop")
    return session


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Statements, dict[str, bf.Session]]]:
    shop = sqlite3.connect(tmp_path / "shop.db")
    shop.executescript(
        "CREATE TABLE orders (id INTEGER, x TEXT); INSERT INTO orders VALUES (1, 'good');"
        "CREATE TABLE salaries (id INTEGER, x TEXT); INSERT INTO salaries VALUES (7, 'bad');"
    )
    shop.close()
    (tmp_path / "grants.toml").write_text(GRANTS, "utf-8")
    grants = read_grants(tmp_path / "grants.toml")
    with ExitStack() as stack:
        users = [(grant, stack.enter_context(opened(tmp_path))) for grant in grants]
        served, statements, address = serving(stack.enter_context(opened(tmp_path)), users=users)
        try:
            yield address, statements, {grant.user: own for grant, own in users}
        finally:
            served.shutdown()


def connected(address: str, user: str) -> Any:
    options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {user}'s"}
    return adbc.connect(address, db_kwargs=options, autocommit=True)


def rows(address: str, user: str, sql: str, values: Any = None) -> list[Any]:
    with connected(address, user) as connection, connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()  # type: ignore[no-any-return]


Served = tuple[str, Statements, dict[str, bf.Session]]
ALLOWED = {
    "ann": ["reviews", "shop.orders", "shop.main.orders", "datafusion.public.reviews"],
    "bob": ["notes", "shop.orders", "shop.salaries", "shop.main.salaries"],
}
REFUSED = {
    "ann": ["notes", "shop.salaries", "shop.main.salaries", "datafusion.shop.salaries", "SALARIES"],
    "bob": ["reviews", "datafusion.public.reviews", '"reviews"', "REVIEWS"],
}
FORMS = [
    "SELECT id FROM {t}",
    "SELECT count(*) FROM (SELECT * FROM {t})",
    "WITH a AS (SELECT id FROM {t}) SELECT * FROM a",
    "SELECT 1 WHERE EXISTS (SELECT * FROM {t})",
    "SELECT 1 AS id UNION ALL SELECT id FROM {t}",
    "SELECT id FROM {t} WHERE id = ?",
]


@pytest.mark.parametrize("user", ["ann", "bob"])
def test_a_user_reads_the_tables_that_are_granted(server: Served, user: str) -> None:
    address, _, _ = server
    with connected(address, user) as connection, connection.cursor() as cursor:
        for table in ALLOWED[user]:
            cursor.execute(f"SELECT id FROM {table}")
            assert cursor.fetchall()
        for table in REFUSED[user]:
            for form in FORMS:
                with pytest.raises(Error, match=r"(?i)no table|unknown table|no schema|not found"):
                    cursor.execute(form.format(t=table), (1,) if "?" in form else None)


def test_catalogs_list_what_is_granted(server: Served) -> None:
    address, _, _ = server
    listed = {}
    for user in ("ann", "bob"):
        with connected(address, user) as connection:
            found = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
            listed[user] = {
                table["table_name"]
                for catalog in found
                for schema in catalog["catalog_db_schemas"]
                for table in schema["db_schema_tables"]
            }
        query = "SELECT DISTINCT table_name FROM information_schema.tables WHERE table_schema <> 'information_schema'"
        assert {name for (name,) in rows(address, user, query)} == listed[user]
        columns = "SELECT DISTINCT table_name FROM information_schema.columns"
        assert {name for (name,) in rows(address, user, columns)} <= listed[user]
    assert listed == {"ann": {"reviews", "orders"}, "bob": {"notes", "orders", "salaries"}}


def test_a_user_calls_the_functions_that_are_granted(server: Served) -> None:
    address, _, sessions = server
    asks = "SELECT llm_filter('Good?', x) AS g FROM shop.orders"
    assert len(rows(address, "ann", asks)) == 1
    call = next(name for name in sessions["ann"].udfs() if name.startswith("llm_filter_"))
    for user, query in (
        ("bob", asks),
        ("bob", f"SELECT {call}(x) AS g FROM shop.orders"),  # the name that another has for it
        (
            "bob",
            "SELECT id FROM notes ORDER BY (SELECT count(*) FROM notes WHERE llm_filter('a', x))",
        ),
        ("ann", "SELECT llm_map('Good?', x) AS g FROM reviews"),
        ("ann", "SELECT id FROM reviews WHERE llm_filter('a', llm_map('b', x))"),
        ("ann", "SELECT llm_classify(x, ['a', 'b']) AS g FROM reviews"),
        ("ann", "SELECT {{LLMMap('Good?', 'reviews::x')}} FROM reviews"),
    ):
        with pytest.raises(Error, match=r"(granted to you|unknown function)"):
            rows(address, user, query)
    assert sessions["bob"].ledger.usage.values == 0


def test_each_user_has_a_budget(server: Served) -> None:
    address, statements, sessions = server
    queries = {
        "ann": "SELECT llm_filter('Good?', x) AS g FROM reviews WHERE id = ?",
        "bob": "SELECT llm_int('How good?', x) AS g FROM notes WHERE id = ?",
    }
    problems: list[str] = []

    def ask(user: str) -> None:
        for number in range(1, 4):
            try:
                rows(address, user, queries[user], (number,))
            except Error as problem:
                problems.append(f"{user}: {problem}")

    clients = [threading.Thread(target=ask, args=(user,)) for user in ("ann", "bob") * 3]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert problems == []
    for user, query in (
        ("ann", "SELECT llm_filter('Another?', x) AS g FROM reviews"),
        ("bob", "SELECT llm_int('How bad?', x) AS g FROM notes"),
    ):
        with pytest.raises(Error, match="budget"):
            rows(address, user, query)
    spent = {user: own.ledger.usage.values for user, own in sessions.items()}
    assert spent == {"ann": 3, "bob": 2}
    assert statements.usage.values == 5


def test_a_statement_that_another_has_prepared_is_none(server: Served) -> None:
    _, statements, sessions = server
    ann, bob = (statements.of_user(sessions[user]) for user in ("ann", "bob"))
    handle = ann.prepare("SELECT * FROM reviews")
    assert ann.statement(handle).sql == "SELECT * FROM reviews"
    with pytest.raises(bf.QueryError, match="was closed"):
        bob.statement(handle)


def test_usage_shows_a_user_their_own_rows(server: Served) -> None:
    address, _, sessions = server
    sessions["bob"].__dict__["usage_book"] = sessions["ann"].usage_book  # as if in one store
    rows(address, "ann", "SELECT llm_filter('Good?', x) AS g FROM reviews")
    query = 'SELECT DISTINCT "user" FROM blendfusion.usage'
    assert rows(address, "ann", query) == [("ann",)]
    assert rows(address, "bob", query) == []


def test_a_call_without_a_token_of_a_user_is_refused(server: Served) -> None:
    address, _, _ = server
    for user in ("eve", "Ann", ""):
        with pytest.raises(Error, match=r"(?i)unauthenticated"):
            rows(address, user, "SELECT 1 AS a")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no user"),
        ("[a", "no grants"),
        ("a = 1", "a user is a table"),
        ("[a]\ntables = ['t']", "the token is missing"),
        ("[a]\ntoken = ' '", "the token is missing"),
        ("[a]\ntoken = 'x'\ntable = ['t']", "'table' is not known"),
        ("[a]\ntoken = 'x'\ntables = 't'", "'tables' has another type"),
        ("[a]\ntoken = 'x'\ntables = [1]", "list of names"),
        ("[a]\ntoken = 'x'\nfunctions = ['llm_fliter']", "no function 'llm_fliter'"),
        ("[a]\ntoken = 'x'\nbudget = 'value=3'", "value"),
        ("[a]\ntoken = 'x'\n[b]\ntoken = 'x'", "same token"),
        ("[a]\ntoken = 'x'\ntables = ['nowhere']", "the table 'nowhere'"),
    ],
)
def test_a_wrong_grant_is_an_error_before_the_server_listens(
    tmp_path: Path, text: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "grants.toml"
    file.write_text(text, "utf-8")
    assert main(["serve", "--grants", str(file), "--cache", "off", "--model", "smollm2"]) == 2
    assert problem in capsys.readouterr().err
