"""A Hugging Face Hub on this machine's loopback: a few repositories, and the errors of the real
one."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

_PIECE = 100_000
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class LoopbackHub:
    """``files``: content by "owner/repo/path"; ``gated``: repositories that want a token.
    ``asked``: what was asked for, as "METHOD path"."""

    def __init__(self, files: dict[str, bytes], gated: frozenset[str] = frozenset()) -> None:
        self.files, self.gated = files, gated
        self.asked: list[str] = []
        self.pause_seconds = 0.0
        """Before each piece of a file."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._serve()

            def do_GET(self) -> None:
                self._serve()

            def _serve(self) -> None:
                path = unquote(self.path.partition("?")[0])
                outer.asked.append(f"{self.command} {path}")
                parts = path.strip("/").split("/")
                if parts[0] == "api":
                    return self._listing("/".join(parts[2:4]))
                repository, revision, file = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
                problem = outer.problem(repository, revision, self.headers.get("Authorization"))
                content = outer.files.get(f"{repository}/{file}")
                if problem or content is None:
                    return self._send(b"", *(problem or (404, "EntryNotFound")))
                return self._send(content)

            def _listing(self, repository: str) -> None:
                begin = f"{repository}/"
                names = [n.removeprefix(begin) for n in outer.files if n.startswith(begin)]
                listed = [{"type": "file", "path": n, "size": 1, "oid": "0"} for n in names]
                if "/tree/" in self.path:
                    return self._send(json.dumps(listed).encode())
                found = {"id": repository, "siblings": [{"rfilename": name} for name in names]}
                return self._send(json.dumps(found).encode())

            def _send(self, content: bytes, status: int = 200, code: str = "") -> None:
                self.send_response(status)
                if code:
                    self.send_header("X-Error-Code", code)
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command == "GET":
                    for start in range(0, len(content), _PIECE):
                        time.sleep(outer.pause_seconds)
                        self.wfile.write(content[start : start + _PIECE])

            def log_message(self, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def problem(self, repository: str, revision: str, key: str | None) -> tuple[int, str] | None:
        if not any(name.startswith(f"{repository}/") for name in self.files):
            return 401, "RepoNotFound"
        if repository in self.gated and not key:
            return 401, "GatedRepo"
        return None if revision in ("main", "v1", COMMIT) else (404, "RevisionNotFound")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def hub(files: dict[str, bytes], gated: frozenset[str] = frozenset()) -> Iterator[LoopbackHub]:
    server = LoopbackHub(files, gated)
    try:
        yield server
    finally:
        server.close()
