"""Texts in every place of a query and its tables: a result that holds them as they are, or an error
of ours."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable

import pyarrow as pa
import pytest
from datafusion import col
from hostile import HOSTILE, LONG, SURROGATES
from scripts import Counted, hashed

import blendfusion as bf
from blendfusion.models.stores.sqlite import SqliteStore

TEXTS = [*HOSTILE, *LONG]
SEEN = [text for text in TEXTS if text.strip()]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def shown(error: BaseException) -> str:
    """The message of an error, which a terminal may show."""
    text = str(error)
    assert not [
        c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"
    ]
    return text


def run(ask: Callable[[], object]) -> object:
    """The result, or the words of one of our errors; warnings are as clean as errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return ask()
        except bf.BlendFusionError as error:
            return shown(error)
        finally:
            for warning in caught:
                assert issubclass(warning.category, bf.AnswerWarning)
                assert isinstance(warning.message, Warning)
                shown(warning.message)


@pytest.fixture
def db() -> Counted:
    return Counted(hashed, show_values="on").add("t", {"id": [1, 2], "x": ["pear", "plum"]})


def test_values_are_asked_and_given_back_as_they_are() -> None:
    db = Counted(lambda call: call.values[0])
    db.add("t", {"id": list(range(len(TEXTS))), "x": TEXTS})
    rows = db.rows("SELECT x, llm_text('What is it?', x) FROM t ORDER BY id")
    assert rows == [(text, text if text.strip() else None) for text in TEXTS]
    assert {call.values for call in db.model.calls} == {(text,) for text in SEEN}
    assert {call.question for call in db.model.calls} == {"What is it?"}


def test_rows_of_a_group_are_asked_as_they_are() -> None:
    db = Counted(lambda call: len(call.values)).add("t", {"x": [*HOSTILE]})
    db.rows("SELECT llm_qa('How many?', x, returns => 'int' ORDER BY x) FROM t")
    asked = {
        value for call in db.model.calls if "Note" not in call.question for value in call.values
    }
    assert asked == {text for text in HOSTILE if text.strip()}


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_that_are_no_text_are_an_error_or_text(kind: pa.DataType) -> None:
    blobs = [b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\x00", b"fine", None]
    db = Counted(hashed).add("t", pa.table({"x": pa.array(blobs, kind)}))
    for query in ("SELECT llm_filter('q', x) FROM t", "SELECT llm_qa('q', x) FROM t"):
        run(lambda query=query: db.rows(query))
    assert all(isinstance(v, str) for call in db.model.calls for v in call.values)


def test_an_expression_with_a_nul_byte_is_planned(db: Counted) -> None:
    quoted = literal("a\x00b")
    for sql in (
        f"SELECT id FROM t WHERE id = 1 AND llm_map({quoted}, x) = {quoted}",
        f"SELECT llm_text('q', x || {quoted}) AS y, {quoted} AS z FROM t WHERE id = 1",
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", bf.PlanWarning)
            db.session.sql(sql).to_arrow_table()
    assert [call.values for call in db.model.calls] == [("pear",), ("peara\x00b",)]


@pytest.mark.long
@pytest.mark.parametrize("text", [*SEEN, *SURROGATES], ids=lambda text: ascii(text[:20]))
def test_in_every_place_of_a_query(db: Counted, text: str) -> None:
    quoted = literal(text)
    session = db.session
    questions = []
    for sql in (
        f"SELECT llm_filter({quoted}, x) FROM t",
        f"SELECT id FROM t WHERE llm_map({quoted}, x) = {quoted}",
        f"SELECT llm_classify(x, [{quoted}, 'b'], question => {quoted}) AS c FROM t GROUP BY c",
        f"SELECT llm_map('q', x, options => (SELECT {quoted} UNION ALL SELECT x FROM t)) FROM t",
        f"SELECT llm_map('q', x, returns => {quoted}) FROM t",
        f"SELECT llm_map('q', x, on_error => {quoted}) FROM t",
        f"SELECT llm_filter('q', x, examples => [[{quoted}, 'true']]) FROM t",
        f"SELECT {quoted} AS y, llm_text('q', {name(text)}) FROM (SELECT x AS {name(text)} FROM t)",
        f"SELECT llm_text('{{}} q', x) AS {name(text)} FROM t ORDER BY {name(text)}",
        f"SELECT * FROM {name(text)} WHERE llm_filter('q', x)",
        f"EXPLAIN SELECT llm_map({quoted}, x) FROM t WHERE x <> {quoted}",
        f"SELECT llm_map('q', x, {text}) FROM t",
        text,
    ):
        if len(text) > 1_000 and "returns" in sql:
            continue
        db.model.calls.clear()
        result = run(lambda sql=sql: session.sql(sql, read_only=True).to_arrow_table())
        assert isinstance(result, pa.Table | str)
        questions += [call.question for call in db.model.calls if call.question != "q"]
        if isinstance(result, pa.Table) and sql.startswith("EXPLAIN"):
            shown(ValueError("\n".join(result.column(0).to_pylist())))
    asked = run(
        lambda: session.sql("SELECT llm_text($q, x) FROM t", param_values={"q": text}).collect()
    )
    if not isinstance(asked, str):
        assert db.model.calls[-1].question == text
    assert session.catalog().schema().names() == {"t"}


@pytest.mark.parametrize("text", [*SEEN, *SURROGATES], ids=lambda text: ascii(text[:20]))
def test_in_expressions_of_frames(db: Counted, text: str) -> None:
    table = db.session.table("t")
    for make in (
        lambda: bf.llm_filter(text, col("x")),
        lambda: bf.llm_classify(col("x"), [text, "b"]),
        lambda: bf.llm_map("q", col("x"), returns=text),
    ):
        result = run(lambda make=make: table.select(make().alias("y")).to_arrow_table())
        assert isinstance(result, pa.Table | str)
        frame = run(lambda make=make: table.filter(make()).explain_text())
        assert isinstance(frame, str)
        shown(ValueError(frame))


@pytest.mark.parametrize(
    "text",
    [
        "(",
        "(?<=a)b",
        "(a+)+$",
        "a{1000}{1000}",
        "\\",
        "[",
        "(?R)",
        "\x00",
        "\\p{Lu}",
        ".*" * 200,
        "(" * 300 + ")" * 300,
        "\u202e",
        "(?i)x",
        "^$",
        "a|",
        "{}",
    ],
    ids=ascii,
)
def test_regexes(db: Counted, text: str) -> None:
    result = run(lambda: db.rows(f"SELECT llm_map('q', x, regex => {literal(text)}) FROM t"))
    for (answered,) in result if isinstance(result, list) else ():
        assert answered is None or re.fullmatch(text, answered)


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "list[int]{99999999999}",
        "list[" * 50,
        "list[list[int]]",
        "decimal(99,1)",
        "struct",
        "int; DROP TABLE t",
        "\x00",
        "list[]",
        "LIST[INT]",
        " int ",
        "date\n",
        "🙂",
    ],
    ids=ascii,
)
def test_types(db: Counted, text: str) -> None:
    run(lambda: db.rows(f"SELECT llm_map('q', x, returns => {literal(text)}) FROM t"))


@pytest.mark.parametrize("text", SURROGATES, ids=ascii)
def test_what_is_no_text_is_no_table_either(db: Counted, text: str) -> None:
    with pytest.raises(bf.QueryError, match="surrogate"):
        db.session.from_pydict({"x": [text]}, name="u")
    with pytest.raises(bf.QueryError, match=r"line 2: .*surrogate"):
        db.session.sql(f"SELECT 1,\n'{text}'")


def test_stored_answers_are_told_apart(tmp_path: object) -> None:
    values = [(text,) for text in dict.fromkeys([*HOSTILE, "a\x00b", "a", "b", *SURROGATES])]
    values += [("a", "b"), ("a\x00b", None), ("a", None), (None, "a"), ("", "ab"), ("ab", "")]
    numbers = {v: str(i) for i, v in enumerate(values)}
    script = lambda call: int(numbers[call.values])  # noqa: E731
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.types import Constraint, Task

    task = Task("llm_int", "q", Constraint("integer"), ("x", "y"))
    store = SqliteStore(f"{tmp_path}/answers", limit_mb=8)
    try:
        model = CachedModel(bf.ScriptedModel(script, fingerprint="one"), store)
        first = model.answer(task, values)
        again = CachedModel(bf.ScriptedModel(lambda call: None, fingerprint="one"), store)
        known = again.known_answers(task, values)
        assert [known[v].text for v in values] == [a.text for a in first] == [*numbers.values()]
    finally:
        store.close()
