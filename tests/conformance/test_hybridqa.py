"""Questions over tables and linked passages, by queries that a benchmark runs with a real model:
here each passage is read right, so a wrong answer is the plan's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hybridqa_queries import QUERIES, HybridQuery
from hybridqa_tables import FOLDER, Hybrid, is_right, reader
from public_sets import datasets

import blendfusion as bf

pytest.importorskip("lance", reason="needs the extra 'search'")
DATA = datasets()
pytestmark = pytest.mark.skipif(
    DATA is None or not (DATA / FOLDER).is_dir(),
    reason=f"no data set '{FOLDER}' in BLENDFUSION_DATA or in ../shared/data",
)

ASKED = (3, 1, 1, 1, 2, 1, 5, 1, 1, 1)
"""How many passages, or groups of them, the cheap predicates and joins leave to be read."""


@pytest.fixture(scope="module")
def hybrid() -> Hybrid:
    assert DATA is not None
    return Hybrid(DATA)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hybridqa") / "passages.index"


@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")  # a passage may say nothing
@pytest.mark.parametrize(
    ("query", "asked"),
    list(zip(QUERIES, ASKED, strict=True)),
    ids=[query.question_id for query in QUERIES],
)
def test_passages_that_are_read_right_give_the_gold_answer(
    query: HybridQuery, asked: int, hybrid: Hybrid, index: Path
) -> None:
    model = reader(query)
    frame = hybrid.frame(hybrid.session(model, index), query)
    assert not model.calls  # planning asks nothing
    assert is_right(frame.to_pylist(), hybrid.question(query).answer)
    assert frame.trace.usage.values == asked


def test_a_row_without_the_gold_answer_is_wrong() -> None:
    assert is_right([{"answer": "It is La Plata."}], "la plata")
    assert not is_right([{"answer": "La Plata"}, {"answer": "Salta"}], "La Plata")
    assert not is_right([{"answer": "19690"}], "1969")
    assert not is_right([{"answer": None}], "1969")
    assert not is_right([], "1969")


def test_no_relation_of_a_session_holds_questions_or_answers(hybrid: Hybrid, index: Path) -> None:
    session = hybrid.session(bf.ScriptedModel(lambda call: None), index)
    shown = {row["table_name"] for row in session.sql("SHOW TABLES").to_pylist()}
    assert {"tables", "cells", "links", "passages", "linked"} <= shown
    assert not shown & {"questions", "answer_nodes"}
