"""Weights from the Hugging Face Hub: fetched once, and errors that say what to do."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_model import bindings_or_skip
from loopback import closed_port
from loopback_hub import LoopbackHub, hub

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.registry.load import load
from blendfusion.models.services.weights.hub import HubFile, fetch, hub_cache, hub_file
from blendfusion.options import Options

pytest.importorskip("huggingface_hub")

SMALL = HubFile("owner/small", "small.gguf")
GATED = HubFile("owner/gated", "big.gguf")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    files = {
        "owner/small/small.gguf": b"GGUF" + bytes(100),
        "owner/small/q8/small-q8.gguf": b"GGUF" + bytes(50),
        "owner/small/README.md": b"hello",
        "owner/gated/big.gguf": b"GGUF",
        "owner/pages/README.md": b"hello",
    }
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with hub(files, gated=frozenset({"owner/gated"})) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def test_a_file_is_downloaded_once(server: LoopbackHub) -> None:
    path = fetch(SMALL)
    assert path.read_bytes().startswith(b"GGUF")
    assert path.is_relative_to(hub_cache())
    asked = len(server.asked)
    assert fetch(SMALL) == path
    assert len(server.asked) == asked, "what is there is taken without asking"


def test_files_may_lie_in_folders_and_have_revisions(server: LoopbackHub) -> None:
    assert fetch(hub_file("owner/small/q8/small-q8.gguf@v1")).name == "small-q8.gguf"
    assert "HEAD /owner/small/resolve/v1/q8/small-q8.gguf" in server.asked


@pytest.mark.local
def test_a_model_is_named_by_its_place_on_the_hub(server: LoopbackHub) -> None:
    bindings_or_skip()
    model = load("hf:owner/small/small.gguf", Options())
    assert type(model).__name__ == "LlamaModel"
    assert model.path == fetch(SMALL)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        (SMALL._replace(file="smal.gguf"), "no file 'smal.gguf'", "'small.gguf'"),
        (HubFile("owner/pages", "a.gguf"), "no file 'a.gguf'", "no GGUF"),
        (SMALL._replace(repository="owner/none"), "no repository 'owner/none'", "HF_TOKEN"),
        (SMALL._replace(revision="v9"), "no revision 'v9'", "tag"),
        (GATED, "is gated", "HF_TOKEN"),
    ],
    ids=["file", "no weights", "repository", "revision", "gated"],
)
def test_what_is_not_there_is_said(
    server: LoopbackHub, wanted: HubFile, message: str, hint: str
) -> None:
    with pytest.raises(ModelNotFound, match=message) as raised:
        fetch(wanted)
    assert hint in str(raised.value.hint)


def test_a_token_opens_what_is_gated(server: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert fetch(GATED).read_bytes() == b"GGUF"


def test_without_a_hub_the_cache_is_enough(
    server: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fetch(SMALL)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    assert fetch(SMALL) == path
    with pytest.raises(ModelFailed, match=r"'hf:owner/small/q8.gguf' could not be") as raised:
        fetch(SMALL._replace(file="q8.gguf"))
    assert raised.value.retryable
    assert "HF_ENDPOINT" in str(raised.value.hint)


def test_offline_nothing_is_asked(server: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFound, match="HF_HUB_OFFLINE"):
        fetch(SMALL)
    assert server.asked == []


@pytest.mark.parametrize(
    "argument",
    [
        *("", "small.gguf", "owner/small", "owner/small/weights.bin", "owner/small/.gguf"),
        *("../small/a.gguf", "owner/../../etc/a.gguf", "owner/small/../../a.gguf", "/etc/a/b.gguf"),
        *(
            "owner/small/..\\a.gguf",
            "owner/small/a.gguf@../b",
            "owner/small/a.gguf@",
            "a//b/c.gguf",
        ),
        *("owner/small/%2e%2e/a.gguf", "owner/small/a.gguf\n", "owner/small/a\x00.gguf"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(argument: str) -> None:
    with pytest.raises(ModelNotFound, match="names no file of the Hub"):
        hub_file(argument)


def test_names_are_written_as_they_are_read() -> None:
    for spec in ("owner/a/b.gguf", "owner/a/q/b.gguf@refs/pr/1"):
        assert str(hub_file(spec)) == f"hf:{spec}"


@pytest.mark.parametrize(("missing", "extra"), [("huggingface_hub", "hub"), ("llama_cpp", "local")])
def test_what_must_be_installed_is_said(
    missing: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {"huggingface_hub", "llama_cpp"} - {missing}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in installed or None)
    with pytest.raises(ModelNotFound) as raised:
        load("hf:owner/small/small.gguf", Options())
    assert f"blendfusion[{extra}]" in str(raised.value.hint)


def test_the_hubs_own_rules_for_names_hold(server: LoopbackHub) -> None:
    with pytest.raises(ModelNotFound, match="names no repository"):
        fetch(hub_file("owner/two--dashes/a.gguf"))
