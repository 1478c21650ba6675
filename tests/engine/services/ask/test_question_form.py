"""The form of a drafted query against that of its question: numbers, groups and columns."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from sqlglot import transpile

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.ask.question_form import doubtful_form
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table

SPIDER = Path(__file__).parents[4].parent / "shared" / "data" / "spider"
TICKETS = Catalog(
    (
        Table(
            "tickets",
            (
                Column("Ticket ID", "BIGINT"),
                Column("Channel", "VARCHAR", values=("phone", "email", "chat")),
                Column("Is Open", "VARCHAR", values=("Y", "N")),
                Column("Number Of Replies", "BIGINT"),
                Column("Paid", "DOUBLE"),
            ),
        ),
        Table("cars", (Column("mpg", "DOUBLE"), Column("price_per_day", "DOUBLE"))),
    )
)
COUNTS = "the question asks how many, and the query counts nothing"
MEAN = "the question asks for an average, and the query computes none"
PER = "the question says 'per channel', and the query makes no groups"
EACH = "the question says 'for each', and the query makes no groups"


@pytest.mark.parametrize(
    ("question", "sql", "problem"),
    [
        ("How many came by phone?", "SELECT Channel FROM tickets", COUNTS),
        ("How many tickets are open?", 'SELECT "Ticket ID" FROM tickets', COUNTS),
        ("How many tickets are open?", "SELECT DISTINCT Channel FROM tickets", COUNTS),
        ("The number of tickets?", "SELECT Channel FROM tickets LIMIT 3", COUNTS),
        ("How many tickets are open?", "SELECT count(*) FROM tickets", None),
        ("How many?", "SELECT sum(n) FROM (SELECT count(*) AS n FROM tickets)", None),
        ("How many replies has each?", 'SELECT "Number Of Replies" FROM tickets', None),
        ("How many days?", "SELECT llm_int('How many days?', Channel) FROM tickets", None),
        ("What is the phone number of each?", "SELECT Channel FROM tickets", None),
        ("What is the average payment?", "SELECT Paid FROM tickets", MEAN),
        ("What do they pay on average?", "SELECT max(Paid) FROM tickets", MEAN),
        ("What is the average payment?", "SELECT avg(Paid) FROM tickets", None),
        ("What is the mean payment?", "SELECT sum(Paid) / count(*) FROM tickets", None),
        ("What did customers pay per channel?", "SELECT sum(Paid) FROM tickets", PER),
        ("Pay per channel?", "SELECT Paid FROM tickets WHERE Channel = 'email'", PER),
        ("How many for each channel?", "SELECT count(*) FROM tickets", EACH),
        ("How many for each?", "SELECT Channel, count(*) FROM tickets GROUP BY 1", None),
        ("Average per channel?", "SELECT avg(Paid) OVER (PARTITION BY Channel) FROM tickets", None),
        ("The average miles per gallon?", "SELECT avg(mpg) FROM cars", None),
        ("The name for each ticket?", "SELECT Channel FROM tickets", None),
        (
            "Which channels?",
            "SELECT Channel, Channel, channel FROM tickets",
            "the query gives channel 3 times",
        ),
        ("Which?", "SELECT Channel, upper(Channel), 1, 2 FROM tickets", None),
        ("Which?", "this is no query", None),
    ],
)
def test_forms(question: str, sql: str, problem: str | None) -> None:
    catalog = TICKETS
    if "per channel" in question.lower():  # a column named after a rate would explain the word
        catalog = Catalog(TICKETS.tables[:1])
    found = doubtful_form(question, sql, catalog)
    assert (None if found is None else found[0]) == problem


def asked(question: str, sql: str) -> bf.Session:
    model = bf.ScriptedModel(lambda call: sql if call.task.form == "query" else True)
    session = bf.connect(model, cache=None, progress="off", show_values="on")
    channels = ["phone", "email", "chat"] * 100
    flags = ["Y", "N", "N"] * 100
    session.from_pydict({"Channel": channels, "IsOpen": flags, "Paid": range(300)}, name="tickets")
    return session


@pytest.mark.parametrize(
    ("question", "sql", "problem"),
    [
        (
            "How many tickets came by phone?",
            """SELECT "Channel", "Channel", "Channel" FROM tickets WHERE "Channel" = 'phone'""",
            'the query gives "channel" 3 times. Select each column once.',
        ),
        (
            "Which channel is it?",
            """SELECT "Paid" FROM tickets WHERE "Channel" = 'email'""",
            "the question does not name 'email', with which the query compares Channel.",
        ),
        ("Which are open?", """SELECT "Paid" FROM tickets WHERE "IsOpen" = 'Y'""", ""),
        ("What came by email?", """SELECT "Paid" FROM tickets WHERE "Channel" = 'email'""", ""),
    ],
)
def test_a_draft_says_so(question: str, sql: str, problem: str) -> None:
    assert asked(question, sql).ask(question).problem == problem


def test_a_model_that_hears_of_it_writes_another_query() -> None:
    said: list[str] = []

    def write(call: bf.Request) -> object:
        said.append(str(call.values))
        if len(said) == 1:
            return "SELECT channel FROM tickets"
        return "SELECT count(*) FROM tickets"

    session = bf.connect(bf.ScriptedModel(write), cache=None, progress="off", show_values="on")
    session.from_pydict({"channel": ["phone", "email"]}, name="tickets")
    draft = session.ask("How many tickets are there?")
    assert (draft.sql, draft.problem) == ("SELECT count(*) FROM tickets", "")
    assert COUNTS in said[1]


def test_run_writes_the_first_rows_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numbers.csv").write_text("n\n" + "\n".join(map(str, range(250))))
    reply = "SELECT n FROM numbers"
    model = bf.ScriptedModel(lambda call: reply)
    session = bf.connect(model, cache=None, progress="off")
    session.register_csv("numbers", str(tmp_path / "numbers.csv"))
    monkeypatch.setattr("blendfusion.apps.cli.ask.session_of", lambda _: session)

    def rows(*options: str) -> tuple[int, str]:
        assert main(["ask", "Which numbers?", "--run", "--format", "csv", *options]) == 0
        said = capsys.readouterr()
        return len(re.findall(r"^\d+$", said.out, re.MULTILINE)), said.err

    assert rows() == (100, "The query gives more than these 100 rows: --rows 0 writes all.\n")
    assert rows("--rows", "250") == (250, "")
    assert rows("--rows", "0") == (250, "")
    assert main(["ask", "Which?", "--run", "--rows", "-1"]) == 2


@pytest.mark.skipif(not SPIDER.is_dir(), reason="the public questions are not here")
@pytest.mark.long
def test_right_queries_of_public_questions_have_the_form_of_their_questions() -> None:
    """467 questions with their queries; one gives a column twice."""
    doubted = []
    catalogs: dict[str, Catalog] = {}
    for row in csv.DictReader(io.StringIO((SPIDER / "questions.csv").read_text())):
        name = row["database"]
        if name not in catalogs:
            catalogs[name] = catalog_of(SPIDER / name / "data")
        (sql,) = transpile(row["sql"], read="mysql", write="postgres")
        found = doubtful_form(row["question"], sql, catalogs[name])
        if found is not None:
            doubted.append(found[0])
    assert doubted == ['the query gives "t1"."student_id" 2 times']


def catalog_of(folder: Path) -> Catalog:
    tables = []
    for file in sorted(folder.glob("*.csv")):
        rows = list(csv.reader(io.StringIO(file.read_text())))
        columns = tuple(
            Column(name, "BIGINT" if all(map(is_number, values)) else "VARCHAR")
            for name, *values in zip(*rows, strict=False)
        )
        tables.append(Table(file.stem, columns))
    return Catalog(tuple(tables))


def is_number(text: str) -> bool:
    return not text or text.replace(".", "").replace("-", "").isdigit()
