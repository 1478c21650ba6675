"""Models of the library outlines: transformers, vLLM offline, MLX and others under constraints."""

from __future__ import annotations

from blendfusion.models.protocol.model import Model
from blendfusion.options import Options

NEEDS = ("prompts",)


def is_outlines(thing: object) -> bool:
    """Whether an object is a model of outlines; imports nothing."""
    modules = (kind.__module__ for kind in type(thing).__mro__)
    return any(name.startswith("outlines.models.") for name in modules)


def _adapt(thing: object, options: Options) -> Model | None:
    from blendfusion.models.services.outlines.model import OutlinesModel

    return OutlinesModel(thing, options) if is_outlines(thing) else None


ADAPTERS = {"outlines": _adapt}
