"""Search in scripts without blanks, and queries that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import blendfusion as bf

pytest.importorskip("lance")

TEXTS = {
    1: "契約書の第一条",
    2: "自転車を買う。契約はない",
    3: "a red 🚲 in Tokyo (東京)",
    4: "สัญญาเช่าบ้าน",
    5: "ສັນຍາ and កិច្ចសន្យា",
    6: "hello café",
}


@pytest.fixture
def session(tmp_path: Path) -> bf.Session:
    session = bf.connect(
        None,
        cache=None,
        embedder=bf.ScriptedEmbedder(lambda texts: [[1.0, float(len(text))] for text in texts]),
    )
    table = pa.table({"id": [*TEXTS], "text": [*TEXTS.values()]})
    session.index("docs", table, columns=["text"], path=tmp_path / "docs.index")
    return session


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("契約書", {1, 2}),
        ('"契約書"', {1}),
        ("契約 AND NOT 自転車", {1}),
        ("自転車はどこですか", {2}),
        ("一", {1}),
        ("🚲", {3}),
        ("東京", {3}),
        ("京東", set()),
        ("red 自転車", {2, 3}),
        ("สัญญา", {4}),
        ('"เช่าบ้าน"', {4}),
        ("ສັນຍາ", {5}),
        ("កិច្ច", {5}),
        ("cafe", {6}),
    ],
)
def test_signs_are_found_where_they_stand_side_by_side(
    session: bf.Session, query: str, ids: set[int]
) -> None:
    found = session.search("docs", query, mode="text").to_pylist()
    assert {row["id"] for row in found} == ids
    assert all(row["text"] == TEXTS[row["id"]] for row in found)


@pytest.mark.parametrize("query", ["(((", "?!", "…", "a" * 5000, "_" * 10, "\u200b", '""'])
@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_a_query_without_words_finds_nothing(session: bf.Session, query: str, mode: str) -> None:
    assert session.search("docs", query, mode=mode).to_pylist() == []


def test_the_best_row_has_the_most_neighbours(session: bf.Session) -> None:
    assert session.search("docs", "契約書", mode="text").to_pydict()["id"][0] == 1


@pytest.mark.parametrize("where", ["price < ", "id <", "id = = 2", "(id = 1"])
def test_a_hint_names_something(session: bf.Session, where: str) -> None:
    with pytest.raises(bf.QueryError) as problem:
        session.search("docs", "café", where=where)
    assert str(problem.value).endswith(f"{where.strip()!r}.")


def test_a_hint_names_no_source_of_a_library(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError) as caught:
        session.search("docs", "a", where="lower(id) = 'a'")
    assert ".rs" not in str(caught.value)
