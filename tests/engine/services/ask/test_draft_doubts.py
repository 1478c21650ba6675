"""A draft says what is wrong with it, and whether its model is one to trust, before it is run."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_model import weights_or_skip
from rich.console import Console

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.services.weights.gguf import head
from blendfusion.run.observe.progress import ProgressLine, Reporter
from blendfusion.services.ask import draft

CITIES = {
    "name": ["Ann", "Tim", "Joe", "Eve", "Bo"],
    "city": ["Paris", "Rome", "Paris", "Rome", "Nice"],
    "bio": ["rain", "trains", "planes", "love", "hats"],
    "shoe": [36, 43, 44, 38, 46],
}


def session_of(reply: str, *, show: str = "on", parameters: int = 0) -> bf.Session:
    class Sized(bf.ScriptedModel):
        @property
        def abilities(self) -> Abilities:
            return Abilities(parameters=parameters, name="llama:tiny.gguf")

    model = Sized(lambda call: reply if call.task.form == "query" else True)
    session = bf.connect(model, cache=None, progress="off", show_values=show)
    session.from_pydict(CITIES, name="singers")
    return session


def test_a_query_without_rows_says_so_and_names_the_predicate() -> None:
    draft = session_of("SELECT name FROM singers WHERE city = 'Oslo'").ask("Who is from the north?")
    assert draft.problem == "the query gives no rows. No row meets city = 'Oslo'."
    assert draft.notes.startswith(f"Problem: {draft.problem}\n")


def test_a_query_that_exceeds_its_budget_says_so_before_it_is_run() -> None:
    session = session_of("SELECT name FROM singers WHERE llm_filter('Is it about trains?', bio)")
    draft = session.ask("Who sings about trains?", budget=bf.Budget(values=4))
    assert "Problem: a run is expected to take 5 values; the budget is 4." in str(draft)


def test_a_query_without_a_problem_has_none() -> None:
    draft = session_of("SELECT name FROM singers WHERE city = 'Rome'").ask("Who is from Rome?")
    assert (draft.problem, draft.caution, draft.doubts) == ("", "", [])


def test_a_problem_withholds_values() -> None:
    session = session_of("SELECT name FROM singers WHERE city = 'Oslo'", show="off")
    assert session.ask("Who is there?").problem == "the query gives no rows. No row meets city = …."


def test_a_small_model_is_no_author_to_rely_on() -> None:
    session = session_of("SELECT count(*) FROM singers", parameters=135_000_000)
    draft = session.ask("How many singers are there?")
    assert draft.caution.startswith(
        "Read the query before you rely on it: llama:tiny.gguf has 135 million weights"
    )
    assert draft.notes.startswith(draft.caution)
    reply = session.answer("How many singers are there?")
    assert str(reply).startswith(f"5\n\n{draft.caution}\n")
    assert draft.caution in str(session.chat().ask("How many singers are there?"))


def test_a_model_of_enough_weights_or_of_unknown_size_needs_no_caution() -> None:
    for parameters in (0, 1_500_000_000):
        session = session_of("SELECT count(*) FROM singers", parameters=parameters)
        assert session.ask("How many singers are there?").caution == ""


WRITTEN = """WITH annlee AS (SELECT * FROM singers)
SELECT s.name AS "Ann Lee", nullif(city, 'Paris') AS paris, count(*) AS city_count -- Ann Lee
FROM annlee AS s WHERE shoe > 4711 GROUP BY s.name, city ORDER BY paris LIMIT 12"""


def test_a_draft_withholds_values_in_literals_names_and_comments() -> None:
    draft = session_of(WRITTEN, show="off").ask("Who?")
    assert str(draft).startswith(
        "WITH … AS (SELECT * FROM singers)\n"
        "SELECT s.name AS …, nullif(city, …) AS …, count(*) AS city_count …\n"
        "FROM … AS s WHERE shoe > … GROUP BY s.name, city ORDER BY … LIMIT …\n"
    )
    assert draft.problem == "the query gives no rows. No row meets shoe > …."
    assert draft.sql == WRITTEN


def test_words_of_sql_are_no_values() -> None:
    query = "SELECT CAST(shoe AS REAL) AS name FROM singers ORDER BY shoe NULLS LAST"
    assert str(session_of(query, show="off").ask("Who?")).startswith(f"{query}\n")


def test_a_problem_withholds_the_name_of_a_column() -> None:
    session = session_of(
        "SELECT name, nullif(city, 'Nice') FROM singers WHERE city = 'Nice'", show="off"
    )
    assert session.ask("Who?").problem == (
        "the column nullif(singers.city,…(…)) is NULL in every row. Without city = … it has values."
    )


def test_redact_receives_what_a_draft_shows() -> None:
    model = bf.ScriptedModel(lambda call: WRITTEN)
    hide = lambda text: "[n]" if any(map(str.isdigit, text)) else text.swapcase()  # noqa: E731
    session = bf.connect(model, cache=None, progress="off", show_values="on", redact=hide)
    session.from_pydict(CITIES, name="singers")
    assert str(session.ask("Who?")).startswith(
        "WITH ANNLEE AS (SELECT * FROM singers)\n"
        "SELECT s.name AS \"aNN lEE\", nullif(city, 'pARIS') AS PARIS, count(*) AS city_count …\n"
        "FROM ANNLEE AS s WHERE shoe > [n] GROUP BY s.name, city ORDER BY PARIS LIMIT [n]\n"
    )


def test_the_command_withholds_values_if_it_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for show, shown in (("auto", "city = 'Rome'"), ("off", "city = …")):
        monkeypatch.setattr(
            "blendfusion.apps.cli.ask.session_of",
            lambda arguments, show=show: session_of(
                "SELECT name FROM singers WHERE city = 'Rome'", show=show
            ),
        )
        assert main(["ask", "Who?", "--show-values", show]) == 0
        assert f"SELECT name FROM singers WHERE {shown}\n" in capsys.readouterr().out


def drafting_ends(after: list[str], end: Exception | None = None, **more: Any) -> bf.Draft:
    """The draft where the model gives ``after`` in turn, and then fails by ``end``."""
    replies = iter(after)

    class Ending(bf.ScriptedModel):
        def answer(self, task: bf.Task, values: Any, *more: Any, **others: Any) -> Any:
            if end is not None and len(self.calls) == len(after):
                raise end
            return super().answer(task, values, *more, **others)

    model = Ending(lambda call: next(replies))
    session = bf.connect(model, cache=None, progress="off", show_values="on")
    session.from_pydict(CITIES, name="singers")
    return session.ask("Who is from the north?", **more)


def test_a_budget_that_ends_before_the_repair_leaves_the_draft() -> None:
    draft = drafting_ends(
        ["SELECT name FROM singers WHERE city = 'Oslo'"], budget=bf.Budget(values=1)
    )
    assert draft.sql == "SELECT name FROM singers WHERE city = 'Oslo'"
    assert draft.notes.startswith(
        "Problem: the query gives no rows. No row meets city = 'Oslo'.\n"
        "The budget ended the drafting (values=1): this is the best of 1 draft. "
        "Run it as it is, or ask again with a larger one.\n"
    )
    assert draft.run().num_rows == 0


def test_a_budget_that_ends_before_all_candidates_leaves_the_best() -> None:
    drafts = ["SELECT nam FROM singers", "SELECT name FROM singers"]
    draft = drafting_ends(drafts, budget=bf.Budget(values=2), candidates=3)
    assert draft.sql == drafts[1]
    assert draft.stopped.startswith(
        "The budget ended the drafting (values=2): this is the best of 2"
    )
    assert draft.run().num_rows == 5


def test_a_budget_that_ends_without_a_query_that_runs_is_an_error() -> None:
    with pytest.raises(bf.BudgetExceeded):
        drafting_ends(["SELECT nam FROM singers"], budget=bf.Budget(values=1))


def test_a_model_that_fails_in_the_repair_leaves_the_draft() -> None:
    failure = bf.ModelFailed("the server is gone")
    draft = drafting_ends(["SELECT name FROM singers WHERE city = 'Oslo'"], failure)
    assert draft.stopped == (
        "The model failed in the drafting ('the server is gone'): this is the best of 1 draft. "
        "Run it as it is, or ask again with one that answers."
    )
    with pytest.raises(bf.ModelFailed):
        drafting_ends([], failure)


def test_a_drafting_to_its_end_has_nothing_to_add() -> None:
    assert drafting_ends(["SELECT name FROM singers"], budget=bf.Budget(values=1)).stopped == ""


def test_hidden_drafts_are_shown_without_values_with_the_remedy() -> None:
    with pytest.raises(bf.QueryError) as raised:
        session_of("SELECT nothing FROM singers WHERE city = 'Oslo'", show="off").ask("Who?")
    assert (
        "for the question 'Who?'; tried:\nSELECT … FROM singers WHERE city = …\n"
        "Values are withheld here: show_values='on'" in raised.value.message
    )


def test_the_words_of_the_person_are_never_withheld() -> None:
    """Neither the question nor what the draft has of it; what it has of the tables is."""
    question = "Who of Rome wears nothing, and is from 'Oslo'?"
    sql = "SELECT nothing FROM singers WHERE city IN ('Rome', 'Paris', 'Oslo')"
    with pytest.raises(bf.QueryError) as raised:
        session_of(sql, show="off").ask(question)
    assert (
        f"for the question {question!r}; tried:\n"
        "SELECT nothing FROM singers WHERE city IN ('Rome', …, 'Oslo')\n" in raised.value.message
    )
    draft = session_of("SELECT name FROM singers WHERE city IN ('Rome', 'Nice')", show="off").ask(
        "Who is from Rome?"
    )
    assert "WHERE city IN ('Rome', …)" in str(draft)


def test_one_table_may_be_named_by_a_text() -> None:
    assert session_of("SELECT name FROM singers").ask("Who?", "singers").run().num_rows == 5


def test_the_packaged_model_is_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = head(weights_or_skip())
    assert found is not None
    assert 134_000_000 < found.count < 163_000_000  # the embeddings may be stored twice
    table = tmp_path / "t.csv"
    table.write_text("id,name\n1,Ann\n2,Bo\n")
    assert main(["ask", "How many are called Bo?", "--table", str(table), "--cache", "off"]) == 0
    assert (
        "million weights, and models of that size write few right queries"
        in capsys.readouterr().out
    )


def test_drafting_shows_that_it_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Line(Reporter):
        def name(self, work: str) -> None:
            shown.append(work)

    monkeypatch.setattr(draft, "progress", lambda mode: Line())
    session_of("SELECT name FROM singers WHERE city = 'Oslo'").ask("Who is there?")
    assert shown == ["drafting a query", "repairing the query"]
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    with ProgressLine(console, patience_seconds=0.0) as line:
        line.name("drafting a query")
    assert "drafting a query · 0 s" in console.file.getvalue()  # type: ignore[attr-defined]


def test_an_early_interruption_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("blendfusion.apps.cli.main.import_module", interrupted)
    assert main(["ask", "Who?"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


FILMS = {
    "title": ["A", "B", "C", "D"],
    "genre": ["Horror, Comedy", "Comedy", "Drama; Horror", "Western"],
    "place": ["Paris", "Paris in Texas", "Rome", "Rome"],
}
LISTS = (
    "films.genre has lists, and the query compares whole values. 1 value of films.genre is a list "
    "with 'Comedy', such as 'Horror, Comedy': genre ILIKE '%Comedy%' finds it."
)


@pytest.mark.parametrize(
    ("question", "query", "problem"),
    [
        ("Which?", "SELECT title FROM films WHERE genre = 'Comedy'", LISTS),
        ("Which?", "SELECT title FROM films f WHERE f.genre IN ('Western', 'Comedy')", LISTS),
        ("Which westerns?", "SELECT title FROM films WHERE genre = 'Western'", ""),
        ("Which?", "SELECT title FROM films WHERE genre ILIKE '%Comedy%'", ""),
        ("Which in Paris?", "SELECT title FROM films WHERE place = 'Paris'", ""),
    ],
)
def test_an_item_of_lists_is_no_whole_value(question: str, query: str, problem: str) -> None:
    model = bf.ScriptedModel(lambda call: query)
    session = bf.connect(model, cache=None, progress="off", show_values="on")
    session.from_pydict(FILMS, name="films")
    assert session.ask(question).problem == problem


def test_a_value_that_the_question_does_not_name_is_a_problem_to_read() -> None:
    """Not to repair: it may be what the question means by another word."""
    asked: list[bf.Request] = []
    query = "SELECT name FROM singers WHERE city = 'Rome'"

    def reply(call: bf.Request) -> str:
        asked.append(call)
        return query

    session = bf.connect(bf.ScriptedModel(reply), cache=None, progress="off", show_values="on")
    session.from_pydict(CITIES, name="singers")
    draft = session.ask("Who lives in the capital of Italy?")
    assert draft.problem == (
        "the question does not name 'Rome', with which the query compares city."
    )
    assert len(asked) == 1
    assert session.ask("Who lives in Rome?").problem == ""
    assert session.ask("Who lives in which city?").problem == draft.problem, "a column is no value"
    session.options = replace(session.options, show_values="off")
    assert session.ask("Who lives there?").problem == (
        "the question does not name …, with which the query compares city."
    )


def test_an_item_that_is_no_value_is_repaired_by_the_lists_that_have_it() -> None:
    seen: list[str | None] = []

    def reply(call: bf.Request) -> str:
        seen.append(call.values[-1])
        like = "SELECT title FROM films WHERE genre ILIKE '%Horror%'"
        return like if len(seen) > 1 else "SELECT title FROM films WHERE genre = 'Horror'"

    session = bf.connect(bf.ScriptedModel(reply), cache=None, progress="off", show_values="on")
    session.from_pydict(FILMS, name="films")
    draft = session.ask("Which are they?")
    assert draft.run().to_pydict() == {"title": ["A", "C"]}
    assert seen[1] is not None
    assert seen[1].endswith(
        "2 values of films.genre are lists with 'Horror', such as 'Drama; Horror': "
        "genre ILIKE '%Horror%' finds them."
    )
