"""What the text of a trace names are attributes of the trace."""

from __future__ import annotations

import re

import blendfusion as bf


def test_the_names_in_a_trace_are_attributes_with_these_values() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), progress="off")
    session.from_pydict({"x": ["a", "b", "a"]}, "t")
    session.sql("SELECT llm_filter('q', x) FROM t WHERE x = 'a'").collect()
    frame = session.sql("SELECT llm_filter('q', x) FROM t")
    frame.collect()
    trace = frame.trace
    assert trace is not None
    found = dict(re.findall(r"(\w+)=([\d.]+)", repr(trace)))
    assert found["values"] == found["cached"] == "1"
    for name, text in found.items():
        value = getattr(trace, name)
        assert text == (f"{value:.2f}" if name == "seconds" else str(value)), name
        assert name in dir(trace)
    assert trace.waited_for == 0
    assert "in_vain" not in dir(trace)
