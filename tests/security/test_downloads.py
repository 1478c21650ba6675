"""A file of a URL comes whole, from where it was named, or not at all."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from blendfusion.places.downloads import DownloadFailed, download

Page = tuple[int, Mapping[str, str], bytes]
PLAIN: Page = (200, {}, b"a,b\n1,2\n")


class Serving:
    """``url`` of the server, and what it was asked: paths and logins."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str | None]] = []


@contextmanager
def serving(page: Callable[[str], Page]) -> Iterator[Serving]:
    at = Serving()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            at.asked.append((self.path, self.headers.get("Authorization")))
            status, headers, body = page(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    at.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield at
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_file_comes_as_it_is(tmp_path: Path) -> None:
    content = bytes(range(256)) * 4000
    with serving(lambda path: (200, {}, content)) as at:
        download(f"{at.url}/a%20b/ü.bin?x=1", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == content
    assert at.asked == [("/a%20b/%C3%BC.bin?x=1", None)]


def test_a_file_that_ends_early_is_none(tmp_path: Path) -> None:
    with (
        serving(lambda path: (200, {"Content-Length": "9999"}, b"half")) as at,
        pytest.raises(DownloadFailed, match="before the end"),
    ):
        download(f"{at.url}/f", tmp_path / "f")


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_status_is_told(status: int, tmp_path: Path) -> None:
    with (
        serving(lambda path: (status, {}, b"no")) as at,
        pytest.raises(DownloadFailed, match=f"the server answers {status}") as raised,
    ):
        download(f"{at.url}/f", tmp_path / "f")
    assert raised.value.status == status


def test_a_login_goes_to_its_own_server_alone(tmp_path: Path) -> None:
    with serving(lambda path: PLAIN) as other:
        moved: Page = (302, {"Location": f"{other.url}/there"}, b"")
        with serving(lambda path: moved) as at:
            url = at.url.replace("://", "://me:pass%40word@")
            download(f"{url}/here", tmp_path / "f")
    login = f"Basic {base64.b64encode(b'me:pass@word').decode()}"
    assert at.asked == [("/here", login)]
    assert other.asked == [("/there", None)]
    assert (tmp_path / "f").read_bytes() == PLAIN[2]


@pytest.mark.parametrize("place", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "//"])
def test_a_redirect_leads_to_http_alone(place: str, tmp_path: Path) -> None:
    with (
        serving(lambda path: (302, {"Location": place}, b"")) as at,
        pytest.raises(DownloadFailed),
    ):
        download(f"{at.url}/f", tmp_path / "f")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/f", "http://[::1/f", "http:///f"])
def test_no_server_is_a_reason(url: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed) as raised:
        download(url, tmp_path / "f")
    assert str(raised.value)
    assert raised.value.status == 0


TEXT = b"id,x\n" + b"".join(b"%d,text %d\n" % (n, n % 7) for n in range(3000))


SENT = [
    (name, encoding, times)
    for name, least in (("f.csv", 0), ("f.parquet", 0), ("f.csv.gz", 1), ("f", 0))
    for encoding in ("gzip", "x-gzip", " GZIP ", "identity", "")
    for times in range(least, least + (2 if "z" in encoding.lower() else 1))
]


@pytest.mark.parametrize(("name", "encoding", "times"), SENT)
def test_a_file_is_decompressed_as_often_as_its_way_needs(
    name: str, encoding: str, times: int, tmp_path: Path
) -> None:
    body = TEXT
    for _ in range(times):
        body = gzip.compress(body)
    headers = {"Content-Encoding": encoding} if encoding else {}
    with serving(lambda path: (200, headers, body)) as at:
        download(f"{at.url}/{name}", tmp_path / name)
    due = body
    if times > (1 if name.endswith(".gz") else 0):
        due = gzip.decompress(due)
    assert (tmp_path / name).read_bytes() == due
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("deflate", zlib.compress(TEXT)),
        ("br", b"\x8b\x02\x80abc\x03"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("gzip", gzip.compress(TEXT)[:-20]),
        ("gzip", gzip.compress(TEXT)[:200] + b"\0" * 50),
    ],
)
def test_what_cannot_be_decompressed_is_no_file(encoding: str, body: bytes, tmp_path: Path) -> None:
    with (
        serving(lambda path: (200, {"Content-Encoding": encoding}, body)) as at,
        pytest.raises(DownloadFailed) as raised,
    ):
        download(f"{at.url}/f.csv", tmp_path / "f.csv")
    assert str(raised.value)


@pytest.mark.parametrize("status", [201, 202, 204, 206])
def test_a_part_or_a_promise_is_no_file(status: int, tmp_path: Path) -> None:
    body = b"" if status == 204 else TEXT[:100]
    with (
        serving(lambda path: (status, {}, body)) as at,
        pytest.raises(DownloadFailed, match=f"the server answers {status}"),
    ):
        download(f"{at.url}/f.csv", tmp_path / "f.csv")


@pytest.mark.parametrize("begin", ["<!DOCTYPE html>", "\n\n<html>", "\ufeff<!doctype HTML><html>"])
def test_a_page_is_no_file_of_another_kind(begin: str, tmp_path: Path) -> None:
    page = f"{begin}\n<body>a, b\n<p>Log in</p>\n".encode()
    html = {"Content-Type": "text/html; charset=utf-8"}
    with serving(lambda path: (200, html, page if "page" in path else TEXT)) as at:
        for name in ("page.csv", "page.json", "page"):
            with pytest.raises(DownloadFailed, match="HTML"):
                download(f"{at.url}/{name}", tmp_path / name)
        download(f"{at.url}/page.html", tmp_path / "page.html")
        download(f"{at.url}/rows.csv", tmp_path / "rows.csv")
    assert (tmp_path / "page.html").read_bytes() == page
    assert (tmp_path / "rows.csv").read_bytes() == TEXT


def test_a_file_that_is_compressed_itself_stays(tmp_path: Path) -> None:
    with serving(lambda path: (200, {"Content-Encoding": "zstd"}, b"\x28\xb5\x2f\xfd")) as at:
        download(f"{at.url}/f.csv.zst", tmp_path / "f.csv.zst")
    assert (tmp_path / "f.csv.zst").read_bytes() == b"\x28\xb5\x2f\xfd"
