"""Whatever a server replies is read in bounded time and memory, and is at worst that value's
failure."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import pytest
from loopback import Reply, serving
from seconds import least_seconds

import blendfusion as bf
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.parse_reply import encodable, read_reply
from blendfusion.models.services.http.client import Endpoint
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.transport import BrokenConnection, TooLarge
from blendfusion.types import Constraint, StructField

SECONDS = 0.5  # 0.01 on a machine of its own
TEXT, INT = Constraint(), Constraint("integer")
KINDS = (
    TEXT,
    INT,
    Constraint("boolean"),
    Constraint("number"),
    Constraint("date"),
    Constraint("timestamp"),
    Constraint("score", scale=(0, 10)),
    Constraint("choice", options=("a", "b", "it's")),
    Constraint("regex", pattern="[A-Z]{2}[0-9]*"),
    Constraint("list", item=INT),
    Constraint("list", item=TEXT),
    Constraint("struct", fields=(StructField("n", INT), StructField("t", TEXT))),
)

HUGE = [
    '{"answer": 1e999999999}',
    '{"answer": 1e99999999999}',
    '{"answer": 1e999999999999999999}',
    '{"answer": -1e3000000}',
    '{"answer": 1e-999999999}',
    '{"answer": [1e999999999]}',
    '{"n": 1e999999999, "t": "x"}',
    '{"n": 1, "t": 1e999999999}',
    "1e99999999",
    "9" * 5_000,
    "0." + "9" * 50_000,
    '{"answer": ' + "9" * 5_000 + "}",
    "[" * 50_000,
    '{"answer":' * 5_000 + "1" + "}" * 5_000,
    '{"n": ' * 900 + "1" + "}" * 900,
    " " * 20_000 + "x",
    "<think>" * 8_000,
    "<think>" + " " * 190_000,
    "```\n" * 10_000,
    '"' * 100_000,
    ",".join(["123"] * 20_000),
    "\ud83d" * 1_000,
    "\ud83d" * 80_000 + ".",
]


def memory_of(reply: str, constraint: Constraint) -> int:
    """Bytes above 20 times the reply's own size."""
    tracemalloc.start()
    try:
        answer = read_reply(reply, constraint)
        assert answer is None or len(answer) <= 2 * len(reply) + 100
        return tracemalloc.get_traced_memory()[1] - 20 * len(reply)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("constraint", KINDS, ids=str)
def test_no_reply_stalls_or_fills_memory(constraint: Constraint) -> None:
    for reply in HUGE:
        seconds = least_seconds(partial(read_reply, reply, constraint), SECONDS)
        assert seconds < SECONDS, reply[:40]
        assert memory_of(reply, constraint) < 10_000_000, reply[:40]


@pytest.mark.parametrize(
    "value", [Decimal("1e999999999"), Decimal("-1e400000"), 10**5_000], ids=["long", "less", "int"]
)
def test_a_huge_number_has_a_short_text(value: Decimal | int) -> None:
    assert len(canonical(value, INT)) < 500


def test_every_bigint_is_an_integer() -> None:
    for value in (2**63 - 1, -(2**63), 10**18):
        assert read_reply(f'{{"answer": {value}}}', INT) == str(value)
    assert read_reply(str(2**63), INT) is None


def test_a_thought_is_left_out_wherever_it_stands() -> None:
    assert read_reply("<think>2 or 3?</think>\n 3", INT) == "3"
    assert read_reply("so <think>x</think> 3", TEXT) == "so3"
    assert read_reply("<think>never ended 3", INT) is None


def test_halves_of_pairs_are_replaced_and_pairs_are_joined() -> None:
    dice = random.Random(3)
    for _ in range(2_000):
        text = "".join(dice.choices("a\ud83d\ude42\ud800\udfffé🙂", k=dice.randint(0, 8)))
        by_codec = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert encodable(text) == by_codec, ascii(text)


def _some_reply(pick: random.Random) -> str:
    words = [
        '{"answer": ',
        "}",
        "[",
        "]",
        '"',
        "1e9",
        "99999999999",
        "-",
        ".",
        ",",
        "<think>",
        "</think>",
    ]
    words += [
        "```",
        "\n",
        "yes",
        "true",
        "2024-02-29",
        "null",
        "\\u0000",
        "é",
        "\ud83d",
        "🙂",
        " ",
        "\t",
        "a",
    ]
    words += [
        '"n": ',
        '"t": ',
        "{",
        ":",
        "E+",
        "0x1",
        "NaN",
        "Infinity",
        "１２",
        "\u202e",
        "\x00",
        "'",
    ]
    kind = pick.random()
    if kind < 0.1:
        return pick.randbytes(pick.randint(0, 300)).decode(
            pick.choice(("utf-8", "latin-1")), "replace"
        )
    if kind < 0.2:
        return json.dumps(_some_json(pick, 5), ensure_ascii=pick.random() < 0.5)
    if kind < 0.22:
        return pick.choice(words) * pick.randint(1_000, 20_000) + pick.choice(words)
    return "".join(
        pick.choice(words) * pick.choice((1, 1, 1, 2, 50)) for _ in range(pick.randint(1, 30))
    )


def _some_json(pick: random.Random, depth: int) -> object:
    if depth and pick.random() < 0.5:
        inner = [_some_json(pick, depth - 1) for _ in range(pick.randint(0, 4))]
        names = ("answer", "n", "t", "x", "")
        return inner if pick.random() < 0.4 else {pick.choice(names): each for each in inner}
    return pick.choice((None, True, 10**30, -1, 0.1, 1e300, "yes", "２", "1e9", "a" * 500, ""))


def test_random_replies_never_raise_and_take_no_time(request: pytest.FixtureRequest) -> None:
    """``--cases N`` tries more."""
    cases = request.config.getoption("--cases") or 2_000
    pick = random.Random(7)
    slowest, most, memory = 0.0, 0, 0
    for number in range(cases):
        reply, constraint = _some_reply(pick), pick.choice(KINDS)
        if number % 50 == 0:
            memory = max(memory, memory_of(reply, constraint))
        seconds = least_seconds(partial(read_reply, reply, constraint), SECONDS)
        slowest = max(slowest, seconds)
        most = max(most, len(reply))
    print(
        f"{cases:,} replies of up to {most:,} characters: at most {slowest * 1000:.1f} ms, and "
        f"{memory / 1e6:.1f} MB above 20 times its size each"
    )
    assert slowest < SECONDS
    assert memory < 10_000_000


# --- through a server ---------------------------------------------------------------------------------


def ask(server: object, query: str, **options: object) -> tuple[list[object], list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = f"openai:m@{server.url}"  # type: ignore[attr-defined]
        given = {"cache": None, "retries": 0, "show_values": "on", **options}
        with bf.connect(model, **given) as session:
            session.from_pydict({"x": ["a", "b", "c"]}, name="t")
            rows = session.sql(f"SELECT {query} AS y FROM t ORDER BY x").to_pydict()["y"]
    return rows, [str(w.message) for w in told]


@pytest.mark.parametrize("reply", HUGE, ids=lambda reply: f"{reply[:20]!r}")
def test_one_bad_reply_is_that_values_failure(reply: str) -> None:
    """operations.md: what goes wrong with one value is that value's."""

    # Each text is its own request; the reply to one of them is bad.
    def by_value(body: dict[str, object]) -> Reply:
        last = str(body["messages"][-1]["content"])  # type: ignore[index]
        return Reply(reply if last.rstrip().endswith("b") or ": b" in last else "7")

    with serving(by_value) as server:
        start = time.monotonic()
        rows, _ = ask(server, "llm_int('How many?', x)")
        assert time.monotonic() - start < 10
    assert rows[0] == rows[2] == 7
    assert rows[1] is None or isinstance(rows[1], int)


_LONG_BODIES = """
import resource, sys
import blendfusion as bf
session = bf.connect(f"openai:m@{sys.argv[1]}", cache=None, retries=0, timeout_seconds=20)
def rows(*values):
    session.from_pydict({"x": [*values]}, name="t")
    found = session.sql("SELECT llm_text('What?', x) AS y FROM t ORDER BY x").to_pydict()["y"]
    session.deregister_table("t")
    return found
print(rows("short"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(rows("a", "b", "c"))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_long_body_is_not_read_to_its_end() -> None:
    """In a process of its own, since the server has copies in this one."""

    def short_once(body: dict[str, object]) -> Reply:
        return Reply("7" if "short" in str(body["messages"]) else "x" * 40_000_000)

    with serving(short_once) as server:
        command = [sys.executable, "-c", _LONG_BODIES, server.url]
        client = subprocess.run(command, capture_output=True, text=True, timeout=120)
    short, long, mebibytes = client.stdout.splitlines()
    assert (short, long) == ("['7']", "[None, None, None]")
    assert "longer than" in client.stderr
    assert int(mebibytes) < 60  # of 120


def test_a_key_that_a_server_repeats_is_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """security.md: keys are cut out of what a server says, in every status."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRETKEY-1234")
    with serving(lambda body: Reply("my key is sk-SECRETKEY-1234")) as server:
        _, told = ask(server, "llm_int('How many?', x)")
    assert told
    assert not any("SECRETKEY" in text for text in told)


def test_content_in_parts_is_read() -> None:
    from blendfusion.models.services.http.completion import read_completion

    parts = [{"type": "text", "text": "4"}, {"type": "image"}, {"type": "text", "text": "2"}]
    reply = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert read_completion(reply).text == "42"


# --- the body -------------------------------------------------------------------------------------------


def test_a_compressed_body_is_not_inflated_beyond_its_bound() -> None:
    bomb = gzip.compress(b"0" * 300_000_000)

    def read(content: bytes, encoding: str) -> bytes:
        with _sending_raw(content, {"Content-Encoding": encoding}) as url:
            return asyncio.run(_received(url, most_bytes=1_000_000))

    tracemalloc.start()
    with pytest.raises(TooLarge, match="longer than"):
        read(bomb, "gzip")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    with pytest.raises(TooLarge, match="compressed as 'br'"):
        read(b"x", "br")
    assert read(gzip.compress(b"[1]"), "gzip") == b"[1]"
    assert read(zlib.compress(b"[1]"), "deflate") == b"[1]"
    assert read(b"[1]", "identity") == b"[1]"
    with pytest.raises(BrokenConnection, match="DecodingError"):
        read(b"no gzip", "gzip")


@contextmanager
def _sending_raw(content: bytes, headers: Mapping[str, str]) -> Iterator[str]:
    """A server of one reply, which has ``content`` as it is."""

    def serve() -> None:
        with suppress(OSError):  # the client may hang up
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                fields = {**headers, "Content-Length": str(len(content))}
                lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
                connection.sendall(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + content)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    thread.join()


async def _received(url: str, most_bytes: int) -> bytes:
    endpoint = Endpoint(url, None, 20.0, Retry(attempts=1))
    async with endpoint.client() as client:
        return (await client.send(endpoint.request("/x"), most_bytes)).content


def _drip(connection: socket.socket) -> None:
    """A reply that goes on for ever, a byte at a time; the list of models is no part of it."""
    with connection, suppress(OSError):
        if connection.recv(1 << 16).startswith(b"GET"):
            connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while True:
            connection.sendall(b" ")
            time.sleep(0.02)


def test_a_reply_in_drips_has_a_time_as_a_whole() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(
                        target=_drip, args=(listener.accept()[0],), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        start = time.monotonic()
        server = SimpleNamespace(url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        rows, told = ask(server, "llm_int('How many?', x)", timeout_seconds=1)
        assert time.monotonic() - start < 5
    assert rows == [None, None, None]
    assert any("no reply within 1 s" in text for text in told)
