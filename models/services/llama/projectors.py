"""Finds the projector of a local vision model: the named one, or one beside its weights."""

from __future__ import annotations

from pathlib import Path

from blendfusion.errors import ModelNotFound
from blendfusion.models.services.weights.hub import fetch, hub_file

HUB_SCHEME = "hf:"
BESIDE = "mmproj*.gguf"


def projector_of(weights: Path, named: str) -> Path | None:
    """The projector ``named``; for '' the only one beside the only weights of a folder; None for
    none.

    A name may be one of the Hub's, ``hf:owner/repo/file.gguf``. Raises ModelNotFound if there is no
    such file, and ModelFailed if the Hub cannot be reached."""
    if named.startswith(HUB_SCHEME):
        return fetch(hub_file(named.removeprefix(HUB_SCHEME)))
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise ModelNotFound(
                f"there is no projector '{named}'", hint="Give the path of a GGUF file (mmproj)."
            )
        return path
    # Symbolic links lead to blobs in caches of downloads: it is the names that tell.
    beside = sorted(weights.parent.glob(BESIDE))
    others = {*weights.parent.glob("*.gguf")} - {*beside, weights}
    return beside[0] if len(beside) == 1 and not others and weights not in beside else None
