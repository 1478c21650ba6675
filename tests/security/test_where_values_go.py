"""Nothing is sent to a server that was not named: forms of models' names, and where their requests
go."""

from __future__ import annotations

import warnings

import pytest
from yarl import URL

import blendfusion as bf
from blendfusion.models.services.http import server_named
from blendfusion.models.services.http.address import _announced, below, checked_url, split_name
from blendfusion.models.services.http.response import Response
from blendfusion.models.services.http.transport import Client, NoConnection, Request
from blendfusion.options import Options

WRONG = [
    "llama3@localhost:8000/v1",
    "llama3@htp://10.0.0.5:8000/v1",
    "llama3@",
    "llama3@ ",
    "llama3@10.0.0.5",
    "llama3@http:/host/v1",
    "llama3@http//host/v1",
    "llama3@http:///v1",
    "llama3@://host/v1",
    "llama3@//host/v1",
    "llama3@https://",
    "llama3@http://:8000/v1",
    "llama3@file:///etc/passwd",
    "llama3@ftp://host/v1",
    "llama3@ws://host/v1",
    "llama3@http://host:70000/v1",
    "llama3@http://host:-1/v1",
    "llama3@http://host:0/v1",
    "llama3@http://host:port/v1",
    "llama3@http://[::1/v1",
    "llama3@http://[zz]/v1",
    "llama3@http://a b/v1",
    "llama3@http://xn--.com/v1",
    "llama3@http://ex\x00ample/v1",
    "llama3@http://\ud800/v1",
    "user@example",
    "a@b@c",
    "@cf/meta/llama",
    "@http://host/v1",
    " @http://host/v1",
    "",
    "   ",
]
RIGHT = {
    "llama3@http://localhost:8000/v1": "http://localhost:8000/v1",
    "llama3@HTTP://10.0.0.5:8000/v1": "http://10.0.0.5:8000/v1",
    "llama3@ http://10.0.0.5/v1": "http://10.0.0.5/v1",
    "llama3@http://[::1]:8000/v1": "http://[::1]:8000/v1",
    "llama3@https://bücher.example/v1": "https://xn--bcher-kva.example/v1",
    "org/model:7b@https://host/v1/": "https://host/v1",
    "@cf/meta/llama@https://host/v1": "https://host/v1",
    "llama3@http://me:pw@host/v1": "http://me:pw@host/v1",
}


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request that would go out; none does."""
    sent: list[Request] = []

    async def send(self: object, request: Request, *options: object) -> Response:
        sent.append(request)
        raise NoConnection("no network")

    monkeypatch.setattr(Client, "send", send)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRETKEY-1234")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return sent


@pytest.mark.parametrize("name", WRONG, ids=repr)
def test_a_name_with_a_wrong_url_sends_nothing(name: str, requests: list[Request]) -> None:
    with pytest.raises(bf.ModelNotFound):
        bf.connect(f"openai:{name}", cache=None)
    with pytest.raises(bf.ModelNotFound):
        _ = bf.connect(bf.ScriptedModel(lambda call: 1), embedder=f"openai:{name}").embedder
    assert requests == []


@pytest.mark.parametrize(("name", "url"), RIGHT.items())
def test_a_right_url_is_where_requests_go(name: str, url: str, requests: list[Request]) -> None:
    with bf.connect(f"openai:{name}", cache=None, retries=0, progress="off") as session:
        session.from_pydict({"x": ["secret row"]}, name="t")
        with pytest.raises(bf.ModelFailed):
            session.sql("SELECT llm_int('q', x) FROM t").collect()
    assert requests
    host = URL(url).host
    assert {request.url.host for request in requests} == {host}
    shown = str(URL(url).with_user(None))  # a login goes in a header
    assert all(str(request.url).startswith(shown + "/") for request in requests)


def test_the_url_of_the_environment_is_checked_too(
    requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000/v1")
    with pytest.raises(bf.ModelNotFound, match="not the URL of a server"):
        bf.connect("openai:m", cache=None)
    assert requests == []


def test_a_hosted_server_that_nobody_named_is_told_at_the_first_use(
    requests: list[Request],
) -> None:
    _announced.clear()
    with bf.connect("openai:gpt-x", cache=None, retries=0, progress="off") as session:
        session.from_pydict({"x": ["a"]}, name="t")
        frame = session.sql("SELECT llm_int('q', x) FROM t")
        with (
            pytest.warns(bf.HostedModelWarning, match=r"go to https://api\.openai\.com/v1"),
            pytest.raises(bf.ModelFailed),
        ):
            frame.collect()
        with warnings.catch_warnings():  # once a process
            warnings.simplefilter("error")
            with pytest.raises(bf.ModelFailed):
                frame.collect()


def test_a_query_string_stays_behind_the_path() -> None:
    url = checked_url("http://host/v1?api-version=2&key=k")
    assert str(below(url, "/chat/completions")) == (
        "http://host/v1/chat/completions?api-version=2&key=k"
    )


def test_a_model_is_split_from_its_server() -> None:
    assert split_name("m") == ("m", None)
    assert split_name("a@http://me@host/v1") == ("a", "http://me@host/v1")
    assert server_named("m@http://h/v1").name == "m"
    assert Options().redaction  # imports what errors need


def test_errors_about_urls_hide_their_secrets() -> None:
    with pytest.raises(bf.ModelNotFound) as raised:
        checked_url("http://me:hunter2@host:99999/v1?key=k1")
    assert "hunter2" not in str(raised.value)
    assert "k1" not in str(raised.value)
