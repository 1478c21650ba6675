"""What do five queries send to a server, beside BlendSQL?

    python benchmarks/bench_server_queries.py --peers-folder FOLDER

Both ask one server that answers after 50 ms by the number in a note, and that counts requests and
the words of their messages: 1,000 rows, 600 distinct texts, 32 requests in flight. BlendSQL 0.1.28
lives in a virtual environment of its own in --peers-folder, made at the first run. Rows must be
equal; for LIMIT without an order, their number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from environments import BLENDSQL
from server_process import served

import blendfusion as bf

SECONDS = 0.05
AT_ONCE = 32
TEXTS, ROWS = 600, 1_000
TOPICS = ("delivery", "payment", "quality", "service")
COMPLAINT, TOPIC, DAYS = "Is it a complaint?", "What is it about?", "After how many days?"
_WORD = re.compile(r"\w+|[^\w\s]")
_NUMBER = re.compile(r"Note (\d+):")


@dataclass(frozen=True)
class Query:
    name: str
    ours: str
    theirs: str
    limited: bool = False


def _map(question: str, column: str, more: str) -> str:
    return f"{{{{LLMMap('{question}', {column}, {more})}}}}"


_BOOL, _INT = "return_type='bool'", "return_type='int'"
_OPTIONS = f"options=({', '.join(map(repr, TOPICS))})"
_LABELS = f"[{', '.join(map(repr, TOPICS))}]"
QUERIES = (
    Query(
        "a filter beside a cheap one",
        f"SELECT id FROM notes WHERE stars <= 2 AND llm_filter('{COMPLAINT}', text)",
        f"SELECT id FROM notes WHERE stars <= 2 AND {_map(COMPLAINT, 'notes.text', _BOOL)} = TRUE",
    ),
    Query(
        "classes, counted",
        f"SELECT llm_classify(text, {_LABELS}, question => '{TOPIC}') AS topic, count(*) AS n "
        "FROM notes WHERE stars = 5 GROUP BY topic",
        f"WITH c AS (SELECT {_map(TOPIC, 'notes.text', _OPTIONS)} AS topic FROM notes "
        "WHERE stars = 5) SELECT topic, COUNT(*) AS n FROM c GROUP BY topic",
    ),
    Query(
        "a number compared",
        f"SELECT id FROM notes WHERE stars = 3 AND llm_int('{DAYS}', text) > 10",
        f"SELECT id FROM notes WHERE stars = 3 AND {_map(DAYS, 'notes.text', _INT)} > 10",
    ),
    Query(
        "the first ten",
        f"SELECT id FROM notes WHERE llm_filter('{COMPLAINT}', text) LIMIT 10",
        f"SELECT id FROM notes WHERE {_map(COMPLAINT, 'notes.text', _BOOL)} = TRUE LIMIT 10",
        limited=True,
    ),
    Query(
        "behind a join",
        "SELECT n.id FROM notes n JOIN products p ON n.product = p.id "
        f"WHERE p.price > 90 AND llm_filter('{COMPLAINT}', n.text)",
        "SELECT notes.id FROM notes JOIN products ON notes.product = products.id "
        f"WHERE products.price > 90 AND {_map(COMPLAINT, 'notes.text', _BOOL)} = TRUE",
    ),
)


def _tables() -> dict[str, pa.Table]:
    of = [i * 7 % TEXTS for i in range(ROWS)]
    notes = pa.table(
        {
            "id": range(ROWS),
            "stars": [n % 5 + 1 for n in of],
            "product": [n // 5 % 10 for n in of],
            "text": [
                f"Note {n}: the parcel came late, the lamp was broken, and nobody wrote back for days"
                for n in of
            ],
        }
    )
    products = pa.table({"id": range(10), "price": [*range(10, 101, 10)]})
    return {"notes": notes, "products": products}


def _answer(body: dict[str, object]) -> str:
    """The answer in the form that the request asks for."""
    messages = json.dumps(body["messages"])
    number = int(_NUMBER.findall(messages)[-1])
    schema = json.dumps(body.get("response_format", ""))
    if DAYS in messages:
        found: object = number * 31 % 20
    elif TOPIC in messages:
        found = TOPICS[number % 4]
    else:
        yes = number * 7 % 5 < 2
        words = ("Yes", "No") if '"Yes"' in schema else ("True", "False")
        found = words[0] if yes else words[1]
        if '"boolean"' in schema:
            found = yes
    return json.dumps({"answer": found}) if schema != '""' else str(found)


def _serve(pipe: Connection) -> None:
    """Answer for ever; the port, and then the count of requests and words at each message."""
    sent = [0, 0]

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                if head.startswith("get"):
                    await _write(writer, "application/json", '{"data": [{"id": "tiny"}]}')
                    continue
                size = int(head.split("content-length: ")[1].split("\r\n")[0])
                body = json.loads(await reader.readexactly(size))
                sent[0] += 1
                sent[1] += sum(len(_WORD.findall(str(m["content"]))) for m in body["messages"])
                await asyncio.sleep(SECONDS)
                await _reply(writer, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        asyncio.get_running_loop().add_reader(pipe.fileno(), tell)
        await server.serve_forever()

    def tell() -> None:
        pipe.recv()
        pipe.send(tuple(sent))
        sent[:] = [0, 0]

    asyncio.run(main())


async def _reply(writer: asyncio.StreamWriter, body: dict[str, object]) -> None:
    text = _answer(body)
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    about = {"id": "1", "created": 0, "model": "tiny"}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        reply = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
        await _write(writer, "application/json", json.dumps(reply))
        return
    part = {**about, "object": "chat.completion.chunk"}
    delta = {"role": "assistant", "content": text}
    parts = (
        {**part, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**part, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**part, "choices": [], "usage": usage},
    )
    lines = [f"data: {json.dumps(one)}\n\n" for one in parts]
    await _write(writer, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))


async def _write(writer: asyncio.StreamWriter, kind: str, text: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n\r\n"
    writer.write((head + text).encode())
    await writer.drain()


def _sent(pipe: Connection) -> tuple[int, int]:
    """Requests and words since the last time."""
    pipe.send(None)
    requests, words = pipe.recv()
    return requests, words


Rows = list[list[str]]


def _ask_ours(url: str, query: Query, tables: dict[str, pa.Table]) -> Rows:
    with bf.connect(
        f"openai:tiny@{url}", cache=None, concurrency=AT_ONCE, progress="off"
    ) as session:
        for name, table in tables.items():
            session.from_arrow(table, name=name)
        return [list(map(str, row.values())) for row in session.sql(query.ours).to_pylist()]


@contextmanager
def _peer(python: Path, url: str, tables: dict[str, pa.Table]) -> Iterator[Callable[[Query], Rows]]:
    script = Path(__file__).with_name("peer_blendsql_queries.py")
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"{name}.parquet")) for name in tables]
        for path, table in zip(paths, tables.values(), strict=True):
            pq.write_table(table, path)
        with subprocess.Popen(
            [str(python), str(script), url, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin
            assert process.stdout
            written, lines = process.stdin, iter(process.stdout.readline, "")

            def ask(query: Query) -> Rows:
                written.write(json.dumps(query.theirs) + "\n")
                written.flush()
                said = json.loads(next(one for one in lines if one.startswith("answers "))[8:])
                if "error" in said:
                    raise RuntimeError(said["error"])
                return list(said["rows"])

            next(line for line in lines if line == "ready\n")
            yield ask
            written.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-folder", type=Path, required=True)
    given = parser.parse_args()
    python, tables = BLENDSQL.python(given.peers_folder), _tables()
    with served(_serve) as (url, pipe), _peer(python, url, tables) as ask_theirs:
        totals = {"BlendFusion": [0, 0], "BlendSQL": [0, 0]}
        ask_ours = partial(_ask_ours, url, tables=tables)
        asks: tuple[Callable[[Query], Rows], ...] = ask_ours, ask_theirs
        for query in QUERIES:
            rows: list[Rows] = []
            print(query.name)
            for (name, total), ask in zip(totals.items(), asks, strict=True):
                start = time.perf_counter()
                rows.append(sorted(ask(query)))
                seconds = time.perf_counter() - start
                requests, words = _sent(pipe)
                total[:] = total[0] + requests, total[1] + words
                print(
                    f"  {name:12}{requests:6} requests {words:8,} words {seconds:6.1f} s",
                    flush=True,
                )
            ours, theirs = rows
            same = len(ours) == len(theirs) if query.limited else ours == theirs
            print(f"  {len(ours)} rows, {'as BlendSQL' if same else 'NOT AS BlendSQL'}")
    (requests, words), (their_requests, their_words) = totals.values()
    print(
        f"requests {requests} and {their_requests}; words {words:,} and {their_words:,}, ", end=""
    )
    print(f"ratio {words / their_words:.2f}")


if __name__ == "__main__":
    main()
