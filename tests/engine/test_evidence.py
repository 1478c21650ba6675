"""Answers with evidence: the words of the text that state them, at their offsets; what the text does
not state is NULL."""

from __future__ import annotations

import datetime
import json
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.models.constraints.constraint import holds
from blendfusion.types import Constraint, StructField
from blendfusion.udfs.text.evidence import ground, ground_among, numbers_in

TEXT = "A table for four on 3 March 2024 at 7:30 pm, name  SMITH."
SCHEMA = "people INT, day DATE, name TEXT, phone INT, tags LIST"


def connected(answer: object, **options: object) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: answer), cache=None, **options)  # type: ignore[arg-type]
    session.from_pydict({"text": [TEXT, None]}, name="t")
    return session


@pytest.mark.parametrize("planner", [True, False])
def test_each_field_stands_beside_the_words_that_state_it(planner: bool) -> None:
    answer = {
        "people": 4,
        "day": datetime.date(2024, 3, 3),
        "name": "Smith",
        "phone": 5551234,
        "tags": ["table", "window", "march"],
    }
    session = connected(answer, planner=planner)
    query = f"SELECT llm_extract(text, '{SCHEMA}', evidence => true) AS e FROM t"
    table = session.sql(query).to_arrow_table()
    assert [field.name for field in table.schema.field("e").type.field("day").type] == [
        *("value", "confidence", "evidence", "start", "end", "reason")
    ]
    found, missing = table["e"].to_pylist()
    assert missing is None or set(missing.values()) == {None}
    shown = {
        name: (part["value"], part["evidence"], part["reason"]) for name, part in found.items()
    }
    assert shown == {
        "people": (4, "four", None),
        "day": (datetime.date(2024, 3, 3), "3 March 2024", None),
        "name": ("Smith", "SMITH", None),
        "phone": (None, None, "not in the text: 5551234"),
        "tags": (["table", "march"], "table for four on 3 March", "not in the text: window"),
    }
    for part in found.values():
        if part["evidence"] is not None:
            assert TEXT[part["start"] : part["end"]] == part["evidence"]


def test_a_field_without_a_value_says_so() -> None:
    session = connected({"people": None})
    call = "llm_extract(text, 'people INT', evidence => true)"
    frame = session.sql(f"SELECT {call}.people.reason AS r, {call}['people']['value'] AS v FROM t")
    assert frame.to_pydict() == {"r": ["not in the text", None], "v": [None, None]}


def test_a_map_has_evidence_and_the_confidence_of_a_closed_set() -> None:
    session = bf.connect(bf.ScriptedModel(lambda c: {"four": 0.75, "five": 0.25}), cache=None)
    session.from_pydict({"text": [TEXT]}, name="t")
    call = "llm_map('How many?', text, options => ['four', 'five'], evidence => true)"
    (row,) = session.sql(f"SELECT {call} AS e FROM t").to_pylist()
    start = TEXT.index("four")
    assert row["e"] == {
        "value": "four",
        "confidence": pytest.approx(0.75),
        "evidence": "four",
        "start": start,
        "end": start + 4,
        "reason": None,
    }


def test_the_value_of_a_map_has_the_type_of_its_place() -> None:
    session = connected(4)
    call = "llm_map('How many?', text, evidence => true)"
    assert session.sql(f"SELECT 1 AS x FROM t WHERE {call}['value'] > 3").to_pydict() == {"x": [1]}
    with pytest.raises(bf.QueryError, match="evidence => true gives a struct"):
        session.sql(f"SELECT 1 FROM t WHERE {call} > 3")


def test_a_judgement_needs_no_words_of_the_text() -> None:
    session = connected(True)
    call = "llm_map('Is it late?', text, returns => 'bool', evidence => true)"
    (row, _) = session.sql(f"SELECT {call} AS e FROM t").to_pylist()
    assert (row["e"]["value"], row["e"]["reason"]) == (True, "a judgement of the whole text")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("llm_map('x', text, text, evidence => true)", "evidence is of one text"),
        ("llm_map('x', text, evidence => true, on_error => 'keep')", "does not go with on_error"),
        (
            "llm_map('x', text, options => ['a', 'b'], confidence => 'keep', evidence => true)",
            "does not go with confidence",
        ),
        ("llm_map('x', text, evidence => 'yes')", "evidence => 'yes' is not possible"),
        ("llm_bool('x', text, evidence => true)", "no option 'evidence'"),
        (
            "llm_answer('x', text, evidence => true, returns => 'a INT, b INT')",
            "evidence is of one answer",
        ),
    ],
)
def test_a_wrong_use_of_evidence_is_an_error(call: str, message: str) -> None:
    with pytest.raises(bf.QueryError, match=message):
        connected(1).sql(f"SELECT {call} FROM t")


def test_evidence_asks_nothing_more_than_the_answers() -> None:
    model = bf.ScriptedModel(lambda call: {"people": 4})
    session = bf.connect(model, cache=None)
    session.from_pydict({"text": [TEXT]}, name="t")
    for more in ("", ", evidence => true"):
        session.sql(f"SELECT llm_extract(text, 'people INT'{more}) AS e FROM t").to_arrow_table()
    assert len(model.calls) == 1


# --- lists of texts ------------------------------------------------------------------------------


def answers_about(lists: list[object], answer: object, more: str) -> list[dict[str, object]]:
    session = bf.connect(bf.ScriptedModel(lambda call: answer), cache=None)
    column = pa.array(lists, pa.list_(pa.string()))
    session.from_arrow(pa.table({"id": range(len(lists)), "texts": column}), "t")
    call = f"llm_answer('What?', texts, evidence => true{more})"
    rows = session.sql(f"SELECT {call} AS e FROM t ORDER BY id").to_pylist()
    return [row["e"] for row in rows]


def test_an_answer_about_a_list_names_the_item_that_states_it() -> None:
    lists = [
        ["no", "", None, "is 4 a lot?", "4"],
        ["no", "is 4 a lot?", "4"],
        ["none"],
        None,
        [" "],
    ]
    found = answers_about(lists, 4, ", returns => 'int'")
    span = {"value": 4, "confidence": None, "evidence": "4", "start": 3, "end": 4, "reason": None}
    assert found[:2] == [{**span, "item": 4}, {**span, "item": 2}]
    nothing = dict.fromkeys(span | {"item": 1})
    assert found[2] == {**nothing, "reason": "not in the text: 4"}
    assert [one in (None, nothing) for one in found[3:]] == [True, True]
    assert [*found[0]] == ["value", "confidence", "evidence", "item", "start", "end", "reason"]


def test_a_list_of_answers_may_be_stated_by_several_items() -> None:
    lists: list[object] = [["rye and oats", "wheat", "rye, oats, salt"], ["barley"]]
    answer = ["rye", "wheat", "salt", "millet"]
    first, second = answers_about(lists, answer, ", returns => 'list'")
    assert (first["value"], first["item"]) == (["rye", "wheat", "salt"], 3)
    assert (first["evidence"], first["reason"]) == ("rye, oats, salt", "not in the text: millet")
    assert (second["value"], second["evidence"], second["item"]) == (None, None, None)


def test_an_answer_about_a_text_has_evidence_in_any_engine() -> None:
    text = "The rent is 950 euros."
    for planner in (True, False):
        session = bf.connect(bf.ScriptedModel(lambda call: "950 Euros"), planner=planner)
        session.from_pydict({"text": [text]}, "t")
        frame = session.table("t").select(bf.llm_answer("What?", "text", evidence=True).alias("e"))
        (row,) = frame.to_pylist()
        start = text.index("950")
        assert (row["e"]["evidence"], row["e"]["item"], row["e"]["start"]) == (
            "950 euros",
            1,
            start,
        )


def test_a_list_longer_than_the_window_has_evidence_of_its_items() -> None:
    """Notes take the place of the items in the question; evidence is of the items."""
    model = bf.ScriptedModel(
        lambda call: "note" if call.task.form == "summary" else "17", window=600
    )
    session = bf.connect(model, cache=None)
    texts = [f"Part {n} of a long report tells about many things." for n in range(1, 60)]
    session.from_pydict({"texts": [texts]}, "t")
    call = "llm_answer('Which part?', texts, returns => 'int', evidence => true)"
    (row,) = session.sql(f"SELECT {call} AS e FROM t").to_pylist()
    assert len(model.calls) > 1
    assert (row["e"]["item"], row["e"]["evidence"]) == (17, "17")


# --- spans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "text", "span"),
    [
        ("integer", 12, "We are a dozen.", "dozen"),
        ("integer", 12, "112 or 120 or 1.12", None),
        ("integer", 1200, "1,200 people", "1,200"),
        (
            "integer",
            125,
            "a hundred and one hundred and twenty-five",
            "one hundred and twenty-five",
        ),
        ("integer", 2, "my 2nd visit", "2"),
        ("integer", -5, "from 4-5 to -5 degrees", "-5"),
        ("number", 2.5, "weighs 2.50 kg", "2.50"),
        ("integer", 37889, "order A37889", None),
        ("integer", 2024, "invoice INV-2024, P-2024 and COVID_2024", None),
        ("integer", 19, "from 17-19 people", "19"),
        ("number", 675.8, "EUR675.80", "675.80"),
        ("number", 5, "costs $5 or USD5", "5"),
        ("number", 5, "seats ABC5, XUSD5", None),
        ("integer", 2026, "on 2026-08-08", "2026"),
        ("integer", 8, "8 August", "8"),
        ("number", 2026, "EUR 605.68, 2026-08-08", None),
        ("number", 8.8, "paid 8.8.2026", None),
        ("number", 8, "on August 8th, 8 of us", "8"),
        ("number", 8, "on 8 August 2026", None),
        ("number", 2026, "on August 8, 2026, EUR 2,026", "2,026"),
        ("date", "2024-05-04", "on 4/5/2024", "4/5/2024"),
        ("date", "2024-05-04", "May 4th, 2024!", "May 4th, 2024"),
        ("date", "2024-05-04", "May 4th", None),
        ("date", "2024-05-04", "2024-05-041", None),
        ("timestamp", "2024-05-04T19:30:00", "2024-05-04, 7:30 pm", "2024-05-04, 7:30 pm"),
        ("timestamp", "2024-05-04T19:30:00", "2024-05-04, 7:30 am", None),
        ("text", "new york", "in New\n York City", "New\n York"),
        ("text", "İ", "xİ", "İ"),
        ("regex", "A12", "room A12", "A12"),
    ],
)
def test_a_value_is_found_where_it_is_stated(
    kind: str, value: object, text: str, span: str | None
) -> None:
    found = ground(Constraint(kind), value, text)  # type: ignore[arg-type]
    assert (None if found.span is None else text[slice(*found.span)]) == span
    assert (found.value == value) == (span is not None)


KINDS = ("text", "regex", "integer", "number", "date", "timestamp", "boolean")
SCALARS = st.one_of(
    st.text(max_size=8),
    st.integers(-3000, 3000),
    st.floats(-99, 99).map(lambda x: round(x, 2)),
    st.dates(datetime.date(1990, 1, 1), datetime.date(2030, 1, 1)).map(str),
    st.booleans(),
    st.none(),
)
TEXTS = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(["two", "12", "hundred", "and", "3 May 2001", "1,000", "-7.5", "İstanbul"]),
        max_size=8,
    ).map(" ".join),
)


@given(st.data(), TEXTS)
def test_evidence_is_always_a_substring_at_its_offsets(data: st.DataObject, text: str) -> None:
    """Also of a text that the model has from the text, in another case, or has made up."""
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    fields = tuple(StructField(f"f{i}", Constraint(kind)) for i, kind in enumerate(kinds))  # type: ignore[arg-type]
    copied = st.integers(0, max(0, len(text) - 1)).map(lambda at: text[at : at + 5].strip())
    parts = {f.name: data.draw(st.one_of(SCALARS, copied)) for f in fields}
    for field in fields:
        value = parts[field.name]
        shown = value if isinstance(value, str) else json.dumps(value)
        pattern = Constraint("regex", pattern=".*")
        held = pattern if field.constraint.kind == "regex" else field.constraint
        if (
            value is None
            or not holds(held, shown)
            or isinstance(value, str)
            != (field.constraint.kind in ("text", "regex", "date", "timestamp"))
        ):
            parts[field.name] = None
    found = ground(Constraint("struct", fields=fields), parts, text)
    for f in fields:
        one = ground(f.constraint, parts[f.name], text)
        if one.span is not None:
            assert 0 <= one.span.start < one.span.end <= len(text)
            assert found.span is not None
            assert found.span.start <= one.span.start <= one.span.end <= found.span.end
        elif f.constraint.kind != "boolean":
            assert one.value is None


@given(st.data(), st.lists(TEXTS, min_size=1, max_size=5))
def test_evidence_in_a_list_is_a_substring_of_its_item(
    data: st.DataObject, texts: list[str]
) -> None:
    """Each part of an answer that any text states is kept, and no other."""
    kind = data.draw(st.sampled_from(["text", "integer"]))
    every = " ".join(texts)
    copied = st.integers(0, max(0, len(every) - 1)).map(lambda at: every[at : at + 4].strip())
    scalars = st.integers(0, 30) if kind == "integer" else st.one_of(st.text(max_size=4), copied)
    value = data.draw(st.one_of(scalars, st.lists(scalars, max_size=4)))  # type: ignore[arg-type]
    one = Constraint(kind)
    held = Constraint("list", item=one) if isinstance(value, list) else one
    found, place = ground_among(held, value, texts)  # type: ignore[arg-type]
    assert (found.span is None) == (place is None)
    if place is not None and found.span is not None:
        assert 0 <= found.span.start < found.span.end <= len(texts[place])
        assert ground(held, value, texts[place]).span == found.span  # type: ignore[arg-type]
    parts = value if isinstance(value, list) else [value]
    stated = [part for part in parts if any(ground(one, part, t).span for t in texts)]
    kept = found.value if isinstance(value, list) else [found.value]
    assert (kept or []) == (stated or ([] if isinstance(value, list) else [None]))
    assert len(found.missing) == len(parts) - len(stated)


@given(TEXTS)
def test_every_number_in_a_text_is_found_again(text: str) -> None:
    for number, span in numbers_in(text):
        assert 0 <= span.start < span.end <= len(text)
        if number.denominator == 1:
            assert ground(Constraint("integer"), int(number), text).value == int(number)


def test_offsets_count_characters_as_sql_does() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "Zoë"), cache=None)
    session.from_pydict({"text": ["😀😀 Zoë é"]}, name="t")
    call = "llm_map('Who?', text, evidence => true)"
    query = f"SELECT substr(text, e['start'] + 1, e['end'] - e['start']) AS s FROM (SELECT text, {call} AS e FROM t)"
    assert session.sql(query).to_pydict() == {"s": ["Zoë"]}
    assert pa.types.is_int64(
        session.sql(f"SELECT {call}['end'] AS x FROM t").schema().field("x").type
    )


DAY = datetime.date(2024, 3, 3)


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize(
    ("call", "answer", "value", "words"),
    [
        ("llm_int('How many?', text, evidence => true)", 4, 4, "four"),
        ("llm_float('How many?', text, evidence => true)", 4.0, 4.0, "four"),
        ("llm_date('When?', text, evidence => true)", DAY, DAY, "3 March 2024"),
        ("llm_text('Who?', text, evidence => true)", "smith", "smith", "SMITH"),
        (
            "llm_list('Which?', text, evidence => true)",
            ["table", "smith"],
            ["table", "smith"],
            "table for four on 3 March 2024 at 7:30 pm, name  SMITH",
        ),
        (
            "llm_map('How many?', text, returns => 'decimal(4, 1)', evidence => true)",
            4,
            Decimal("4.0"),
            "four",
        ),
    ],
)
def test_every_function_that_reads_something_out_of_a_text_has_evidence(
    call: str, answer: object, value: object, words: str, planner: bool
) -> None:
    session = connected(answer, planner=planner)
    session.from_pydict({"text": [TEXT, "Nothing of it, but 17."]}, name="two")
    stated, absent = session.sql(f"SELECT {call} AS e FROM two").to_arrow_table()["e"].to_pylist()
    assert (stated["value"], stated["evidence"], stated["reason"]) == (value, words, None)
    assert TEXT[stated["start"] : stated["end"]] == words
    assert (absent["value"], absent["evidence"]) == (None, None)
    assert absent["reason"].startswith("not in the text: ")


@pytest.mark.parametrize("name", ["int", "float", "date", "text", "list"])
def test_dataframes_ask_for_evidence_in_the_same_way(name: str) -> None:
    answers = {"int": 4, "float": 4.5, "date": DAY, "text": "four", "list": ["four"]}
    session = connected(answers[name])
    function = getattr(bf, f"llm_{name}")
    frame = session.table("t").select(function("Which?", "text", evidence=True).alias("e"))
    query = f"SELECT llm_{name}('Which?', text, evidence => true) AS e FROM t"
    assert frame.to_arrow_table() == session.sql(query).to_arrow_table()


@given(
    whole=st.integers(0, 99_999_999),
    cents=st.integers(0, 99),
    other=st.integers(0, 99_999_999),
)
def test_a_decimal_is_exact_and_found_or_null(whole: int, cents: int, other: int) -> None:
    """As money is written: 1,234.50, 1234.50, and without cents."""
    amount = Decimal(whole) + Decimal(cents) / 100
    constraint = Constraint("number", digits=(10, 2))
    texts = [f"EUR {whole:,}.{cents:02}", f"{whole}.{cents:02} EUR", f"{other}.{cents:02} EUR"]
    assert holds(constraint, f"{whole}.{cents:02}")
    found = [ground(constraint, float(amount), text).value for text in texts]
    assert found == [float(amount), float(amount), float(amount) if whole == other else None]
    session = bf.connect(bf.ScriptedModel(lambda call: amount), cache=None, progress="off")
    table = pa.table({"text": texts})
    session.register_record_batches("t", [table.to_batches()])
    call = "llm_map('How much?', text, returns => 'decimal(10,2)', evidence => true)"
    rows = session.sql(f"SELECT {call}['value'] AS v FROM t").to_arrow_table()
    assert rows.schema.field("v").type == pa.decimal128(10, 2)
    assert rows["v"].to_pylist() == [amount, amount, amount if whole == other else None]


def test_amounts_and_dates_of_bills_without_any_are_null() -> None:
    """Whatever a model says: digits of order numbers and of dates are no amounts."""
    rng = random.Random(3)
    amount, day = Constraint("number", digits=(10, 2)), Constraint("date")
    for _ in range(500):
        number = rng.randrange(10_000, 99_999)
        date = datetime.date(2020, 1, 1) + datetime.timedelta(rng.randrange(3000))
        cents = rng.randrange(100, 99_999) / 100
        dated = rng.choice([f"{date}", f"{date:%d.%m.%Y}", f"{date:%B %d, %Y}", f"{date:%d %b %y}"])
        bill = f"Hotel Post, order A{number} of {dated}, ref. INV-{number}. Thank you."
        parts = [number, date.year, date.month, date.day, date.year % 100]
        for said in (*parts, cents, date.day + date.month / 10, date.day + date.month / 100):
            assert ground(amount, said, bill).value is None, (said, bill)
        assert ground(amount, cents, f"{bill} Please pay EUR {cents:,.2f}.").value == cents
        assert ground(day, str(date), bill).value == str(date)
        assert ground(day, str(date), f"Hotel Post, order A{number}, EUR {cents}.").value is None


# --- numbers and dates by default -----------------------------------------------------------------

DAY = datetime.date(2024, 3, 3)


def rows_of(call: str, answer: object, texts: list[str], **options: object) -> list[object]:
    session = bf.connect(bf.ScriptedModel(lambda _: answer), cache=None, **options)  # type: ignore[arg-type]
    session.from_pydict({"id": range(len(texts)), "x": texts}, name="t")
    return session.sql(f"SELECT {call} AS a FROM t ORDER BY id").to_pydict()["a"]


@pytest.mark.parametrize("planner", [True, False])
def test_a_date_that_the_text_does_not_state_is_null(planner: bool) -> None:
    texts = ["Due on 3 March 2024.", "Due soon.", "Due on 4 March 2024."]
    assert rows_of("llm_date('When?', x)", DAY, texts, planner=planner) == [DAY, None, None]
    assert rows_of("llm_date('When?', x) > DATE '2024-01-01'", DAY, texts, planner=planner) == [
        *(True, None, None)
    ]
    call = "llm_date('When?', x, evidence => false)"
    assert rows_of(call, DAY, texts, planner=planner) == [DAY] * 3


def test_fields_of_an_extraction_that_the_text_does_not_state_are_null() -> None:
    answer = {
        "n": 4,
        "total": "9.50",
        "day": DAY,
        "name": "Max",
        "all": [4, 7],
        "in": {"rate": 2.5},
        "ok": True,
    }
    schema = "n INT, total DECIMAL(6,2), day DATE, name TEXT, all INT[], in STRUCT(rate FLOAT), ok BOOLEAN"
    [found] = rows_of(f"llm_extract(x, '{schema}')", answer, ["four at 2.5%"])
    assert found == {
        "n": 4,
        "total": None,
        "day": None,
        "name": "Max",
        "all": [4],
        "in": {"rate": 2.5},
        "ok": True,
    }


def test_what_is_withheld_is_counted_and_keeps_its_reason() -> None:
    session = bf.connect(bf.ScriptedModel(lambda _: DAY), cache=None)
    session.from_pydict({"x": ["3 March 2024", "soon", "later"]}, name="t")
    frame = session.sql("SELECT x FROM t WHERE llm_date('When?', x) IS NULL ORDER BY x")
    assert frame.to_pydict() == {"x": ["later", "soon"]}
    assert frame.trace.unsure == 2
    assert frame.trace.became_of(frame.prepared.calls[0]) == ["2 withheld: not in the text"]
    kept = rows_of("llm_date('When?', x, on_error => 'keep')", DAY, ["soon"])
    assert kept == [{"value": None, "error": "not in the text: 2024-03-03"}]
    assert rows_of("llm_date('When?', x, on_error => 'raise')", DAY, ["soon"]) == [None]


def test_a_call_whose_texts_state_nothing_is_warned_of() -> None:
    call = "llm_date('When was it founded?', x)"
    with pytest.warns(bf.AnswerWarning, match="none of 3 texts states .*evidence => false"):
        assert rows_of(call, DAY, ["Rome", "Bern", "Oslo"]) == [None] * 3
    assert rows_of(call, DAY, ["Rome", "Bern", "3 March 2024"]) == [None, None, DAY]


def test_answers_of_the_cache_count_among_those_that_are_stated() -> None:
    session = bf.connect(bf.ScriptedModel(lambda _: DAY), progress="off")
    texts = ["Rome", "Bern", "Oslo", "3 March 2024"]
    session.from_pydict({"x": texts}, name="t")
    for _ in range(2):
        rows = session.sql("SELECT llm_date('When?', x) AS d FROM t").to_pylist()
        assert [row["d"] for row in rows] == [None, None, None, DAY]


def test_the_words_of_a_text_are_not_asked_of_counts_and_of_several_values() -> None:
    assert rows_of("llm_int('How many stars?', x)", 5, ["Lovely!"]) == [5]
    assert rows_of("llm_float('How good?', x)", 0.5, ["Lovely!"]) == [0.5]
    assert rows_of("llm_date('When?', x, id)", DAY, ["yesterday"]) == [DAY]


STATED_DATES = (
    *("3. März 2024", "le 3 mars 2024", "3 de marzo de 2024", "3 marzo 2024", "2024年3月3日"),
    *("20240303", "2024-03-03T10:00:00Z", "3/3/24", "March 3rd, 2024", "3-Mar-2024", "3.3.2024"),
    *("op 3 maart 2024", "3 de março de 2024", "3rd of March 2024", "MARCH 3 2024"),
)
STATED_NUMBERS = (
    *((1234.5, "1.234,50 EUR"), (12.5, "12,50 €"), (1234567, "1 234 567"), (0.5, "½")),
    *((1234.5, "CHF 1'234.50"), (3_500_000, "$3.5M"), (2000, "2k users"), (20, "20 %")),
    *((0.2, "20 %"), (3, "drei Personen"), (4, "à quatre"), (12, "a dozen"), (1200, "1,200")),
)


@pytest.mark.parametrize("text", STATED_DATES)
def test_a_date_is_stated_in_many_forms(text: str) -> None:
    assert ground(Constraint("date"), "2024-03-03", text).span is not None
    for other in ("2024-03-04", "2024-04-03", "2023-03-03"):
        assert ground(Constraint("date"), other, text).span is None


@pytest.mark.parametrize(("value", "text"), STATED_NUMBERS)
def test_a_number_is_stated_in_many_forms(value: float, text: str) -> None:
    assert ground(Constraint("number"), value, text).span is not None
    assert ground(Constraint("number"), value + 0.25, text).span is None
