"""Over TLS the protocol is what the server offers: HTTP/2 on one connection, else HTTP/1.1."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback import closed_port

from blendfusion.models.http.model import OpenAIModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

pytest.importorskip("h2")
config = pytest.importorskip("hypercorn.config")
TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))
REPLY = {"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A key and a certificate for 127.0.0.1, made for this run."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


class Served:
    """What arrived: the versions of HTTP, and from how many connections."""

    def __init__(self) -> None:
        self.versions: set[str] = set()
        self.clients: set[tuple[str, int]] = set()

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        self.versions.add(scope["http_version"])
        self.clients.add(tuple(scope["client"]))
        await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(REPLY).encode()})


@contextmanager
def serving(app: Served, certificate: tuple[Path, Path], protocols: list[str]) -> Iterator[str]:
    from hypercorn.asyncio import serve

    port = closed_port()
    settings = config.Config()
    settings.bind = [f"127.0.0.1:{port}"]
    settings.keyfile, settings.certfile = map(str, certificate)
    settings.alpn_protocols = protocols
    settings.errorlog = settings.accesslog = None
    settings.graceful_timeout = 0.1
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve(app, settings, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        _wait_for(port)
        yield f"https://127.0.0.1:{port}/v1"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail("the server did not start")


@pytest.mark.parametrize(
    ("protocols", "version", "connections"),
    [(["h2", "http/1.1"], "2", 1), (["http/1.1"], "1.1", 8)],
    ids=["offered", "not offered"],
)
def test_the_server_decides(
    protocols: list[str],
    version: str,
    connections: int,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trusting(**settings: bool) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(certificate[1]))

    monkeypatch.setattr(httpx, "create_ssl_context", trusting)
    app = Served()
    with serving(app, certificate, protocols) as url:
        model = OpenAIModel("tiny", url, None, Options(concurrency=8))
        answers = model.answer(TEXT, [(f"text {number}",) for number in range(64)])
    assert {answer.text for answer in answers} == {"fine"}
    assert app.versions == {version}
    assert len(app.clients) <= connections
