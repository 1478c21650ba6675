"""Read-only queries read registered tables and do nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from datafusion import SessionContext, SQLOptions, Table, udtf
from scripts import Counted, hashed

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.language.query_text.read_only import READING, check_plan, check_text

ROWS = {"id": [1, 2, 3], "x": ["a", "b", None]}


@pytest.fixture
def db() -> Counted:
    return Counted(hashed).add("t", ROWS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.csv"
    pyarrow.csv.write_csv(pa.table({"secret": ["s3cr3t"]}), path)
    return path


READS = [
    "SELECT * FROM t",
    " ( SELECT id FROM t ) UNION ALL (SELECT 1) ; ",
    "/* DROP TABLE t; */ SELECT 'INSERT INTO t' AS \"into\" -- ; DROP TABLE t",
    "WITH RECURSIVE r AS (SELECT 1 a UNION ALL SELECT a + 1 FROM r WHERE a < 3) SELECT * FROM r",
    "WITH c AS (SELECT * FROM t) SELECT c.x FROM c JOIN t USING (id) WHERE c.id IN (SELECT id FROM t)",
    "VALUES (1), (2)",
    "SELECT llm_group(x, into => 2) AS g FROM t",
    "FROM t",
    "SELECT * FROM generate_series(1, 3)",
    "SELECT * FROM range(1, 3)",
    "SELECT unnest([1, 2]), row_number() OVER () FROM t GROUP BY x",
    "SELECT DISTINCT ON (x) x FROM t ORDER BY x, id LIMIT 1",
    "SHOW TABLES",
    "DESCRIBE t",
    "EXPLAIN SELECT * FROM t",
    "EXPLAIN ANALYZE VERBOSE SELECT * FROM t",
    "EXPLAIN FORMAT TREE SELECT * FROM t",
    "SELECT * FROM t WHERE llm_filter('Is it?', x)",
    "SELECT llm_map('Which?', x, options => (SELECT x FROM t)) FROM t",
    "EXPLAIN ANALYZE SELECT llm_qa('What?', x) FROM t",
    "EXPLAIN VERBOSE SELECT * FROM t WHERE llm_filter('Is it?', x)",
    "SELECT * FROM t CROSS JOIN UNNEST([1, 2]) AS u(n)",
]

REFUSED = {
    "CREATE TABLE u AS SELECT 1": "CREATE TABLE on line 1",
    "\n create or replace table u as select llm_map('q', x) from t": "CREATE on line 2",
    "CREATE VIEW v AS SELECT 1": "CREATE VIEW",
    "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '/etc/passwd'": "CREATE EXTERNAL",
    "CREATE SCHEMA s": "CREATE SCHEMA",
    "CREATE DATABASE s": "CREATE DATABASE",
    "CREATE FUNCTION f() RETURNS INT RETURN 1": "CREATE FUNCTION",
    "ALTER TABLE t RENAME TO u": "ALTER TABLE",
    "DROP TABLE t": "DROP TABLE",
    "/* SELECT */ DROP VIEW v": "DROP VIEW",
    "INSERT INTO t VALUES (4, 'd')": "INSERT INTO",
    "INSERT INTO t SELECT id, llm_map('q', x) FROM t": "INSERT INTO",
    "UPDATE t SET x = 'z'": "UPDATE",
    "DELETE FROM t": "DELETE",
    "TRUNCATE TABLE t": "TRUNCATE TABLE",
    "MERGE INTO t USING t AS u ON t.id = u.id WHEN MATCHED THEN DELETE": "MERGE INTO",
    "COPY t TO 'out.csv'": "COPY",
    "COPY (SELECT llm_map('q', x) FROM t) TO 'out.parquet'": "COPY",
    "SET datafusion.execution.batch_size = 3": "SET",
    "SET blendfusion.read_only = false": "SET",
    "SET blendfusion.on_error = 'raise'": "SET",
    "RESET ALL": "RESET",
    "PREPARE p AS SELECT 1": "PREPARE",
    "EXECUTE p": "EXECUTE",
    "DEALLOCATE p": "DEALLOCATE",
    "BEGIN": "BEGIN",
    "COMMIT": "COMMIT",
    "USE other": "USE",
    "SELECT * INTO u FROM t": "INTO on line 1",
    "SELECT *\nINTO u\nFROM t WHERE llm_filter('q', x)": "INTO on line 2",
    "WITH c AS (SELECT 1) SELECT * INTO u FROM c": "INTO",
    "WITH c AS (INSERT INTO t VALUES (1, 'a') RETURNING *) SELECT * FROM c": "INTO",
    "WITH c AS (SELECT 1) INSERT INTO t SELECT 1, 'a'": "INTO",
    "SELECT 1; DROP TABLE t": "a second statement",
    "SELECT 1;\n;SELECT 2": "a second statement",
    "EXPLAIN INSERT INTO t VALUES (1, 'a')": "INSERT INTO",
    "EXPLAIN ANALYZE INSERT INTO t VALUES (1, 'a')": "INSERT INTO",
    "EXPLAIN /* */ ANALYZE /* */ COPY t TO 'out.csv'": "COPY",
    "EXPLAIN ANALYZE VERBOSE CREATE TABLE u AS SELECT 1": "CREATE TABLE",
    "EXPLAIN EXPLAIN SET a = 1": "SET",
    "EXPLAIN\n" * 5_000 + "DROP TABLE t": "DROP TABLE on line 5001",
    "EXPLAIN /* /* */ */ DROP TABLE t": "DROP TABLE",
    "EXPLAIN -- ANALYZE SELECT\nDROP TABLE t": "DROP TABLE",
    "SELECT * FROM __blendfusion.stages.run1_0": "__blendfusion",
    'SELECT * FROM "__blendfusion"."stages"."run1_0"': "__blendfusion",
}


@pytest.fixture(params=["query", "session"])
def guarded(request: pytest.FixtureRequest, db: Counted) -> Iterator[object]:
    """A function that runs a query read-only: by the argument, and by the session's option."""
    if request.param == "query":
        yield lambda text, **more: db.session.sql(text, read_only=True, **more)
    else:
        db.session.options = db.session.options.with_(read_only=True)
        yield lambda text, **more: db.session.sql(text, **more)


@pytest.mark.parametrize("text", READS)
@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")
def test_what_reads_runs_as_ever(guarded: object, db: Counted, text: str) -> None:
    table = guarded(text).to_arrow_table()  # type: ignore[operator]
    db.session.options = db.session.options.with_(read_only=False)
    assert table.schema == db.session.sql(text).to_arrow_table().schema


@pytest.mark.parametrize(("text", "what"), REFUSED.items(), ids=lambda text: ascii(text[-40:]))
def test_what_does_more_is_refused_before_it_happens(
    guarded: object,
    db: Counted,
    text: str,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bf.QueryError, match=f"^read-only: {what}") as refused:
        guarded(text)  # type: ignore[operator]
    assert "A read-only query reads registered tables" in str(refused.value)
    assert db.session.catalog().schema().names() == {"t"}
    assert db.model.calls == []
    assert list(tmp_path.iterdir()) == []
    db.session.options = db.session.options.with_(read_only=False)
    assert db.number("SELECT count(*) FROM t") == 3


@pytest.mark.parametrize(
    "text", [t for t in REFUSED if "blendfusion" not in t], ids=lambda text: ascii(text[-40:])
)
def test_datafusion_alone_refuses_it_too(db: Counted, text: str) -> None:
    with pytest.raises(bf.QueryError):
        db.session.sql(text, options=READING)
    assert db.session.catalog().schema().names() == {"t"}


@pytest.mark.parametrize(
    "text", ["INSERT INTO t VALUES (1, 'a')", "COPY t TO 'out.csv'", "DELETE FROM t"]
)
def test_the_plan_alone_is_refused_too(db: Counted, text: str) -> None:
    plan = SessionContext.sql(db.session, text).logical_plan()
    with pytest.raises(bf.QueryError, match=r"^read-only: .* is refused"):
        check_plan(plan)


def test_weaker_options_of_datafusion_do_not_help(db: Counted) -> None:
    with pytest.raises(bf.QueryError, match="read-only: DROP TABLE"):
        db.session.sql("DROP TABLE t", SQLOptions(), read_only=True)
    with pytest.raises(bf.QueryError, match="read-only: DROP TABLE"):
        Counted(hashed, read_only=True).session.sql_with_options("DROP TABLE t", SQLOptions())


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "place", ["'{}'", '"{}"', "'file://{}'", "read_csv('{}')", "parquet_scan('{}')"]
)
def test_a_path_is_no_table(db: Counted, file: Path, place: str, read_only: bool) -> None:
    for query in (
        "SELECT * FROM {}",
        "SELECT llm_map('q', x, options => (SELECT * FROM {})) FROM t",
    ):
        with pytest.raises(bf.QueryError) as refused:
            db.session.sql(query.format(place.format(file)), read_only=read_only)
        assert "s3cr3t" not in str(refused.value)


def test_paths_cannot_be_made_tables(db: Counted) -> None:
    with pytest.raises(bf.OptionError, match="cannot read files by their paths"):
        db.session.enable_url_table()


@pytest.mark.parametrize(
    "place",
    [
        "anything('a')",
        "ANYTHING ('a')",
        '"anything"(1)',
        "anything/* */(1)",
        "(SELECT * FROM anything())",
    ],
)
def test_table_functions_do_not_run(db: Counted, file: Path, place: str) -> None:
    ran = []
    table = Table(SessionContext().read_csv(str(file)))

    def read(*arguments: object) -> Table:
        ran.append(arguments)
        return table

    db.session.register_udtf(udtf(read, "anything"))
    for query in (
        f"SELECT * FROM {place}",
        f"SELECT llm_map('q', x, options => (SELECT * FROM {place})) FROM t",
    ):
        with pytest.raises(bf.QueryError, match="read-only: anything"):
            db.session.sql(query.replace("ANYTHING", "anything"), read_only=True)
    with pytest.raises(bf.QueryError, match="read-only: anything"):
        db.session.sql("SELECT * FROM $place", read_only=True, place=place.lower())
    assert ran == []
    assert db.session.sql("SELECT * FROM anything(1)").to_pydict() == {"secret": ["s3cr3t"]}


def test_a_frame_may_be_put_into_a_query(db: Counted) -> None:
    asked = db.session.sql("SELECT id FROM t WHERE llm_filter('q', x)")
    frame = db.session.sql("SELECT count(*) FROM $rows", read_only=True, rows=asked)
    assert db.model.calls == []
    assert frame.to_pydict() != {}


def test_set_switches_it_on_and_never_off(db: Counted) -> None:
    db.session.sql("SET blendfusion.read_only = true")
    for text in ("SET blendfusion.read_only = false", "/**/ SET blendfusion.read_only = false"):
        with pytest.raises(bf.QueryError, match="read-only: SET"):
            db.session.sql(text)
    assert db.session.options.read_only


def test_the_program_itself_may_still_register_and_write(db: Counted, tmp_path: Path) -> None:
    db.session.options = db.session.options.with_(read_only=True)
    db.session.from_pydict({"y": [1]}, name="u")
    db.session.sql("SELECT * FROM u").write_csv(str(tmp_path / "out"))
    assert db.rows("SELECT y FROM u") == [(1,)]


def test_the_words_of_an_error_hold_no_data() -> None:
    with pytest.raises(bf.QueryError) as refused:
        check_text("DROP 'a secret of some length in a literal'", ())
    assert "length" not in str(refused.value)


def test_the_command_refuses_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = ["--table", f"t={file}", "--read-only", "--cache", "off"]
    assert main(["query", "SELECT secret FROM t", *table, "--format", "csv"]) == 0
    assert "s3cr3t" in capsys.readouterr().out
    assert main(["query", f"COPY t TO '{file}.copy'", *table]) == 2
    assert "error: read-only: COPY on line 1 is refused" in capsys.readouterr().err
    assert list(file.parent.iterdir()) == [file]
