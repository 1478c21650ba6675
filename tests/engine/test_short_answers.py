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
