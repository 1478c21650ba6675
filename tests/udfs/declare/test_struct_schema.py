"""The schema of an extraction: SQL text, Arrow and pydantic say the same fields."""

from __future__ import annotations

import datetime
import enum
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pyarrow as pa
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.types import Constraint, StructField
from blendfusion.udfs.declare.arguments import Constant, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.struct_schema import MOST_FIELDS, fields_of, schema_text, text_of
from blendfusion.udfs.functions.llm_extract import LLM_EXTRACT


def constraint_of(kind: str) -> Constraint:
    [field] = fields_of(f"x {kind}")
    return field.constraint


@pytest.mark.parametrize(
    ("kinds", "constraint"),
    [
        ("TEXT varchar STRING Char", Constraint()),
        ("INT integer BIGINT SMALLINT TINYINT", Constraint("integer")),
        ("FLOAT double REAL DECIMAL NUMERIC NUMBER", Constraint("number")),
        ("BOOLEAN bool", Constraint("boolean")),
        ("DATE", Constraint("date")),
        ("TIMESTAMP DATETIME", Constraint("timestamp")),
        ("LIST TEXT[] LIST<TEXT> ARRAY<VARCHAR> LIST(TEXT)", Constraint("list", item=Constraint())),
        ("INT[] LIST<INT>", Constraint("list", item=Constraint("integer"))),
    ],
)
def test_types_go_by_their_names_in_sql(kinds: str, constraint: Constraint) -> None:
    assert [constraint_of(kind) for kind in kinds.split()] == [constraint] * len(kinds.split())


def test_closed_sets_structs_and_lists_of_them() -> None:
    choice = Constraint("choice", options=("a", "it's"))
    assert constraint_of("IN ('a', 'it''s')") == choice
    assert constraint_of("ENUM('a', 'it''s')") == choice
    assert constraint_of("IN ('a', 'it''s')[]") == Constraint("list", item=choice)
    struct = Constraint(
        "struct",
        fields=(StructField("n", Constraint("integer"), "how many"), StructField("c", choice)),
    )
    assert constraint_of("STRUCT(n INT COMMENT 'how many', c IN ('a', 'it''s'))") == struct
    assert constraint_of("STRUCT<n INT COMMENT 'how many', c ENUM('a', 'it''s')>") == struct
    assert constraint_of("STRUCT(n INT COMMENT 'how many', c IN ('a', 'it''s'))[]") == Constraint(
        "list", item=struct
    )


def test_names_may_be_words_of_sql_and_keep_their_case() -> None:
    words = "select from where end case values table primary key check like not null true in Date"
    fields = fields_of(", ".join(f"{word} TEXT" for word in words.split()))
    assert [field.name for field in fields] == words.split()
    fields = fields_of('"unit price" FLOAT, "a""b" TEXT, größe INT -- in metres\n, n /* all */ INT')
    assert [field.name for field in fields] == ["unit price", 'a"b', "größe", "n"]


NAMES = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=8)
SAID = st.text(st.characters(categories=["L", "N", "P", "Zs", "Sm"]), max_size=8)
SCALARS = st.sampled_from(["text", "integer", "number", "boolean", "date", "timestamp"])
CHOICES = st.lists(NAMES.map("a{}".format), min_size=1, max_size=3, unique=True).map(
    lambda options: Constraint("choice", options=tuple(options))
)


def fields(inner: st.SearchStrategy[Constraint]) -> st.SearchStrategy[tuple[StructField, ...]]:
    field = st.builds(StructField, NAMES, inner, SAID)
    return st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f.name).map(tuple)


ITEMS = st.recursive(
    SCALARS.map(Constraint) | CHOICES,  # type: ignore[arg-type]
    lambda inner: fields(inner).map(lambda found: Constraint("struct", fields=found)),
    max_leaves=4,
)


@given(fields(ITEMS | ITEMS.map(lambda item: Constraint("list", item=item))))
def test_what_is_written_is_read_as_it_was(declared: tuple[StructField, ...]) -> None:
    assert fields_of(schema_text(declared)) == declared


def test_an_arrow_schema_says_names_types_and_descriptions() -> None:
    schema = pa.schema(
        [
            pa.field("name", pa.large_string(), metadata={"description": "of the film"}),
            ("year", pa.int16()),
            ("price", pa.decimal128(8, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("s")),
            ("tags", pa.list_(pa.string())),
            ("kind", pa.dictionary(pa.int8(), pa.string())),
            ("maker", pa.struct([("born", pa.date64()), ("alive", pa.bool_())])),
        ]
    )
    text = text_of(schema)
    assert text == (
        "name TEXT COMMENT 'of the film', year INT, price DECIMAL(8, 2), day DATE, at TIMESTAMP, tags TEXT[], "
        'kind TEXT, maker STRUCT("born" DATE, "alive" BOOLEAN)'
    )
    assert text_of(pa.struct(list(schema))) == text


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Maker(pydantic.BaseModel):
    born: datetime.date | None = None


class Film(pydantic.BaseModel):
    name: str = pydantic.Field(description="of the film", max_length=40)
    year: int | None = None
    price: Optional[float] = None  # noqa: UP045 - as older code has it
    cost: Decimal
    seen: datetime.datetime
    ok: Annotated[bool, "said so"]
    tags: list[str]
    mood: Mood
    season: Literal["spring", "summer"]
    maker: Maker
    makers: list[Maker] = []


def test_a_pydantic_model_says_names_annotations_and_descriptions() -> None:
    text = text_of(Film)
    assert text == (
        "name TEXT COMMENT 'of the film', year INT, price FLOAT, cost FLOAT, seen TIMESTAMP, "
        "ok BOOLEAN, tags TEXT[], mood IN ('good', 'bad'), season IN ('spring', 'summer'), "
        'maker STRUCT("born" DATE), makers STRUCT("born" DATE)[]'
    )
    assert schema_text(fields_of(text)) == text


class Node(pydantic.BaseModel):
    children: list[Node] = []


class Blob(pydantic.BaseModel):
    data: bytes


class Rank(enum.Enum):
    FIRST = 1


class Ranked(pydantic.BaseModel):
    rank: Rank


class Either(pydantic.BaseModel):
    value: int | str


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (Node, "has itself"),
        (Blob, "the field data: bytes"),
        (Ranked, "the field rank: Rank"),
        (Either, r"the field value: int \| str"),
        (pa.schema([("data", pa.binary())]), "the field data: binary"),
        (pa.schema([("at", pa.timestamp("s", tz="UTC"))]), "the field at: timestamp"),
        (dict, "the schema is <class 'dict'>"),
        ({"name": "TEXT"}, "the schema is {"),
        (Film.model_construct(), "the schema is "),
    ],
)
def test_what_cannot_be_extracted_is_named(schema: Any, said: str) -> None:
    with pytest.raises(bf.ArgumentError, match=f"^llm_extract: .*{said}"):
        bf.llm_extract("x", schema)


def test_a_schema_has_some_fields_and_not_too_many() -> None:
    def schema(count: int) -> str:
        return ", ".join(f"f{i} INT" for i in range(count))

    assert len(fields_of(schema(MOST_FIELDS))) == MOST_FIELDS
    for text in (schema(MOST_FIELDS + 1), f"s STRUCT({schema(MOST_FIELDS)})"):
        with pytest.raises(bf.ArgumentError, match="more than 64 fields"):
            fields_of(text)


@pytest.mark.long
@pytest.mark.parametrize("depth", [20, 400, 20_000])
def test_types_in_one_another_have_an_end(depth: int) -> None:
    for opening, inner, closing in (
        ("x STRUCT(", "a INT", ")"),
        ("x STRUCT<", "a INT", ">"),
        ("x STRUCT(", "", ""),
        ("x LIST(", "INT", ")"),
    ):
        with pytest.raises(bf.ArgumentError, match="types in one another") as raised:
            fields_of(opening * depth + inner + closing * depth)
        assert len(str(raised.value)) < 400
    with pytest.raises(bf.ArgumentError, match=r"list of lists|cannot be read"):
        fields_of("x INT" + "[]" * depth)


def test_two_spellings_of_one_schema_are_one_call() -> None:
    def call(text: str) -> object:
        return bind(LLM_EXTRACT, [Value("x"), Constant(text)], {})

    assert call("a varchar, b LIST") == call("  a TEXT,\nb TEXT[]")
    assert call("a TEXT") != call("a TEXT COMMENT 'of b'")
    assert call("a TEXT, b INT") != call("b INT, a TEXT")


def test_examples_are_objects_of_the_fields() -> None:
    def call(answer: object) -> Any:
        given: Any = [["Alien, 1979", answer]]
        return bind(
            LLM_EXTRACT, [Value("x"), Constant("year INT, ok BOOLEAN")], {"examples": given}
        )

    text = '{"year": 1979, "ok": null}'
    assert call({"year": 1979}).task.examples[0].answer == text
    assert call(text).task.examples[0].answer == text
    with pytest.raises(bf.ArgumentError, match="does not fit struct of year integer, ok boolean"):
        call({"year": "late"})
