"""Requests go through the proxies of the environment, redirects are not followed, and no library
writes of them: all against servers on the loopback."""

from __future__ import annotations

import base64
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from loopback import Reply, serving

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy but those of a test."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class Heard:
    """What a proxy hears: the heads of requests."""

    def __init__(self, port: int) -> None:
        self.heads: list[str] = []
        self.port = port

    @property
    def targets(self) -> set[str]:
        """The URLs and hosts, without the paths below /v1."""
        paths = ("/models", "/chat/completions")
        found = {head.split()[1] for head in self.heads}
        return {url.removesuffix(paths[0]).removesuffix(paths[1]) for url in found}


@contextmanager
def refusing_proxy() -> Iterator[Heard]:
    """A proxy that answers 403 to all, and notes what it was asked for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = Heard(listener.getsockname()[1])

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        heard.heads.append(connection.recv(1 << 16).decode("latin-1"))
                        connection.sendall(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield heard
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def ask(url: str, key: str | None = None) -> None:
    model = OpenAIModel("tiny", url, key, Options(retries=0))
    with suppress(ModelFailed):
        model.check()
    with suppress(ModelFailed):
        answers = model.answer(TEXT, [("text",)])
        assert answers[0].text is None


@pytest.mark.parametrize(
    ("name", "url", "target"),
    [
        ("HTTP_PROXY", "http://model.example/v1", "http://model.example/v1"),
        ("HTTP_PROXY", "http://10.0.0.5:8000/v1", "http://10.0.0.5:8000/v1"),
        ("HTTPS_PROXY", "https://model.example/v1", "model.example:443"),
        ("ALL_PROXY", "http://model.example/v1", "http://model.example/v1"),
        ("ALL_PROXY", "https://model.example:8443/v1", "model.example:8443"),
    ],
)
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_the_proxy_of_the_environment_is_asked(
    name: str, url: str, target: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusing_proxy() as heard:
        monkeypatch.setenv(name, f"{scheme}127.0.0.1:{heard.port}")
        ask(url)
    assert heard.targets == {target}


def test_a_proxy_gets_its_own_login_and_no_key_of_a_server_over_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with refusing_proxy() as heard:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass%40word@127.0.0.1:{heard.port}")
        ask("https://model.example/v1", "sk-secret-key")
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pass%40word@127.0.0.1:{heard.port}")
        ask("http://model.example/v1")
    login = base64.b64encode(b"me:pass@word").decode()
    assert all(f"Proxy-Authorization: Basic {login}" in head for head in heard.heads)
    assert f"Proxy-Authorization: Basic {login}" in heard.heads[0]
    assert not any("sk-secret-key" in head for head in heard.heads)


def test_loopback_and_what_no_proxy_names_are_asked_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with refusing_proxy() as heard, serving(lambda body: Reply("fine")) as server:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{heard.port}")
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{heard.port}")
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            assert OpenAIModel("tiny", url).answer(TEXT, [("text",)])[0].text == "fine"
        monkeypatch.setenv("NO_PROXY", ".invalid")
        ask("http://nowhere.invalid/v1")
    assert heard.heads == []


def test_a_proxy_of_another_protocol_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:hunter2@127.0.0.1:1080")
    with pytest.raises(ModelFailed, match="socks5") as raised:
        OpenAIModel("tiny", "http://model.example/v1").check()
    assert "hunter2" not in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with serving(lambda body: Reply("other")) as other:
        moved = Reply(status=status, raw=b"", headers={"Location": f"{other.url}/chat/completions"})
        with serving(lambda body: moved) as server:
            model = OpenAIModel("tiny", server.url, "sk-secret", Options(retries=0))
            with pytest.raises(ModelFailed, match=f"sends requests elsewhere.*{status}"):
                model.answer(TEXT, [("text",), ("other",)])
    assert other.connections == 0


def test_a_login_in_the_url_goes_to_the_server_alone() -> None:
    with serving(lambda body: Reply("fine")) as server:
        url = server.url.replace("://", "://me:pass%40word@")
        model = OpenAIModel("tiny", url, "sk-secret")
        assert model.answer(TEXT, [("text",)])[0].text == "fine"
        assert "pass" not in f"{model!r} {model.info}"
    assert {*server.keys} == {f"Basic {base64.b64encode(b'me:pass@word').decode()}"}


def test_no_cookie_is_kept() -> None:
    with serving(lambda body: Reply("fine", headers={"Set-Cookie": "a=secret"})) as server:
        heads: list[str | None] = []
        script = server.script
        server.script = lambda body: (heads.append(server.cookie), script(body))[1]
        values = [(f"text {number}",) for number in range(5)]
        OpenAIModel("tiny", server.url, None, Options(concurrency=1)).answer(TEXT, values)
    assert heads == [None] * 5


def test_no_record_of_any_library_has_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda body: Reply("fine")) as server:
        url = server.url.replace("://", "://me:hunter2@") + "?key=secretquery"
        with pytest.raises(ModelNotFound):  # it takes no query behind its path
            OpenAIModel("tiny", url, "sk-secretkey").answer(TEXT, [("private value",)])
    for secret in ("hunter2", "secretquery", "sk-secretkey", "private value"):
        assert secret not in caplog.text
