"""A real HTTP server on this machine's loopback that answers OpenAI's chat API by a script."""

from __future__ import annotations

import atexit
import io
import json
import socket
import ssl
import struct
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Reply:
    """One HTTP reply. ``raw``: sent as it is. ``reset``: the connection is cut instead; ``half``:
    after half of the reply. ``wait``: until then nothing is sent. ``tokens``: those of the content,
    each with the log probabilities of what could stand in its place."""

    content: str = ""
    status: int = 200
    finish: str = "stop"
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    raw: bytes | None = None
    reset: bool = False
    half: bool = False
    wait: threading.Event | None = None
    refusal: str | None = None
    tokens: Sequence[tuple[str, Mapping[str, float]]] | None = None

    def payload(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status != 200:
            return json.dumps({"error": {"message": self.error, "type": "invalid"}}).encode()
        message = {"role": "assistant", "content": self.content, "refusal": self.refusal}
        choice: Body = {"index": 0, "message": message, "finish_reason": self.finish}
        if self.tokens is not None:
            choice["logprobs"] = {"content": [_token(*token) for token in self.tokens]}
        return json.dumps(
            {
                "choices": [choice],
                "usage": {
                    "prompt_tokens": 20,
                    "completion_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 5},
                },
            }
        ).encode()


def _token(text: str, logprobs: Mapping[str, float]) -> Body:
    top = [{"token": other, "logprob": logprob} for other, logprob in logprobs.items()]
    return {"token": text, "logprob": logprobs.get(text, -9.0), "top_logprobs": top}


Script = Callable[[Body], Reply]

_PATHS = (
    *("/v1/chat/completions", "/v1/completions", "/v1/embeddings"),
    *("/v1/systemone", "/v1/decisions"),
)


def is_up(url: str) -> bool:
    """Whether the server at a URL tells its models by now."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/models", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


FORM_FIELDS = (
    "response_format",
    "structured_outputs",
    "guided_choice",
    "guided_regex",
    "regex",
    "grammar",
    "json_schema",
)


def form_of(body: Body) -> str:
    """The field in which a request carries its constraint; '' if in none."""
    return next((name for name in FORM_FIELDS if name in body), "")


def said(body: Body) -> str:
    """All that the user's side said in the last message."""
    return str(body["messages"][-1]["content"])


def embeddings(body: Body) -> Reply:
    """Vectors: that of a text is its length and one, the last ones first. A word is a token."""
    texts = body["input"]
    data = [
        {"object": "embedding", "index": i, "embedding": [len(text), 1]}
        for i, text in enumerate(texts)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(raw=json.dumps({"object": "list", "data": data[::-1], "usage": usage}).encode())


class Loopback:
    """The server: ``url`` for the client, ``bodies`` and ``keys`` as they arrived."""

    def __init__(
        self,
        script: Script,
        models: tuple[str, ...],
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.script = script
        self.models: Body | None = {"data": [{"id": m, "max_model_len": 2048} for m in models]}
        self.status = 200
        """Of replies to GET; before them come ``first_statuses``."""
        self.first_statuses: list[int] = []
        self.bodies: list[Body] = []
        self.keys: list[str | None] = []
        self.cookie: str | None = None
        """The cookie of the latest request that carried a body."""
        self.connections = 0
        self.versions: set[str] = set()
        """The versions of HTTP of the requests that carried a body."""
        self.in_flight = 0
        self.most_in_flight = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                with outer._lock:
                    outer.connections += 1
                super().setup()

            def do_GET(self) -> None:
                outer.keys.append(self.headers.get("Authorization"))
                if self.path != "/v1/models" or outer.models is None:
                    self._send(404, b"not here", {})
                else:
                    status = outer.first_statuses.pop(0) if outer.first_statuses else outer.status
                    self._send(status, json.dumps(outer.models).encode(), {})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.keys.append(self.headers.get("Authorization"))
                    outer.bodies.append(body)
                    outer.versions.add(self.request_version)
                    outer.cookie = self.headers.get("Cookie")
                    outer.in_flight += 1
                    outer.most_in_flight = max(outer.most_in_flight, outer.in_flight)
                try:
                    reply = outer.script(body)
                    if reply.wait is not None:
                        reply.wait.wait(20)
                finally:
                    with outer._lock:
                        outer.in_flight -= 1
                if reply.reset:
                    self._reset()
                elif self.path not in _PATHS:
                    self._send(404, b"not here", {})
                else:
                    self._send(reply.status, reply.payload(), reply.headers, half=reply.half)

            def _reset(self) -> None:
                linger = struct.pack("ii", 1, 0)  # closing then sends RST instead of FIN
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
                self.wfile = io.BytesIO()  # the base class still flushes it

            def _send(
                self, status: int, payload: bytes, headers: Mapping[str, str], half: bool = False
            ) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload[: len(payload) // 2] if half else payload)
                self.close_connection = self.close_connection or half

            def log_message(self, *args: object) -> None:
                """Silent."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that goes away in the middle is part of the tests."""

        self._server = Server(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serving(
    script: Script,
    models: tuple[str, ...] = ("tiny",),
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Loopback]:
    server = Loopback(script, models, port, tls)
    try:
        yield server
    finally:
        server.close()


def closed_port() -> int:
    """A port of the loopback on which nobody listens. On Linux it is kept for the process's life,
    so that nobody else gets it; a server that may reuse addresses can still listen there."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port = int(kept.getsockname()[1])
    if sys.platform == "linux":
        atexit.register(kept.close)
    else:
        kept.close()
    return port
