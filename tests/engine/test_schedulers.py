"""The recipes of docs/howto.md in Airflow and Dagster themselves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = os.environ.get("BLENDFUSION_SCHEDULERS", "")
"""A folder with a folder ``airflow`` and a folder ``dagster``, in which they are installed, if they
are not beside BlendFusion."""
HOWTO = (Path(__file__).parents[2] / "docs" / "howto.md").read_text("utf-8")
BEGIN = """
import sys
import blendfusion as bf

asked = []
connect = bf.connect

def answer(call):
    asked.append(call.values[0])
    return "delivery" if "late" in call.values[0] else "payment"

bf.connect = lambda model="auto", **options: connect(
    bf.ScriptedModel(answer, name="small", fingerprint="by the word late"), **options
)
"""
AIRFLOW = """
from airflow.sdk import dag, task

@dag(schedule=None)
def tickets():
    topics("2026-11-02")

RECIPE

(made,) = tickets().tasks
assert (made.task_id, made.retries) == ("topics", 2), made
for _ in range(2):
    topics.function("2026-11-02")
"""
DAGSTER = """
import dagster

task = lambda **arguments: lambda function: function

RECIPE

for _ in range(2):
    assert dagster.materialize([topics_of_day], partition_key="2026-11-02").success
"""
END = """
assert sorted(asked) == ["It came late.", "The card was refused."], asked
rows = connect(cache=None).read_parquet("topics/2026-11-02.parquet").to_pydict()
assert rows == {"ticket_id": [1, 2, 3], "topic": ["delivery", "payment", "delivery"]}, rows
"""
TICKETS = """
bf.StoredQuestion("topic", "llm_classify(text, ['delivery', 'payment'])").save("questions/topic.toml")
bodies = ["It came late.", "The card was refused.", "It came late."]
table = {"ticket_id": [1, 2, 3], "body": bodies}
connect(cache=None).from_pydict(table).write_parquet("2026-11-02/tickets.parquet")
"""


def recipe(beginning: str) -> str:
    """The block of docs/howto.md that begins so, with files of this machine."""
    found = re.search(rf"```py\n({re.escape(beginning)}.*?)```", HOWTO, re.DOTALL)
    assert found is not None
    text = found[1].replace("postgresql://airflow@db.example.org/answers", "answers.sqlite")
    return text.replace("s3://bucket/tickets/{day}/*.parquet", "{day}/*.parquet")


@pytest.mark.long
@pytest.mark.parametrize("scheduler", ["airflow", "dagster"])
def test_a_day_is_asked_once(scheduler: str, tmp_path: Path) -> None:
    beside = find_spec("dagster" if scheduler == "dagster" else "airflow") is not None
    if not (FOLDER or beside):
        pytest.skip(f"{scheduler} is not installed, and BLENDFUSION_SCHEDULERS names no folder")
    for folder in ("questions", "topics", "2026-11-02"):
        (tmp_path / folder).mkdir()
    recipes = recipe("# a task of Airflow")
    if scheduler == "dagster":
        recipes += recipe("# an asset of Dagster")
    program = {"airflow": AIRFLOW, "dagster": DAGSTER}[scheduler].replace("RECIPE", recipes)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + TICKETS + program + END],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(FOLDER) / scheduler),
            "AIRFLOW_HOME": str(tmp_path / "home"),
            "DAGSTER_HOME": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
