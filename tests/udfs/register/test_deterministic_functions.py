"""Users' functions that are declared deterministic: their results are stored like answers."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import blendfusion as bf
from blendfusion.udfs.register import user_functions
from blendfusion.udfs.register.code_digest import code_digest


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    before = dict(user_functions._defined)
    yield
    user_functions._defined.clear()
    user_functions._defined.update(before)


def _session(cache: str | Path | None = None, answer: object = "A") -> bf.Session:
    model = bf.ScriptedModel(lambda call: answer, fingerprint="the same")
    made = bf.connect(model, cache=cache, progress="off")
    made.from_pydict({"x": ["a", "bb", "a", None, "ccc"], "n": [1, 2, 1, None, 3]}, name="t")
    return made


def _length(seen: list[str], deterministic: bool | str = True) -> None:
    @bf.ingredient(returns=pa.int64(), deterministic=deterministic)
    def size(model: bf.UserModel, text: pa.StringArray) -> pa.Array:
        seen.extend(text.to_pylist())
        return pc.utf8_length(text).cast(pa.int64())


SIZES = {"s": [1, 2, 1, None, 3]}


def test_a_second_query_runs_the_function_for_new_rows_only() -> None:
    seen: list[str] = []
    _length(seen)
    session = _session()
    first = session.sql("SELECT size(x) AS s FROM t WHERE n < 3")
    assert first.to_pydict() == {"s": [1, 2, 1]}
    second = session.sql("SELECT size(x) AS s FROM t")
    assert second.to_pydict() == SIZES
    assert seen == ["a", "bb", "ccc"]
    assert first.trace is not None
    assert second.trace is not None
    assert first.trace.function_rows == {"size(x)": 2}
    # One is the NULL, which needs no run.
    assert second.trace.stored_function_rows == {"size(x)": 2}
    assert second.trace.function_rows == {"size(x)": 1}


def test_others_run_again_in_each_query() -> None:
    seen: list[str] = []
    _length(seen, deterministic=False)
    session = _session()
    for _ in range(2):
        assert session.sql("SELECT size(x) AS s FROM t").to_pydict() == SIZES
    assert seen == ["a", "bb", "ccc"] * 2


RUNS: list[str] = []


def _define(version: str) -> None:
    @bf.ingredient(returns=pa.int64(), deterministic=version)
    def size(model: bf.UserModel, text: pa.StringArray) -> pa.Array:
        RUNS.extend(text.to_pylist())
        return pc.utf8_length(text).cast(pa.int64())


def test_a_file_keeps_results_until_the_version_changes(tmp_path: Path) -> None:
    RUNS.clear()
    for version, runs in (("1", 3), ("1", 3), ("2", 6), ("1", 6)):
        _define(version)
        with _session(tmp_path / "answers.sqlite") as session:
            assert session.sql("SELECT size(x) AS s FROM t").to_pydict() == SIZES
        assert len(RUNS) == runs


def test_the_digest_is_that_of_the_code_its_constants_and_its_plain_variables() -> None:
    def made(ending: object, constant: bool = False) -> object:
        def first(text: str) -> str:
            return f"{text}{ending}"

        def second(text: str) -> str:
            return f"{text}{ending}!"

        return second if constant else first

    assert code_digest(made("a")) == code_digest(made("a"))  # type: ignore[arg-type]
    assert code_digest(made("a")) != code_digest(made("b"))  # type: ignore[arg-type]
    assert code_digest(made("a")) != code_digest(made("a", True))  # type: ignore[arg-type]
    assert code_digest(made([])) != code_digest(made([]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", None, '"', "[1]"]),
        (pa.bool_(), [True, False, None, True]),
        (pa.float64(), [0.1, 1e300, None, float("inf")]),
        (pa.float32(), [0.5, 0.25, None, 3.0]),
        (pa.date32(), [datetime.date(2024, 2, 29), None, None, datetime.date(1, 1, 1)]),
        (pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 1, 2, 3, 45), None, None, None]),
        (pa.list_(pa.string()), [["a", None], [], None, ["1"]]),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": None}, None] * 2),
    ],
    ids=str,
)
def test_results_come_back_as_they_were(kind: pa.DataType, values: list[object]) -> None:
    runs: list[int] = []

    @bf.ingredient(returns=kind, deterministic=True)
    def some(model: bf.UserModel, n: pa.Int64Array) -> pa.Array:
        runs.append(len(n))
        return pa.array([values[i] for i in n.to_pylist()], kind)

    session = _session()
    session.from_pydict({"n": [0, 1, 2, 3]}, name="four")
    frames = [session.sql("SELECT some(n) AS v FROM four").to_arrow_table() for _ in range(2)]
    assert frames[0].equals(frames[1])
    assert frames[0]["v"].to_pylist() == values
    assert runs == [4]


def test_what_cannot_be_stored_is_refused_by_name() -> None:
    with pytest.raises(bf.ArgumentError, match="'blob' is deterministic") as error:

        @bf.ingredient(returns=pa.binary(), deterministic=True)
        def blob(model: bf.UserModel, text: pa.StringArray) -> pa.Array:
            return text.cast(pa.binary())

    assert "Return text" in str(error.value)


def test_a_question_that_failed_is_asked_again() -> None:
    answers: list[object] = [3, "a"]
    model = bf.ScriptedModel(lambda call: answers[0])
    session = bf.connect(model, cache=None, progress="off")
    session.from_pydict({"x": ["a"]}, name="t")

    @bf.ingredient(deterministic=True)
    def label(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
        return pc.fill_null(model.ask("Which?", text, options=["a", "b"]), "none")

    with pytest.warns(UserWarning, match="no valid answer"):
        assert session.sql("SELECT label(x) AS l FROM t").to_pydict() == {"l": ["none"]}
    del answers[0]
    assert session.sql("SELECT label(x) AS l FROM t").to_pydict() == {"l": ["a"]}
    calls = len(model.calls)
    assert session.sql("SELECT label(x) AS l FROM t").to_pydict() == {"l": ["a"]}
    assert len(model.calls) == calls


def test_literals_and_groups_are_part_of_the_key() -> None:
    @bf.ingredient(returns=pa.int64(), aggregate=True, deterministic=True)
    def most(model: bf.UserModel, n: pa.Int64Array, plus: int = 0) -> pa.Array:
        return pa.array([max(group) + plus for group in n.to_pylist()], pa.int64())

    session = _session()
    for _ in range(2):
        assert session.sql("SELECT most(n) AS m FROM t").to_pydict() == {"m": [3]}
        assert session.sql("SELECT most(n, 2) AS m FROM t").to_pydict() == {"m": [5]}
        assert session.sql("SELECT most(n) AS m FROM t WHERE n < 3").to_pydict() == {"m": [2]}
