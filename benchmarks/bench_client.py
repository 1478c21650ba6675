"""What does a value cost the client's CPU, beside the HTTP libraries alone?

The server is a process of its own that answers at once, or after a fixed time. All clients ask it
in the same minutes, one after the other, several times; the least CPU of each counts. A ratio is
to asyncio's streams by hand, which parse nothing but what this server writes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from server_process import served

import blendfusion as bf

_REPLY = json.dumps(
    {
        "model": "tiny",
        "choices": [
            {"index": 0, "message": {"content": '{"answer": "Yes"}'}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 120, "completion_tokens": 6},
    }
).encode()
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_MODELS = b'{"data": [{"id": "tiny"}]}'
_QUESTION = "Is it about a river?"


class _Answers(asyncio.Protocol):
    """One connection of the server, which answers each request after ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._begun = seconds, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._begun += data
        while (end := self._begun.find(b"\r\n\r\n")) >= 0:
            head = self._begun[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
            if len(self._begun) < end + 4 + length:
                return
            self._begun = self._begun[end + 4 + length :]
            body = _MODELS if head.startswith(b"get") else _REPLY
            reply = _HEAD % len(body) + body
            asyncio.get_running_loop().call_later(self._seconds, self._write, reply)

    def _write(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


def _serve(pipe: Connection, seconds: float, certificate: tuple[Path, Path] | None) -> None:
    async def main() -> None:
        context = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate[1], certificate[0])
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Answers(seconds), "127.0.0.1", 0, ssl=context, backlog=512
        )
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def _texts(count: int, of: str) -> list[str]:
    return [
        f"{of} {number} is a text of some twenty words, as many are " * 2 for number in range(count)
    ]


def _body(text: str) -> bytes:
    """A request like those of BlendFusion, without worked examples."""
    turns = [
        {"role": "system", "content": "Answer each question about a text with yes or no."},
        {"role": "user", "content": f"Question: {_QUESTION}\nText: {text}"},
    ]
    fields = {"temperature": 0, "seed": 0, "max_tokens": 128, "logprobs": True, "top_logprobs": 20}
    return json.dumps({"model": "tiny", "messages": turns, **fields}).encode()


async def _spread(
    texts: list[str], at_once: int, worker: Callable[[Iterator[str]], Awaitable[None]]
) -> None:
    waiting = iter(texts)
    await asyncio.gather(*(worker(waiting) for _ in range(at_once)))


async def _by_hand(url: str, texts: list[str], at_once: int) -> None:
    at = urlsplit(url)

    async def worker(waiting: Iterator[str]) -> None:
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
        for text in waiting:
            body = _body(text)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            lines = await reader.readuntil(b"\r\n\r\n")
            length = int(lines.split(b"content-length: ")[1].split(b"\r")[0])
            json.loads(await reader.readexactly(length))
        writer.close()

    await _spread(texts, at_once, worker)


async def _aiohttp(url: str, texts: list[str], at_once: int) -> None:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def worker(waiting: Iterator[str]) -> None:
            for text in waiting:
                async with session.post(f"{url}/chat/completions", data=_body(text)) as reply:
                    json.loads(await reply.read())

        await _spread(texts, at_once, worker)


async def _httpx(url: str, texts: list[str], at_once: int) -> None:
    import httpx

    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=None)) as client:

        async def worker(waiting: Iterator[str]) -> None:
            for text in waiting:
                (await client.post(f"{url}/chat/completions", content=_body(text))).json()

        await _spread(texts, at_once, worker)


def _blendfusion(url: str, texts: list[str], at_once: int) -> None:
    session = bf.connect(f"openai:tiny@{url}", cache=None, concurrency=at_once, progress="off")
    with session:
        session.from_pydict({"t": texts}, name="notes")
        query = f"SELECT count(*) FROM notes WHERE llm_filter('{_QUESTION}', t)"
        assert session.sql(query).to_pylist() == [{"count(*)": len(texts)}]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _milliseconds(ask: Callable[[list[str]], object], count: int) -> tuple[float, float]:
    """CPU of this process a value, and values a second."""
    cpu, start = _cpu(), time.perf_counter()
    ask(_texts(count, "note"))
    return (_cpu() - cpu) / count * 1000, count / (time.perf_counter() - start)


def _clients(url: str, at_once: int) -> dict[str, Callable[[list[str]], object]]:
    found: dict[str, Callable[[list[str]], object]] = {
        "asyncio streams by hand": lambda texts: asyncio.run(_by_hand(url, texts, at_once)),
        "aiohttp": lambda texts: asyncio.run(_aiohttp(url, texts, at_once)),
        "BlendFusion": lambda texts: _blendfusion(url, texts, at_once),
    }
    if find_spec("httpx") is not None:
        found["httpx"] = lambda texts: asyncio.run(_httpx(url, texts, at_once))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with served(_serve, 0.0, None) as (url, _):
        best: dict[str, tuple[float, float]] = {}
        clients = _clients(url, 32)
        for ask in clients.values():
            ask(_texts(64, "first"))  # imports, and what a server takes
        for _ in range(options.rounds):
            for name, ask in clients.items():
                count = options.values // 5 if name == "httpx" else options.values
                found = _milliseconds(ask, count)
                best[name] = min(best.get(name, found), found)
        base = best["asyncio streams by hand"][0]
        print(f"{options.values} values, 32 in flight, a server that answers at once")
        for name, (cpu, rate) in best.items():
            print(f"{name:24} {cpu:6.3f} ms CPU a value {cpu / base:6.1f} ×  {rate:6.0f} a second")
        plain = best["BlendFusion"][0]
        many = min(
            _milliseconds(lambda texts: _blendfusion(url, texts, 256), options.values)
            for _ in range(options.rounds)
        )
        print(
            f"{'256 in flight':24} {many[0]:6.3f} ms CPU a value {many[0] / plain:6.2f} × that of 32"
        )
    with tempfile.TemporaryDirectory() as folder:
        _over_tls(Path(folder), options.values, options.rounds, plain)
    with served(_serve, 0.05, None) as (url, _):
        _blendfusion(url, _texts(128, "first"), 64)
        _, rate = _milliseconds(lambda texts: _blendfusion(url, texts, 64), 4 * options.values)
        print(
            f"a server of 50 ms, 64 in flight: {rate:.0f} a second, {rate * 0.05 / 64:.2f} of its limit"
        )


def _over_tls(folder: Path, values: int, rounds: int, plain: float) -> None:
    import os
    import subprocess

    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    os.environ["SSL_CERT_FILE"] = str(certificate)
    with served(_serve, 0.0, (key, certificate), scheme="https") as (url, _):
        _blendfusion(url, _texts(64, "first"), 32)
        cpu = min(
            _milliseconds(lambda texts: _blendfusion(url, texts, 32), values) for _ in range(rounds)
        )[0]
    print(f"{'TLS':24} {cpu:6.3f} ms CPU a value {cpu / plain:6.2f} × that without")


if __name__ == "__main__":
    main()
