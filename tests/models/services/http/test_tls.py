"""Over TLS: whom the client trusts, and what it speaks."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from certificates import certificate_for, serving_context
from loopback import Reply, serving

from blendfusion.errors import ModelFailed
from blendfusion.models.protocol.web_access import trusted_certificates
from blendfusion.models.services.http import client
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate_for("127.0.0.1", tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize(
    "protocols", [["h2", "http/1.1"], ["http/1.1"], []], ids=["both", "HTTP/1.1", "none"]
)
def test_one_version_over_few_connections_whatever_the_server_offers(
    protocols: list[str], certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    with serving(lambda body: Reply("fine"), tls=serving_context(certificate, protocols)) as server:
        model = OpenAIModel("tiny", server.url, None, Options(concurrency=8))
        answers = model.answer(TEXT, [(f"text {number}",) for number in range(64)])
    assert {answer.text for answer in answers} == {"fine"}
    assert server.versions == {"HTTP/1.1"}
    assert server.connections <= 8


def test_a_server_that_nobody_vouches_for_gets_no_value(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with serving(lambda body: Reply("fine"), tls=serving_context(certificate, [])) as server:
        model = OpenAIModel("tiny", server.url, "sk-secret", Options(retries=0))
        with pytest.raises(ModelFailed, match="certificate verify failed: self-signed"):
            model.answer(TEXT, [("text",)])
    assert server.bodies == []
    assert server.keys == []


def test_a_certificate_of_another_name_is_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = certificate_for("10.0.0.1", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(other[1]))
    with serving(lambda body: Reply("fine"), tls=serving_context(other, [])) as server:
        model = OpenAIModel("tiny", server.url, None, Options(retries=0))
        with pytest.raises(ModelFailed, match=r"certificate verify failed: IP address mismatch"):
            model.answer(TEXT, [("text",)])
    assert server.bodies == []


def test_certificates_are_read_once_a_model(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bool] = []

    def counted() -> ssl.SSLContext:
        read.append(True)
        return trusted_certificates()

    monkeypatch.setattr(client, "trusted_certificates", counted)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    with serving(lambda body: Reply("fine"), tls=serving_context(certificate, [])) as server:
        model = OpenAIModel("tiny", server.url)
        model.check()
        for number in range(3):
            assert model.answer(TEXT, [(f"text {number}",)])[0].text == "fine"
    assert len(read) == 1
    with serving(lambda body: Reply("fine")) as plain:
        OpenAIModel("tiny", plain.url).check()
    assert len(read) == 1  # without TLS none


def test_the_usual_authorities_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    context = trusted_certificates()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.cert_store_stats()["x509_ca"] > 100
