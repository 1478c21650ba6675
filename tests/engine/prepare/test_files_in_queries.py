"""Files by their paths in queries, at URLs, in object stores, and as spreadsheets."""

from __future__ import annotations

import datetime
import gzip
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.apps.cli.results import write
from blendfusion.language.query_text.file_names import quoted_files

CSV = "id,text\n1,good\n2,bad\n"
ROWS = [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}]


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: "good" in str(call.values[0]))


@pytest.fixture
def session(model: bf.ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(CSV, encoding="utf-8")
    return bf.connect(model, cache=None, read_files="local")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, text FROM 'a.csv' ORDER BY id",
        'SELECT a.id, a.text FROM "a.csv" AS a ORDER BY a.id',
        "SELECT x.id, y.text FROM './a.csv' x JOIN 'a.*' y ON x.id = y.id ORDER BY 1",
        "WITH w AS (SELECT * FROM 'a.csv') SELECT id, text FROM w ORDER BY id",
    ],
)
def test_a_path_in_quotes_is_a_table(session: bf.Session, text: str) -> None:
    assert session.sql(text).to_pylist() == ROWS


def test_a_file_is_asked_about_and_read_anew(session: bf.Session) -> None:
    query = "SELECT * FROM 'a.csv' WHERE llm_filter('Good?', text)"
    assert session.sql(query).to_pylist() == ROWS[:1]
    Path("a.csv").write_text("id,text,more\n3,very good,x\n", encoding="utf-8")
    assert session.sql(query).to_pylist() == [{"id": 3, "text": "very good", "more": "x"}]


def test_compressed_files_folders_and_patterns(session: bf.Session) -> None:
    Path("d").mkdir()
    for part in ("1", "2"):
        Path(f"d/{part}.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    for place in ("d", "d/", "d/*.csv.gz"):
        quoted = place if "/" in place else f"./{place}"
        found = session.sql(f"SELECT count(*) AS n FROM '{quoted}'").to_pylist()
        assert found == [{"n": 4}], place
    with pa.CompressedOutputStream("z.csv.zst", "zstd") as file:
        file.write(CSV.encode())
    assert session.sql("SELECT * FROM 'z.csv.zst' ORDER BY id").to_pylist() == ROWS


def test_a_file_is_a_table_by_its_name_in_python(session: bf.Session) -> None:
    assert session.register_file("a.csv").sort("id").to_pylist() == ROWS
    Path("odd.csv").write_text("id~text\n1~good, too\n", encoding="utf-8")
    assert session.register_file("odd.csv", "t", delimiter="~").to_pylist() == [
        {"id": 1, "text": "good, too"}
    ]


def test_a_table_goes_before_a_file_of_its_name(session: bf.Session) -> None:
    session.from_pydict({"x": [1]}, name='"a.csv"')
    assert session.sql("SELECT * FROM 'a.csv'").to_pylist() == [{"x": 1}]


def test_what_is_no_place_of_a_table_is_no_file() -> None:
    text = "SELECT trim('x' FROM 'a.csv'), 'b.csv' FROM t WHERE y IS DISTINCT FROM 'c.csv'"
    assert quoted_files(text) == []
    assert quoted_files("SELECT 1 -- FROM 'a.csv'") == []


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (None, "b.csv", "there is no file 'b.csv'"),
        (None, "*.parquet", r"no file matches '\*.parquet'"),
        (b"x", "b.rtf", "how to read 'b.rtf'"),
        (b"", "b.csv", "'b.csv' is empty"),
        (b"x", "b.parquet", "cannot read 'b.parquet' as parquet"),
        (b"x", "b.csv.gz", "cannot read 'b.csv.gz' as csv"),
        ("a\nä".encode("latin-1"), "b.csv", "not UTF-8: see line 2"),
        (b"[1]", "b.json", "no table"),
    ],
)
def test_every_problem_of_a_file_is_one_line(
    session: bf.Session, content: bytes | None, name: str, message: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(bf.QueryError, match=message) as raised:
        session.sql(f"SELECT * FROM '{name}'").to_pylist()
    assert "\n" not in raised.value.message


def test_files_are_off_by_default_and_in_read_only_queries(
    model: bf.ScriptedModel, session: bf.Session
) -> None:
    plain = bf.connect(model, cache=None)
    with pytest.raises(bf.QueryError, match="is no table") as raised:
        plain.sql("SELECT * FROM 'a.csv'")
    assert "read_files='local'" in str(raised.value.hint)
    with pytest.raises(bf.QueryError, match="is no table"):
        session.sql("SELECT * FROM 'a.csv'", read_only=True)
    with pytest.raises(bf.QueryError, match="files of this machine only"):
        session.sql("SELECT * FROM 'https://host/a.csv'")


class _Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content, wanted = CSV.encode(), self.headers.get("Range")
        if not self.path.split("?")[0].endswith("/a.csv"):
            self.send_error(404)
            return
        self.send_response(206 if wanted else 200)
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), int(last or len(content) - 1)
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
            content = content[start : end + 1]
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815 http.server names it

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_file_at_a_url(model: bf.ScriptedModel, server: str) -> None:
    session = bf.connect(model, cache=None, read_files="urls")
    found = session.sql(f"SELECT * FROM '{server}/a.csv' WHERE llm_filter('Good?', text)")
    assert found.to_pylist() == ROWS[:1]
    with pytest.raises(bf.QueryError, match="the server answers 404"):
        session.register_file(f"{server}/b.csv")
    with pytest.raises(bf.QueryError, match="no file can be read by ftp://"):
        session.register_file("ftp://host/b.csv")


def test_a_file_in_an_object_store(
    model: bf.ScriptedModel, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "key",
    }.items():
        monkeypatch.setenv(name, value)
    session = bf.connect(model, cache=None)
    found = session.register_file("s3://bucket/a.csv", "t")
    assert found.filter(bf.llm_filter("Good?", "text")).to_pylist() == ROWS[:1]
    with pytest.raises(bf.QueryError, match=r"cannot read 's3://bucket/none\.csv'") as raised:
        session.register_file("s3://bucket/none.csv")
    assert "AWS_ACCESS_KEY_ID" in str(raised.value.hint)


def test_the_command_reads_paths_in_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(CSV, encoding="utf-8")
    query = ["query", "SELECT text FROM 'a.csv' ORDER BY id", "--format", "csv"]
    assert main(query) == 0
    assert capsys.readouterr().out == '"text"\n"good"\n"bad"\n'
    for option in (["--read-files", "off"], ["--read-only"]):
        assert main([*query, *option]) == 2
        assert "--table a.csv" in capsys.readouterr().err
    assert main([*query[:-1], "json", "--table", "a.csv"]) == 0
    assert main(["query", "SELECT text FROM a", "--table", "a.csv", "--format", "csv"]) == 0


SHEET = pa.table(
    {
        "text": ["=1+1", "plain", None],
        "n": [1, 2, None],
        "x": [0.5, float("nan"), None],
        "day": [datetime.date(2024, 2, 29), None, None],
        "at": pa.array(
            [datetime.datetime(2024, 1, 2, 3, 4), None, None], pa.timestamp("us", "UTC")
        ),
        "list": [["a"], None, None],
        "yes": [True, False, None],
    }
)


def test_a_spreadsheet_is_written_and_read(session: bf.Session) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    write(SHEET, "xlsx", Path("o.xlsx"))
    first = openpyxl.load_workbook("o.xlsx").worksheets[0]
    assert [cell.data_type for cell in first[2]][:2] == ["s", "n"]  # text, no formula
    rows = session.sql("SELECT * FROM 'o.xlsx'").to_pylist()
    assert rows[0] == {
        "text": "=1+1",
        "n": 1,
        "x": "0.5",
        "day": datetime.datetime(2024, 2, 29),
        "at": "2024-01-02T03:04:00+00:00",
        "list": '["a"]',
        "yes": True,
    }
    assert set(rows[2].values()) == {None}
    for wrong, message in (("x" * 40_000, "40,000 characters"), ("\x00", "control characters")):
        with pytest.raises(bf.QueryError, match=message):
            write(pa.table({"t": [wrong]}), "xlsx", Path("p.xlsx"))
    assert not Path("p.xlsx").exists()
    Path("q.xlsx").write_bytes(b"x")
    with pytest.raises(bf.QueryError, match="no XLSX file"):
        session.register_file("q.xlsx")


def test_a_spreadsheet_without_the_extra_says_what_to_install(
    session: bf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    Path("q.xlsx").write_bytes(b"x")
    with pytest.raises(bf.QueryError, match="openpyxl") as raised:
        session.register_file("q.xlsx")
    assert "blendfusion[xlsx]" in str(raised.value.hint)
