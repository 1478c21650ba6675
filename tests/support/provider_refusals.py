"""Refusals of chat requests as providers and servers state them: their status, their JSON, and the
request that each refuses. The shapes are those of their public documentation and issue trackers;
the words are shortened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loopback import Body


def has(*names: str) -> Callable[[Body], bool]:
    return lambda body: any(name in body for name in names)


def system(body: Body) -> bool:
    return bool(body["messages"][0]["role"] == "system")


def forbidden(*place: str) -> dict[str, Any]:
    """An entry of FastAPI's (pydantic) for a field that its model does not have."""
    msg = "Extra inputs are not permitted"
    return {"type": "extra_forbidden", "loc": list(place), "msg": msg, "input": 0}


@dataclass(frozen=True)
class Refusal:
    """``words`` are those that a person is to see."""

    refuses: Callable[[Body], bool]
    payload: Any
    words: str
    status: int = 400


def of_openai(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None, **more}}


REFUSALS = {
    "OpenAI, temperature of a reasoning model": Refusal(
        has("temperature"),
        of_openai("Unsupported value: 'temperature' does not support 0 with this model."),
        "does not support 0 with this model",
    ),
    "OpenAI, the limit of a reasoning model": Refusal(
        has("max_tokens"),
        of_openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        "max_completion_tokens",
    ),
    "OpenAI, o1-mini without a system message": Refusal(
        system,
        of_openai("Unsupported value: 'messages[0].role' does not support 'system' here."),
        "does not support",
    ),
    "an older gateway of OpenAI's API": Refusal(
        has("temperature"),
        of_openai("Unrecognized request argument supplied: temperature"),
        "Unrecognized request argument",
    ),
    "Mistral": Refusal(
        has("seed"),
        {"object": "error", "message": {"detail": [forbidden("body", "seed")]}, "code": None},
        "Extra inputs are not permitted",
        422,
    ),
    "Mistral, all fields but its own": Refusal(
        has("logprobs", "seed"),
        {"detail": [forbidden("body", "logprobs"), forbidden("body", "seed")]},
        "Extra inputs are not permitted",
        422,
    ),
    "Azure AI": Refusal(
        has("seed"),
        {"error": {"code": "Invalid input", "status": 422, "message": "invalid input error"}},
        "invalid input error",
        422,
    ),
    "Groq": Refusal(
        has("logprobs"),
        of_openai("`logprobs` is not supported with this model"),
        "is not supported with this model",
    ),
    "Fireworks": Refusal(
        has("seed"),
        {"error": {"object": "error", "message": "Extra inputs are not permitted, field: 'seed'"}},
        "Extra inputs are not permitted",
    ),
    "Together": Refusal(
        has("response_format"),
        of_openai("JSON mode is not enabled for this model"),
        "JSON mode is not enabled",
    ),
    "xAI": Refusal(
        has("logprobs"),
        {"code": "Client specified an invalid argument", "error": "It takes no logprobs."},
        "It takes no logprobs",
    ),
    "Perplexity": Refusal(
        has("logprobs"),
        of_openai('["At body -> top_k -> no such thing"]'),
        "no such thing",
    ),
    "DeepSeek": Refusal(
        has("temperature", "logprobs"),
        of_openai("deepseek-reasoner does not support logprobs, nor a temperature"),
        "does not support logprobs",
    ),
    "Cohere": Refusal(
        has("seed"), {"id": "1", "message": "seed is no valid parameter here"}, "no valid parameter"
    ),
    "Gemini's compatible API": Refusal(
        has("seed"),
        [{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.'}}],
        "Cannot find field",
    ),
    "Anthropic's compatible API": Refusal(
        has("logprobs"),
        {"type": "error", "error": {"type": "invalid_request_error", "message": "bad body"}},
        "bad body",
    ),
    "watsonx": Refusal(
        has("seed"),
        {"errors": [{"code": "json_validation_error", "message": "additional property"}]},
        "additional property",
    ),
    "Cloudflare": Refusal(
        has("response_format"),
        {"success": False, "errors": [{"message": "AiError: Bad input", "code": 5006}]},
        "Bad input",
    ),
    "Databricks": Refusal(
        has("temperature"),
        {"error_code": "BAD_REQUEST", "message": "temperature and top_p cannot both be given"},
        "cannot both be given",
    ),
    "vLLM, Gemma 2": Refusal(
        system,
        {"object": "error", "message": "System role not supported", "code": 400},
        "System role not supported",
    ),
    "vLLM, Mistral 7B": Refusal(
        system,
        {"message": "Conversation roles must alternate user/assistant/user/assistant/..."},
        "roles must alternate",
    ),
    "SGLang, Gemma 2": Refusal(
        system, {"error": {"message": "System role not supported"}}, "System role not supported"
    ),
    "llama-server, Gemma 2": Refusal(
        system,
        {"error": {"code": 500, "message": "Jinja Exception: System role not supported"}},
        "System role not supported",
        500,
    ),
    "TGI, Gemma": Refusal(
        system,
        {"error": "Template error: invalid operation", "error_type": "template_error"},
        "Template error",
        422,
    ),
    "TGI": Refusal(
        has("temperature"),
        {"error": "Input validation error: `temperature` must be strictly positive"},
        "must be strictly positive",
        422,
    ),
    "llama-cpp-python": Refusal(
        has("seed"),
        of_openai("create_chat_completion() got an unexpected keyword argument 'seed'"),
        "unexpected keyword argument",
        500,
    ),
    "a gateway that says nothing": Refusal(has("seed"), {}, "HTTP 400", 400),
}
