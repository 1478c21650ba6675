"""The rows in which two recorded runs differ, by cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main

ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "text": ["good a", "bad b", "good c"]}
QUERY = "SELECT id, text, llm_int('How long?', text) AS n FROM t WHERE llm_filter('Good?', text)"


def run(
    query: str = QUERY,
    rows: dict[str, list[Any]] = ROWS,
    add: int = 0,
    fingerprint: str = "one",
    **options: Any,
) -> bf.Manifest:
    def answer(call: bf.Request) -> object:
        text = call.values[0] or ""
        if call.constraint.kind == "boolean":
            return "good" in text or "All" in call.question
        return len(text) + len(call.question) + add

    model = bf.ScriptedModel(answer, fingerprint=fingerprint)
    with bf.connect(model, cache=None, progress="off", **options) as session:
        session.from_pydict(rows, name="t")
        return session.sql(query).manifest()


CORRECTED = {**ROWS, "text": ["good a", "bad b", "good cc"]}
CASES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "nothing": ({}, []),
    "value": ({"rows": CORRECTED}, [("changed", "value", ["text", "n"])]),
    "a row": (
        {"rows": {"id": [1, 2, 3, 4], "text": [*ROWS["text"], "good d"]}},
        [("added", "value", None)],
    ),
    "wording": (
        {"query": QUERY.replace("How long?", "How long is it?")},
        [("changed", "wording", ["n"])] * 2,
    ),
    "wording of a filter": (
        {"query": QUERY.replace("'Good?'", "'All?'")},
        [("added", "wording", None)],
    ),
    "threshold": ({"query": f"{QUERY} AND id < 3"}, [("removed", "query", None)]),
    "model": ({"fingerprint": "two", "add": 1}, [("changed", "model", ["n"])] * 2),
    "answer": ({"add": 1}, [("changed", "answer", ["n"])] * 2),
    "option": ({"chunk_rows": 1, "add": 1}, [("changed", "option", ["n"])] * 2),
    "value and model": (
        {"rows": CORRECTED, "fingerprint": "two", "add": 1},
        [("changed", "value or model", ["n"]), ("changed", "value", ["text", "n"])],
    ),
    "wording and model": (
        {"query": QUERY.replace("long?", "wide?"), "fingerprint": "two", "add": 1},
        [("changed", "wording or model", ["n"])] * 2,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_row_has_its_cause(case: str) -> None:
    changes, expected = CASES[case]
    with bf.connect(None, cache=None) as session:
        found = session.diff(run(), run(**changes)).to_pylist()
    assert [(row["change"], row["cause"], row["columns"]) for row in found] == expected


def test_a_number_of_the_query_is_a_threshold() -> None:
    with bf.connect(None, cache=None) as session:
        queries = [f"SELECT id FROM t WHERE llm_int('How long?', text) > {n}" for n in (13, 14)]
        frame = session.diff(*(run(query) for query in queries))
        assert frame.to_pydict() == {
            "change": ["removed"],
            "cause": ["threshold"],
            "columns": [None],
            "before": [{"id": 2}],
            "now": [None],
        }
        counted = session.sql("SELECT cause, count(*) AS n FROM $d GROUP BY cause", d=frame)
        assert counted.to_pylist() == [{"cause": "threshold", "n": 1}]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [tmp_path / "one.json", tmp_path / "two.json"]
    run().save(places[0])
    run(rows=CORRECTED).save(places[1])
    assert main(["diff", str(places[0]), str(places[0])]) == 0
    capsys.readouterr()
    assert main(["diff", *map(str, places), "--summary"]) == 1
    assert capsys.readouterr().out == (
        "1 row changed by value\nwhat differs between the runs: value\n"
    )
    assert main(["diff", *map(str, places), "--format", "csv"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].replace('"', "") == "change,cause,columns,before,now"
    assert lines[1].startswith(("changed,value", '"changed","value"'))
    assert main(["diff", *map(str, places), "--output", str(tmp_path / "d.parquet")]) == 1
    assert main(["diff", str(places[0]), str(tmp_path / "no.json")]) == 2
