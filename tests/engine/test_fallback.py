"""A stage that DataFusion refuses at run time: the plain plan takes over, with a reason."""

from __future__ import annotations

import pytest

import blendfusion as bf
from blendfusion.errors import PlanError
from blendfusion.execution import Execution
from blendfusion.planner.stages import Stage


def test_a_refused_stage_falls_back_to_the_plain_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bf.ScriptedModel(lambda call: "b" in str(call.values[0]))
    session = bf.connect(model)
    session.from_pydict({"x": ["ab", "c", "b"]}, name="t")
    frame = session.sql("SELECT count(*) AS n FROM t WHERE llm_filter('Is there a b?', x)")
    assert "Stage 2" in frame.explain_text()

    source = Execution.source

    def refuse(self: Execution, stage: Stage) -> object:
        if stage.number == 1:
            raise PlanError("DataFusion does not read back its own plan")
        return source(self, stage)

    monkeypatch.setattr(Execution, "source", refuse)

    assert frame.to_pylist() == [{"n": 2}]
    assert len(model.calls) == 3  # what the first stage asked was not asked again
    assert frame.explain_text().startswith("Plain plan: DataFusion does not read back its own plan")
