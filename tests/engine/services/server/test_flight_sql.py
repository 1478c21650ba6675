"""The server of Arrow Flight SQL, through ADBC's driver."""

from __future__ import annotations

import datetime
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.server.grants import Grant
from blendfusion.services.server.health import serve_health
from blendfusion.services.server.listener import is_loopback, serving
from blendfusion.services.server.messages import bare, pack, unpack

adbc = pytest.importorskip("adbc_driver_flightsql.dbapi")
from adbc_driver_flightsql import DatabaseOptions  # noqa: E402
from adbc_driver_manager import Error  # noqa: E402


def session(**options: Any) -> bf.Session:
    found = bf.connect(
        bf.ScriptedModel(lambda call: "good" in str(call.values[0])),
        cache=None,
        read_only=True,
        **options,
    )
    found.from_pydict({"id": [1, 2, 3], "x": ["good", "bad", None]}, name="t")
    return found


@pytest.fixture
def served() -> Iterator[tuple[bf.Session, str]]:
    own = session()
    server, _, address = serving(own)
    yield own, address
    server.shutdown()


def connected(address: str, **options: str) -> Any:
    return adbc.connect(address, db_kwargs=options, autocommit=True)


def rows(address: str, sql: str, values: Any = None, **options: str) -> list[Any]:
    with connected(address, **options) as connection, connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()  # type: ignore[no-any-return]


def test_queries_ask_and_answer(served: tuple[bf.Session, str]) -> None:
    own, address = served
    query = "SELECT id, llm_filter('Good?', x) AS g FROM t ORDER BY id"
    assert rows(address, query) == [(1, True), (2, False), (3, None)]
    assert own.ledger.usage.values == 2
    assert rows(address, query) == [(1, True), (2, False), (3, None)]
    assert own.ledger.usage.values == 2  # answers are shared


def test_prepared_statements_take_values(served: tuple[bf.Session, str]) -> None:
    _, address = served
    with connected(address) as connection, connection.cursor() as cursor:
        for value, expected in ((1, [(1,)]), (3, [(3,)]), (9, [])):
            cursor.execute("SELECT id FROM t WHERE id = ?", (value,))
            assert cursor.fetchall() == expected
        cursor.execute("SELECT id FROM t WHERE x = ?", ("it's; DROP TABLE t",))
        assert cursor.fetchall() == []
        cursor.adbc_prepare("SELECT id FROM t")
        cursor.execute("SELECT count(*) AS n FROM t")
        assert cursor.fetch_arrow_table().to_pydict() == {"n": [3]}


def test_rows_are_those_of_the_values_that_were_bound(served: tuple[bf.Session, str]) -> None:
    """A client binds other values before it reads the rows of the first ones."""
    client = flight.connect(served[1])
    request = pack("ActionCreatePreparedStatementRequest", query="SELECT id FROM t WHERE id = $1")
    [made] = client.do_action(flight.Action("CreatePreparedStatement", request))
    handle = unpack(made.body.to_pybytes())[1].prepared_statement_handle
    command = pack("CommandPreparedStatementQuery", prepared_statement_handle=handle)
    described = flight.FlightDescriptor.for_command(command)
    tickets = []
    for value in (1, 3, 9, 2):
        batch = pa.record_batch({"value": [value]})
        writer, _ = client.do_put(described, batch.schema)
        writer.write_batch(batch)
        writer.close()
        tickets.append(client.get_flight_info(described).endpoints[0].ticket)
    found = [client.do_get(ticket).read_all().to_pydict()["id"] for ticket in tickets[::-1]]
    assert found == [[2], [], [3], [1]]
    client.close()


def test_types(served: tuple[bf.Session, str]) -> None:
    own, address = served
    table = pa.table(
        {
            "b": [True, None],
            "f": [1.5, None],
            "m": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "d": [datetime.date(2024, 1, 31), None],
            "ts": pa.array([datetime.datetime(2024, 1, 31), None], pa.timestamp("us", "UTC")),
            "l": [[1, 2], None],
            "s": [{"k": "v"}, None],
            "v": pa.array(["x", None], pa.string_view()),
            "bs": [b"\x00", None],
        }
    )
    own.from_arrow(table, name="types")
    with connected(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM types")
        assert cursor.fetch_arrow_table().to_pylist() == table.to_pylist()


def test_catalogs(served: tuple[bf.Session, str]) -> None:
    _, address = served
    with connected(address) as connection:
        info = connection.adbc_get_info()
        assert info["vendor_name"] == "BlendFusion"
        found = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        tables = [
            (catalog["catalog_name"], schema["db_schema_name"], table["table_name"])
            for catalog in found
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        ]
        assert tables == [("datafusion", "public", "t")]
        assert sorted(connection.adbc_get_table_types()) == ["TABLE", "VIEW"]
        assert connection.adbc_get_table_schema("t").names == ["id", "x"]


@pytest.mark.parametrize(
    "statement",
    [
        *(
            "DROP TABLE t",
            "DELETE FROM t",
            "INSERT INTO t VALUES (9, 'x')",
            "SELECT 1; DROP TABLE t",
        ),
        *("CREATE TABLE u AS SELECT 1", "COPY t TO '/tmp/stolen.csv'", "SET a.b = 1", "SELEC"),
        *("SELECT * FROM '/etc/passwd'", "ATTACH 'x.db' AS x", "SELECT nothing FROM t"),
    ],
)
def test_it_only_reads(served: tuple[bf.Session, str], statement: str) -> None:
    own, address = served
    with pytest.raises(Error):
        rows(address, statement)
    with connected(address) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_sql_query(statement)
        with pytest.raises(Error):
            cursor.adbc_statement.execute_update()
    assert own.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 3}]


def test_tokens() -> None:
    server, _, address = serving(session(), tokens=["secret", "other"])
    key = DatabaseOptions.AUTHORIZATION_HEADER.value
    try:
        for given in ({}, {key: "Bearer wrong"}, {key: "secret"}, {key: "Basic secret"}):
            with pytest.raises(Error, match=r"(?i)unauthenticated"):
                rows(address, "SELECT 1 AS a", **given)
        assert rows(address, "SELECT 1 AS a", **{key: "Bearer other"}) == [(1,)]
    finally:
        server.shutdown()


def test_it_refuses_to_listen_beyond_the_loopback_without_a_token(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for host in ("0.0.0.0", "::", "192.168.0.1", "example.org"):
        with pytest.raises(bf.OptionError, match="no token"):
            serving(session(), host=host)
    assert main(["serve", "--host", "0.0.0.0", "--cache", "off"]) == 2
    assert "no token" in capsys.readouterr().err
    assert is_loopback("127.0.0.7")
    assert is_loopback("::1")


def test_a_budget_holds_for_all_clients() -> None:
    own = session(budget=bf.Budget(values=3))
    own.from_pydict({"x": [f"good {n}" for n in range(50)]}, name="many")
    server, _, address = serving(own)
    problems: list[Exception] = []

    def ask() -> None:
        try:
            rows(address, "SELECT llm_filter('Good?', x) FROM many")
        except Error as problem:
            problems.append(problem)

    try:
        clients = [threading.Thread(target=ask) for _ in range(6)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    finally:
        server.shutdown()
    assert len(problems) == 6
    assert own.ledger.usage.values <= 3


def test_many_clients(served: tuple[bf.Session, str]) -> None:
    _, address = served
    found: list[int] = []

    def run(number: int) -> None:
        with connected(address) as connection, connection.cursor() as cursor:
            for turn in range(5):
                cursor.execute("SELECT id + ? AS n FROM t WHERE id = 1", (number * 100 + turn,))
                found.append(cursor.fetchone()[0])

    clients = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert sorted(found) == sorted(n * 100 + turn + 1 for n in range(8) for turn in range(5))


@pytest.mark.long
def test_twenty_clients_of_which_some_leave_and_some_have_no_token() -> None:
    own = session(budget=bf.Budget(values=400))
    own.from_pydict({"x": [f"good {n}" for n in range(300)]}, name="many")
    server, statements, address = serving(own, tokens=["secret"])
    key = DatabaseOptions.AUTHORIZATION_HEADER.value
    found: list[int] = []
    problems: list[Exception] = []
    refused: list[Exception] = []

    def ask(number: int) -> None:
        rng = random.Random(number)
        with connected(address, **{key: "Bearer secret"}) as connection:
            for turn in range(50):
                with connection.cursor() as cursor:
                    if rng.random() < 0.1:  # it leaves behind the first rows
                        cursor.execute("SELECT llm_filter('Good?', x) AS g FROM many")
                        cursor.fetchone()
                        continue
                    cursor.execute("SELECT id + ? AS n FROM t WHERE id = 1", (number * 100 + turn,))
                    found.append(cursor.fetchone()[0] - 1)

    def intrude(number: int) -> None:
        for wrong in ("Bearer wrong", "", "Bearer " + "x" * 60_000):
            try:
                rows(address, "SELECT 1 AS a", **{key: wrong})
            except Error as problem:
                refused.append(problem)

    def guard(run: Callable[[int], None], number: int) -> None:
        try:
            run(number)
        except Exception as problem:
            problems.append(problem)

    runs = [(ask, number) for number in range(20)] + [(intrude, number) for number in range(5)]
    clients = [threading.Thread(target=guard, args=one) for one in runs]
    try:
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        sent = [
            number * 100 + turn
            for number in range(20)
            for rng in [random.Random(number)]
            for turn in range(50)
            if rng.random() >= 0.1
        ]
        assert problems == []
        assert sorted(found) == sorted(sent)
        assert len(refused) == 15
        assert own.ledger.usage.values <= 300
        huge = "SELECT '" + "x" * 20_000_000 + "' AS a"
        with pytest.raises(Error):
            rows(address, huge, **{key: "Bearer secret"})
        assert rows(address, "SELECT 1 AS a", **{key: "Bearer secret"}) == [(1,)]
    finally:
        server.shutdown()
    assert statements.counts.running == 0


def test_a_client_that_leaves_ends_its_query() -> None:
    own = session()
    own.from_pydict({"x": [f"good {n}" for n in range(5000)]}, name="many")
    own.change_option("chunk_rows", "16")
    server, statements, address = serving(own)
    try:
        client = flight.connect(address)
        query = "SELECT llm_filter('Good?', x) AS g FROM many"
        command = pack("CommandStatementQuery", query=query)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        reader.read_chunk()
        reader.cancel()
        client.close()
    finally:
        server.shutdown()
    assert own.ledger.usage.values < 5000
    assert statements.counts.running == 0


_ENDLESS = {
    "rows": "SELECT count(*) AS n FROM big a, big b WHERE a.id + b.id > 3",
    "sorted": "SELECT a.id FROM big a, big b ORDER BY a.id * b.id LIMIT 3",
    "numbers": "SELECT sum(value) AS n FROM generate_series(1, 1000000000000)",
    "answers": "SELECT count(*) AS n FROM big WHERE llm_filter('Good?', id)",
}
"""Queries that give their first row after hours."""
_CLIENT = """
import sys
from pyarrow import flight
from blendfusion.services.server.messages import pack
client = flight.connect(sys.argv[1])
command = pack("CommandStatementQuery", query=sys.argv[2])
info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
client.do_get(info.endpoints[0].ticket).read_all()
"""


@pytest.fixture(params=_ENDLESS)
def endless(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any, Any]]:
    """A server that runs such a query, its counts, and the client that waits."""

    def slow(call: bf.Call) -> bool:
        time.sleep(0.01)
        return True

    own = bf.connect(bf.ScriptedModel(slow), cache=None, read_only=True)
    own.from_pydict({"id": list(range(20_000))}, name="big")
    server, statements, address = serving(own)
    program = [sys.executable, "-c", _CLIENT, address, _ENDLESS[request.param]]
    client = subprocess.Popen(program, stderr=subprocess.DEVNULL)
    try:
        _await(lambda: statements.counts.running == 1)
        time.sleep(0.3)
        yield server, statements, client
    finally:
        client.kill()
        client.wait()
        server.shutdown()


def _await(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_query_ends_when_its_client_leaves_before_the_first_row(endless: Any) -> None:
    _, statements, client = endless
    client.kill()
    _await(lambda: statements.counts.running == 0)


def test_a_server_that_stops_ends_its_queries(endless: Any) -> None:
    server, statements, client = endless
    start = time.monotonic()
    server.shutdown()
    assert time.monotonic() - start < 15
    assert statements.counts.running == 0
    assert client.wait(15) != 0


_WRONG = [
    *("SELECT nothing FROM t", "SELEC", "SELECT 1; SELECT 2", "DROP TABLE t", ""),
    *("SELECT llm_filter(x) FROM t", "SELECT * FROM '/etc/passwd'", "SELECT $1", "SELECT ?"),
    *("SELECT CAST(x AS INT) FROM t", "SELECT 1 / (id - 1) FROM t"),
]


def test_messages_to_clients_have_no_traceback(served: tuple[bf.Session, str]) -> None:
    _, address = served
    client = flight.connect(address)

    def fetch(command: bytes) -> None:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        client.do_get(info.endpoints[0].ticket).read_all()

    def prepare(query: str) -> None:
        body = bare("ActionCreatePreparedStatementRequest", query=query)
        list(client.do_action(flight.Action("CreatePreparedStatement", body)))
        fetch(pack("CommandStatementQuery", query=query))

    commands = [pack("CommandStatementQuery", query=query) for query in _WRONG]
    commands += [b"", b"hello", pack("CommandStatementUpdate", query="SELECT 1")]
    attempts: list[Callable[[], object]] = [
        *(partial(fetch, command) for command in commands),
        *(partial(prepare, query) for query in _WRONG),
        lambda: client.do_get(flight.Ticket(b"hello")).read_all(),
        lambda: list(client.do_action(flight.Action("nothing", b""))),
    ]
    for attempt in attempts:
        with pytest.raises((pa.ArrowException, flight.FlightError)) as raised:
            attempt()
        assert "Traceback" not in str(raised.value)
        assert ".py" not in str(raised.value)
    client.close()


def test_each_request_is_logged_with_its_end(caplog: pytest.LogCaptureFixture) -> None:
    grant = Grant(user="ann", token="secret", tables=("t",))
    server, _, address = serving(session(), users=[(grant, session())])
    token = {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer secret"}
    with caplog.at_level(logging.INFO, "blendfusion.server"):
        rows(address, "SELECT id FROM t", **token)
        for query in ("SELECT nothing FROM t", "SELECT CAST(x AS INT) FROM t"):
            with pytest.raises(Error):
                rows(address, query, **token)
    server.shutdown()
    found = [record for record in caplog.records if record.name == "blendfusion.server"]
    ends = [record.__dict__ for record in found]
    assert [end["blendfusion.outcome"] for end in ends] == ["done", "failed", "failed"]
    assert [end["blendfusion.rows"] for end in ends] == [3, 0, 0]
    assert [end.get("error.type") for end in ends] == [None, "QueryError", "ExecutionError"]
    assert {end["blendfusion.user"] for end in ends} == {"ann"}
    assert not any("bad" in record.getMessage() for record in found)


@pytest.mark.parametrize("asks", [False, True])
def test_small_batches_are_sent_together_where_no_model_is_asked(asks: bool) -> None:
    own = session()
    own.change_option("chunk_rows", "100")
    values = pa.chunked_array(
        [[f"good {n}" for n in range(m, m + 1000)] for m in range(0, 100_000, 1000)]
    )
    own.from_arrow(pa.table({"x": values, "id": list(range(100_000))}), name="many")
    server, _, address = serving(own)
    client = flight.connect(address)
    try:
        column = "llm_filter('Good?', x) AS g" if asks else "x"
        query = f"SELECT id, {column} FROM many{' LIMIT 1500' if asks else ''}"
        command = pack("CommandStatementQuery", query=query)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        batches = [chunk.data for chunk in client.do_get(info.endpoints[0].ticket)]
    finally:
        client.close()
        server.shutdown()
    table = pa.Table.from_batches(batches)
    assert len(set(table["id"].to_pylist())) == table.num_rows == (1500 if asks else 100_000)
    if asks:
        assert len(batches) > 1
        assert batches[0].num_rows <= 1000
    else:
        assert len(batches) <= 4


def test_messages_that_are_none_are_refused(served: tuple[bf.Session, str]) -> None:
    _, address = served
    client = flight.connect(address)
    for command in (b"", b"\xff\xff", b"hello", pack("CommandStatementUpdate", query="SELECT 1")):
        with pytest.raises((pa.ArrowInvalid, flight.FlightError, pa.ArrowNotImplementedError)):
            client.get_flight_info(flight.FlightDescriptor.for_command(command))
        with pytest.raises((pa.ArrowInvalid, flight.FlightError, pa.ArrowNotImplementedError)):
            client.do_get(flight.Ticket(command)).read_all()
    long = pack("CommandStatementQuery", query="SELECT '" + "a" * (1 << 20) + "'")
    with pytest.raises(pa.ArrowInvalid, match="characters"):
        client.get_flight_info(flight.FlightDescriptor.for_command(long))
    closed = pack("CommandPreparedStatementQuery", prepared_statement_handle=b"nothing")
    with pytest.raises(pa.ArrowInvalid, match="was closed"):
        client.get_flight_info(flight.FlightDescriptor.for_command(closed))
    client.close()


def test_a_message_goes_there_and_back() -> None:
    name, message = unpack(
        pack("CommandGetTables", catalog="c", table_types=["TABLE"], include_schema=True)
    )
    assert (name, message.catalog, list(message.table_types)) == (
        "CommandGetTables",
        "c",
        ["TABLE"],
    )
    assert not message.HasField("db_schema_filter_pattern")
    with pytest.raises(ValueError, match="no message"):
        unpack(b"\xff")


def test_health_and_metrics() -> None:
    server, statements, address = serving(session())
    watch = serve_health(statements, 0)
    place = f"http://127.0.0.1:{watch.server_address[1]}"
    try:
        rows(address, "SELECT id, llm_filter('Good?', x) AS g FROM t")
        assert urllib.request.urlopen(f"{place}/health").read() == b"ok\n"
        text = urllib.request.urlopen(f"{place}/metrics").read().decode()
        assert "blendfusion_queries_total 1\n" in text
        assert "blendfusion_rows_total 3\n" in text
        assert "blendfusion_values_total 2\n" in text
        assert "blendfusion_running 0\n" in text
    finally:
        watch.shutdown()
        watch.server_close()
        server.shutdown()


@pytest.mark.long
def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n2\n")
    command = [
        sys.executable,
        "-c",
        "from blendfusion.apps.cli.main import main; raise SystemExit(main())",
    ]
    process = subprocess.Popen(
        [*command, "serve", "--table", str(tmp_path / "t.csv"), "--cache", "off"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ),
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        assert address.startswith("grpc://127.0.0.1:")
        assert rows(address, "SELECT sum(id) AS n FROM t") == [(3,)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None
        with process.stderr:
            assert "blendfusion.server request ended outcome=done rows=1" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
