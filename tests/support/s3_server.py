"""A server of objects that speaks as much of S3 as listing and reading need."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

TIME = "Mon, 02 Nov 2026 10:00:00 GMT"
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "key",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Server(http.server.ThreadingHTTPServer):
    """The objects of buckets, by bucket and key."""

    buckets: Mapping[str, dict[str, bytes]]
    refused: frozenset[str] = frozenset()
    """Buckets to which every request is refused."""


class _Requests(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        bucket, _, key = unquote(address.path).lstrip("/").partition("/")
        asked = {
            name: values[0]
            for name, values in parse_qs(address.query, keep_blank_values=True).items()
        }
        if bucket in self.server.refused:
            self._fail(403, "AccessDenied")
        elif bucket not in self.server.buckets:
            self._fail(404, "NoSuchBucket")
        elif not key and (asked or self.command == "GET"):
            self._list(bucket, asked)
        elif not key:
            self._reply(200, b"")
        elif key not in self.server.buckets[bucket]:
            self._fail(404, "NoSuchKey")
        else:
            self._send(self.server.buckets[bucket][key])

    do_HEAD = do_GET  # noqa: N815 http.server names it

    def _list(self, bucket: str, asked: Mapping[str, str]) -> None:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        keys, folders = [], []
        for key in sorted(self.server.buckets[bucket]):
            if not key.startswith(prefix):
                continue
            inner, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                folders.append(prefix + inner + delimiter)
            else:
                keys.append(key)
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-02T10:00:00.000Z</LastModified>"
            f'<ETag>"1"</ETag><Size>{len(self.server.buckets[bucket][key])}</Size></Contents>'
            for key in keys
        )
        rows += "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in dict.fromkeys(folders)
        )
        text = (
            f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult><Name>{bucket}</Name>"
            f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(keys) + len(folders)}</KeyCount>"
            f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        )
        self._reply(200, text.encode(), {"Content-Type": "application/xml"})

    def _send(self, content: bytes) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            self._reply(200, content)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        whole = len(content)
        start = int(first) if first else whole - int(last)
        end = min(int(last), whole - 1) if first and last else whole - 1
        self._reply(
            206, content[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{whole}"}
        )

    def _fail(self, status: int, code: str) -> None:
        text = (
            f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code} here</Message></Error>"
        )
        self._reply(status, text.encode(), {"Content-Type": "application/xml"})

    def _reply(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Last-Modified": TIME, "ETag": '"1"', **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(
    buckets: Mapping[str, dict[str, bytes]], refused: frozenset[str] = frozenset()
) -> Iterator[str]:
    """The address of a server with these objects, for as long as the block runs."""
    with Server(("127.0.0.1", 0), _Requests) as server:
        server.daemon_threads = True
        server.buckets, server.refused = buckets, refused
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
