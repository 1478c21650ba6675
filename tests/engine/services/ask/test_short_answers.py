"""Short answers in the form that the question asks for, and those from reading rows."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.services.ask.answers import form_of, short


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("How many songs are there?", "number"),
        ("What is the average age of all singers?", "number"),
        ("When was it founded?", "date"),
        ("In which year did it open?", "date"),
        ("List the names of all singers.", "list"),
        ("Which players scored?", "list"),
        ("What are the titles?", "list"),
        ("Who won in 2012?", "span"),
        ("What is the capital of Peru?", "span"),
    ],
)
def test_the_form_that_a_question_asks_for(question: str, form: str) -> None:
    assert form_of(question) == form


@pytest.mark.parametrize(
    ("question", "columns", "text"),
    [
        ("How many?", {"n": [12]}, "12"),
        ("How many?", {"name": ["a", "b", "c"]}, "3"),
        ("How much did it cost?", {"cost": ["$1,250.50 in all"]}, "1250.50"),
        ("What is the average age?", {"avg": [32.5000001]}, "32.5"),
        ("When?", {"day": [datetime.date(2012, 5, 4)]}, "2012-05-04"),
        ("In which year?", {"day": [datetime.date(2012, 5, 4)]}, "2012"),
        ("When?", {"day": [datetime.datetime(2012, 5, 4)]}, "2012-05-04"),
        ("List the names.", {"name": ["b", "a", "b", None]}, "b; a"),
        ("Who won?", {"name": ["Ann  Lee"], "year": [2012]}, "Ann Lee"),
        ("Who won?", {"name": [None]}, ""),
        ("Who won?", {"name": []}, ""),
    ],
)
def test_the_answer_in_the_rows(question: str, columns: dict[str, list[object]], text: str) -> None:
    assert short(question, form_of(question), pa.table(columns)) == text


def _session(reply: str, read: str) -> tuple[bf.Session, list[tuple[str | None, ...]]]:
    asked: list[tuple[str | None, ...]] = []

    def answer(call: bf.Request) -> str:
        if call.task.form == "query":
            return reply
        asked.append(call.values)
        return read

    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off", show_values="on")
    session.from_pydict({"name": ["Ann", "Tim"], "born": [1990, 1985]}, name="singers")
    return session, asked


def test_a_query_gives_the_answer_and_says_what_it_searched() -> None:
    session, asked = _session("SELECT count(*) FROM singers WHERE born > 1986", "")
    reply = session.answer("How many singers were born after 1986?")
    assert (reply.text, reply.form, asked) == ("1", "number", [])
    assert reply.source == "Searches singers where born > 1986; no model is asked."
    assert reply.draft is not None


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I do not know.", "no query was found"),
        ("SELECT name FROM singers WHERE born > 3000", "the query gives no answer"),
    ],
)
def test_without_an_answer_of_a_query_the_rows_are_read(reply: str, why: str) -> None:
    session, asked = _session(reply, "Tim")
    found = session.answer("Who is older, Ann or Tim?")
    assert (found.text, found.draft) == ("Tim", None)
    assert asked == [("name: Ann; born: 1990", "name: Tim; born: 1985")]
    assert found.source.startswith("Read 2 of 2 rows of singers end to end, without a query: ")
    assert why in found.source


def test_the_budget_holds_for_reading() -> None:
    session, asked = _session("I do not know.", "Tim")
    with pytest.raises(bf.BudgetExceeded):
        session.answer("Who is older?", budget=bf.Budget(values=1), rounds=0)
    assert asked == []


@pytest.mark.parametrize(
    ("question", "query", "text", "problem"),
    [
        ("What is the average age?", "SELECT age FROM people", "", "one number"),
        ("How old is the oldest?", "SELECT name, age FROM people", "", "one number"),
        ("How much is it?", "SELECT age FROM people ORDER BY age", "", "one number"),
        ("How many live in each?", "SELECT count(*) FROM people GROUP BY age", "", "one number"),
        ("Which person has the highest age?", "SELECT name FROM people", "", "one value"),
        ("Who is the oldest?", "SELECT name, age FROM people", "", "one value"),
        ("When was the last one born?", "SELECT born FROM people", "", "one date"),
        (
            "What is the average age?",
            "SELECT id, age FROM people WHERE id = 3",
            "",
            "and the query gives 2",
        ),
        ("What is the average age?", "SELECT avg(age) FROM people", "41.5", ""),
        ("How many people are there?", "SELECT name FROM people", "4", ""),
        ("Who is the oldest?", "SELECT name FROM people WHERE age = 44", "Dot", ""),
        ("Which country has people?", "SELECT country FROM people", "Peru", ""),
        ("What are the names?", "SELECT name FROM people", "Ann; Bob; Cy; Dot", ""),
    ],
)
def test_one_value_of_several_rows_is_no_answer(
    question: str, query: str, text: str, problem: str
) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: query), cache=None, progress="off")
    people = {
        "id": [1, 2, 3, 4],
        "name": ["Ann", "Bob", "Cy", "Dot"],
        "age": [40, 42, 40, 44],
        "country": ["Peru"] * 4,
        "born": [datetime.date(2000, 1, day) for day in (1, 2, 3, 4)],
    }
    session.from_pydict(people, name="people")
    reply = session.answer(question, rounds=0)
    assert reply.text == text
    assert problem in reply.problem
    assert bool(reply.problem) == bool(problem)
    assert str(reply).startswith(f"Problem: {reply.problem}.\n" if problem else f"{text}\n")
