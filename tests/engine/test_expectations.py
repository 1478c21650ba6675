"""What people expect of the product that no other file tries: a recipe of each scheduler, friendly
SQL, each format of a result, the types of a spreadsheet, colours of the input.

The recipes are those of docs/howto.md: their addresses are replaced by folders, nothing else.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main

HOWTO = (Path(__file__).parents[2] / "docs" / "howto.md").read_text("utf-8")
BODIES = ["It came late.", "The card was refused.", "It came late."]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the recipes ask about, in a folder with their tickets and their question."""
    monkeypatch.chdir(tmp_path)
    texts: list[str] = []

    def answer(call: Any) -> str:
        texts.append(call.values[0])
        return "delivery" if "late" in call.values[0] else "payment"

    connect = bf.connect
    monkeypatch.setattr(
        bf,
        "connect",
        lambda model="auto", **options: connect(
            bf.ScriptedModel(answer, name="small", fingerprint="by the word late"), **options
        ),
    )
    question = "llm_classify(text, ['delivery', 'payment'])"
    for folder in ("questions", "topics", "monday"):
        (tmp_path / folder).mkdir()
    bf.StoredQuestion("topic", question).save(tmp_path / "questions" / "topic.toml")
    return texts


def recipe(beginning: str, **replaced: str) -> str:
    """The block of docs/howto.md that begins so, with other addresses."""
    found = re.search(rf"```py\n({re.escape(beginning)}.*?)```", HOWTO, re.DOTALL)
    assert found is not None
    text = found[1]
    for address, place in replaced.items():
        assert ADDRESSES[address] in text
        text = text.replace(ADDRESSES[address], place)
    return text


ADDRESSES = {
    "dbt": "/var/lib/dbt/answers.sqlite",
    "store": "postgresql://airflow@db.example.org/answers",
    "bucket": "s3://bucket/tickets/{day}/*.parquet",
    "limit": "cost=5.0",
}


def test_a_model_of_dbt_asks_each_text_once(asked: list[str], tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(recipe("# models/topics.py of dbt", dbt=str(tmp_path / "a.sqlite")), names)

    class Relation:
        def arrow(self) -> pa.Table:
            return pa.table({"ticket_id": [1, 2, 3], "body": BODIES})

    class Dbt:
        def ref(self, name: str) -> Relation:
            assert name == "tickets"
            return Relation()

    for _ in range(2):
        rows = names["model"](Dbt(), None)
        assert rows.column("topic").to_pylist() == ["delivery", "payment", "delivery"]
    assert sorted(asked) == ["It came late.", "The card was refused."]


def task(**arguments: Any) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    """Airflow's decorator, which leaves the function as it is."""
    assert arguments == {"retries": 2}
    return lambda function: function


def test_a_task_of_airflow_is_repeated_for_nothing(asked: list[str], tmp_path: Path) -> None:
    bf.connect(cache=None).from_pydict({"ticket_id": [1, 2, 3], "body": BODIES}).write_parquet(
        "monday/tickets.parquet"
    )
    names: dict[str, Any] = {"task": task, "bf": bf}
    places = {"store": str(tmp_path / "a.sqlite"), "bucket": "{day}/*.parquet"}
    exec(recipe("# a task of Airflow", **places), names)
    for _ in range(2):
        names["topics"]("monday")
        rows = bf.connect(cache=None).read_parquet("topics/monday.parquet").to_pydict()
        assert rows == {"ticket_id": [1, 2, 3], "topic": ["delivery", "payment", "delivery"]}
    assert sorted(asked) == ["It came late.", "The card was refused."]

    exec(recipe("# a task of Airflow", **places | {"store": "off", "limit": "cost=0.0"}), names)
    with pytest.raises(bf.BudgetExceeded):
        names["topics"]("monday")


QUERIES = {
    "FROM t ORDER BY x LIMIT 1": [{"x": "1", "y": 1, "d": "2024-05-01"}],
    "FROM t SELECT y ORDER BY y LIMIT 1": [{"y": 1}],
    "SELECT x, sum(y) AS n FROM t GROUP BY ALL ORDER BY x": [
        {"x": "1", "n": 3},
        {"x": "n/a", "n": 3},
    ],
    "SELECT * EXCEPT (d) FROM t ORDER BY y LIMIT 1": [{"x": "1", "y": 1}],
    "SELECT x, TRY_CAST(x AS DOUBLE) AS n, count(*) AS rows FROM t GROUP BY 1, 2 ORDER BY 1": [
        {"x": "1", "n": 1.0, "rows": 2},
        {"x": "n/a", "n": None, "rows": 1},
    ],
    "SELECT d, CAST(d AS DATE) AS day FROM t GROUP BY 1, 2": [
        {"d": "2024-05-01", "day": datetime.date(2024, 5, 1)}
    ],
    "SELECT y FROM t QUALIFY row_number() OVER (PARTITION BY x ORDER BY y DESC) = 1 ORDER BY y": [
        {"y": 2},
        {"y": 3},
    ],
    "SELECT count(*) AS n FROM t USING SAMPLE 2 ROWS": [{"n": 2}],
}


@pytest.mark.parametrize("query", QUERIES)
def test_friendly_sql(query: str) -> None:
    session = bf.connect(None, cache=None)
    table = {"x": ["1", "1", "n/a"], "y": [1, 2, 3], "d": ["2024-05-01"] * 3}
    session.from_pydict(table, name="t")
    assert session.sql(query).to_pylist() == QUERIES[query]


def test_a_spreadsheet_keeps_dates_numbers_and_booleans(tmp_path: Path) -> None:
    table = pa.table(
        {
            "day": [datetime.date(2024, 2, 29), None],
            "number": [1.5, -2.0],
            "whole": [1, 2],
            "yes": [True, False],
            "text": ["007", "ä"],
        }
    )
    session = bf.connect(None, cache=None)
    session.from_arrow(table, "t")
    query = ["query", "SELECT * FROM t", "--output", str(tmp_path / "o.xlsx")]
    session.from_arrow(table, "u").write_parquet(str(tmp_path / "t.parquet"))
    assert main([*query, "--table", f"t={tmp_path / 't.parquet'}"]) == 0
    read = session.register_file(tmp_path / "o.xlsx", "book").to_pylist()
    days = [row.pop("day") for row in read]
    assert [day and (day.year, day.month, day.day) for day in days] == [(2024, 2, 29), None]
    assert read == [
        {"number": 1.5, "whole": 1, "yes": True, "text": "007"},
        {"number": -2.0, "whole": 2, "yes": False, "text": "ä"},
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("o.csv", '"n","t"\n1,"a"\n'),
        ("o.tsv", "n\tt\n1\ta\n"),
        ("o.md", "| n | t |\n| ---: | --- |\n| 1 | a |\n"),
        ("o.html", "<td>1</td>"),
        ("o.jsonl", json.dumps({"n": 1, "t": "a"}) + "\n"),
    ],
)
def test_a_result_is_exported_by_the_name_of_its_file(
    name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "SELECT 1 AS n, 'a' AS t", "--output", str(tmp_path / name)]) == 0
    assert content in (tmp_path / name).read_text("utf-8")
    assert f"{name}, 1 row" in capsys.readouterr().err
