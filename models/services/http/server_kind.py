"""Identifies a server by its list of models: its software, its models, their windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.prompts.parse_reply import encodable
from blendfusion.models.protocol.gate import MOST_TOKENS, Unfit, json_of
from blendfusion.models.services.http.response import Response

Entry: TypeAlias = "Mapping[str, Json]"
"""A server's description of one model."""


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A server's software. ``owner``: the owner of its models, as it lists them."""

    name: str
    owner: str
    port: int
    """The default port."""
    short_forms: tuple[str, ...] = ()
    """Forms of structured output without JSON around the answer, best first. The JSON costs about
    seven tokens, which a server generates one after the other."""


KINDS = (
    ServerKind("vLLM", "vllm", 8000, ("structured_outputs", "guided")),
    ServerKind("SGLang", "sglang", 30000, ("regex",)),
    ServerKind("llama-server", "llamacpp", 8080, ("grammar",)),
    ServerKind("llama-cpp-python", "me", 8000, ("grammar",)),
    ServerKind("Ollama", "library", 11434),  # it has no other form than a schema
    ServerKind("LM Studio", "organization_owner", 1234),
)


_LONGEST_NAME = 1_000
_WINDOWS = ("max_model_len", "context_length", "n_ctx", "inputTokenLimit")
"""The names of a window at vLLM, OpenRouter, llama-server and Gemini."""


def kind_of(entries: Iterable[Entry]) -> ServerKind | None:
    """The software behind a list of models; None if they do not tell, or differ."""
    owners = {str(entry.get("owned_by")) for entry in entries}
    return next((kind for kind in KINDS if owners == {kind.owner}), None)


def offered_by(response: Response) -> dict[str, dict[str, Json]]:
    """The entries of a /models reply by name; empty if it is no such reply."""
    try:
        stated = json_of(response.content)
    except Unfit:
        return {}
    listed = stated if isinstance(stated, dict) else {}
    name, entries = ("name", listed["models"]) if "models" in listed else ("id", listed.get("data"))
    found: dict[str, dict[str, Json]] = {}
    for entry in entries if isinstance(entries, list) else ():  # Gemini's API has models
        called = entry.get(name) if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(called, str) and len(called) <= _LONGEST_NAME:
            found[encodable(called).removeprefix("models/")] = entry
    return found


def window_of(entry: Entry) -> int | None:
    """The server's window of prompt and answer in tokens; None if the entry has none."""
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, dict) else {}):
        for name in _WINDOWS:
            stated = place.get(name)
            if isinstance(stated, int) and 0 < stated <= MOST_TOKENS:
                return stated
    return None
