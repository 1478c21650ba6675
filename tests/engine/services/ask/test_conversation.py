"""Conversations: each turn's query is the whole question, and accepted queries are reused."""

from __future__ import annotations

import pytest
from dialogues import COURTESY, change, dialogues, tables

import blendfusion as bf
from blendfusion.apps.cli.shell import Shell
from blendfusion.services.ask.last import standing_alone
from blendfusion.services.ask.templates import template_of


class Restaurants:
    """A session over restaurants with a model that changes the query in its prompt. ``drafted``
    counts the drafts; ``reply`` replaces the next one."""

    def __init__(self) -> None:
        self.drafted = 0
        self.reply = ""
        self.session = bf.connect(
            bf.ScriptedModel(self._answer), cache=None, progress="off", show_values="on"
        )
        self.session.from_pydict(tables(), name="restaurants")

    def _answer(self, call: bf.Request) -> str | bool:
        if call.task.form != "query":
            return "quiet" in str(call.values[0])
        self.drafted += 1
        values = dict(zip(call.task.columns, call.values, strict=True))
        reply, self.reply = self.reply, ""
        return reply or change(str(values["question"]), values.get("history") or "")


def rows(frame: bf.Frame) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in frame.to_pylist()]


def test_the_state_of_96_turns_is_the_whole_question_each_time() -> None:
    restaurants = Restaurants()
    turns = found = 0
    for dialogue in dialogues():
        chat = restaurants.session.chat(["restaurants"])
        for message, whole in dialogue:
            turns += 1
            turn = chat.ask(message)
            if message == COURTESY:
                assert turn.draft is None
                assert turn.reply == "Nothing is searched."
                continue
            assert turn.draft is not None
            expected = rows(restaurants.session.sql(whole))
            found += bool(expected)
            assert rows(turn.draft.frame) == expected, (message, turn.draft.sql)
            # It needs no history: the text alone gives the same.
            assert rows(restaurants.session.sql(turn.draft.sql)) == expected
    assert turns == 96
    assert found > 80


def test_the_last_result_is_a_table_once_it_has_run() -> None:
    restaurants = Restaurants()
    chat = restaurants.session.chat()
    with pytest.raises(bf.QueryError, match="nothing was asked"):
        chat.run()
    chat.ask("Which thai restaurants are in Palo Alto?")
    assert chat.run().num_rows == 8
    assert restaurants.session.sql("SELECT count(*) AS n FROM last").to_pylist() == [{"n": 8}]
    chat.ask("How many are that?")
    assert chat.run().to_pylist() == [{"count(*)": 8}]
    assert [turn.message for turn in chat.turns][-1] == "How many are that?"


def test_a_table_called_last_is_not_replaced() -> None:
    restaurants = Restaurants()
    restaurants.session.from_pydict({"a": [1]}, name="last")
    chat = restaurants.session.chat(["restaurants"])
    chat.ask("Which thai restaurants are in Palo Alto?")
    with pytest.raises(bf.QueryError, match="a table last of its own"):
        chat.run()
    assert restaurants.session.table("last").to_pylist() == [{"a": 1}]


def test_a_message_without_a_query_that_plans_leaves_the_conversation_as_it_was() -> None:
    restaurants = Restaurants()
    chat = restaurants.session.chat(rounds=0)
    chat.ask("Which thai restaurants are there?")
    restaurants.reply = "SELECT nothing FROM nowhere"
    with pytest.raises(bf.QueryError, match="no query was found"):
        chat.ask("And the colour?")
    assert len(chat.turns) == 1
    assert chat.ask("Only those in Palo Alto.").draft is not None


@pytest.mark.parametrize(
    ("sql", "alone"),
    [
        ("SELECT a FROM last", "WITH last AS (SELECT a FROM t) SELECT a FROM last"),
        (
            "WITH x AS (SELECT a FROM last) SELECT a FROM x",
            "WITH last AS (SELECT a FROM t), x AS (SELECT a FROM last) SELECT a FROM x",
        ),
        ("SELECT a FROM t WHERE a = 'last'", "SELECT a FROM t WHERE a = 'last'"),
        (
            "WITH last AS (SELECT 1) SELECT * FROM last",
            "WITH last AS (SELECT 1) SELECT * FROM last",
        ),
    ],
)
def test_a_query_that_reads_the_last_result_holds_its_query(sql: str, alone: str) -> None:
    assert standing_alone(sql, "SELECT a FROM t") == alone


@pytest.mark.parametrize(
    ("question", "sql", "drafts"),
    [
        (
            "How many thai restaurants in Los Altos cost less than 25?",
            "'thai' AND city = 'Los Altos' AND price < 25",
            0,
        ),
        (
            "how many MEXICAN restaurants in san jose cost less than ten",
            "'mexican' AND city = 'San Jose' AND price < 10",
            0,
        ),
        (
            "How many thai restaurants in Menlo Prk cost less than 25?",
            "'thai' AND city = 'Menlo Park' AND price < 25",
            1,
        ),
    ],
)
def test_an_accepted_query_is_reused_for_other_literals(
    question: str, sql: str, drafts: int
) -> None:
    restaurants = Restaurants()
    head = "SELECT count(*) FROM restaurants WHERE cuisine = "
    restaurants.reply = f"{head}'pizza' AND city = 'Palo Alto' AND price < 30"
    first = restaurants.session.ask("How many pizza restaurants in Palo Alto cost less than 30?")
    first.accept()
    assert (restaurants.drafted, first.template) == (1, "")
    restaurants.reply = f"{head}{sql}"  # asked for literals only, a model writes this
    draft = restaurants.session.ask(question)
    assert draft.sql == f"{head}{sql}"
    assert restaurants.drafted == 1 + drafts
    assert draft.template == first.question
    assert "The query of the accepted question" in str(draft)


def test_another_question_is_drafted_anew() -> None:
    restaurants = Restaurants()
    restaurants.reply = "SELECT count(*) FROM restaurants WHERE city = 'Palo Alto'"
    restaurants.session.ask("How many restaurants are in Palo Alto?").accept()
    for question in (
        "Which restaurants in Palo Alto serve pizza and cost less than ten?",
        "Which restaurants are in Palo Alto?",
    ):
        query = "SELECT name FROM restaurants WHERE city = 'Palo Alto' OR cuisine = 'pizza'"
        restaurants.reply = query
        assert restaurants.session.ask(question, rounds=0).sql == query


def test_a_city_that_is_not_stored_is_drafted_anew() -> None:
    restaurants = Restaurants()
    restaurants.reply = "SELECT count(*) FROM restaurants WHERE city = 'Palo Alto'"
    restaurants.session.ask("How many restaurants are in Palo Alto?").accept()
    restaurants.reply = "SELECT count(*) FROM restaurants WHERE city = 'Rome'"
    draft = restaurants.session.ask("How many restaurants are in Rome?", rounds=0)
    assert (draft.template, draft.sql) == (
        "",
        "SELECT count(*) FROM restaurants WHERE city = 'Rome'",
    )


def test_only_literals_that_the_question_states_are_slots() -> None:
    template = template_of(
        "Who is from Rome?", "SELECT name FROM t WHERE city = 'Rome' AND kind = 'person' LIMIT 3"
    )
    assert template is not None
    assert [slot.column for slot in template.slots] == ["city"]
    assert template_of("Who is there?", "SELECT name FROM t WHERE city = 'Rome'") is None
    like = template_of("Who has Ann in the name?", "SELECT name FROM t WHERE name LIKE '%Ann%'")
    assert like is not None
    assert like.stated_texts("who has Bob in the name") == ["Bob"]


def test_the_shell_goes_on_from_the_last_question(capsys: pytest.CaptureFixture[str]) -> None:
    restaurants = Restaurants()
    shell = Shell(restaurants.session)
    with pytest.raises(bf.QueryError, match="nothing was asked"):
        shell.run("\\run")
    shell.run("\\ask Which thai restaurants are there?")
    shell.run("\\chat Only those in Palo Alto.")
    shell.run("\\run")
    shown = capsys.readouterr().out
    assert "AND city = 'Palo Alto'" in shown
    assert "Thai House 0" in shown
    shell.run("SELECT count(*) AS n FROM last")
    assert "8" in capsys.readouterr().out
