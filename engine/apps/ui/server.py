"""The HTTP server of the page, on the loopback alone.

Each request must name this machine as its host, come from the page itself if a browser sends it,
and, but for the three files of the page, carry the token that only the URL on the terminal has.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from blendfusion.apps.scripts import script
from blendfusion.apps.ui.views import View, file_of
from blendfusion.apps.ui.workspace import Workspace, error_of
from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.places.whole_file import replacing

_BODY = 1_000_000
"""Maximum bytes of a request."""
_UPLOAD = 1 << 30
"""Maximum bytes of a file that is opened."""
_SECONDS = 30.0
"""How long a connection may take to send one."""
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_TRACE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


Reply: TypeAlias = "tuple[str | bytes, str, str]"
"""A body, its media type, and the policy of the page that shows it. Bytes are a file to be kept."""


class PageServer(ThreadingHTTPServer):
    """Serves ``workspace`` on ``port`` of the loopback (0: any). ``url`` has the token."""

    daemon_threads = True

    def __init__(self, workspace: Workspace, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.workspace = workspace
        self.token = secrets.token_urlsafe(32)
        own = self.server_address[1]
        self.hosts = {f"{name}:{own}" for name in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{own}/?token={self.token}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: the client has closed the connection."""


class _Refusal(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SECONDS
    server_version, sys_version = "BlendFusion", ""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nothing: the first line of a request has the token."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, reply: Callable[[], Reply]) -> None:
        status = 200
        text: str | bytes
        try:
            self._check_origin()
            text, kind, policy = reply()
        except _Refusal as refused:
            status, kind, policy = refused.status, "text/plain", _POLICY
            text = str(refused)
        except BlendFusionError as problem:
            status, kind, policy = 400, "application/json", _POLICY
            text = json.dumps({"error": error_of(problem)})
        except Exception as problem:
            status, kind, policy = 500, "application/json", _POLICY
            text = json.dumps({"error": error_of(problem)})
        body = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        self.send_response(status)
        if isinstance(text, bytes):
            self.send_header("Content-Disposition", "attachment")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    # --- checks ----------------------------------------------------------------------------------

    def _check_origin(self) -> None:
        """A page of another host must neither read nor send, whatever name leads it here."""
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise _Refusal(403, "This page is served to this machine alone.")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            raise _Refusal(403, "Another page may not use this one.")
        if not self._is_own and not self._opens_the_page:
            raise _Refusal(403, "Another page may not use this one.")

    @property
    def _is_own(self) -> bool:
        return self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")

    @property
    def _opens_the_page(self) -> bool:
        """Whether a tab goes to the page, which holds nothing yet: from the file that has its
        address, or from a link."""
        goes = self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest")
        return goes == ("navigate", "document") and urlsplit(self.path).path == "/"

    def _check_token(self, given: str) -> None:
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode()):
            raise _Refusal(403, "Open the whole address that 'blendfusion ui' has printed.")

    # --- replies ---------------------------------------------------------------------------------

    def _get(self) -> Reply:
        parts = urlsplit(self.path)
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.path in _FILES:
            name, kind = _FILES[parts.path]
            if name == "page.html":
                self._check_token(given.get("token", ""))
            return files("blendfusion.apps.ui").joinpath(name).read_text("utf-8"), kind, _POLICY
        work = self.server.workspace
        match parts.path.split("/")[1:]:
            case ["trace", number]:
                self._check_token(given.get("token", ""))
                return work.trace_page(_number(number)), "text/html", _TRACE_POLICY
            case ["api", *rest]:
                self._check_token(self.headers.get("X-Token", ""))
                first, count = _number(given.get("first", "0")), _number(given.get("count", "50"))
                view = _view(given)
                match rest:
                    case ["state"]:
                        return _json(work.state())
                    case ["run", number]:
                        return _json(work.progress(_number(number)))
                    case ["rows", number]:
                        return _json(work.rows(_number(number), first, count, view))
                    case ["count", number]:
                        return _json({"rows": work.table(_number(number), view).num_rows})
                    case ["summary", number]:
                        return _json(work.summary(_number(number), view))
                    case ["cell", number, row, column]:
                        return _json(
                            work.provenance(_number(number), view, _number(row), _number(column))
                        )
                    case ["file", number, style]:
                        content, kind = file_of(work.table(_number(number), view), style)
                        return content, kind, _POLICY
                    case ["answers", number]:
                        return _json(work.answers(_number(number), first, count))
        raise _Refusal(404, "There is nothing here.")

    def _post(self) -> Reply:
        self._check_token(self.headers.get("X-Token", ""))
        if urlsplit(self.path).path == "/api/open":
            return self._open()
        body = self._body()
        sql, dialect = _text(body, "sql"), _text(body, "dialect") or None
        work = self.server.workspace
        match self.path.split("/")[1:]:
            case ["api", "plan"]:
                return _json(self._plan(sql, dialect, keeps=body.get("runs") is True))
            case ["api", "statements"]:
                return _json([{"sql": one.text, "start": one.start} for one in script(sql)])
            case ["api", "correct"]:
                given = [_text(body, name) for name in ("question", "text", "answer", "label")]
                return _json({"corrections": work.correct(*given)})
            case ["api", "run"]:
                confirmed = body.get("confirmed") is True
                return _json({"id": work.start(sql, dialect, confirmed=confirmed)})
            case ["api", "stop", number]:
                work.stop(_number(number))
                return _json({})
            case ["api", "budget"]:
                work.limit(_text(body, "limits"))
                return _json(work.state())
        raise _Refusal(404, "There is nothing here.")

    def _plan(self, sql: str, dialect: str | None, *, keeps: bool) -> dict[str, Any]:
        """The plan of a query. ``keeps``: one that fails stands in the history."""
        try:
            return self.server.workspace.plan(sql, dialect)
        except BlendFusionError as problem:
            if keeps:
                self.server.workspace.remember(sql, problem)
            raise

    def _open(self) -> Reply:
        """Make a table of the file that is the body of the request."""
        if self.headers.get_content_type() != "application/octet-stream":
            raise _Refusal(415, "The Content-Type of a file is application/octet-stream.")
        left = self._length(_UPLOAD)
        name = parse_qs(urlsplit(self.path).query).get("name", [""])[-1]
        file = self.server.workspace.open_upload(name)
        with replacing(file) as whole, whole.open("wb") as sink:
            while left:
                part = self.rfile.read(min(left, 1 << 20))
                if not part:
                    raise _Refusal(400, "The file ended before its Content-Length.")
                sink.write(part)
                left -= len(part)
        return _json(self.server.workspace.add_upload(file))

    def _length(self, most: int) -> int:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise _Refusal(411, "The request has no Content-Length.")
        if int(length) > most:
            raise _Refusal(413, "The request is too long.")
        return int(length)

    def _body(self) -> dict[str, Any]:
        length = self._length(_BODY)
        if self.headers.get_content_type() != "application/json":
            raise _Refusal(415, "The Content-Type of a request is application/json.")
        try:
            body = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            raise _Refusal(400, "The body is not JSON.") from None
        if not isinstance(body, dict):
            raise _Refusal(400, "The body is not a JSON object.")
        return body


def _json(value: object) -> Reply:
    return json.dumps(value, ensure_ascii=True, allow_nan=False), "application/json", _POLICY


def _view(given: dict[str, str]) -> View:
    column = given.get("sort", "")
    return View(
        given.get("words", ""), _number(column) if column else None, given.get("down", "") == "1"
    )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise _Refusal(400, "A whole number is expected here.")
    return int(text)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str) and value is not None:
        raise QueryError(f"'{name}' is not a string")
    return value or ""
