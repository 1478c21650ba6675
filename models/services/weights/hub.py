"""Weights from the Hugging Face Hub: ``hf:owner/repo/file.gguf``, in the cache of its library."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

from blendfusion.errors import ModelFailed, ModelNotFound, close_matches

HUB = "https://huggingface.co"
FORM = "hf:OWNER/REPOSITORY/FILE.gguf"

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_SPEC = re.compile(
    rf"(?P<repository>{_NAME}/{_NAME})/(?P<file>{_NAME}(?:/{_NAME})*\.gguf)(?:@(?P<revision>{_NAME}(?:/{_NAME})*))?"
)
"""No part begins with a dot, so that no name leads out of a folder."""


class HubFile(NamedTuple):
    """A file of a model repository; ``revision``: a branch, a tag or a commit."""

    repository: str
    file: str
    revision: str = "main"

    def __str__(self) -> str:
        at = "" if self.revision == "main" else f"@{self.revision}"
        return f"hf:{self.repository}/{self.file}{at}"


def hub_file(argument: str) -> HubFile:
    """The file that a model's name has after ``hf:``. Raises ModelNotFound.

    >>> hub_file("owner/small/q8/small.gguf@v1")
    HubFile(repository='owner/small', file='q8/small.gguf', revision='v1')
    """
    found = _SPEC.fullmatch(argument)
    if found is None or ".." in argument:
        raise ModelNotFound(
            f"'hf:{argument}' names no file of the Hub",
            hint=f"Write '{FORM}', followed by '@REVISION' for another than the newest.",
        )
    return HubFile(found["repository"], found["file"], found["revision"] or "main")


def hub_cache() -> Path:
    """The folder in which the Hub's own library keeps downloads."""
    stated = os.environ.get("HF_HUB_CACHE", "").strip()
    if stated:
        return Path(stated).expanduser()
    home = os.environ.get("HF_HOME", "").strip()
    if home:
        return Path(home).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "huggingface" / "hub"


def fetch(wanted: HubFile) -> Path:
    """The path of the file in the cache; a missing file is downloaded first.

    A cached file is used without a check for a newer one. Honours HF_ENDPOINT, HF_TOKEN,
    HF_HUB_CACHE, HF_HOME and HF_HUB_OFFLINE. Raises ModelNotFound if the file does not exist or is
    not accessible, and ModelFailed if the Hub cannot be reached.
    """
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ModelNotFound(
            f"'{wanted}' needs huggingface_hub, which is not installed",
            hint="pip install 'blendfusion[hub]'.",
        )
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    def download(*, cached: bool) -> Path:
        return Path(
            hf_hub_download(
                wanted.repository,
                wanted.file,
                revision=wanted.revision,
                cache_dir=hub_cache(),
                local_files_only=cached,
                endpoint=_endpoint(),
            )
        )

    try:
        return download(cached=True)
    except LocalEntryNotFoundError:
        if _truth("HF_HUB_OFFLINE"):
            raise ModelNotFound(
                f"'{wanted}' is not in {hub_cache()}, and HF_HUB_OFFLINE forbids the download",
                hint="Unset HF_HUB_OFFLINE once, or copy the folder from another machine.",
            ) from None
    except HFValidationError as error:
        raise ModelNotFound(f"'{wanted}' names no repository: {_reason(error)}") from None
    try:
        # A separate HEAD request fails at once without a network; the download retries for half a
        # minute.
        url = hf_hub_url(*wanted[:2], revision=wanted.revision, endpoint=_endpoint())
        get_hf_file_metadata(url, endpoint=_endpoint())
        return download(cached=False)
    except Exception as error:
        raise _explain(error, wanted) from error


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or HUB


def _truth(variable: str) -> bool:
    return os.environ.get(variable, "").strip().upper() in ("1", "ON", "YES", "TRUE")


def _explain(error: Exception, wanted: HubFile) -> ModelNotFound | ModelFailed:
    """The error for the person who named the file."""
    from huggingface_hub import errors

    place, page = _endpoint(), f"{_endpoint()}/{wanted.repository}"
    if isinstance(error, errors.GatedRepoError):
        return ModelNotFound(
            f"{page} is gated",
            hint="Request access on that page, and set HF_TOKEN to a token of your account.",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelNotFound(
            f"{place} has no repository '{wanted.repository}' that you can access",
            hint="Correct the name, or set HF_TOKEN if it is private.",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelNotFound(
            f"{page} has no revision '{wanted.revision}'",
            hint="A revision is a branch, a tag or a commit.",
        )
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return ModelNotFound(f"{page} has no file '{wanted.file}'", hint=_files(wanted))
    return ModelFailed(
        f"'{wanted}' could not be downloaded from {place}: {_reason(error)}",
        hint="It is not in the cache either. HF_ENDPOINT names another server; "
        "llama:/path/weights.gguf takes a file that you have.",
        retryable=True,
    )


def _files(wanted: HubFile) -> str | None:
    """The weights that the repository has instead; None if unknown."""
    from huggingface_hub import HfApi

    try:
        files = HfApi(endpoint=_endpoint()).list_repo_files(
            wanted.repository, revision=wanted.revision
        )
    except Exception:  # it serves only the hint
        return None
    weights = [name for name in files if name.endswith(".gguf")]
    return close_matches(wanted.file, weights) if weights else "It has no GGUF files at all."


def _reason(error: BaseException) -> str:
    """The first cause in one line, since the library wraps it."""
    while error.__cause__ is not None:
        error = error.__cause__
    message_lines = str(error).strip().splitlines()
    return message_lines[0][:200] if message_lines else type(error).__name__
