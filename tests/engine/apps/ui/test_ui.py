"""The page of ``blendfusion ui``: who may use it, and what it does."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pyarrow.parquet
import pytest
from garbage import after_collection

import blendfusion as bf
from blendfusion.apps.ui.server import PageServer
from blendfusion.apps.ui.views import View, file_of
from blendfusion.apps.ui.workspace import ROWS, Progress, Workspace
from blendfusion.services.dialects.dispatch import DIALECTS, OURS

TEXTS = ["late and broken", "fine", "late", None]
QUERY = "SELECT text FROM reviews WHERE llm_filter('Is it a complaint?', text)"


class Page:
    """A client of one server: its requests carry what a browser on the page sends."""

    def __init__(self, server: PageServer) -> None:
        self.server = server
        self.host = f"127.0.0.1:{server.server_address[1]}"
        self.headers = {"X-Token": server.token, "Origin": f"http://{self.host}"}

    def fetch(
        self, method: str, path: str, body: Any = None, **headers: str | None
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        """(status, JSON or text, headers) of one request; a header of None is left out."""
        sent = {**self.headers, "Host": self.host} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        data = (
            None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        if data is not None:
            sent = {"Content-Type": "application/json", "Content-Length": str(len(data))} | sent
        connection = http.client.HTTPConnection(self.host, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(data)
            reply = connection.getresponse()
            text = reply.read().decode()
            found = json.loads(text) if "json" in reply.headers["Content-Type"] else text
            return reply.status, found, reply.headers
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, found, _ = self.fetch("GET", path)
        assert status == 200, found
        return found

    def post(self, path: str, **body: Any) -> Any:
        status, found, _ = self.fetch("POST", path, body)
        assert status == 200, found
        return found

    def upload(self, name: str, content: bytes, **headers: str) -> tuple[int, Any]:
        """Open a file."""
        connection = http.client.HTTPConnection(self.host, timeout=20)
        given = {"X-Token": self.server.token, "Content-Type": "application/octet-stream"}
        given |= {key.replace("_", "-"): value for key, value in headers.items()}
        try:
            connection.request("POST", f"/api/open?name={quote(name)}", content, given)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def error(self, path: str, **body: Any) -> str:
        status, found, _ = self.fetch("POST", path, body)
        assert status == 400
        return str(found["error"]["message"])

    def ended(self, number: int) -> dict[str, Any]:
        """A run once it has ended."""
        end = time.monotonic() + 20
        while (now := self.get(f"/api/run/{number}"))["outcome"] == "running":
            assert time.monotonic() < end
            time.sleep(0.01)
        found: dict[str, Any] = now
        return found

    def run(self, sql: str, **more: Any) -> dict[str, Any]:
        return self.ended(self.post("/api/run", sql=sql, **more)["id"])


@contextmanager
def serving(
    answer: Callable[[Any], Any] = lambda call: "late" in str(call.values[0]),
    confirm_above: int = 0,
    **options: Any,
) -> Iterator[Page]:
    model = bf.ScriptedModel(answer, batch_size=2)
    options = {"read_only": True, "show_values": "on"} | options
    with bf.connect(model, cache=None, **options) as session:
        session.from_pydict({"id": [1, 2, 3, 4], "text": TEXTS}, name="reviews")
        work = Workspace(session, confirm_above=confirm_above)
        with PageServer(work) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            try:
                yield Page(server)
            finally:
                work.close()
                server.shutdown()
                thread.join(10)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with serving() as page:
        yield page


# --- who may use it -------------------------------------------------------------------------------

SECRET = ["/", "/api/state", "/api/run/1", "/api/rows/1", "/api/answers/1", "/trace/1"]


@pytest.mark.parametrize("path", SECRET)
@pytest.mark.parametrize("token", [None, "", "wrong", "ä"])
def test_without_the_token_there_is_nothing(path: str, token: str | None, page: Page) -> None:
    spelled = None if token is None else token.encode("utf-8").decode("latin-1")
    status, found, _ = page.fetch("GET", path, X_Token=spelled)
    assert status == 403
    assert "reviews" not in str(found)
    assert page.fetch("POST", "/api/run", {"sql": QUERY}, X_Token=spelled)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": None},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_another_page_may_not_use_it(headers: dict[str, str | None], page: Page) -> None:
    for method, path, body in (("GET", "/api/state", None), ("POST", "/api/run", {"sql": QUERY})):
        assert page.fetch(method, path, body, **headers)[0] == 403
    assert page.fetch("GET", f"/?token={page.server.token}", **headers)[0] == 403


def test_it_listens_to_this_machine_alone_and_its_address_has_the_token(page: Page) -> None:
    assert page.server.server_address[0] == "127.0.0.1"
    assert parse_qs(urlsplit(page.server.url).query) == {"token": [page.server.token]}
    assert len(page.server.token) >= 40


def test_every_dialect_can_be_chosen() -> None:
    page = resources.files("blendfusion.apps.ui").joinpath("page.html").read_text("utf-8")
    assert set(re.findall(r"<option>([\w-]+)", page)) == {OURS, *DIALECTS}


def test_every_reply_forbids_what_the_page_does_not_need(page: Page) -> None:
    run = page.run(QUERY)["id"]
    address = f"?token={page.server.token}"
    for path in (
        f"/{address}",
        "/page.js",
        "/page.css",
        "/api/state",
        f"/trace/{run}{address}",
        "/no",
    ):
        _, text, headers = page.fetch("GET", path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "script-src" not in policy or "script-src 'self';" in policy
        assert "unsafe" not in policy or path.startswith("/trace")
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
        assert headers["X-Content-Type-Options"] == "nosniff"
        if path.startswith(("/?", "/page")):
            assert "http://" not in text.replace("http://www.w3.org", "")
            assert "https://" not in text
            assert "innerHTML" not in text
            assert " style=" not in text


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"[]", {}, 400),
        (b"{}", {"Content_Type": "text/plain"}, 415),
        (b"{}", {"Content_Length": None}, 411),
        (b"{}", {"Content_Length": "-1"}, 411),
        (b"{}", {"Content_Length": "1000001"}, 413),
        (b'{"sql": 7}', {}, 400),
        (b'{"sql": "SELECT \\ud800"}', {}, 400),
    ],
)
def test_hostile_requests_are_refused(
    body: bytes, headers: dict[str, str | None], status: int, page: Page
) -> None:
    assert page.fetch("POST", "/api/plan", body, **headers)[0] == status
    assert page.get("/api/state")["model"] == "scripted"


@pytest.mark.parametrize(
    "path",
    ["/page.py", "/../page.js", "/%2e%2e/session.py", "/api", "/api/run/-1", "/api/rows/1?first=x"],
)
def test_there_is_nothing_else(path: str, page: Page) -> None:
    status, found, _ = page.fetch("GET", path)
    assert status in (400, 404)
    assert "import" not in str(found)


# --- what it does ---------------------------------------------------------------------------------


def test_a_query_is_estimated_run_and_remembered() -> None:
    with serving(prices=bf.Price(prompt=1.0, completion=2.0)) as page:
        (table,) = page.get("/api/state")["tables"]
        assert table["columns"] == [
            {"name": "id", "type": "int64"},
            {"name": "text", "type": "string"},
        ]
        planned = page.post("/api/plan", sql=QUERY)
        assert (planned["values"], planned["confirm"]) == (3, False)
        assert "ask llm_filter('Is it a complaint?', reviews.text)" in planned["plan"]
        assert planned["expected"].startswith("Expected: 3 values")
        assert page.server.workspace.session.ledger.usage.values == 0

        now = page.run(QUERY)
        assert (now["outcome"], now["rows"], now["values"], now["error"]) == ("done", 2, 3, None)
        assert "3 values asked (3 expected)" in now["plan"]
        assert float(now["cost"]) > 0
        assert page.get(f"/api/rows/{now['id']}") == [["late and broken"], ["late"]]
        assert page.get(f"/api/rows/{now['id']}?first=1&count=1") == [["late"]]
        answers = page.get(f"/api/answers/{now['id']}")
        assert [(a["values"], a["answer"]) for a in answers][:2] == [
            (["late and broken"], "true"),
            (["fine"], "false"),
        ]
        trace = page.fetch("GET", f"/trace/{now['id']}?token={page.server.token}")
        assert trace[0] == 200
        assert "late and broken" in trace[1]
        state = page.get("/api/state")
        assert [run["sql"] for run in state["history"]] == [QUERY]
        assert state["spent"]["values"] == 3


def test_counts_grow_while_a_query_runs_and_stop_ends_it() -> None:
    go_on = threading.Event()

    def answer(call: Any) -> bool:
        if call.values[0] == "late":
            go_on.wait(0.2)
            while not go_on.is_set():
                time.sleep(0.01)
        return True

    with serving(answer) as page:
        number = page.post("/api/run", sql=QUERY)["id"]
        end = time.monotonic() + 20
        while page.get(f"/api/run/{number}")["done"] < 2:
            assert time.monotonic() < end
        assert page.error("/api/plan", sql="SELECT 1") == "a query runs"
        assert page.error("/api/run", sql=QUERY, confirmed=True) == "a query runs"
        now = page.get(f"/api/run/{number}")
        assert (now["outcome"], now["expected"]) == ("running", 3)
        assert "2 values asked (3 expected)" in now["plan"]
        page.post(f"/api/stop/{number}")
        now = page.ended(number)
        assert (now["outcome"], now["values"]) == ("stopped", 2)
        go_on.set()
        assert page.run("SELECT count(*) AS n FROM reviews")["rows"] == 1
        page.post(f"/api/stop/{number}")  # it has ended
        again = page.run(QUERY)
        assert (again["values"], again["cached"]) == (1, 2)


def test_reading_sessions_only_read(page: Page) -> None:
    for sql in (
        "DROP TABLE reviews",
        "CREATE TABLE x AS SELECT 1",
        "SET blendfusion.read_only = false",
    ):
        now = page.run(sql, confirmed=True)
        assert (now["outcome"], now["error"]["message"][:10]) == ("failed", "read-only:")
    assert page.error("/api/plan", sql="SELECT * FROM '/etc/passwd'")
    assert page.get("/api/state")["read_only"] is True
    with serving(read_only=False) as writing:
        assert writing.error("/api/run", sql="CREATE TABLE x AS SELECT 1 AS a") == (
            "this query has to be confirmed"
        )
        assert writing.run("CREATE TABLE x AS SELECT 1 AS a", confirmed=True)["outcome"] == "done"
        assert "x" in [table["name"] for table in writing.get("/api/state")["tables"]]


def test_many_values_need_a_yes_and_a_budget_holds() -> None:
    with serving(confirm_above=2) as page:
        assert page.post("/api/plan", sql=QUERY)["confirm"] is True
        assert page.error("/api/run", sql=QUERY) == "this query has to be confirmed"
        assert page.post("/api/budget", limits="values=1")["budget"] == "values=1"
        now = page.run(QUERY, confirmed=True)
        assert now["outcome"] == "failed"
        assert now["error"]["message"].startswith("the session's budget is spent: values=1")
        assert "nonsense" in page.error("/api/budget", limits="nonsense=1")
        assert page.post("/api/budget", limits="")["budget"] == ""
        assert page.run(QUERY, confirmed=True)["outcome"] == "done"


def test_errors_have_a_hint_and_a_place(page: Page) -> None:
    status, found, _ = page.fetch("POST", "/api/plan", {"sql": "SELECT txt FROM reviews"})
    assert status == 400
    assert found["error"] == {
        "message": "unknown column 'txt'",
        "hint": "Did you mean 'text'?",
        "span": [7, 10],
    }


def test_values_are_shown_as_the_session_says() -> None:
    for options, shown in (
        ({"show_values": "off"}, "…"),
        ({"redact": lambda text: text.replace("late", "[x]")}, "[x] and broken"),
    ):
        with serving(**options) as page:
            now = page.run(QUERY)
            assert page.get(f"/api/rows/{now['id']}")[0] == ["late and broken"]  # the result itself
            assert page.get(f"/api/answers/{now['id']}")[0]["values"] == [shown]
            trace = page.fetch("GET", f"/trace/{now['id']}?token={page.server.token}")[1]
            assert "late and broken" not in trace


def test_results_are_bounded_and_values_come_whole(page: Page) -> None:
    now = page.run(f"SELECT value FROM generate_series(1, {ROWS + 50})")
    assert (now["rows"], now["cut"], now["outcome"]) == (ROWS, True, "done")
    assert len(page.get(f"/api/rows/{now['id']}?count=999999")) == 200
    assert page.get(f"/api/rows/{now['id']}?first=99999&count=5") == [[100_000]]
    now = page.run(
        "SELECT repeat('ab', 5000) AS t, 9007199254740993 AS n, arrow_cast('2026-01-02T03:04:05.000000006', "
        "'Timestamp(Nanosecond, None)') AS at, [1, NULL] AS l, X'01ff' AS b, 'NaN'::double AS f"
    )
    assert page.get(f"/api/rows/{now['id']}") == [
        [
            "ab" * 5000,
            "9007199254740993",
            "2026-01-02 03:04:05.000000006",
            [1, None],
            "0x01ff",
            "nan",
        ]
    ]


def test_warnings_reach_the_page() -> None:
    with serving(lambda call: "neither") as page, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: page.server.workspace.warn(str(message))
        now = page.run(QUERY)
    assert now["failed"] == 3
    assert now["warnings"][0].startswith("3 values got no valid answer")


def test_old_rows_are_let_go() -> None:
    with serving() as page:
        numbers = [page.run(f"SELECT {i} AS i")["id"] for i in range(22)]
        assert page.get(f"/api/rows/{numbers[-1]}") == [[21]]
        status, found, _ = page.fetch("GET", f"/api/rows/{numbers[0]}")
        assert (status, found["error"]["hint"]) == (400, "Run it again.")


def test_of_old_runs_only_the_line_of_the_history_is_kept() -> None:
    """Neither frames nor traces: an answer's part of one is a third of a kilobyte."""
    with serving() as page:
        work = page.server.workspace
        runs = [page.run(QUERY)["id"]]
        planned = work._run(runs[0]).planned
        assert planned is not None
        frame = weakref.ref(planned.frame)
        del planned
        before = work._line(work._run(runs[0]))
        runs += [page.run(f"SELECT {i} AS i")["id"] for i in range(22)]
        assert after_collection(lambda: frame() is None)
        assert work._line(work._run(runs[0])) == before | {"rows": None}
        assert page.get(f"/api/run/{runs[0]}")["values"] == before["values"] == 3
        status, found, _ = page.fetch("GET", f"/trace/{runs[0]}?token={page.server.token}")
        assert (status, found["error"]["hint"]) == (400, "Run it again.")


def test_views_of_rows(page: Page) -> None:
    number = page.run("SELECT id, text FROM reviews")["id"]

    def ids(view: str) -> list[int]:
        return [row[0] for row in page.get(f"/api/rows/{number}?{view}")]

    assert ids("") == [1, 2, 3, 4]
    assert ids("sort=0&down=1") == [4, 3, 2, 1]
    assert ids("sort=0&down=1&first=1&count=2") == [3, 2]
    assert ids("sort=9") == [1, 2, 3, 4]
    found = [i for i, text in enumerate(TEXTS, 1) if "late" in (text or "")]
    assert ids("words=LATE") == found
    assert page.get(f"/api/count/{number}?words=LATE") == {"rows": len(found)}
    summary = page.get(f"/api/summary/{number}?")
    assert [(one["name"], one["rows"], one["nulls"], one["distinct"]) for one in summary] == [
        ("id", 4, 0, 4),
        ("text", 4, 1, 3),
    ]
    assert summary[0]["bars"][0] == {"name": 1, "rows": 1}


@pytest.mark.parametrize(
    ("kind", "values", "order"),
    [
        ("INT", ["2", "NULL", "1"], [2, 0, 1]),
        ("VARCHAR", ["'b'", "NULL", "'a'"], [2, 0, 1]),
        ("DOUBLE", ["2.5", "NULL", "-1"], [2, 0, 1]),
        ("DATE", ["'2024-02-01'", "NULL", "'2024-01-01'"], [2, 0, 1]),
        ("BOOLEAN", ["true", "NULL", "false"], [2, 0, 1]),
    ],
)
def test_rows_are_sorted_by_columns_of_every_type(
    kind: str, values: list[str], order: list[int], page: Page
) -> None:
    rows = " UNION ALL ".join(
        f"SELECT {i} AS i, CAST({v} AS {kind}) AS x" for i, v in enumerate(values)
    )
    number = page.run(f"SELECT * FROM ({rows}) AS r ORDER BY i")["id"]
    assert [row[0] for row in page.get(f"/api/rows/{number}?sort=1")] == order
    assert page.get(f"/api/summary/{number}?")[1]["nulls"] == 1
    nested = page.run("SELECT [2] AS x UNION ALL SELECT [1]")["id"]
    assert page.get(f"/api/rows/{nested}?sort=0&words=1") == [[[1]]]


def test_rows_with_texts_of_parquet_inside_lists_are_sorted_and_filtered(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"x": ["b", "a", None]}), file)
    with serving() as page:
        assert page.upload("t.parquet", file.read_bytes())[0] == 200
        run = page.run("SELECT x, [x] AS list, named_struct('x', x) AS part FROM t")["id"]
        for column in range(3):
            rows = page.get(f"/api/rows/{run}?sort={column}&down=1")
            assert sorted(map(str, rows)) == sorted(map(str, page.get(f"/api/rows/{run}")))
        assert page.get(f"/api/rows/{run}?words=a") == [["a", ["a"], {"x": "a"}]]


def test_rows_are_saved_as_files(page: Page) -> None:
    number = page.run("SELECT id FROM reviews WHERE id < 3 ORDER BY id")["id"]
    status, text, headers = page.fetch("GET", f"/api/file/{number}/csv?sort=0&down=1")
    assert (status, text, headers["Content-Disposition"]) == (200, '"id"\n2\n1\n', "attachment")
    assert page.fetch("GET", f"/api/file/{number}/tsv")[1] == "id\n1\n2\n"
    assert page.fetch("GET", f"/api/file/{number}/exe")[0] == 400
    work = page.server.workspace
    content, _ = file_of(work.table(number, View()), "parquet")
    assert pyarrow.parquet.read_table(io.BytesIO(content)).to_pydict() == {"id": [1, 2]}


def test_statements_of_a_text(page: Page) -> None:
    assert page.post("/api/statements", sql="SELECT ';' ;\n SELECT 2; -- end\n") == [
        {"sql": "SELECT ';'", "start": 0},
        {"sql": "SELECT 2", "start": 14},
    ]
    assert page.post("/api/statements", sql="SELECT 'open") == [{"sql": "SELECT 'open", "start": 0}]


def test_a_failed_plan_stands_in_the_history() -> None:
    with serving() as page:
        assert page.error("/api/plan", sql="SELECT nope FROM reviews") != ""
        assert page.get("/api/state")["history"] == []
        assert page.error("/api/plan", sql="SELECT nope FROM reviews", runs=True) != ""
        (run,) = page.get("/api/state")["history"]
        assert (run["sql"], run["outcome"]) == ("SELECT nope FROM reviews", "failed")
        assert "nope" in page.get(f"/api/run/{run['id']}")["error"]["message"]


def test_what_is_refused_is_refused_before_the_click(page: Page) -> None:
    for sql in (
        "CREATE TABLE x AS SELECT 1",
        "DROP TABLE reviews",
        "SET blendfusion.batch_size = 1",
    ):
        assert page.error("/api/plan", sql=sql).startswith("read-only:")


def test_files_are_opened_as_tables(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "shop.sqlite")
    database.execute("CREATE TABLE orders (n INT)")
    database.execute("INSERT INTO orders VALUES (7)")
    database.commit()
    database.close()
    with serving() as page:
        for name, content in {
            "New Sales.csv": b"a,b\n1,2\n",
            "shop.sqlite": (tmp_path / "shop.sqlite").read_bytes(),
        }.items():
            assert page.upload(name, content)[0] == 200
        names = [table["name"] for table in page.get("/api/state")["tables"]]
        assert names == ["new_sales", "reviews", "shop.orders"]
        page.upload("New Sales.csv", b"a\n5\n6\n")  # a newer one takes its place
        run = page.run("SELECT sum(a) AS s FROM new_sales")
        assert page.get(f"/api/rows/{run['id']}") == [[11]]
        run = page.run("SELECT n FROM shop.orders")
        assert page.get(f"/api/rows/{run['id']}") == [[7]]
        assert page.upload("../../escaped.csv", b"a\n1\n")[0] == 200
        assert not (tmp_path.parent / "escaped.csv").exists()
        for name in ("", "..", "no.exe"):
            assert page.upload(name, b"a\n1\n")[0] == 400
        assert page.upload("a.csv", b"a\n1\n", X_Token="wrong")[0] == 403
        assert page.upload("a.csv", b"a", Content_Type="text/plain")[0] == 415


def test_a_file_that_is_cut_off_becomes_no_table() -> None:
    with serving() as page:
        assert page.upload("sales.csv", b"a\n1\n")[0] == 200
        connection = http.client.HTTPConnection(page.host, timeout=20)
        connection.putrequest("POST", "/api/open?name=sales.csv")
        for name, value in {
            "X-Token": page.server.token,
            "Content-Type": "application/octet-stream",
            "Content-Length": "100",
        }.items():
            connection.putheader(name, value)
        connection.endheaders(b"a\n5\n6")
        connection.sock.shutdown(socket.SHUT_WR)
        assert connection.getresponse().status == 400
        connection.close()
        run = page.run("SELECT sum(a) AS s FROM sales")
        assert page.get(f"/api/rows/{run['id']}") == [[1]]


def test_answers_behind_a_cell_and_their_labels(page: Page) -> None:
    run = page.run("SELECT text, llm_bool('Is it late?', text) AS late FROM reviews")
    (found,) = page.get(f"/api/cell/{run['id']}/0/1?")
    assert (found["question"], found["values"]) == ("Is it late?", [TEXTS[0]])
    assert page.get(f"/api/cell/{run['id']}/99/1?") == []
    given = {"question": "Is it late?", "text": TEXTS[0], "answer": "true"}
    assert page.post("/api/correct", **given, label="no") == {"corrections": 1}
    assert page.post("/api/correct", **given, label="yes") == {"corrections": 1}
    rows = page.run("SELECT label FROM corrections")
    assert page.get(f"/api/rows/{rows['id']}") == [["yes"]]


def test_a_table_is_summed_up(page: Page) -> None:
    assert page.post("/api/plan", sql="SUMMARIZE reviews")["expected"] == "asks no model"
    run = page.run("SUMMARIZE reviews")
    assert [row[0] for row in page.get(f"/api/rows/{run['id']}")] == ["id", "text"]


def test_the_time_left_is_told() -> None:
    progress = Progress()
    assert progress.seconds_left is None
    progress.expect(60.0)
    assert progress.seconds_left == pytest.approx(60.0, abs=2)
    progress.update(1, 10, 0, 0)
    progress._first = (1, progress._first[1] - 3.0)
    progress.update(4, 10, 0, 0)
    assert progress.seconds_left == pytest.approx(6.0, abs=1)


def test_the_token_is_on_no_command_line(tmp_path: Path) -> None:
    """What a browser gets is read by everybody: the address of a file that is not."""
    script = tmp_path / "browser"
    script.write_text(
        f'#!/bin/sh\necho "$@" > "{tmp_path}/part"\nmv "{tmp_path}/part" "{tmp_path}/opened"\n'
    )
    script.chmod(0o700)
    code = "from blendfusion.apps.cli.main import main; main(['ui'])"
    environment = os.environ | {"BROWSER": f"{script} %s", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            token = parse_qs(urlsplit(url).query)["token"][0]
            waits(lambda: (tmp_path / "opened").exists())
            opened = (tmp_path / "opened").read_text().strip()
            page = Path(unquote(urlsplit(opened).path))
            assert token not in opened
            assert url in unescape(page.read_text())
            modes = [path.stat().st_mode & 0o777 for path in (page, page.parent)]
            assert modes == [0o600, 0o700]
        finally:
            process.kill()
    waits(lambda: not page.parent.exists())


def waits(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
