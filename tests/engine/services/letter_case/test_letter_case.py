"""Names in another letter case than a table has them, where DataFusion alone finds none."""

from __future__ import annotations

import pytest

import blendfusion as bf


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: call.values[0].startswith("A"))


@pytest.fixture
def session(model: bf.ScriptedModel) -> bf.Session:
    made = bf.connect(model, cache=None, progress="off")
    made.from_pydict(
        {"Name": ["Ada", "Bob"], "Birth Year": [1815, 1920], "id": [1, 2]}, name="People"
    )
    made.from_pydict({"person": [1, 2], "Date": ["x", "y"], "name": ["p", "q"]}, name="visits")
    return made


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT Name FROM People", [("Ada",), ("Bob",)]),
        ("SELECT name FROM people", [("Ada",), ("Bob",)]),
        ('SELECT "NAME", "birth year" FROM PEOPLE WHERE ID = 2', [("Bob", 1920)]),
        ("SELECT p.NAME FROM People p WHERE llm_filter('A?', p.Name)", [("Ada",)]),
        ("SELECT p.Name, v.Date FROM People AS p JOIN Visits v ON p.ID = v.Person AND v.date = 'y'", [("Bob", "y")]),
        ("SELECT v.name, p.name FROM people p JOIN visits v ON p.id = v.person", [("p", "Ada"), ("q", "Bob")]),
        ("SELECT id FROM People ORDER BY people.NAME DESC LIMIT 1", [(2,)]),
        ('SELECT p.id FROM people p ORDER BY upper(p."NAME") DESC LIMIT 1', [(2,)]),
        ("SELECT v.person FROM visits v ORDER BY v.DATE DESC LIMIT 1", [(2,)]),
        (
            "SELECT t.name FROM People t WHERE t.id = 1 UNION ALL SELECT t.date FROM visits t WHERE t.person = 2",
            [("Ada",), ("y",)],
        ),
        ("WITH old AS (SELECT Name AS n FROM People) SELECT N FROM old", [("Ada",), ("Bob",)]),
        ("SELECT upper(Name) AS Loud FROM People ORDER BY loud DESC", [("BOB",), ("ADA",)]),
        ("SELECT count(*) FROM People WHERE Name = 'Name'", [(0,)]),
        ("SELECT CAST(\"Birth Year\" AS TEXT) FROM people WHERE DATE '2024-01-01' > DATE '2023-01-01' LIMIT 1", [("1815",)]),
    ],
)  # fmt: skip
def test_a_name_is_found_in_any_case(query: str, rows: list[tuple[object, ...]], session: bf.Session) -> None:  # fmt: skip
    found = [tuple(row.values()) for row in session.sql(query).to_arrow_table().to_pylist()]
    assert sorted(map(str, found)) == sorted(map(str, rows))


def test_a_field_of_a_column_in_other_letters(session: bf.Session) -> None:
    session.from_pydict({"id": [1], "Maker": [{"of": {"name": "Lys"}}]}, name="shoes")
    for column in ("s.maker.of.name", "s.MAKER.of.name", "maker.of.name"):
        query = f"SELECT {column} AS v FROM shoes s WHERE S.ID = 1"
        assert session.sql(query).to_pylist() == [{"v": "Lys"}]


def test_the_dialects_find_them_too(session: bf.Session, model: bf.ScriptedModel) -> None:
    query = "SELECT Name FROM People WHERE {{LLMMap('A?', Name)}} AND ID = 1"
    assert session.sql(query).to_pylist() == [{"Name": "Ada"}]
    assert [call.values for call in model.calls] == [("Ada",)]
    query = "SELECT p.Name FROM People p WHERE answer(p.name, 'A?') = 'Yes'"
    assert session.sql(query, dialect="suql").to_pylist() == [{"Name": "Ada"}]


def test_what_datafusion_finds_by_itself_is_what_it_finds(session: bf.Session) -> None:
    session.from_pydict({"a": [1], "A": [2]}, name="both")
    assert session.sql("SELECT a FROM both").to_pylist() == [{"a": 1}]
    assert session.sql('SELECT "A" FROM both').to_pylist() == [{"A": 2}]


def test_two_names_that_are_equal_but_for_case_are_an_error(session: bf.Session) -> None:
    session.from_pydict({"Aa": [1], "aA": [2]}, name="both")
    with pytest.raises(bf.QueryError, match='line 1, column 8: \'aa\' may be "Aa" or "aA"'):
        session.sql("SELECT aa FROM both")


def test_an_unknown_name_stays_unknown(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="unknown column 'nothing'"):
        session.sql("SELECT Nothing FROM People")
    with pytest.raises(bf.QueryError, match="unknown"):
        session.sql("SELECT x FROM Nobody")
    with pytest.raises(bf.QueryError, match=r"unknown column 'p.nothing'"):
        session.sql("SELECT p.id FROM People p ORDER BY p.Nothing")


def test_a_session_may_keep_datafusions_way(session: bf.Session) -> None:
    session.sql("SET blendfusion.names_in_any_case = false")
    with pytest.raises(bf.QueryError, match="unknown"):
        session.sql("SELECT name FROM people")


def test_translations_keep_the_letters_that_datafusion_keeps() -> None:
    model = bf.ScriptedModel(lambda call: (call.constraint.options or ("?",))[0])
    session = bf.connect(model, cache=None)
    session.sql("SET datafusion.sql_parser.enable_ident_normalization = false")
    session.from_pydict({"Name": ["a", "b"], "name": ["c", "d"], "id": [1, 2]}, name="t")
    for sql, options in (
        ("SELECT id FROM t WHERE Name = {{LLMMap('q', id)}}", "ab"),
        ("SELECT id FROM t WHERE t.name = {{LLMMap('q', id)}}", "cd"),
        ("SELECT {{LLMMap('r', id, options=t.Name)}} FROM t", "ab"),
        ("SELECT {{LLMMap('r', id, options=t.name)}} FROM t", "cd"),
    ):
        model.calls.clear()
        session.sql(sql).collect()
        assert {call.constraint.options for call in model.calls} == {tuple(options)}, sql
    for sql, values in (
        ("{{LLMQA('Who is {}?', t.Name)}}", "a"),
        ("{{LLMQA('Who?', t.Name)}}", "ab"),
    ):
        model.calls.clear()
        session.sql(f"SELECT {sql}").collect()
        assert all(value in str(model.calls[0].values) for value in values), sql


@pytest.mark.parametrize(
    "query",
    [
        "SELECT Orchestra FROM orchestra",
        "SELECT ORCHESTRA FROM ORCHESTRA WHERE orchestra = 'Vienna'",
        "SELECT o.Orchestra FROM orchestra o",
        "SELECT orchestra FROM orchestra WHERE Orchestra_ID IN (SELECT orchestra_id FROM orchestra)",
    ],
)
def test_a_column_may_have_the_name_of_its_table(query: str, model: bf.ScriptedModel) -> None:
    with bf.connect(model, cache=None) as session:
        session.from_pydict({"Orchestra": ["Vienna"], "Orchestra_ID": [1]}, name="orchestra")
        assert session.sql(query).to_pylist() == [{"Orchestra": "Vienna"}]


def test_the_error_is_that_of_the_names_that_were_meant(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="sum does not take"):
        session.sql("SELECT sum(Name) FROM People").collect()
