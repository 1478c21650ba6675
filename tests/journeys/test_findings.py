"""What five people met in their first hours, and the tests that show what they meet now.

An analyst, a user of notebooks, a user of DataFusion, an operator and a maintainer wrote down what
was wrong (C), missing (G), or a matter of taste (T). ``FINDINGS`` names the tests of each; those
that have no better place are below.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import RuntimeEnvBuilder, udf

import blendfusion as bf
from blendfusion.apps.cli.bench import Measurement, _cells
from blendfusion.apps.cli.main import main
from blendfusion.apps.cli.results import page_of, write

TESTS = Path(__file__).parents[1]
HERE = "journeys/test_findings.py"

FINDINGS = {
    "C1 text of a Parquet file is written as CSV": "engine/files/test_files.py::test_every_type_is_written",
    "C2 an unknown extension of --output is an error": "engine/files/test_files.py::test_an_unknown_extension_of_a_result_is_an_error",
    "C3 a problem of a file is one line with its remedy": "engine/files/test_files.py::test_an_array_of_json_objects_is_a_table "
    "engine/files/test_files.py::test_text_in_another_encoding_names_its_line_and_the_remedy "
    "engine/prepare/test_files_in_queries.py::test_every_problem_of_a_file_is_one_line",
    "C4 statements with calls are prepared": "engine/test_front_door.py::test_parameters_of_prepared_statements_are_values "
    f"{HERE}::test_a_prepared_statement_asks_and_is_dropped",
    "G1 progress moves below 256 values": "engine/run/observe/test_progress.py::test_answers_of_one_batch_are_followed_one_by_one "
    "engine/run/observe/test_progress.py::test_the_line_moves_before_the_first_answer_and_between_answers "
    "engine/run/observe/test_progress.py::test_the_time_left_is_known_before_the_first_answer",
    "G2 progress in a notebook": "engine/run/observe/test_progress.py::test_a_notebook_has_a_line_of_its_own "
    "engine/apps/notebooks/test_notebooks.py::test_a_notebook_runs_the_magic_and_shows_progress",
    "G3 a question without data": f"{HERE}::test_a_question_needs_no_table",
    "G4 an interactive shell": "journeys/test_journeys.py::test_an_analyst_in_the_shell",
    "G5 every kind of file on the command line": "engine/prepare/test_files_in_queries.py::test_compressed_files_folders_and_patterns "
    "engine/prepare/test_files_in_queries.py::test_the_command_reads_paths_in_queries "
    "engine/files/test_files.py::test_another_delimiter_is_seen_in_the_header "
    "engine/files/test_files.py::test_standard_input_is_a_table "
    "engine/prepare/test_files_in_queries.py::test_a_file_in_an_object_store",
    "G6 options and functions in SHOW and information_schema": "engine/prepare/test_information.py::test_options_are_settings "
    "engine/prepare/test_information.py::test_routines_are_a_table_like_any_other",
    "G7 errors in a log keep what is no value": f"{HERE}::test_a_log_names_settings_bounds_and_libraries",
    "G8 EXPLAIN and whole cells on the command line": "engine/files/test_files.py::test_a_plan_is_shown_as_it_is "
    f"{HERE}::test_explain_as_sql_is_a_tree {HERE}::test_cells_have_the_room_of_the_screen",
    "G9 a server answers as the same file in process": "models/services/http/test_server_ways.py::test_llama_server_answers_as_the_same_file_in_process",
    "G10 the demo tells how good its answers are": "engine/apps/cli/test_cli.py::test_the_demo_shows_as_many_mails_as_its_title_says",
    "G11 the demo of an installed wheel": "engine/apps/cli/test_cli.py::test_the_demo_runs_every_example_from_any_folder "
    "test_packaging.py::test_the_wheel_holds_every_module_once",
    "G12 several servers of one model": "models/services/http/test_balanced.py::test_values_are_divided_by_what_is_outstanding",
    "G13 a session of an existing context": "engine/datafusion/test_adopted_context.py::test_tables_of_the_context_are_asked_about_with_the_planner",
    "T1 a type checker knows the options": "engine/test_options.py::test_a_type_checker_catches_wrong_options",
    "T2 dir(bf) lists public names": "udfs/test_declarations.py::test_the_package_shows_its_public_names_only",
    "T3 a session is displayed in one line": "engine/apps/notebooks/test_notebooks.py::test_the_display_of_a_session_is_a_line",
    "T4 bf.col and bf.lit": "engine/apps/notebooks/test_notebooks.py::test_columns_and_literals_come_with_the_package",
    "T5 frames of pandas and Polars": "engine/apps/notebooks/test_notebooks.py::test_frames_come_in_as_they_are_meant",
    "T6 columns of a frame, pages of a trace": f"{HERE}::test_a_frame_has_columns_and_a_page_is_not_printed",
    "T7 an error in a notebook": "engine/apps/notebooks/test_notebooks.py::test_an_error_in_a_notebook_is_two_lines",
    "T8 names once; a label that is none": f"{HERE}::test_a_hint_names_a_column_once "
    "engine/language/query_text/test_context.py::test_a_text_that_is_no_label_is_a_warning",
    "T9 the share of a limit is at most all of it": f"{HERE}::test_no_rate_is_above_its_limit",
    "T10 models lists what one can name": "engine/apps/cli/test_models_command.py::test_weights_are_found_where_programs_put_them "
    "engine/apps/cli/test_models_command.py::test_what_is_not_installed_is_told",
    "T11 examples of the documentation are equal": "test_readme.py::test_python_sessions_print_what_is_shown",
}


def test_every_finding_has_a_test_that_is_there() -> None:
    assert [re.match(r"\w+", name)[0] for name in FINDINGS] == [  # type: ignore[index]
        *(f"C{i}" for i in range(1, 5)),
        *(f"G{i}" for i in range(1, 14)),
        *(f"T{i}" for i in range(1, 12)),
    ]
    for test in " ".join(FINDINGS.values()).split():
        file, name = test.split("::")
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, test


def answer(call: bf.Request) -> Any:
    if call.constraint.kind == "boolean":
        return True
    return call.constraint.options[0] if call.constraint.options else f"{call.task.question}!"


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(answer), cache=None)
    made.from_pydict({"n": [1, 2], "t": ["one", "two"]}, name="t")
    return made


def test_a_prepared_statement_asks_and_is_dropped(session: bf.Session) -> None:
    session.sql("PREPARE p(TEXT) AS SELECT n FROM t WHERE llm_filter('Is it?', t) AND t <> $1")
    assert session.sql("EXECUTE p('one')").to_pydict() == {"n": [2]}
    session.sql("DEALLOCATE p")
    with pytest.raises(bf.QueryError, match="'p' does not exist"):
        session.sql("EXECUTE p('one')")
    with pytest.raises(bf.ArgumentError, match=r"\$1 has no value") as raised:
        session.sql("PREPARE q(TEXT) AS SELECT t FROM t WHERE llm_filter($1, t)")
    assert "A prepared question is a literal" in str(raised.value.hint)


def test_a_question_needs_no_table(session: bf.Session) -> None:
    assert session.sql("SELECT llm_text('What?') AS a").to_pydict() == {"a": ["What?!"]}
    assert session.sql("SELECT llm_map('What?', 'France') AS a").to_pydict() == {"a": ["What?!"]}
    session.sql("CREATE TABLE b (n BIGINT, bad BOOLEAN)")
    session.sql("INSERT INTO b VALUES (9, llm_filter('bad?', 'bad'))").collect()
    assert session.table("b").to_pylist() == [{"n": 9, "bad": True}]


def test_a_log_names_settings_bounds_and_libraries() -> None:
    """Standard error is no terminal here, as that of cron is none."""
    small = RuntimeEnvBuilder().with_fair_spill_pool(3_000_000)
    session = bf.connect(
        bf.ScriptedModel(lambda call: "secret"), cache=None, runtime=small, on_error="raise"
    )
    session.from_pydict({"x": ["secret"]}, name="t")

    def scan(values: pa.Array) -> pa.Array:
        raise ValueError("get_fragments() does not support filter yet")

    session.register_udf(udf(scan, [pa.string()], pa.string(), "volatile", "scan"))
    said = {}
    for query in (
        "SELECT x FROM (SELECT CAST(value AS TEXT) AS x FROM generate_series(1, 1000000)) ORDER BY x",
        "SELECT scan(x) FROM t",
        "SELECT CAST(x AS INT) FROM t",
        "SELECT llm_score('How?', x) FROM t",
    ):
        with pytest.raises(bf.BlendFusionError) as raised:
            session.sql(query).collect()
        said[query[:12]] = str(raised.value)
    memory, library, cast, score = said.values()
    assert "memory" in memory
    assert "…" not in memory
    assert "raised ValueError: …() does not support filter yet" in library
    assert "Cannot cast string … to value of Int32 type" in cast
    assert "which is not score from 0 to 10" in score
    assert "secret" not in "".join(said.values())


def test_explain_as_sql_is_a_tree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "s.csv"
    table.write_text("name\na\n", "utf-8")
    assert (
        main(["query", "EXPLAIN SELECT name FROM s WHERE name = 'a'", "--table", str(table)]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "logical_plan:"
    assert any(line.startswith("  ") for line in lines)


def test_cells_have_the_room_of_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"x": ["abc" * 40], "n": [1]})
    for columns, shown in (("80", 59), ("200", 96), ("400", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        page = page_of(table)
        assert len(re.findall("[abc]", page)) == shown
        assert ("…" in page) == (shown < 120)
    write(table, "table", None, full_cells=True)  # a pipe of 160 columns: folded, not cut
    write(pa.table({"x": ["abc" * 100]}), "table", None, full_cells=True)
    assert len(re.findall("[abc]", capsys.readouterr().out)) == 420


def test_a_frame_has_columns_and_a_page_is_not_printed(session: bf.Session, tmp_path: Path) -> None:
    frame = session.sql("SELECT n FROM t WHERE llm_filter('Is it?', t)")
    assert (frame.columns, frame.count()) == (["n"], 2)
    frame.collect()
    shown: Any = frame.trace.to_html(tmp_path / "trace.html")
    assert shown is None  # a notebook shows the value of a cell
    with pytest.raises(TypeError, match="no len"):
        len(frame)  # type: ignore[arg-type]  # it would ask the model


def test_a_hint_names_a_column_once(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="unknown column 'zz'") as raised:
        session.sql("SELECT n, t FROM t ORDER BY zz")
    assert raised.value.hint == "Known: n, t."


def test_no_rate_is_above_its_limit() -> None:
    row = Measurement("q", bf.Usage(values=100, evaluated_tokens=100), seconds=1.0, limit=30.0)
    assert _cells(row)[-3:] == ("100.0", "100.0", "100%")
