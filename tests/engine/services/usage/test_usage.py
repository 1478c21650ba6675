"""The book of usage: its table, budgets over days, and listed prices."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import new_database

import blendfusion as bf
from blendfusion.services.usage.book import Amounts, UsageBook, spent_since
from blendfusion.services.usage.listed_prices import price_table

PRICE = bf.Price(prompt=1.0, completion=2.0)


def scripted() -> Any:
    return bf.ScriptedModel(lambda call: "good" in str(call.values[0]), fingerprint="of tests")


def opened(folder: Path, **options: Any) -> bf.Session:
    return bf.connect(scripted(), cache=folder / "answers.sqlite", **options)


def ask(session: bf.Session, *texts: str, question: str = "Good?") -> None:
    rows = session.from_pydict({"x": list(texts)})
    session.sql(f"SELECT llm_filter('{question}', x) FROM $rows", rows=rows).collect()


def test_the_table_of_usage(tmp_path: Path) -> None:
    with opened(tmp_path, prices=PRICE) as first:
        ask(first, "good", "bad", "good")
        ask(first, "good", "new", question="New?")
    with opened(tmp_path, prices=PRICE) as session:
        ask(session, "good", "other")
        frame = session.sql(
            'SELECT day, question, "values", cached, requests, cost > 0 AS cost, saved FROM '
            "blendfusion.usage ORDER BY question"
        )
        good, new = frame.to_pylist()
        assert good.pop("saved") > 0
        assert new.pop("saved") == 0
        day = datetime.datetime.now(datetime.UTC).date()
        assert good == {
            "day": day,
            "question": "Good?",
            "values": 3,
            "cached": 1,
            "requests": 2,
            "cost": True,
        }
        assert new == {
            "day": day,
            "question": "New?",
            "values": 2,
            "cached": 0,
            "requests": 1,
            "cost": True,
        }
        assert session.sql("SELECT DISTINCT user, model FROM blendfusion.usage").count() == 1
    file = tmp_path / "answers.usage.sqlite"
    assert file.stat().st_mode & 0o777 == 0o600


def test_usage_of_a_session_without_a_file_and_without_prices() -> None:
    session = bf.connect(scripted(), cache=None)
    assert session.sql("SELECT * FROM blendfusion.usage").to_pylist() == []
    ask(session, "good")
    ask(session, "good")
    rows = session.sql('SELECT "values", cached, cost, saved FROM BlendFusion.Usage').to_pylist()
    assert rows == [{"values": 1, "cached": 1, "cost": None, "saved": None}]


def test_questions_are_withheld_where_values_are(tmp_path: Path) -> None:
    with opened(tmp_path, show_values="off") as session:
        ask(session, "good", question="Is it about Ann?")
        (row,) = session.sql('SELECT question, "values" FROM blendfusion.usage').to_pylist()
    assert row["values"] == 1
    assert "Ann" not in row["question"]


def test_a_read_only_session_sees_the_rows_of_its_own_user(tmp_path: Path) -> None:
    for user in ("ann", "bob"):
        budget = bf.Budget(values=10, days=1, user=user)
        with opened(tmp_path, budget=budget) as session:
            ask(session, f"good {user}")
    with opened(
        tmp_path, read_only=True, budget=bf.Budget(values=9, days=1, user="ann")
    ) as session:
        rows = session.sql('SELECT user, "values" FROM blendfusion.usage').to_pylist()
    assert rows == [{"user": "ann", "values": 1}]


def test_a_budget_over_days_holds_for_all_sessions_of_a_file(tmp_path: Path) -> None:
    budget = bf.Budget(values=5, days=1)
    with opened(tmp_path) as free:
        ask(free, "a", "b")
    with opened(tmp_path, budget=budget) as session:
        ask(session, "c", "d")
    with opened(tmp_path, budget=budget) as session:
        with pytest.raises(bf.BudgetExceeded, match=r"budget of 1 day is spent: values=5"):
            ask(session, "e", "f")
        ask(session, "a", "b", "c", "d", "e")
        session.budget = bf.Budget(values=6, days=2)
        ask(session, "f")
        with pytest.raises(bf.BudgetExceeded, match="of 2 days"):
            ask(session, "g")


def test_a_budget_of_a_user_counts_that_user_alone(tmp_path: Path) -> None:
    for user in ("ann", "bob"):
        with opened(tmp_path, budget=bf.Budget(values=2, days=1, user=user)) as session:
            ask(session, f"{user} 1", f"{user} 2")
            with pytest.raises(bf.BudgetExceeded, match=f"of {user} is spent"):
                ask(session, f"{user} 3")


def test_other_days_do_not_count(tmp_path: Path) -> None:
    with opened(tmp_path, budget=bf.Budget(values=2, days=2)) as session:
        book = session.usage_book
        now = datetime.datetime.now(datetime.UTC)
        book._clock = lambda: now - datetime.timedelta(days=2)
        ask(session, "a", "b")
        book._clock = lambda: now
        ask(session, "c")
        book._clock = lambda: now + datetime.timedelta(days=1)
        ask(session, "d")
        with pytest.raises(bf.BudgetExceeded):
            ask(session, "e")
        days = session.sql("SELECT day FROM blendfusion.usage").to_pydict()["day"]
        assert [(day - now.date()).days for day in days] == [-2, 0, 1]


def test_budgets_over_days_that_are_not_possible(tmp_path: Path) -> None:
    with pytest.raises(bf.OptionError, match="in a file or in PostgreSQL"):
        bf.connect(scripted(), cache=None, budget=bf.Budget(values=1, days=1))
    for wrong in ({"days": 0}, {"days": 1.5}, {"user": "ann"}, {"days": 1, "user": 3}):
        with pytest.raises(bf.OptionError, match="is not possible"):
            bf.Budget(values=1, **wrong)
    with opened(tmp_path) as session:
        session.from_pydict({"x": ["a"]}, name="t")
        query = session.sql("SELECT llm_filter('?', x) FROM t")
        with pytest.raises(bf.OptionError, match="that of a session"):
            query.with_budget(bf.Budget(values=1, days=1)).collect()
        session.budget = bf.Budget(cost=1.0, days=1)
        with pytest.raises(bf.OptionError, match="needs the price"):
            ask(session, "a")
    assert bf.Budget.parsed("values=10,days=2,user=ann") == bf.Budget(values=10, days=2, user="ann")
    assert repr(bf.Budget(values=10, days=2)) == "Budget(values=10, days=2)"


RACER = """
import sys
import blendfusion as bf

number, calls = int(sys.argv[2]), []
model = bf.ScriptedModel(lambda call: calls.append(1) or True, batch_size=int(sys.argv[4]))
budget = bf.Budget(values=int(sys.argv[3]), days=1)
session = bf.connect(model, cache=sys.argv[1], budget=budget)
try:
    for at in range(0, 1250, 50):
        rows = session.from_pydict({"x": [f"{number} {at + i}" for i in range(50)]})
        session.sql("SELECT llm_filter('?', x) FROM $rows", rows=rows).collect()
except bf.BudgetExceeded:
    pass
print(len(calls))
"""


@pytest.mark.long
@pytest.mark.parametrize(("limit", "batch"), [(4_321, 7), (20_000, 50)])
@pytest.mark.parametrize("place", ["file", "postgresql"])
def test_ten_thousand_racing_values_of_eight_processes(
    tmp_path: Path, place: str, limit: int, batch: int
) -> None:
    file = str(tmp_path / "answers.sqlite") if place == "file" else new_database()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, file, str(number), str(limit), str(batch)],
            stdout=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
        )
        for number in range(8)
    ]
    counts = [int(racer.communicate()[0]) for racer in racers]
    assert sum(counts) == min(limit, 10_000)
    session = bf.connect(scripted(), cache=file)
    rows = session.sql('SELECT "values" FROM blendfusion.usage').to_pylist()
    assert rows == [{"values": min(limit, 10_000)}]


def test_a_shared_database_has_the_book_of_its_answers() -> None:
    url = new_database()
    ann = bf.connect(scripted(), cache=url, budget=bf.Budget(values=3, days=2, user="ann"))
    ask(ann, "good", "bad")
    bob = bf.connect(scripted(), cache=url, budget=bf.Budget(values=3, days=2, user="bob"))
    ask(bob, "good", "fine")
    rows = bob.sql('SELECT "user", "values", cached FROM blendfusion.usage ORDER BY 1').to_pylist()
    assert rows == [
        {"user": "ann", "values": 2, "cached": 0},
        {"user": "bob", "values": 1, "cached": 1},
    ]
    with pytest.raises(bf.BudgetExceeded, match="of ann is spent"):
        ask(ann, "a", "b")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database()"
        )
    ask(bob, "c")  # the server has closed the connections
    with bob.usage_book.writing() as statements:
        assert spent_since(statements, "", None).number == 5
    for session in (ann, bob):
        session.close()


def test_a_database_that_is_gone_gives_no_value_under_a_budget_over_days() -> None:
    url = new_database()
    session = bf.connect(scripted(), cache=url, budget=bf.Budget(values=3, days=2))
    session.usage_book._url = "postgresql://nobody@127.0.0.1:1/x"  # type: ignore[attr-defined]
    with pytest.raises(bf.ExecutionError, match="the book of usage, in 'postgresql:"):
        ask(session, "good")


def test_books_of_one_process_keep_their_locks(tmp_path: Path) -> None:
    """POSIX gives back all locks of a process on a file when one of its descriptors is closed; then
    another process would take the log away."""
    file = tmp_path / "answers.usage.sqlite"
    books = [UsageBook(file) for _ in range(2)]
    for book in books:
        book.enter("ann", [], Amounts(number=1))
    other = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
    other += "print(c.execute('SELECT sum(number) FROM spent').fetchone()[0]); c.close()"
    done = subprocess.run([sys.executable, "-c", other, file], capture_output=True, check=True)
    assert done.stdout == b"2\n"
    assert file.with_name(file.name + "-wal").exists()
    books[0].enter("ann", [], Amounts(number=1))
    with books[1].writing() as connection:
        assert spent_since(connection, "", "ann").number == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # where another test has imported it
def test_a_forked_process_has_a_connection_of_its_own(tmp_path: Path) -> None:
    book = UsageBook(tmp_path / "answers.usage.sqlite")
    book.enter("ann", [], Amounts(number=1))
    child = os.fork()
    if child == 0:
        book.enter("ann", [], Amounts(number=1))
        book.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with book.writing() as connection:
        assert spent_since(connection, "", None).number == 2


def test_a_damaged_book_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "answers.usage.sqlite").write_bytes(b"no database" * 1000)
    with opened(tmp_path) as session, pytest.warns(bf.CacheWarning) as given:
        ask(session, "good")
    (text,) = [str(one.message) for one in given]
    assert "answers.usage.sqlite" in text
    assert "(move the file away: a new one is made); usage is not entered" in text


def test_listed_prices_have_dates_and_sources_and_own_prices_win() -> None:
    for listed in price_table():
        assert listed.price.prompt <= listed.price.completion
        assert datetime.date(2025, 1, 1) < listed.date < datetime.date(2027, 1, 1)
        assert listed.source.startswith("https://")
        assert "@https://" in listed.model
    name = "openai:gpt-4o-mini@https://api.openai.com/v1"
    prices = bf.connect(scripted(), cache=None, prices="listed").ledger.prices
    assert prices.of(name) == bf.Price(prompt=0.15, completion=0.6)
    assert prices.of("openai:gpt-4o-mini@http://127.0.0.1:8000/v1") is None
    own = bf.connect(scripted(), cache=None, prices={"*": "listed", "gpt-4o-mini": PRICE})
    assert own.ledger.prices.of(name) == PRICE
    assert own.ledger.prices.of(name.replace("-mini", "")) == bf.Price(prompt=2.5, completion=10)
    for wrong in ("list", {"*": "list"}, {"x": "listed"}):
        with pytest.raises(bf.OptionError):
            bf.connect(scripted(), cache=None, prices=wrong)
