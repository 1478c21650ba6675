"""Weights from the Hugging Face Hub: ``hf:owner/repo/file.gguf``, kept in the cache of its library."""

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
"""No part begins with a dot, so that none leads out of a folder."""


class HubFile(NamedTuple):
    """A file of a repository of models; ``revision``: a branch, a tag or a commit."""

    repository: str
    file: str
    revision: str = "main"

    def __str__(self) -> str:
        at = "" if self.revision == "main" else f"@{self.revision}"
        return f"hf:{self.repository}/{self.file}{at}"


def hub_file(argument: str) -> HubFile:
    """What follows ``hf:`` in a model's name. Raises ModelNotFound.

    >>> hub_file("owner/small/q8/small.gguf@v1")
    HubFile(repository='owner/small', file='q8/small.gguf', revision='v1')
    """
    found = _SPEC.fullmatch(argument)
    if found is None or ".." in argument:
        raise ModelNotFound(
            f"'hf:{argument}' names no file of the Hub",
            hint=f"Write '{FORM}', with '@REVISION' behind it for another than the newest.",
        )
    return HubFile(found["repository"], found["file"], found["revision"] or "main")


def hub_cache() -> Path:
    """Where the Hub's own library keeps what was downloaded."""
    stated = os.environ.get("HF_HUB_CACHE", "").strip()
    if stated:
        return Path(stated).expanduser()
    home = os.environ.get("HF_HOME", "").strip()
    if home:
        return Path(home).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "huggingface" / "hub"


def fetch(wanted: HubFile) -> Path:
    """The file in the cache; it is downloaded first if it is not there.

    A file that is there is taken without asking the Hub for a newer one. Honours HF_ENDPOINT,
    HF_TOKEN, HF_HUB_CACHE, HF_HOME and HF_HUB_OFFLINE. Raises ModelNotFound if there is no such
    file, or none for you, and ModelFailed if the Hub cannot be reached.
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
                f"'{wanted}' is not in {hub_cache()}, and HF_HUB_OFFLINE says not to download it",
                hint="Unset HF_HUB_OFFLINE once, or copy the folder from another machine.",
            ) from None
    except HFValidationError as error:
        raise ModelNotFound(f"'{wanted}' names no repository: {_reason(error)}") from None
    try:
        # Asked alone it fails at once where there is no network; the download tries for half a minute.
        url = hf_hub_url(*wanted[:2], revision=wanted.revision, endpoint=_endpoint())
        get_hf_file_metadata(url, endpoint=_endpoint())
        return download(cached=False)
    except Exception as error:
        raise _explained(error, wanted) from error


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or HUB


def _truth(variable: str) -> bool:
    return os.environ.get(variable, "").strip().upper() in ("1", "ON", "YES", "TRUE")


def _explained(error: Exception, wanted: HubFile) -> ModelNotFound | ModelFailed:
    """What went wrong, for the person who named the file."""
    from huggingface_hub import errors

    place, page = _endpoint(), f"{_endpoint()}/{wanted.repository}"
    if isinstance(error, errors.GatedRepoError):
        return ModelNotFound(
            f"{page} is open only to those whom its owner lets in",
            hint="Ask for access on that page, and set HF_TOKEN to a token of your account.",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelNotFound(
            f"{place} has no repository '{wanted.repository}', or none that you may see",
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
    """The weights that the repository has instead; None if it does not say."""
    from huggingface_hub import HfApi

    try:
        files = HfApi(endpoint=_endpoint()).list_repo_files(
            wanted.repository, revision=wanted.revision
        )
    except Exception:  # it was only for the hint
        return None
    weights = [name for name in files if name.endswith(".gguf")]
    return close_matches(wanted.file, weights) if weights else "It has no GGUF files at all."


def _reason(error: BaseException) -> str:
    """The first cause in one line: the library wraps it."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = str(error).strip().splitlines()
    return said[0][:200] if said else type(error).__name__
