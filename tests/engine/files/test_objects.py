"""Folders and patterns in object stores, read from a small server that speaks S3."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3_server import ENVIRONMENT, serving

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.places.remote import open_store

ROWS = pa.table({"id": [1, 2], "x": ["a", "b"]})


def parquet(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


def arrow(table: pa.Table) -> bytes:
    content = io.BytesIO()
    with pa.ipc.new_file(content, table.schema) as file:
        file.write_table(table)
    return content.getvalue()


DATA = parquet(ROWS)
BREAKS = "".join(f'{n},"{"x" * 20},\n\nb",k\n' for n in range(400)).encode()
BUCKET: dict[str, bytes] = {
    "tickets/1.parquet": DATA,
    "tickets/2.parquet": DATA,
    "tickets/_SUCCESS": b"",
    "tickets/.3.parquet": DATA,
    "hive/_SUCCESS": b"",
    **{f"hive/month={month}/p.parquet": parquet(pa.table({"id": [int(month)]})) for month in ("01", "02", "12")},
    "odd/month=__HIVE_DEFAULT_PARTITION__/p.parquet": parquet(pa.table({"id": [0]})),
    "odd/month=1/p.parquet": parquet(pa.table({"id": [1]})),
    "deep/a/p.parquet": DATA,
    "deep/a/b/p.parquet": DATA,
    "deep/p.parquet": DATA,
    "wide/1.parquet": parquet(pa.table({"id": pa.array([1], pa.int32())})),
    "wide/2.parquet": parquet(pa.table({"id": pa.array([2], pa.int64()), "more": ["x"]})),
    "csv/a.csv": b"name,city\nAda,Rome\n",
    "csv/b.csv": b"city;name\nOslo;Bob\n",
    "breaks/t.csv": b"id,text,k\n" + BREAKS,
    "breaks/t.csv.gz": gzip.compress(b"id,text,k\n" + BREAKS),
    "head/t.csv": "# exported\nid,text\n1,ä\n".encode("latin-1"),
    "json/a.jsonl": b'{"x": 1}\n',
    "json/b.jsonl": b'{"x": 2}\n',
    "json/array.json": b'[{"x": 1}, {"x": 2}]',
    "arrow/a.arrow": arrow(ROWS),
    "a [b]/c*d é.csv": b"id\n1\n",
    "a [b]/cxd é.csv": b"id\n2\n",
    "delta/_delta_log/00000000000000000000.json": b"{}",
    "delta/p.parquet": DATA,
    "delta/day=1/p.parquet": DATA,
    "ice/metadata/v1.metadata.json": b'{\n "format-version": 2\n}',
    "ice/data/p.parquet": DATA,
    "hudi/.hoodie/hoodie.properties": b"#Updated at 2024\nhoodie.table.name=t\n",
    "hudi/p.parquet": DATA,
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving({"bucket": BUCKET, "empty": {}}, frozenset(["secret"])) as address:
        yield address


@pytest.fixture
def session(server: str, monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    model = bf.ScriptedModel(lambda call: True)
    return bf.connect(model, cache=None, show_values="on", read_files="urls")


def rows_of(frame: bf.Frame) -> list[dict[str, Any]]:
    return sorted(frame.to_pylist(), key=lambda row: (row.get("id", 0), str(row)))


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("tickets/*.parquet", 4),
        ("tickets/", 4),
        ("tickets", 4),
        ("tickets/1.parquet", 2),
        ("tickets/[12].parquet", 4),
        ("tickets/2*", 2),
        ("t*/?.parquet", 4),
        ("deep/**/*.parquet", 6),
        ("deep/*/*.parquet", 2),
        ("deep/", 2),
        ("hive/", 3),
        ("csv/", 2),
        ("breaks/t.csv", 400),
        ("breaks/*.gz", 400),
        ("json/*.jsonl", 2),
        ("json/array.json", 2),
        ("arrow/", 2),
        ("a [b]/c*d é.csv", 1),
        ("a%20%5Bb%5D/", 2),
    ],
)
def test_files_folders_and_patterns(place: str, count: int, session: bf.Session) -> None:
    url = f"s3://bucket/{place}"
    assert session.register_file(url, "t").count() == count
    assert session.sql(f"SELECT count(*) AS n FROM '{url}'").to_pylist() == [{"n": count}]


def test_the_command_reads_patterns(
    session: bf.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "tickets=s3://bucket/tickets/*.parquet"
    assert (
        main(["query", "SELECT x FROM tickets ORDER BY x", "--table", table, "--format", "csv"])
        == 0
    )
    assert capsys.readouterr().out == '"x"\n"a"\n"a"\n"b"\n"b"\n'


@pytest.mark.parametrize(
    "place", ["hive/", "hive/*/*.parquet", "hive/**/*.parquet", "hive/month=*/p.parquet"]
)
def test_partitions_are_columns(place: str, session: bf.Session) -> None:
    frame = session.register_file(f"s3://bucket/{place}", "t")
    assert rows_of(frame) == [{"id": int(month), "month": month} for month in ("01", "02", "12")]
    query = "FROM t WHERE month = '02'"
    assert session.sql(f"SELECT id {query} AND llm_filter('Good?', month)").to_pylist() == [
        {"id": 2}
    ]
    plan = "".join(session.sql(f"EXPLAIN SELECT id {query}").to_pydict()["plan"])
    assert "month=02/" in plan
    assert "month=01/" not in plan


def test_a_partition_of_null_and_some_of_the_partitions(session: bf.Session) -> None:
    assert rows_of(session.register_file("s3://bucket/odd/", "t")) == [
        {"id": 0, "month": None}, {"id": 1, "month": 1}
    ]  # fmt: skip
    assert rows_of(session.register_file("s3://bucket/hive/month=0*/*.parquet", "u")) == [
        {"id": 1, "month": "01"}, {"id": 2, "month": "02"}
    ]  # fmt: skip
    assert rows_of(session.register_file("s3://bucket/hive/month=12/", "v")) == [
        {"id": 12, "month": 12}
    ]


def test_an_external_table_over_objects_keeps_line_breaks(session: bf.Session) -> None:
    open_store(session, "s3://bucket/")
    place = "LOCATION 's3://bucket/breaks/t.csv'"
    session.sql(f"CREATE EXTERNAL TABLE t (id INT, text TEXT, k TEXT) STORED AS CSV {place}")
    assert session.sql("SELECT count(DISTINCT id) AS n FROM t").to_pylist() == [{"n": 400}]


def test_files_that_differ_are_put_together(session: bf.Session) -> None:
    with pytest.warns(bf.FileWarning, match=r"NULL for 'more' not in '1.parquet'"):
        frame = session.register_file("s3://bucket/wide/", "t")
    assert rows_of(frame) == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]
    assert rows_of(session.register_file("s3://bucket/csv/*.csv", "u")) == [
        {"name": "Ada", "city": "Rome"}, {"name": "Bob", "city": "Oslo"}
    ]  # fmt: skip
    with pytest.warns(bf.FileWarning, match="before its header are left out: '# exported'"):
        frame = session.register_file("s3://bucket/head/t.csv", "v", encoding="latin-1")
    assert frame.to_pylist() == [{"id": 1, "text": "ä"}]


def test_the_recipes_of_the_documentation_run(
    session: bf.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[3] / "docs/howto.md").read_text("utf-8")
    in_python = 'session.register_file("s3://bucket/tickets/*.parquet", "tickets")'
    in_command = "--table tickets=s3://bucket/tickets/*.parquet"
    assert in_python in text
    assert in_command in text
    eval(in_python, {"session": session})
    assert session.table("tickets").count() == 4
    assert (
        main(["query", "SELECT count(*) AS n FROM tickets", *in_command.split(), "--format", "csv"])
        == 0
    )
    assert capsys.readouterr().out == '"n"\n4\n'


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "s3://nowhere/x.parquet",
            "cannot read 's3://nowhere/x.parquet': there is no bucket 'nowhere'",
        ),
        ("s3://nowhere/x/", "there is no bucket 'nowhere'"),
        ("s3://nowhere/*.csv", "there is no bucket 'nowhere'"),
        ("s3://secret/x/*.csv", "access to 'secret' was refused"),
        ("s3://bucket/none.csv", "cannot read 's3://bucket/none.csv': there is no such file"),
        ("s3://bucket/none/", "there are no files in 's3://bucket/none/'"),
        ("s3://bucket/none/*.csv", "no file matches 's3://bucket/none/"),
        ("s3://empty/", "there are no files in 's3://empty/'"),
        ("s3:///x.csv", "names no bucket"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(url: str, message: str, session: bf.Session) -> None:
    with pytest.raises(bf.QueryError) as raised:
        session.register_file(url, "t")
    assert message in raised.value.message
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 120


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("delta/", "Delta Lake"),
        ("delta", "Delta Lake"),
        ("delta/p.parquet", "Delta Lake"),
        ("delta/*.parquet", "Delta Lake"),
        ("delta/day=1/", "Delta Lake"),
        ("d*/**/*.parquet", "Delta Lake"),
        ("ice/", "Iceberg"),
        ("ice/data/", "Iceberg"),
        ("ice/data/*.parquet", "Iceberg"),
        ("ice/**/*.parquet", "Iceberg"),
        ("hudi/", "Hudi"),
        ("hudi/p.parquet", "Hudi"),
    ],
)
def test_tables_with_a_log_are_refused_by_every_door(
    place: str, kind: str, session: bf.Session
) -> None:
    url = f"s3://bucket/{place}"
    open_store(session, url)
    doors: list[Callable[[], object]] = [
        lambda: session.register_file(url, "t"),
        lambda: session.sql(f"SELECT * FROM '{url}'"),
    ]
    others: list[Callable[[], object]] = [
        lambda: session.register_parquet("t", url),
        lambda: session.read_parquet(url),
        lambda: session.sql(f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{url}'"),
    ]
    # DataFusion itself knows no patterns there.
    for door in doors if "*" in place else doors + others:
        with pytest.raises(bf.QueryError, match=f"is a table of {kind}"):
            door()


def number(rows: str) -> bytes:
    return b"id,n,x\n" + "".join(f"{r},{r}0,{r}\n" for r in rows).encode()


FORMS: dict[str, list[Callable[[str], bytes]]] = {
    ".csv": [
        number,
        lambda rows: b"n,id,x\n" + "".join(f"{r}0,{r},{r}\n" for r in rows).encode(),
        lambda rows: b"x;id\n" + "".join(f"{r};{r}\n" for r in rows).encode(),
        lambda rows: b"id,n,x\n" + "".join(f"{r},{r}.5,{r}\n" for r in rows).encode(),
        lambda rows: b"# note\nid,x\n" + "".join(f"{r},{r}\n" for r in rows).encode(),
    ],
    ".jsonl": [
        lambda rows: "".join(f'{{"id": {r}, "x": "{r}"}}\n' for r in rows).encode(),
        lambda rows: "".join(f'{{"id": {r}, "x": {r}, "n": 1}}\n' for r in rows).encode(),
    ],
    ".parquet": [
        lambda rows: parquet(pa.table({"id": [*map(int, rows)], "x": [*rows]})),
        lambda rows: parquet(pa.table({"id": [int(r) + 0.5 for r in rows], "x": [*rows]})),
        lambda rows: parquet(pa.table({"x": [*rows], "n": [*rows], "id": [*map(int, rows)]})),
    ],
}
LATER = ("SELECT * FROM t", "SELECT * FROM v", "SELECT id FROM t WHERE llm_filter('q', x)")


@pytest.mark.filterwarnings("ignore::blendfusion.FileWarning")
@pytest.mark.parametrize(
    "place", ["s3://changing/t/", "s3://changing/t/*{}", "s3://changing/t/0{}"]
)
@pytest.mark.parametrize("ending", FORMS)
def test_objects_change_come_and_go(
    ending: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> bf.Session:
        made = bf.connect(bf.ScriptedModel(lambda call: "1" not in call.values[0]), cache=None)
        made.register_file(place.format(ending), "t")
        made.sql("CREATE VIEW v AS SELECT x, id FROM t")
        return made

    def results(session: bf.Session) -> list[list[str]]:
        queries = [session.sql(query).to_pylist() for query in LATER]
        return [sorted(str(sorted(row.items())) for row in rows) for rows in queries]

    objects, forms = {f"t/0{ending}": FORMS[ending][0]("1")}, FORMS[ending]
    with serving({"changing": objects}, frozenset()) as address:
        for key, value in {**ENVIRONMENT, "AWS_ENDPOINT": address}.items():
            monkeypatch.setenv(key, value)
        old = opened()
        results(old)
        for write in [*forms, forms[0]]:
            before, frame = objects[f"t/0{ending}"], old.sql("SELECT id, x FROM t")
            rows = next(r for r in ("456", "4567") if len(write(r)) != len(before))
            objects[f"t/0{ending}"] = write(rows)  # its time of change is the same
            known = [row["x"] for row in results_of(frame)]
            assert known in ([], [*rows], [*map(int, rows)])
            assert results(old) == results(opened())
        objects[f"t/1{ending}"] = forms[1]("9")
        assert results(old) == results(opened())
        objects.pop(f"t/0{ending}")
        if place.endswith("0{}"):
            with pytest.raises(bf.QueryError, match="there is no such file"):
                results(old)
            return
        assert results(old) == results(opened())
        objects.clear()
        with pytest.raises(bf.QueryError):
            results(old)


def results_of(frame: bf.Frame) -> list[dict[str, Any]]:
    """The rows of a frame; none where it is refused."""
    try:
        return frame.sort("x").to_pylist()
    except bf.QueryError:
        return []


@pytest.mark.parametrize(
    "url",
    [
        *("http://ann:hush-1@127.0.0.1:9/x.csv", "http://127.0.0.1:9/x.csv?signature=hush-1"),
        *("s3://key:hush-1@bucket/x.csv", "gs://hush-1@bucket/*.csv", "ftp://ann:hush-1@h/x.csv"),
        "https://ann:hush-1@127.0.0.1:9/x.unknown",
    ],
)
def test_messages_have_no_secret_of_a_url(url: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, read_files="urls")
    for read in (
        lambda: session.register_file(url, "t"),
        lambda: session.sql(f"SELECT * FROM '{url}'").to_pylist(),
    ):
        with pytest.raises(bf.QueryError) as raised:
            read()
        assert "hush" not in str(raised.value)
        assert "hush" not in str(raised.value.__cause__)
