"""Chat servers as each takes constraints: what it does not know it ignores or refuses as it really
does.

The model behind all of them reads out what stands between « and » in the last message, as far as it
is held to something, and chats otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark
from loopback import Body, Loopback, Reply, said, serving

from blendfusion.models.constraints.constraint import Json

CHAT = "Well, since you ask, I would think so."

Admits = Callable[[str], bool]
"""Whether the server lets its model say this text and nothing else."""


@dataclass(frozen=True)
class Dialect:
    """``owner``: of its models, as it lists them; '' lists none. ``held``: what a request lets the
    model say, None if nothing holds it; raises ``Refusal``."""

    owner: str
    held: Callable[[Body], Admits | None]

    def script(self, body: Body) -> Reply:
        try:
            admits = self.held(body)
        except Refusal as refusal:
            return Reply(status=refusal.status, error=str(refusal))
        return Reply(CHAT if admits is None else _obedient(said(body), admits))


class Refusal(Exception):
    """The server's words, and its status."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.status = status


@contextmanager
def speaking(dialect: Dialect) -> Iterator[Loopback]:
    with serving(dialect.script) as server:
        server.models = None
        if dialect.owner:
            server.models = {"data": [{"id": "tiny", "owned_by": dialect.owner}]}
        yield server


# ---------------------------------------------------------------- the servers


def _vllm(body: Body) -> Admits | None:
    """vLLM since 0.12: one kind of constraint in ``structured_outputs``; ``guided_*`` was removed
    and is ignored like every unknown field (docs.vllm.ai, Structured Outputs; its request classes
    allow extra fields)."""
    asked = body.get("structured_outputs") or {}
    if len([name for name in ("json", "regex", "choice") if name in asked]) > 1:
        raise Refusal("You can only use one kind of constraints for structured outputs")
    if "choice" in asked:
        return _one_of(asked["choice"])
    return _match(asked["regex"]) if "regex" in asked else _standard(body)


def _older_vllm(body: Body) -> Admits | None:
    """vLLM before 0.11: ``guided_choice`` and ``guided_regex`` at the top; ``structured_outputs``
    is ignored (docs.vllm.ai, v0.9.1)."""
    if "guided_choice" in body:
        return _one_of(body["guided_choice"])
    return _match(body["guided_regex"]) if "guided_regex" in body else _standard(body)


def _sglang(body: Body) -> Admits | None:
    """SGLang: ``regex``, ``ebnf`` or ``response_format``, one at most; unknown fields are ignored
    (docs.sglang.io, Structured Outputs)."""
    if len([name for name in ("regex", "ebnf", "response_format") if name in body]) > 1:
        raise Refusal("Only one of json_schema, regex, ebnf, or structural_tag can be set.")
    return _match(body["regex"]) if "regex" in body else _standard(body)


def _llama_server(body: Body) -> Admits | None:
    """llama-server: ``grammar`` in GBNF, or a schema in ``json_schema`` or ``response_format``,
    never both; unknown fields are ignored (llama.cpp, tools/server/README.md)."""
    schema = "json_schema" in body or "response_format" in body
    if "grammar" in body and schema:
        raise Refusal('Either "json_schema" or "grammar" can be specified, but not both')
    if "grammar" in body:
        return _grammar(body["grammar"])
    return _schema(body["json_schema"]) if "json_schema" in body else _standard(body)


def _ollama(body: Body) -> Admits | None:
    """Ollama since 0.5: a schema in ``response_format``, which it hands to its own API's
    ``format``; of other fields it knows nothing, ``format`` at this path included (docs.ollama.com,
    OpenAI compatibility)."""
    return _standard(body)


def _ollama_cloud(body: Body) -> Admits | None:
    """Ollama's cloud: takes a schema and does not hold the model to it (ollama issue 12362)."""
    return None


_OPENAI_FIELDS = {
    *("model", "messages", "temperature", "seed", "max_tokens", "max_completion_tokens"),
    *("logprobs", "top_logprobs", "response_format"),
}


def _openai(body: Body) -> Admits | None:
    """OpenAI: ``response_format`` with a schema whose objects require all their fields and admit no
    others; unknown fields are refused (platform.openai.com, Structured Outputs)."""
    for name in body:
        if name not in _OPENAI_FIELDS:
            raise Refusal(f"Unrecognized request argument supplied: {name}")
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is not None and (
        schema["additionalProperties"] or schema["required"] != list(schema["properties"])
    ):
        raise Refusal("Invalid schema for response_format 'answer'")
    return _standard(body)


def _older_openai(body: Body) -> Admits | None:
    """A model of OpenAI's from before schemas (2024): objects without one, and only if the prompt
    speaks of JSON."""
    asked = body.get("response_format", {})
    if asked.get("type") == "json_schema":
        raise Refusal(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
            "model."
        )
    if "schema" in asked:
        raise Refusal("Unknown parameter: 'response_format.schema'.")
    return _openai(body)


VLLM = Dialect("vllm", _vllm)
OLDER_VLLM = Dialect("vllm", _older_vllm)
SGLANG = Dialect("sglang", _sglang)
LLAMA_SERVER = Dialect("llamacpp", _llama_server)
OLLAMA = Dialect("library", _ollama)
OLLAMA_CLOUD = Dialect("library", _ollama_cloud)
OPENAI = Dialect("openai", _openai)
OLDER_OPENAI = Dialect("openai", _older_openai)


# ---------------------------------------------------------------- what holds a model


def _standard(body: Body) -> Admits | None:
    asked = body.get("response_format", {})
    return _schema(asked["json_schema"]["schema"]) if asked.get("type") == "json_schema" else None


def _one_of(options: list[str]) -> Admits:
    return lambda text: text in options


def _match(pattern: str) -> Admits:
    return lambda text: re.fullmatch(pattern, text) is not None


def _grammar(grammar: str) -> Admits:
    tokenizer = LLTokenizer("byte")
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(gbnf_to_lark(grammar)))
    if matcher.is_error():
        raise Refusal("Failed to parse grammar")

    def admits(text: str) -> bool:
        written = matcher.deep_copy()
        tokens = tokenizer.tokenize_str(text)
        return bool(written.try_consume_tokens(tokens) == len(tokens) and written.is_accepting())

    return admits


def _schema(schema: dict[str, Json]) -> Admits:
    """For the schemas of ours that are tested here: an object with one field."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    ((name, wanted),) = properties.items()
    assert isinstance(wanted, dict)

    def admits(text: str) -> bool:
        try:
            value = json.loads(text)
        except ValueError:
            return False
        if not (isinstance(value, dict) and list(value) == [name]):
            return False
        return _fits(value[name], wanted)

    return admits


def _fits(value: Json, wanted: dict[str, Json]) -> bool:
    if wanted["type"] == "integer":
        return isinstance(value, int)
    if wanted["type"] == "number":
        return isinstance(value, int | float)
    options, pattern = wanted.get("enum"), wanted.get("pattern", ".*")
    if isinstance(options, list):
        return value in options
    return isinstance(value, str) and re.fullmatch(str(pattern), value) is not None


def _obedient(message: str, admits: Admits) -> str:
    """What is asked about, in the first form that is admitted."""
    named = re.findall("«(.*?)»", message)
    told = named[-1] if named else "zebra"
    forms = (told, f'{{"answer": {told}}}', json.dumps({"answer": told}))
    return next((form for form in forms if admits(form)), "")
