"""What people expect of the product, and the tests that show it.

``EXPECTATIONS`` names the tests of each of forty points that people who tried the product looked
for. Those that have no better place are below: recipes of schedulers and services, friendly SQL,
each format of a result, the types of a spreadsheet, colours of the input, a dark scheme. The
recipes are those of docs/howto.md: their addresses are replaced by folders, nothing else.
"""

from __future__ import annotations

import ast
import datetime
import io
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.apps.cli.shell import Shell, _prompt

ROOT = Path(__file__).parents[2]
HOWTO = (ROOT / "docs" / "howto.md").read_text("utf-8")
BODIES = ["It came late.", "The card was refused.", "It came late."]

EXPECTATIONS = {
    "an install without a compiler": "test_release.py::test_the_wheel_answers_without_a_compiler",
    "wheels for an index of packages": "test_packaging.py::test_an_index_takes_both_files_and_renders_the_readme test_packaging.py::test_the_wheel_of_a_platform_serves_every_version_of_python",
    "a messy CSV file is read as it was written": "engine/files/test_csv_files.py::test_random_files_are_read_as_they_were_written engine/files/test_csv_files.py::test_line_breaks_in_quotes_are_no_ends_of_records_at_any_size",
    "delimiters, marks of encodings, gzip": "engine/files/test_files.py::test_another_delimiter_is_seen_in_the_header engine/files/test_files.py::test_compressed_text_is_read engine/files/test_converted_files.py::test_text_says_its_encoding_by_its_mark",
    "other encodings": "engine/files/test_csv_files.py::test_an_encoding_is_given_by_its_name",
    "the sheets of a workbook": "engine/services/spreadsheets/test_sheets.py::test_a_sheet_has_a_name engine/services/spreadsheets/test_sheets.py::test_a_note_names_the_sheets_that_are_left_out",
    "the types of a spreadsheet": "engine/test_expectations.py::test_a_spreadsheet_keeps_dates_numbers_and_booleans",
    "folders of Hive's form": "engine/files/test_folders.py::test_hive_partitions_are_columns",
    "S3: objects, patterns, folders, answers": "engine/files/test_objects.py::test_files_folders_and_patterns engine/files/test_objects.py::test_the_recipes_of_the_documentation_run engine/test_object_store.py::test_a_store_of_answers",
    "money and decimals": "engine/test_decimals.py::test_sums_of_decimals_are_exact udfs/register/test_parse_money.py::test_an_amount_is_read",
    "closed labels, NULL for blank texts": "models/wrappers/test_checked.py::test_an_answer_outside_of_the_constraint_is_a_failed_value models/test_scripted.py::test_a_value_outside_the_constraint_is_refused_not_coerced security/test_promises.py::test_7_what_is_null_without_a_call_is_what_the_docs_name",
    "NULL for what a text does not state": "engine/test_evidence.py::test_amounts_and_dates_of_bills_without_any_are_null",
    "the cost before the run": "engine/services/estimates/test_estimate.py::test_what_is_called_exact_is_exact engine/test_budget.py::test_cost_is_shown_where_prices_are_known",
    "limits that hold": "engine/test_budget.py::test_each_limit_ends_a_query_and_a_larger_budget_goes_on",
    "a killed run goes on": "engine/test_kill.py::test_a_killed_query_continues_where_it_stopped",
    "corrections by examples": "engine/services/subqueries/test_labelled_rows.py::test_labelled_rows_become_examples_of_each_label_in_turn",
    "answers measured against labels": "engine/services/evaluate/test_evaluate.py::test_a_frame_is_measured_against_its_labels engine/services/evaluate/test_evaluate.py::test_a_difference_is_tested_on_the_values_that_changed",
    "pictures of that": "engine/services/evaluate/test_evaluation_pictures.py::test_pictures_are_whole_and_safe",
    "pandas and Polars both ways": "engine/apps/notebooks/test_notebooks.py::test_frames_come_in_as_they_are_meant engine/test_frame.py::test_every_way_out_gives_the_rows_and_asks_each_distinct_value_once",
    "an accessor of data frames": "engine/apps/notebooks/test_notebooks.py::test_a_question_has_a_method_for_each_kind_of_answer engine/apps/notebooks/test_notebooks.py::test_a_polars_frame_is_asked_about",
    "progress within a batch": "engine/run/observe/test_progress.py::test_answers_of_one_batch_are_followed_one_by_one",
    "friendly SQL, summaries, samples": "engine/test_expectations.py::test_friendly_sql engine/services/short_forms/test_short_forms.py::test_a_summary_has_a_row_for_each_column engine/services/short_forms/test_short_forms.py::test_a_sample_has_so_many_rows",
    "groups by a column and its cast": "engine/language/query_text/test_named_casts.py::test_rows",
    "exports in each format": "engine/test_expectations.py::test_a_result_is_exported_by_the_name_of_its_file engine/files/test_files.py::test_every_type_is_written",
    "a shell": "journeys/test_journeys.py::test_an_analyst_in_the_shell engine/apps/cli/test_shell.py::test_completion engine/apps/cli/test_shell.py::test_modes",
    "colours of the input, a caret below the mistake": "engine/test_expectations.py::test_the_input_of_the_shell_has_colours engine/apps/cli/test_shell.py::test_a_mistake_on_a_terminal_has_a_caret",
    "the first screen of a big result at once": "engine/apps/cli/test_screens.py::test_the_cost_of_a_screen_is_that_of_its_rows engine/apps/cli/test_screens.py::test_the_first_rows_are_shown_before_the_others_are_asked",
    "a page in the browser": "engine/apps/ui/test_ui_clicks.py::test_from_a_table_to_an_answer",
    "exports, charts, tabs and files of the page": "engine/apps/ui/test_ui_clicks.py::test_rows_are_sorted_filtered_summed_up_and_saved engine/apps/ui/test_ui_clicks.py::test_texts_keep_in_tabs_and_after_a_reload engine/apps/ui/test_ui.py::test_files_are_opened_as_tables",
    "keyboard, phone, dark": "engine/apps/ui/test_ui_clicks.py::test_stop_and_confirm_by_keyboard engine/apps/ui/test_ui_clicks.py::test_a_narrow_screen_needs_no_sideways_scrolling engine/test_expectations.py::test_the_page_and_the_site_have_a_dark_scheme",
    "names for readers of screens": "engine/apps/ui/test_ui_clicks.py::test_every_control_has_a_name_and_every_list_its_parts test_site.py::test_readers_of_screens_hear_names_and_no_empty_heads",
    "questions become queries, with doubts": "engine/services/ask/test_text_to_sql.py::test_the_draft_is_shown_and_asks_nothing_until_it_is_run engine/services/ask/test_wrong_drafts.py::test_a_draft_that_may_be_wrong_has_a_note",
    "DB-API, SQLAlchemy, ADBC": "engine/services/dbapi/test_dbapi.py::test_the_module_is_that_of_pep_249 engine/services/dbapi/test_dbapi.py::test_reflection engine/services/server/test_flight_sql.py::test_queries_ask_and_answer",
    "Flight SQL": "engine/services/server/test_flight_sql.py::test_prepared_statements_take_values engine/services/server/test_flight_sql.py::test_the_command",
    "a server of MCP": "engine/services/mcp/test_mcp.py::test_the_tools engine/services/mcp/test_mcp.py::test_a_budget_is_mandatory_and_holds",
    "a service with an event loop": "engine/test_async.py::test_the_event_loop_goes_on engine/test_async.py::test_many_tasks_share_a_session",
    "dbt and Airflow": "engine/test_expectations.py::test_a_model_of_dbt_asks_each_text_once engine/test_expectations.py::test_a_task_of_airflow_is_repeated_for_nothing",
    "answers in PostgreSQL": "engine/test_cache.py::test_a_second_session_asks_nothing_wherever_the_answers_are models/services/shared_stores/test_shared_stores.py::test_a_server_that_comes_back_gets_what_it_missed",
    "logs and OpenTelemetry": "engine/test_logs.py::test_a_query_is_told_from_start_to_end engine/run/reports/test_spans.py::test_metrics_agree_with_the_trace",
    "a reference in pages, with a dark scheme": "test_site.py::test_every_public_name_is_in_the_reference test_site.py::test_no_generated_page_is_endless engine/test_expectations.py::test_the_page_and_the_site_have_a_dark_scheme",
}
"""Tests of the forty points; docs and journeys show the same in one piece."""


def test_every_expectation_has_tests_that_are_there() -> None:
    assert len(EXPECTATIONS) == 40
    for test in " ".join(EXPECTATIONS.values()).split():
        file, name = test.split("::")
        tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
        assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, test


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
    "most": "values=100_000",
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


def test_a_service_of_fastapi_asks_each_text_once(asked: list[str], tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    bf.connect(cache=None).from_pydict({"ticket_id": [1, 2, 3], "body": BODIES}).write_parquet(
        "tickets.parquet"
    )
    names: dict[str, Any] = {}
    exec(recipe("# service.py", most="values=3"), names)
    with TestClient(names["app"], raise_server_exceptions=False) as client:
        for _ in range(2):
            assert client.get("/tickets", params={"topic": "delivery"}).json() == [
                {"ticket_id": 1},
                {"ticket_id": 3},
            ]
        found = client.get("/tickets", params={"topic": "delivery", "most": 1})
        assert found.json() == [{"ticket_id": 1}]
        for wrong in ({"topic": "' OR true --"}, {"topic": "delivery", "most": "x"}):
            assert client.get("/tickets", params=wrong).status_code == 422
        sent = ["It came late.", "'; DROP TABLE tickets; --", "It came late."]
        answers = client.post("/topics", json=sent)
        assert answers.json() == ["delivery", "payment", "delivery"]
        for number in (0, 1001):
            assert client.post("/topics", json=["x"] * number).status_code == 422
        assert sorted(asked) == sorted({*BODIES, *sent})
        refused = client.post("/topics", json=["A fourth text."])
        assert (refused.status_code, refused.json()) == (429, {"detail": "the budget is spent"})
        assert client.get("/tickets", params={"topic": "payment"}).json() == [{"ticket_id": 2}]
        with ThreadPoolExecutor(4) as pool:
            several = list(pool.map(lambda _: client.post("/topics", json=sent).json(), range(12)))
        assert several == [answers.json()] * 12


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


def test_the_input_of_the_shell_has_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blendfusion.apps.cli.shell.cache_folder", lambda: tmp_path)
    screen = io.StringIO()
    terminal = Vt100_Output(screen, lambda: Size(rows=24, columns=80), term="xterm-256color")
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=terminal):
        pipe.send_text("SELECT seven, 'text' FROM t WHERE x > 41;\r\\q\r")
        shell = Shell(bf.connect(None, cache=None))
        shell.interactive = True
        _prompt(shell)
    colour = {
        word: re.findall(rf"\x1b\[0([\d;]*)m{re.escape(word)}", screen.getvalue())[-1]
        for word in ("SELECT", "'text'", "41", "FROM")
    }
    assert colour["SELECT"] == colour["FROM"]
    assert len({"", colour["SELECT"], colour["'text'"], colour["41"]}) == 4


@pytest.mark.parametrize("file", ["engine/apps/ui/page.css", "mkdocs.yml"])
def test_the_page_and_the_site_have_a_dark_scheme(file: str) -> None:
    assert "(prefers-color-scheme: dark)" in (ROOT / file).read_text("utf-8")
