"""Loads an embedder by its name, from a table of kinds."""

from __future__ import annotations

import os

from blendfusion.errors import ModelNotFound, close_matches, connect_with
from blendfusion.models.embedders.embedder import Embedder, EmbedderKind
from blendfusion.models.services import offers
from blendfusion.options import Options

VARIABLE = "BLENDFUSION_EMBEDDER"


def load_embedder(spec: str | Embedder | None, options: Options) -> Embedder:
    """The embedder that ``spec`` names; an embedder is returned unchanged.

    "auto" means the embedder that the environment variable BLENDFUSION_EMBEDDER names, else
    wordllama. Raises ModelNotFound. Loads no weights and sends no request.
    """
    if spec is None:
        raise ModelNotFound(
            "this session has no embedder: it was made with embedder=None",
            hint=f"Name one, {connect_with(embedder='wordllama')}: {FORMS}.",
        )
    if spec == "auto":
        spec = os.environ.get(VARIABLE, "").strip() or "wordllama"
    if not isinstance(spec, str):
        if not callable(getattr(spec, "embed", None)):
            raise ModelNotFound(
                f"{spec!r} is neither an embedder nor the name of one", hint=f"Name one: {FORMS}."
            )
        return spec
    scheme, _, argument = spec.partition(":")
    kind = EMBEDDERS.get(scheme)
    if kind is None:
        near = close_matches(scheme, [*EMBEDDERS, "auto"])
        raise ModelNotFound(f"no embedder '{spec}'. {near}", hint=f"Name one: {FORMS}.")
    return kind.build(argument, options)


def no_embedder() -> Embedder:
    """Raises ModelNotFound."""
    return load_embedder(None, Options())


def _wordllama(argument: str, options: Options) -> Embedder:
    from blendfusion.models.vectors.wordllama import WordLlamaEmbedder

    return WordLlamaEmbedder()


EMBEDDERS: dict[str, EmbedderKind] = {
    "wordllama": EmbedderKind(_wordllama, "'wordllama'"),
    **offers("EMBEDDERS"),
}
FORMS = ", ".join(kind.forms for kind in EMBEDDERS.values())
