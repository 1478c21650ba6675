"""Forms and functions of other systems: the error says what to write here, and that plans."""

from __future__ import annotations

import re
import warnings

import pytest

import blendfusion as bf
from blendfusion.services.dialects import other_systems

ASKS = "llm_filter('Is it broken?', text)"


@pytest.fixture(scope="module")
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.sql(
        "CREATE TABLE t AS SELECT 'a' AS text, 3 AS number, DATE '2024-02-29' AS day, "
        "['x'] AS texts, DATE '2024-01-01' AS early, DATE '2024-02-01' AS late, now() AS moment, "
        "{'name': 'Ann'} AS info, 1 AS \"Unit Price\""
    )
    session.sql("CREATE TABLE u AS SELECT 'a' AS text, 1 AS id")
    return session


def refused(session: bf.Session, query: str) -> bf.QueryError:
    with pytest.raises(bf.QueryError) as raised:
        session.sql(query).to_arrow_table()
    return raised.value


@pytest.mark.parametrize("names", other_systems._FUNCTIONS)
def test_a_function_of_another_system_has_a_form_here(session: bf.Session, names: str) -> None:
    for name in names.split():
        error = refused(session, f"SELECT {name}('a') FROM t")
        assert error.message == f"unknown function '{name}'"
        written = re.fullmatch(r"Write (.+)\.", error.hint or "")
        assert written is not None, error.hint
        form = re.split(r", (?:or|which) ", written[1])[0]
        if form.startswith("SELECT"):
            query = form
        elif "'%d" in form:
            query = f"SELECT {form.replace('text', repr('01/02/2024 10:00'), 1)}"
            query = query.replace(" 10:00'", "'", 1) if "%H" not in form else query
        else:
            query = f"SELECT {form} FROM t"
        assert session.sql(query).to_arrow_table().num_rows == 1


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("max_by(text, number)", "b"),
        ("arg_max(text, number)", "b"),
        ("min_by(text, number)", "a"),
        ("list(text)", ["a", "b", None, None, None]),
        ("collect_list(text)", ["a", "b"]),
        ("collect_set(number)", [1, 4]),
        ("group_concat(text)", "a, b"),
        ("mode(text)", "a"),
        ("count_if(number > 1)", 1),
        ("every(number > 1)", False),
        ("variance(number)", 4.5),
    ],
)
def test_a_remedy_means_the_same_beside_null(call: str, result: object) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    texts = ["a", "b", None, None, None]
    session.from_pydict({"text": texts, "number": [1, 4, None, None, None]}, name="t")
    written = re.fullmatch(r"Write (.+)\.", refused(session, f"SELECT {call} FROM t").hint or "")
    assert written is not None
    form = written[1] if written[1].startswith("SELECT") else f"SELECT {written[1]} FROM t"
    table = session.sql(form.replace("DESC LIMIT", "DESC, 1 LIMIT")).to_arrow_table()
    (found,) = table[0].to_pylist()
    assert (sorted(found) if call.startswith("collect_set") else found) == result


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("t ANTI JOIN u ON t.text = u.text", "there is no ANTI JOIN", "LEFT ANTI JOIN"),
        ("t SEMI JOIN u USING (text)", "there is no SEMI JOIN", "LEFT SEMI JOIN"),
        ("t FETCH FIRST 5 ROWS ONLY", "there is no FETCH", "LIMIT 5"),
        ("t WHERE text RLIKE 'a'", "there is no RLIKE", "~"),
        ("t WHERE text LIKE ANY ('a')", "there is no LIKE ANY", "regexp_like"),
        ("t WHERE number > 1 && number < 5", "there is no &&", "AND"),
        ("t WHERE text->>'a' = 'x'", "there is no ->>", "register_file"),
        ("t UNPIVOT (v FOR n IN (number))", "there is no UNPIVOT", "UNION ALL"),
        (
            "t, LATERAL (SELECT id FROM u WHERE u.text = t.text ORDER BY id LIMIT 1) x",
            "refers to a table beside it",
            "QUALIFY",
        ),
        (
            f"t WHERE (SELECT id FROM u WHERE u.text = t.text AND {ASKS} LIMIT 1) = 1",
            "refers to a table beside it",
            "QUALIFY",
        ),
        (f"t WHERE {ASKS} = 'yes'", "Boolean = Utf8", "write it alone"),
        (f"t WHERE {ASKS} = 1", "Boolean = Int64", "write it alone"),
    ],
)
def test_a_form_that_is_missing_has_a_remedy(
    session: bf.Session, query: str, message: str, hint: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning that planning is off would mislead
        error = refused(session, f"SELECT t.text FROM {query}")
    assert message in error.message
    assert hint in (error.hint or "")
    assert not re.search(r"Span|Ident|Column \{", str(error))
    if "->>" not in query and "LIMIT 1" not in query:  # found when the query runs
        assert error.span is not None


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT unit_price FROM t", 'Did you mean "Unit Price", in double quotes?'),
        ("SELECT number * 2 AS double FROM t WHERE double > 3", "double is a name of SELECT"),
        ("SELECT count(*) n FROM t WHERE n > 3", "n is a name of SELECT"),
        ("SELECT info['nme'] FROM t", "DESCRIBE"),
        ("SELECT day + INTERVAL '1 day' * number FROM t", "added as it is: day + llm_int"),
    ],
)
def test_a_mistake_has_a_remedy(session: bf.Session, query: str, hint: str) -> None:
    assert hint in (refused(session, query).hint or "")


def test_a_question_behind_its_columns_is_told_apart_from_a_column(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="The question comes first"):
        session.table("t").filter(bf.llm_filter("text", "Is it broken?"))


OWN = {"day": "paid", "early": "t2.paid", "late": '"Due Date"', "text": "title", "number": "price"}
OWN |= {"unit": "day", "moment": "paid", "'%Y-%m'": "'%m/%y'", "'%d/%m/%Y'": "'%d.%m.%Y'"}


@pytest.mark.parametrize("names", other_systems._PARAMETERS)
def test_a_remedy_has_the_arguments_of_the_call(session: bf.Session, names: str) -> None:
    session.sql(
        "CREATE TABLE IF NOT EXISTS t2 AS SELECT 'a' AS title, 3 AS price, "
        "DATE '2024-02-29' AS paid, DATE '2024-03-01' AS \"Due Date\""
    )
    for form in other_systems._PARAMETERS[names]:
        given = [OWN[word] for word in form.split()]
        for name in names.split():
            error = refused(session, f"SELECT {name}({', '.join(given)}) FROM t2")
            found = re.fullmatch(r"Write (.+?)(?:, which .+)?\.", error.hint or "")
            assert found is not None, error.hint
            for one in found[1].split(", or "):
                session.sql(f"SELECT {one} FROM t2")
                assert all(part in one for part in given if part != "day"), one


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("UPDATE t SET number = u.id FROM u", "there is no UPDATE … FROM", "SELECT max(s.n)"),
        (
            "DELETE FROM t USING u WHERE t.text = u.text",
            "there is no DELETE … USING",
            "WHERE id IN",
        ),
        ("UPDATE t SET number = 1 LIMIT 1", "there is no LIMIT here", "WHERE id IN"),
        (
            "MERGE INTO t USING u ON t.number = u.id WHEN MATCHED THEN UPDATE SET number = 1",
            "there is no MERGE",
            "INSERT INTO t SELECT",
        ),
        ("TRUNCATE t", "there is no TRUNCATE", "DELETE FROM t"),
        ("TRUNCATE TABLE t", "there is no TRUNCATE", "DELETE FROM t"),
        ("UPDATE t SET number = 1 RETURNING text", "there is no RETURNING", "a SELECT"),
        (
            "WITH a AS (SELECT 1 AS i) UPDATE t SET number = 2 WHERE number IN (SELECT i FROM a)",
            "there is no WITH before UPDATE",
            "in its place",
        ),
        (
            "WITH a AS (SELECT 1 AS i) DELETE FROM t WHERE number IN (SELECT i FROM a)",
            "there is no WITH before DELETE",
            "in its place",
        ),
        ("BEGIN", "there are no transactions", "by itself"),
        ("COMMIT", "there are no transactions", "by itself"),
        ("ROLLBACK", "there are no transactions", "by itself"),
        ("CREATE INDEX i ON t (number)", "there are no indexes of columns", "a scan"),
        ("CREATE TEMP TABLE a AS SELECT 1 AS b", "there are no temporary tables", "CREATE TABLE"),
        ("GRANT ALL ON t TO x", "there is no GRANT", "SET name"),
        ("PRAGMA x", "there is no PRAGMA", "SET name"),
        ("VACUUM t", "there is no VACUUM", "SET name"),
        ("RENAME TABLE t TO v", "tables keep their names", "DROP TABLE a"),
    ],
)
def test_changes_of_rows(session: bf.Session, statement: str, message: str, hint: str) -> None:
    error = refused(session, statement)
    assert error.message == message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES {} ON CONFLICT DO NOTHING",
        "INSERT OR REPLACE INTO t VALUES {}",
        "REPLACE INTO t VALUES {}",
    ],
)
def test_rows_of_a_key(session: bf.Session, statement: str) -> None:
    row = "SELECT * FROM t"
    error = refused(session, statement.replace("VALUES {}", row))
    assert error.message.startswith("there is no INSERT that replaces rows")
    assert "DELETE FROM t" in (error.hint or "")


def test_a_pattern_of_dates_stands_on_either_side(session: bf.Session) -> None:
    for arguments in ("day, '%Y'", "'%Y', day"):
        error = refused(session, f"SELECT strftime({arguments}) FROM t")
        assert error.hint == "Write to_char(day, '%Y')."
