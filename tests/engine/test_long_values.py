"""Values longer than the model's window: functions of a row report them, groups are read in
parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task

WORDS = "The lid of this kettle does not close and hot water runs out of it. " * 36
TABLE = pa.table({"id": [1, 2, 3], "x": ["It leaks.", WORDS, "It broke."]})


class Narrow(bf.ScriptedModel):
    """Finds too long what has more than ``most`` tokens, whatever its window says."""

    def __init__(self, most: int, window: int = 4096) -> None:
        super().__init__(self._said, name=f"narrow{most}", window=window)
        self.most = most
        self.refused: list[Values] = []

    @staticmethod
    def _said(call: bf.Request) -> bool | int:
        return True if call.constraint.kind == "boolean" else len(call.values)

    def answer_each(
        self, task: Task, values: Sequence[Values], told: Callable[[int, Answer], None]
    ) -> list[Answer]:
        answers = super().answer_each(task, values, lambda place, answer: None)
        for i, row in enumerate(values):
            tokens = sum(self.count_tokens(v) for v in row if v)
            if tokens > self.most:
                self.refused.append(row)
                said = f"{tokens} tokens, the window is {self.most}"
                answers[i] = Answer.failed(said, answers[i].usage, too_long=True)
            elif task.form == "summary":
                answers[i] = Answer("a note", usage=answers[i].usage)
            told(i, answers[i])
        return answers


@pytest.fixture
def narrow() -> bf.Session:
    session = bf.connect(Narrow(400), progress="off", show_values="on")
    session.from_arrow(TABLE, name="t")
    return session


@pytest.mark.parametrize("call", ["llm_filter('q', x)", "llm_map('q', x)", "llm_int('q', x)"])
def test_a_function_of_a_row_reports_the_value(narrow: bf.Session, call: str) -> None:
    frame = narrow.sql(f"SELECT id, {call} AS v FROM t")
    with pytest.warns(bf.AnswerWarning, match="1 value .* tokens, the window is 400"):
        rows = frame.to_pylist()
    assert [row["id"] for row in rows if row["v"] is None] == [2]
    kept = call.removesuffix(")") + ", on_error => 'keep')['error']"
    errors = narrow.sql(f"SELECT {kept} AS e FROM t WHERE id = 2").to_pydict()["e"]
    assert errors == ["the model says '612 tokens, the window is 400'"]
    strict = call.removesuffix(")") + ", on_error => 'raise')"
    with pytest.raises(bf.AnswerError, match="612 tokens, the window is 400"):
        narrow.sql(f"SELECT {strict} FROM t").collect()


@pytest.mark.parametrize(
    "call",
    [
        "llm_qa('q', x)",
        "llm_summarize(x)",
        "llm_validate('q', x)",
        "llm_qa('q', x, on_error => 'raise')",
        "llm_qa('q', x, on_error => 'keep')['value']",
    ],
)
def test_a_group_is_read_in_parts_that_the_model_takes(call: str) -> None:
    model = Narrow(400)
    session = bf.connect(model, progress="off")
    session.from_arrow(TABLE, name="t")
    assert session.sql(f"SELECT {call} AS v FROM t").to_pydict()["v"] != [None]
    assert model.refused  # its window promised more
    seen = {word for request in model.calls for v in request.values for word in (v or "").split()}
    assert set(WORDS.split()) <= seen


def test_what_no_part_is_short_enough_for_fails_as_one_value() -> None:
    session = bf.connect(Narrow(2), progress="off", show_values="on")
    session.from_arrow(TABLE, name="t")
    frame = session.sql("SELECT llm_summarize(x) AS s FROM t")
    with pytest.warns(bf.AnswerWarning, match="^1 value .* the window is 2"):
        assert frame.to_pydict()["s"] == [None]


def test_a_longer_window_takes_what_a_shorter_one_does_not() -> None:
    session = bf.connect([Narrow(400), Narrow(4000)], progress="off")
    session.from_arrow(TABLE, name="t")
    frame = session.sql("SELECT llm_int('q', x) AS n FROM t ORDER BY id")
    assert frame.to_pydict()["n"] == [1, 1, 1]
    assert frame.trace.calls["model"].to_pylist() == ["narrow400", "narrow4000", "narrow400"]


@pytest.mark.long
@pytest.mark.local
def test_the_packaged_model_reports_rows_and_reads_groups_in_parts() -> None:
    with bf.connect("smollm2", n_ctx=512, cache=None, max_tokens=16, progress="off") as session:
        session.from_arrow(TABLE, name="t")
        errors = session.sql(
            "SELECT llm_filter('Did it break?', x, on_error => 'keep')['error'] AS e FROM t ORDER BY id"
        ).to_pydict()["e"]
        assert errors[0] is errors[2] is None
        assert errors[1].startswith("the value takes ")
        assert errors[1].endswith("with its question and the answer, the window is 512")
        frame = session.sql("SELECT llm_summarize(x) AS v FROM t")
        assert frame.to_pydict()["v"] != [None]
        assert frame.trace.usage.values > 2


@pytest.mark.local
def test_a_question_longer_than_the_window_is_said_to_be_that() -> None:
    question = "Did it break? " * 120
    with bf.connect("smollm2", n_ctx=512, cache=None, progress="off") as session:
        session.from_arrow(TABLE, name="t")
        for call in (f"llm_filter('{question}', x", f"llm_validate('{question}', x"):
            frame = session.sql(f"SELECT {call}, on_error => 'keep')['error'] AS e FROM t LIMIT 1")
            assert frame.to_pydict()["e"][0].endswith("the window is 512")
            assert "the question takes" in frame.to_pydict()["e"][0]
