"""Queries in other dialects: what they become in our SQL, and where errors point."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import pyarrow as pa
import pydantic
import pytest
from golden import FOLDER, cases, check, pages
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import edit, identity, place
from blendfusion.prepare.translators import dialect_names
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.dispatch import DIALECTS, dialect_of
from blendfusion.udfs.register.user_functions import _defined

SHOPS = pa.table(
    {
        "id": [1],
        "name": ["a"],
        "place": ["Oslo"],
        "note": ["old"],
        "floor space": ["large"],
        "stars": [3],
        "best": ["2:13.32"],
        "price": ["cheap"],
        "reviews": [["calm"]],
        "menu": [["thai"]],
        "cuisines": [["cafe"]],
    }
)
DOCUMENTS = pa.table({"title": ["a"], "content": ["b"]})


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: None), progress="off", cache=None)
    made.from_arrow(SHOPS, name="shops")
    made.from_arrow(DOCUMENTS, name="documents")
    made.register_enum("shops", "cuisines", "price")
    return made


@pytest.fixture(autouse=True)
def shout() -> object:
    @bf.ingredient(name="shout")
    def made(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
        return text

    yield made
    del _defined["shout"]


@pytest.mark.parametrize("dialect", ["blendsql", "suql", "mysql"])
def test_what_a_query_is_in_our_sql(dialect: str, session: bf.Session, update_golden: bool) -> None:
    page = FOLDER / "dialects" / f"{dialect}.txt"
    check(page, lambda text: session.translated(text, dialect), update=update_golden)


def test_what_is_refused_has_a_place_and_a_remedy(session: bf.Session, update_golden: bool) -> None:
    def comes_out(text: str) -> str:
        try:
            session.sql(text, dialect="blendsql", param_values=[1] if "?" in text.split() else None)
        except bf.BlendFusionError as error:
            return f"{type(error).__name__}: {error}"
        return "no error"

    check(FOLDER / "dialects" / "refused.txt", comes_out, update=update_golden)


# --- which dialect it is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT {{LLMMap('q', x)}} FROM t", "blendsql"),
        ("SELECT '{{x}}' FROM t", "sql"),
        ('SELECT "{{x}}" FROM t', "sql"),
        ("SELECT 1 -- {{x}}", "sql"),
        ("SELECT 1 /* {{x}} */", "sql"),
        ("SELECT {'a': {'b': 1}}", "sql"),
        ("SELECT answer(x, 'q') FROM t", "sql"),
        ("SELECT 'a", "sql"),
    ],
)
def test_braces_outside_of_quotes_are_blendsql(text: str, dialect: str) -> None:
    assert dialect_of(text) == dialect


def test_a_dialect_that_is_none_is_explained(session: bf.Session) -> None:
    with pytest.raises(bf.OptionError, match=r"dialect='oracle' is not possible\nHint: Choose one"):
        session.sql("SELECT 1", dialect="oracle")


def test_the_dialect_that_is_named_counts(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="SQL syntax"):
        session.sql("SELECT {{LLMMap('q', note)}} FROM shops", dialect="sql")
    assert session.sql("SELECT {{LLMMap('q', note)}} AS x FROM shops").schema().names == ["x"]


# --- text that has no form of a dialect ----------------------------------------------------------


OURS = [
    c.given for folder in ("queries", "plans", "found") for p in pages(folder) for c in cases(p)
]
TPCH = sorted((FOLDER.parent / "support" / "tpch").glob("*.sql"))


@pytest.mark.parametrize("text", [*OURS, *(path.read_text("utf-8") for path in TPCH)])
def test_a_query_of_ours_is_the_same_in_blendsql(text: str, session: bf.Session) -> None:
    assert session.translated(text, "blendsql") == text


WORDS = [
    *("SELECT", "FROM", "WHERE", "t", "a.b", '"C d"', "'it''s {{x}}'", "(", ")", ",", "=", "||"),
    *("AND", "OR", "NOT", "[1, 2]", "{", "}", "::int", "-- {{x}}\n", "/* ? */", "1.5", "\n", "  "),
    *("UNION ALL", "ORDER BY", "rank", "LIMIT 3", "é🎉", "$1", "JOIN", "ON", "IN", "VALUES", ";"),
]


def test_a_service_declares_the_names_of_its_dialects() -> None:
    assert dialect_names() == ("sql", *DIALECTS)


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_text_without_a_form_stays_byte_for_byte(text: str) -> None:
    first = Reader(text).tokens
    if first and (first[0].text.upper() in ("NOT", "EXISTS", "CASE") or first[0].text == "("):
        return  # an expression alone becomes a query
    assert DIALECTS["blendsql"](text, SessionFacts()).sql == text


@given(st.text(max_size=40))
def test_any_text_is_translated_or_refused(text: str) -> None:
    for translate in DIALECTS.values():
        for query in (text, f"SELECT {{{{LLMMap('q', {text})}}}}", f"SELECT answer(x, 'q') {text}"):
            try:
                span = translate(query, SessionFacts()).origin(0, 1)
            except bf.QueryError as problem:
                span = problem.span or (-1, -1)
            assert 0 <= span[0] <= span[1] <= len(query)


# --- the way back --------------------------------------------------------------------------------

PARTS = [
    "SELECT é.a, '🎉' AS b ",
    "{{LLMMap('Is it {}?', w.x)}}",
    " , ",
    "{{LLMQA('q', (SELECT name FROM u WHERE n = 3 ORDER BY m DESC))}}",
    " AND EXISTS (SELECT 1 FROM v) ",
    "\n  OR group_concat(z) = 'y' ",
    "{{LLMMap('p', {{LLMMap('o', k)}}, options='a;b')}}",
]


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("".join))
def test_every_character_comes_from_somewhere(text: str) -> None:
    try:
        done = DIALECTS["blendsql"](text, SessionFacts())
    except bf.QueryError:
        return
    for at, character in enumerate(done.sql):
        start, end = done.origin(at, at + 1)
        assert 0 <= start <= end <= len(text)
        if end == start + 1 and text[start] == character:
            continue  # copied
        assert start <= len(text)
    for piece in done.pieces:
        if piece.copied:
            assert text[piece.start : piece.end] == piece.text
    assert done.sql.count("\n") >= text.count("\n")  # lines keep their numbers


def test_names_point_to_where_they_were_written() -> None:
    text = "SELECT id, {{LLMMap('q', first, second)}} FROM t WHERE third = 1"
    done = DIALECTS["blendsql"](text, SessionFacts())
    for name in ("id", "'q'", "first", "second", "third"):
        at = done.sql.index(name)
        start, end = done.origin(at, at + len(name))
        assert text[start:end] == name
    at = done.sql.index("llm_map")
    start, end = done.origin(at, at + 7)
    assert text[start:end] == "{{LLMMap('q', first, second)}}"


def test_edits_one_after_the_other() -> None:
    first = edit("abc def", [(0, 3, "x"), (7, 7, "!")])
    both = first.then(edit(first.sql, [(2, 4, "yyy")]))
    assert (first.sql, both.sql) == ("x def!", "x yyyf!")
    assert [both.origin(i, i + 1) for i in range(len(both.sql))] == [
        (0, 3),
        (3, 4),
        (4, 6),
        (4, 6),
        (4, 6),
        (6, 7),
        (7, 7),
    ]
    assert identity("ab").then(edit("ab", [])).sql == "ab"
    assert identity("").sql == ""


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0, "line 1, column 1"),
        (3, "line 1, column 4"),
        (4, "line 2, column 1"),
        (6, "line 3, column 1"),
    ],
)
def test_places_are_counted_as_people_count(at: int, said: str) -> None:
    assert place("é🎉c\nd\ne", at) == said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT id,\n answer(nothing, 'q') FROM shops",
            "line 2, column 9: unknown column 'nothing'",
        ),
        (
            "SELECT id FROM shop WHERE answer(a, 'q') = 'Yes'",
            "line 1, column 16: unknown table 'shop'",
        ),
        ("SELECT foo(id) FROM shops", "line 1, column 8: unknown function 'foo'"),
        ("SELECT answer(id, '') FROM shops", "line 1, column 8: llm_map: the question is empty"),
        ("SELECT id\nFROM shops\nWHERE ==", "SQL syntax on line 3: .*\nHint: See 'WHERE =='"),
    ],
)
def test_errors_point_into_the_text_of_the_user(
    text: str, message: str, session: bf.Session
) -> None:
    with pytest.raises(bf.QueryError, match=message):
        session.sql(text, dialect="suql")


# --- parameters, settings, files -----------------------------------------------------------------


def test_values_of_question_marks(session: bf.Session) -> None:
    text = (
        "SELECT {{LLMMap(?, note, options=?)}} FROM shops WHERE id IN ? AND name = ? AND ? IS NULL"
    )
    values = ["What's it?", ["a", "b"], [1, 2], "a?", None]
    assert session.translated(text, param_values=values) == (
        "SELECT llm_map('What''s it?', note, options => ('a', 'b')) "
        """AS "LLMMap('What''s it?', note, options=('a', 'b'))" """
        "FROM shops WHERE id IN (1, 2) AND name = 'a?' AND NULL IS NULL"
    )
    assert session.sql(text, param_values=values).to_pylist() == []


def test_values_are_nothing_but_values(session: bf.Session) -> None:
    text = "SELECT {{LLMQA('q', ?)}}, {{LLMMap('p', note, options=?)}} FROM shops"
    values = ["shops::note {{x}} ' --", ["shops::note", "b"]]
    ours = session.translated(text, param_values=values)
    assert "(VALUES ('shops::note {{x}} '' --')) AS given(context)" in ours
    assert "options => ('shops::note', 'b')" in ours
    assert session.translated("{{LLMQA('q', ?)}}", param_values=["shops::note"]).count("FROM") == 1


def test_values_by_name_and_in_order_of_ours(session: bf.Session) -> None:
    named = session.sql(
        "SELECT {{LLMMap($q, note)}} AS x FROM shops WHERE id = $id",
        param_values={"q": "?", "id": 2},
    )
    assert named.to_pylist() == []
    assert session.sql("SELECT id FROM shops WHERE id = $1", param_values=[1]).to_pydict() == {
        "id": [1]
    }
    suql = session.sql(
        "SELECT answer(note, $1) FROM shops WHERE id = $2", dialect="suql", param_values=["q", 2]
    )
    assert suql.to_pylist() == []


def test_a_schema_as_a_value_gives_its_fields() -> None:
    class Shop(pydantic.BaseModel):
        town: str
        opened: datetime.date | None = None
        kinds: list[str]

    answers = bf.ScriptedModel(
        lambda call: {"town": call.values[0], "opened": "2001-02-03", "kinds": [call.question]}
    )
    session = bf.connect(answers, cache=None)
    notes = ["Oslo, since 3 February 2001", "Rome, since 3 February 2001"]
    session.from_pydict({"note": notes[::-1]}, name="shops")
    text = "SELECT {{LLMMap('Which shop?', note, return_type=?)}} AS shop FROM shops ORDER BY note"
    rows = session.sql(text, param_values=[Shop.model_json_schema()]).to_pylist()
    opened = datetime.date(2001, 2, 3)
    assert [row["shop"] for row in rows] == [
        {"town": town, "opened": opened, "kinds": ["Which shop?"]} for town in notes
    ]
    whole = "{{LLMQA('Which?', (SELECT note FROM shops ORDER BY note), return_type=?)}} AS shop"
    found = session.sql(whole, param_values=[Shop.model_json_schema()]).to_pylist()
    assert found[0]["shop"]["town"] == "; ".join(notes)
    with pytest.raises(bf.ArgumentError, match=r"line 1, column 8: .* is no type that it can have"):
        session.sql(text, param_values=[{"type": "object"}])


def test_explain_speaks_dialects(session: bf.Session) -> None:
    text = session.sql("EXPLAIN SELECT {{LLMMap('q', note)}} FROM shops").to_pydict()["plan"]
    assert any("llm_map('q', shops.note)" in line for line in text)


def test_a_view_in_a_dialect(session: bf.Session) -> None:
    session.sql("CREATE VIEW v AS SELECT {{LLMMap('q', note, return_type='int')}} AS n FROM shops")
    assert [str(t) for t in session.table("v").schema().types] == ["int64"]


def test_an_enum_of_what_is_not_there(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match=r"unknown column 'cuisine' of 'shops'\nHint: Did you"):
        session.register_enum("shops", "cuisine")
    with pytest.raises(bf.QueryError, match="unknown table 'shop'"):
        session.register_enum("shop", "cuisines")


def test_read_only_holds_in_dialects(session: bf.Session) -> None:
    for text in (
        "DROP TABLE shops",
        "INSERT INTO documents SELECT {{LLMMap('q', note)}}, 'x' FROM shops",
    ):
        with pytest.raises(bf.QueryError):
            session.sql(text, dialect="blendsql", read_only=True)
    assert session.sql("SELECT count(*) AS n FROM shops").to_pydict() == {"n": [1]}


def test_the_command_speaks_dialects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = bf.ScriptedModel(
        lambda call: call.values[0] == "apple" if call.constraint.kind == "boolean" else []
    )
    connect = bf.connect
    monkeypatch.setattr(bf, "connect", lambda model=None, **options: connect(scripted, **options))
    scripted = model
    path = tmp_path / "fruits.json"
    rows = [{"name": "apple", "kinds": ["red"]}, {"name": "pear", "kinds": ["green"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    common = ["--table", f"fruits={path}", "--format", "csv"]
    assert (
        main(["query", "SELECT name FROM fruits WHERE {{LLMMap('Is it red?', name)}}", *common])
        == 0
    )
    assert capsys.readouterr().out.split() == ['"name"', '"apple"']
    suql = "SELECT name FROM fruits WHERE answer(name, 'is it red?') = 'Yes' AND 'red' = ANY(kinds)"
    assert main(["query", suql, *common, "--dialect", "suql", "--enum", "fruits.kinds"]) == 0
    assert capsys.readouterr().out.split() == ['"name"', '"apple"']
    assert main(["query", suql, *common, "--dialect", "suql", "--enum", "kinds"]) == 2
    assert "--enum 'kinds' names no column" in capsys.readouterr().err
    assert main(["query", "SELECT {{Nope(name)}} FROM fruits", *common]) == 2
    assert re.search(r"error: line 1, column 10: unknown function 'Nope'", capsys.readouterr().err)


@pytest.mark.parametrize("dialect", ["blendsql", "suql"])
@pytest.mark.parametrize("query", ["DROP TABLE shops", "-- why?\ndelete FROM shops"])
def test_queries_of_the_papers_only_read(dialect: str, query: str, session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="queries only read"):
        session.sql(query, dialect=dialect)
