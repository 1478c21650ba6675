"""dbt itself builds a project over files and an attached database."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Loopback, Reply, said, serving

FOLDER = os.environ.get("BLENDFUSION_DBT", "")
"""Where dbt-core is installed, if it is not beside BlendFusion."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER and importlib.util.find_spec("dbt_common") is None,
        reason="dbt-core is not installed, and BLENDFUSION_DBT names no folder with it",
    ),
]
ADAPTER = Path(__file__).parents[2] / "dbt_adapter"
FILES = {
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
models: {shop: {+materialized: table}}
""",
    "profiles.yml": """
shop:
  target: dev
  outputs:
    dev:
      type: blendfusion
      database: shop
      schema: main
      threads: 2
      attach: {shop: "sqlite:///shop.db"}
      tables: {reviews: reviews.csv}
      model: openai:m@URL
      cache: answers.sqlite
""",
    "reviews.csv": "id,product,text\n1,P1,It broke.\n2,P1,I love it.\n3,P2,It broke twice.\n",
    "seeds/products.csv": 'product,category,since,code\nP1,bags,2024-01-31,007\nP2,,2024-02-01,"a""b"\n',
    "seeds/schema.yml": """
version: 2
seeds:
  - {name: products, config: {column_types: {code: varchar}}}
""",
    "models/schema.yml": """
version: 2
sources:
  - {name: files, database: datafusion, schema: public, tables: [{name: reviews}]}
models:
  - name: complaints
    columns:
      - {name: id, data_tests: [unique, not_null]}
      - {name: broke, data_tests: [{accepted_values: {arguments: {values: [true], quote: false}}}]}
  - name: by_category
    columns: [{name: n, data_tests: [not_null]}]
  - name: topics
    columns: [{name: id, data_tests: [unique]}]
""",
    "models/complaints.sql": """
SELECT id, product, llm_filter('Did it break?', text) AS broke
FROM {{ source('files', 'reviews') }} WHERE llm_filter('Did it break?', text)
""",
    "models/recent.sql": "{{ config(materialized='ephemeral') }} SELECT * FROM {{ ref('complaints') }}",
    "models/by_category.sql": """{{ config(materialized='view') }}
SELECT p.category, count(*) AS n FROM {{ ref('recent') }} AS c
JOIN {{ ref('products') }} AS p ON c.product = p.product GROUP BY p.category
""",
    "models/above.sql": """{{ config(materialized='view') }}
SELECT sum(n) AS total FROM {{ ref('by_category') }}
""",
    "models/topics.sql": """{{ config(materialized='incremental', unique_key='id') }}
SELECT id, text FROM {{ source('files', 'reviews') }}
{% if is_incremental() %} WHERE id >= (SELECT max(id) FROM {{ this }}) {% endif %}
""",
    "models/log.sql": """{{ config(materialized='incremental') }}
SELECT count(*) AS n FROM {{ source('files', 'reviews') }}
""",
}


def script(body: Body) -> Reply:
    """Whether something broke."""
    return Reply(json.dumps({"answer": "broke" in said(body)}))


class Project:
    """A dbt project in a folder."""

    def __init__(self, folder: Path, server: Loopback) -> None:
        self.folder, self.server = folder / "project", server
        for name, text in FILES.items():
            self.write(name, text.replace("URL", server.url))
        plugins = folder / "plugins"
        (plugins / "dbt" / "adapters").mkdir(parents=True)
        (plugins / "dbt" / "adapters" / "blendfusion").symlink_to(ADAPTER)
        path = [str(plugins), *([FOLDER] if FOLDER else []), os.environ.get("PYTHONPATH", "")]
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "0",
            "DBT_PROFILES_DIR": str(self.folder),
        }

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def run(self, *arguments: str, code: int = 0) -> str:
        """What dbt says. It runs to its end with that exit status."""
        command = "import sys; from dbt.cli.main import cli; cli(sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", command, "--no-use-colors", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def results(self) -> dict[str, str]:
        """The status of each node of the latest command."""
        found = json.loads((self.folder / "target" / "run_results.json").read_text("utf-8"))
        return {row["unique_id"].split(".")[2]: row["status"] for row in found["results"]}

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table, as the database itself has them."""
        connection = sqlite3.connect(self.folder / "shop.db")
        try:
            return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        finally:
            connection.close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with serving(script) as server:
        yield Project(tmp_path, server)


def test_a_project_is_built_tested_and_brought_up_to_date(project: Project) -> None:
    project.run("build")
    assert set(project.results().values()) == {"success", "pass"}
    assert len(project.results()) == 11
    assert project.rows("complaints") == [(1, "P1", 1), (3, "P2", 1)]
    assert project.rows("products") == [
        ("P1", "bags", "2024-01-31", "007"),
        ("P2", None, "2024-02-01", 'a"b'),
    ]
    assert [row[0] for row in project.rows("topics")] == [1, 2, 3]
    assert project.rows("log") == [(3,)]
    asked = len(project.server.bodies)
    assert asked == 3

    reviews = FILES["reviews.csv"].replace("It broke twice.", "It broke thrice.")
    project.write("reviews.csv", reviews + "4,P2,Broken? No: broke.\n")
    project.run("run")
    assert project.rows("complaints") == [(1, "P1", 1), (3, "P2", 1), (4, "P2", 1)]
    assert project.rows("topics")[2:] == [(3, "It broke thrice."), (4, "Broken? No: broke.")]
    assert project.rows("log") == [(3,), (4,)]
    assert len(project.server.bodies) == asked + 2  # the new texts alone

    shown = project.run("show", "--output", "json", "--inline", "SELECT * FROM {{ ref('above') }}")
    assert '"total": 3' in shown  # a view of a view, in a process of its own
    project.run("test")
    assert set(project.results().values()) == {"pass"}
    project.run("run", "--full-refresh", "--select", "log")
    assert project.rows("log") == [(4,)]
    project.run("docs", "generate")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text("utf-8"))["nodes"]
    assert list(catalog["model.shop.complaints"]["columns"]) == ["id", "product", "broke"]
    assert catalog["model.shop.above"]["metadata"]["type"] == "view"


def test_a_test_that_fails_and_a_model_that_is_wrong_say_so(project: Project) -> None:
    project.write("reviews.csv", FILES["reviews.csv"] + "1,P1,It broke again.\n")
    project.write("models/wrong.sql", "SELECT nope FROM {{ source('files', 'reviews') }}")
    said_by_dbt = project.run("build", "--select", "complaints", "wrong", code=1)
    found = project.results()
    assert (found["unique_complaints_id"], found["not_null_complaints_id"]) == ("fail", "pass")
    assert found["wrong"] == "error"
    assert "unknown column 'nope'" in said_by_dbt
    assert project.rows("complaints") == [(1, "P1", 1), (1, "P1", 1), (3, "P2", 1)]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("materialized='incremental', incremental_strategy='delete+insert'", "not 'delete+insert'"),
        ("materialized='incremental', incremental_strategy='merge'", "with a unique_key"),
        ("materialized='incremental', on_schema_change='sync_all_columns'", "--full-refresh"),
        ("materialized='table', schema='elsewhere'", "has no schema 'main_elsewhere'"),
    ],
)
def test_what_it_does_not_do_is_an_error(project: Project, head: str, reason: str) -> None:
    project.write("models/other.sql", "{{ config(" + head + ") }} SELECT 1 AS a")
    status = 2 if "schema=" in head else 1
    assert reason in project.run("run", "--select", "other", code=status)


def test_a_new_column_of_an_incremental_model_is_an_error(project: Project) -> None:
    project.run("run", "--select", "log")
    project.write("models/log.sql", FILES["models/log.sql"].replace("AS n", "AS n, 1 AS more"))
    assert "has no column 'more'" in project.run("run", "--select", "log", code=1)
    assert project.rows("log") == [(3,)]
    project.run("run", "--select", "log", "--full-refresh")
    assert project.rows("log") == [(3, 1)]


def test_a_folder_without_the_database_says_what_is_missing(project: Project) -> None:
    profile = FILES["profiles.yml"].replace("attach: {shop: ", "attach: {other: ")
    project.write("profiles.yml", profile)
    assert "'shop' is not among those under 'attach'" in project.run("debug", code=1)
