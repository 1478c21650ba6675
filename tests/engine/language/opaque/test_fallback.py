"""What cannot be staged runs plainly, with a reason: also a stage that DataFusion refuses."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import pyarrow as pa
import pytest
from scripts import Counted, spoken

import blendfusion as bf
from blendfusion.errors import PlanError
from blendfusion.planner.stages.split import Stage
from blendfusion.run.execution.executor import Execution

COUNT = "SELECT count(*) AS n FROM t WHERE llm_filter('Is there a b?', x)"


def test_a_refused_stage_falls_back_to_the_plain_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bf.ScriptedModel(lambda call: "b" in str(call.values[0]))
    session = bf.connect(model)
    session.from_pydict({"x": ["ab", "c", "b"]}, name="t")
    frame = session.sql(COUNT)
    assert "Stage 2" in frame.explain_text()

    source = Execution.source

    def refuse(self: Execution, stage: Stage) -> object:
        if stage.number == 1:
            raise PlanError("DataFusion does not read back its own plan")
        return source(self, stage)

    monkeypatch.setattr(Execution, "source", refuse)

    with pytest.warns(bf.PlanWarning, match="without the planner.*does not read back its own plan"):
        assert frame.to_pylist() == [{"n": 2}]
    assert len(model.calls) == 3  # what the first stage asked was not asked again
    assert frame.explain_text().startswith("Plain plan: DataFusion does not read back its own plan")
    with warnings.catch_warnings():  # once a session
        warnings.simplefilter("error")
        assert session.sql(COUNT).to_pylist() == [{"n": 2}]


FALLBACKS = {
    "a call in a recursion": (
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r "
        "WHERE i < 3 AND llm_filter('holds 1', i)) SELECT i FROM r ORDER BY i",
        "a recursive query cannot be expressed in Substrait",
        [(1,), (2,)],
    ),
    "a column of two tables": (
        "SELECT x FROM t LEFT JOIN u USING (x) WHERE llm_filter('holds a', t.x)",
        "an outer join with USING, of which * or a column without its table is read",
        [("a",)],
    ),
    "a result that says the type of a vector": (
        "SELECT arrow_typeof(v) FROM t WHERE llm_filter('holds a', x)",
        "a vector column cannot be expressed in Substrait",
        [("FixedSizeList(2 x Float32)",)],
    ),
    "a column of a type without a substitute": (
        "SELECT h FROM u WHERE llm_filter('holds a', x)",
        "a column of a type that cannot be expressed in Substrait",
        [(0.5,)],
    ),
}


@pytest.mark.parametrize("title", FALLBACKS)
def test_what_cannot_be_staged_runs_plainly_and_says_why(title: str) -> None:
    sql, why, rows = FALLBACKS[title]
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    halves = pa.array([0.5, 1.5], pa.float32()).cast(pa.float16())
    db = Counted(spoken).add("t", pa.table({"x": ["a", "b"], "v": vectors}))
    db.add("u", pa.table({"x": ["a", "b"], "h": halves}))
    assert db.session.sql(sql).explain_text().startswith(f"Plain plan: {why}")
    of_type = pytest.warns(bf.PlanWarning) if "of a type" in why else nullcontext()
    with of_type:
        assert db.rows(sql) == rows
