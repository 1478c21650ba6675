"""User functions: literals, options, several columns, aggregates, and joins."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import col

import blendfusion as bf
from blendfusion.udfs.register import user_functions


@pytest.fixture
def session() -> Iterator[bf.Session]:
    model = bf.ScriptedModel(
        lambda request: f"{request.question}|{'|'.join(map(str, request.values))}"
    )
    before = dict(user_functions._defined)
    made = bf.connect(model, cache=None, progress="off")
    made.from_pydict(
        {"x": ["a", "b", "a", None], "y": ["p", "q", "p", None], "n": [1, 2, 1, None]}, name="t"
    )
    yield made
    user_functions._defined.clear()
    user_functions._defined.update(before)


def values(frame: bf.Frame) -> list[object]:
    return [row[0] for row in zip(*frame.to_pydict().values(), strict=True)]


def test_literals_stand_before_and_behind_the_columns_or_have_a_name(session: bf.Session) -> None:
    @bf.ingredient
    def styled(
        model: bf.UserModel,
        question: str,
        text: pa.StringArray,
        tone: str = "dry",
        *,
        times: int = 1,
    ) -> pa.StringArray:
        return model.ask(f"{question} {tone} {times}", text)

    def asked(call: str) -> object:
        return values(session.sql(f"SELECT {call} FROM t LIMIT 1"))[0]

    assert asked("styled('q', x)") == "q dry 1|a"
    assert asked("styled('q', x, 'wet')") == "q wet 1|a"
    assert asked("styled('q', x, tone => 'wet', times => 3)") == "q wet 3|a"
    assert asked("styled(x, question => 'q')") == "q dry 1|a"
    frame = session.table("t").select(styled("q", "x", "wet", times=2), styled("q", col("x")))
    assert frame.limit(1).to_pylist() == [
        {"styled('q', x, 'wet', times => 2)": "q wet 2|a", "styled('q', x)": "q dry 1|a"}
    ]
    with pytest.raises(bf.ArgumentError, match="styled: times => 'many' is not of type int"):
        session.sql("SELECT styled('q', x, times => 'many') FROM t")
    with pytest.raises(bf.ArgumentError, match="styled: no option 'tme'"):
        session.sql("SELECT styled('q', x, tme => 3) FROM t")
    with pytest.raises(bf.ArgumentError, match="styled: the question is missing"):
        session.sql("SELECT styled() FROM t")


def test_literals_of_every_type_reach_the_body_as_they_were_given(session: bf.Session) -> None:
    seen: list[object] = []

    @bf.ingredient
    def typed_literals(
        model: bf.UserModel,
        text: pa.StringArray,
        *,
        share: float = 0.5,
        strict: bool = False,
        names: list[str] = [],  # noqa: B006
        weights: dict[str, float] = {},  # noqa: B006
    ) -> pa.StringArray:
        seen.append((share, strict, names, weights))
        return text

    given = "share => 2, strict => TRUE, names => ['it''s', 'b'], weights => {'k': 1.5}"
    session.sql(f"SELECT typed_literals(x, {given}) FROM t").collect()
    session.sql("SELECT typed_literals(x) FROM t").collect()
    assert seen == [(2.0, True, ["it's", "b"], {"k": 1.5}), (0.5, False, [], {})]


def test_calls_with_other_literals_are_other_calls(session: bf.Session) -> None:
    @bf.ingredient
    def repeated(model: bf.UserModel, text: pa.StringArray, times: int) -> pa.StringArray:
        return pc.binary_repeat(text, times)

    frame = session.sql("SELECT repeated(x, 2) AS two, repeated(x, 3) AS three FROM t LIMIT 2")
    assert frame.to_pydict() == {"two": ["aa", "bb"], "three": ["aaa", "bbb"]}


def test_a_function_takes_any_number_of_columns(session: bf.Session) -> None:
    @bf.ingredient
    def joined(model: bf.UserModel, *texts: pa.StringArray, sep: str = "-") -> pa.StringArray:
        return pc.binary_join_element_wise(*texts, sep)

    frame = session.sql("SELECT joined(x, y, x, sep => '+') AS a, joined(y) AS b FROM t LIMIT 1")
    assert frame.to_pylist() == [{"a": "a+p+a", "b": "p"}]


def test_an_aggregate_gets_one_list_a_group(session: bf.Session) -> None:
    seen: list[list[object]] = []

    @bf.ingredient(aggregate=True)
    def listed(
        model: bf.UserModel, texts: pa.StringArray, numbers: pa.Int64Array, *, sep: str = ","
    ) -> pa.StringArray:
        seen.append([texts.to_pylist(), numbers.to_pylist()])
        return pc.binary_join(texts, sep)

    frame = session.sql("SELECT y, listed(x, n, sep => '+') AS all FROM t GROUP BY y ORDER BY y")
    assert frame.to_pydict() == {"y": ["p", "q", None], "all": ["a+a", "b", None]}
    ((texts, numbers),) = seen
    assert sorted(zip(texts, numbers, strict=True)) == [(["a", "a"], [1, 1]), (["b"], [2])]
    whole = session.sql("SELECT listed(x, n ORDER BY x DESC) AS a, listed(x, n) AS b FROM t")
    assert whole.to_pylist() == [{"a": "b,a,a", "b": "a,a,b"}]
    filtered = session.sql("SELECT listed(x, n) FILTER (WHERE n > 1) AS a FROM t")
    assert filtered.to_pylist() == [{"a": "b"}]
    grouped = session.table("t").aggregate([col("y")], [listed("x", "n").alias("all")])
    assert sorted(grouped.to_pydict()["all"], key=str) == [None, "a,a", "b"]


def test_an_aggregate_asks_the_model_about_groups(session: bf.Session) -> None:
    @bf.ingredient(aggregate=True)
    def answered(model: bf.UserModel, texts: pa.StringArray) -> pa.StringArray:
        return model.ask("all?", pc.binary_join(texts, "+"))

    frame = session.sql(
        "SELECT y, answered(x) AS a FROM t WHERE y IS NOT NULL GROUP BY y ORDER BY y"
    )
    assert frame.to_pydict()["a"] == ["all?|a+a", "all?|b"]
    assert frame.trace.usage.values == 2


def test_a_function_stands_in_the_condition_of_a_join(session: bf.Session) -> None:
    seen: list[tuple[object, ...]] = []

    @bf.ingredient
    def alike(
        model: bf.UserModel, a: pa.StringArray, b: pa.StringArray, *, by: str = "first"
    ) -> pa.BooleanArray:
        seen.extend(zip(a.to_pylist(), b.to_pylist(), strict=True))
        return pc.equal(pc.utf8_slice_codeunits(a, 0, 1), pc.utf8_slice_codeunits(b, 0, 1))

    session.from_pydict({"z": ["aa", "bb", "cc", "aa"]}, name="u")
    frame = session.sql(
        "SELECT DISTINCT x, z FROM t JOIN u ON alike(t.x, u.z, by => 'first letter') ORDER BY x"
    )
    assert frame.to_pydict() == {"x": ["a", "b"], "z": ["aa", "bb"]}
    assert len(seen) == len(set(seen)) == 9  # distinct pairs, also beside a NULL


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda model: None, "takes no value columns"),
        (lambda model, a, **rest: None, r"\*\* is not possible"),
    ],
)
def test_what_cannot_be_a_function_is_an_error(function: object, problem: str) -> None:
    with pytest.raises(bf.ArgumentError, match=problem):
        bf.ingredient(function, name="wrong")  # type: ignore[call-overload]


def test_parameters_that_cannot_be_are_errors() -> None:
    def between(
        model: bf.UserModel, a: pa.StringArray, b: str, c: pa.StringArray
    ) -> pa.StringArray:
        return a

    def required(model: bf.UserModel, a: pa.StringArray, *, tone: str) -> pa.StringArray:
        return a

    def taken(model: bf.UserModel, a: pa.StringArray, *, on_error: str = "null") -> pa.StringArray:
        return a

    for function, problem in (
        (between, "has a literal between its value columns"),
        (required, "the option 'tone' has no default"),
        (taken, "has a parameter 'on_error', which every function has"),
    ):
        with pytest.raises(bf.ArgumentError, match=problem):
            bf.ingredient(function)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM many WHERE size(x) > 3 LIMIT 12",
        "SELECT x, size(x) FROM many WHERE size(x) > 3 ORDER BY size(x)",
        "SELECT x FROM many WHERE size(x) > 1",
    ],
)
@pytest.mark.parametrize("planner", [True, False])
def test_a_body_sees_each_distinct_row_once_a_query(sql: str, planner: bool) -> None:
    seen: list[str] = []

    def size(model: bf.UserModel, text: pa.StringArray) -> pa.Int64Array:
        seen.extend(text.to_pylist())
        return pc.utf8_length(text).cast(pa.int64())

    before = dict(user_functions._defined)
    bf.ingredient(size)
    options = {"first_chunk_rows": 2, "chunk_rows": 8, "planner": planner}
    try:
        model = bf.ScriptedModel(lambda request: True)
        with bf.connect(model, cache=None, progress="off", **options) as made:  # type: ignore[arg-type]
            rows = ["aaaa", "bbbbb", None, "cc", "dddddd"] * 35
            made.from_pydict({"x": rows}, name="many")
            frame = made.sql(sql)
            frame.collect()
            assert len(seen) == len(set(seen)) <= 4
            assert frame.trace.function_rows == {"size(x)": len(seen)}
            frame.collect()
            assert len(seen) == 2 * len(set(seen)), "each run calls the function"
    finally:
        user_functions._defined.clear()
        user_functions._defined.update(before)


def test_a_function_without_a_docstring_takes_leading_literals() -> None:
    def starts(model: bf.UserModel, prefix: str, text: pa.StringArray) -> pa.BooleanArray:
        return pc.starts_with(text, prefix)

    bf.ingredient(starts)
    session = bf.connect(bf.ScriptedModel(lambda call: None), cache=None)
    session.from_pydict({"x": ["Fa", "Ga"]}, "t")
    assert session.sql("SELECT starts('F', x) AS f FROM t").to_pydict() == {"f": [True, False]}
