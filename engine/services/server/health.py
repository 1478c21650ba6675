"""Whether the server lives, and what it has done, over HTTP for those who watch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from blendfusion.places.ports import check_port
from blendfusion.services.server.statements import Statements

_GAUGES = ("running",)


def metrics_of(statements: Statements) -> str:
    """The counts of a server in the format of Prometheus."""
    used = statements.usage
    numbers: dict[str, float] = {
        **asdict(statements.counts),
        "values": used.values,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "model_seconds": used.seconds,
    }
    lines = []
    for name, number in numbers.items():
        full = f"blendfusion_{name}" + ("" if name in _GAUGES else "_total")
        lines += [f"# TYPE {full} {'gauge' if name in _GAUGES else 'counter'}", f"{full} {number}"]
    return "\n".join(lines) + "\n"


def serve_health(statements: Statements, port: int) -> ThreadingHTTPServer:
    """A server on the loopback with ``/health`` and ``/metrics``, which runs in a thread. Raises
    OptionError for a port that is taken."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages: dict[str, Callable[[], str]] = {
                "/health": lambda: "ok\n",
                "/metrics": lambda: metrics_of(statements),
            }
            page = pages.get(self.path)
            body = (page() if page else "there is /health and /metrics\n").encode()
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            pass

    check_port(port, option="--metrics-port")
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server
