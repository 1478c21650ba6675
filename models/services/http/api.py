"""The chat APIs of servers: OpenAI's, Anthropic's and Gemini's, each as a translation from and to
OpenAI's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from blendfusion.models.constraints.constraint import Json

Body = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Api:
    """One API. ``request`` turns a body of OpenAI's into a path and a body, ``reply`` a reply into
    one of OpenAI's. ``forms``: the forms of structured output that it has, () for all."""

    name: str
    url: str
    url_variable: str
    key_variables: tuple[str, ...]
    headers: Callable[[str], dict[str, str]]
    request: Callable[[Body], tuple[str, Body]]
    reply: Callable[[Body], Body]
    forms: tuple[str, ...] = ()
    odds: bool = True
    """Whether it tells how likely other tokens were."""
    sampling: Mapping[str, Json] | None = None
    """Fields of sampling besides those of OpenAI's servers."""


def _text(content: Json) -> str:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def _turns(body: Body) -> Iterator[tuple[str, Json]]:
    messages = body["messages"]
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield str(message["role"]), message["content"]


def _system(body: Body) -> str:
    return "\n\n".join(_text(content) for role, content in _turns(body) if role == "system")


def _schema(body: Body) -> Json:
    """The JSON schema that a body demands; None without one."""
    form = body.get("response_format")
    inner = form.get("json_schema") if isinstance(form, dict) else None
    return inner.get("schema") if isinstance(inner, dict) else None


def _image(part: Json) -> tuple[str, str] | None:
    """The media type and the base64 text of an image of a chat, or '' and its URL."""
    stated = part.get("image_url") if isinstance(part, dict) else None
    url = str(stated.get("url", "")) if isinstance(stated, dict) else ""
    if not url.startswith("data:"):
        return ("", url) if url else None
    media, _, data = url.removeprefix("data:").partition(";base64,")
    return media, data


def _completion(text: str, finish: str, refusal: str, usage: Body) -> Body:
    message: Body = {"role": "assistant", "content": text, "refusal": refusal or None}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def _number(stated: Json, name: str) -> int:
    count = stated.get(name) if isinstance(stated, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _usage(prompt: int, cached: int, completion: int) -> Body:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


# ---------------------------------------------------------------- OpenAI


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


OPENAI = Api(
    name="openai",
    url="https://api.openai.com/v1",
    url_variable="OPENAI_BASE_URL",
    key_variables=("OPENAI_API_KEY",),
    headers=_bearer,
    request=lambda body: ("/chat/completions", body),
    reply=lambda reply: reply,
)


# ---------------------------------------------------------------- Anthropic

_TOOL = "answer"


def _anthropic_request(body: Body) -> tuple[str, Body]:
    """The answer is the input of a tool that the model must call: all models have tools, and the
    schema of one is enforced. The last turn of the shots ends the part that a server may keep."""
    messages: list[Json] = []
    for role, content in _turns(body):
        if role != "system":
            messages.append({"role": role, "content": list(_anthropic_parts(content))})
    for message in messages[-2:-1]:
        assert isinstance(message, dict)
        parts = message["content"]
        if isinstance(parts, list) and isinstance(parts[-1], dict):
            parts[-1]["cache_control"] = {"type": "ephemeral"}
    sent: Body = {
        "model": body["model"],
        "messages": messages,
        "max_tokens": body.get("max_tokens", body.get("max_completion_tokens", 1024)),
    }
    if system := _system(body):
        sent["system"] = system
    if "temperature" in body:
        sent["temperature"] = body["temperature"]
    schema = _schema(body)
    if schema is not None:
        sent["tools"] = [
            {"name": _TOOL, "description": "States the answer.", "input_schema": schema}
        ]
        sent["tool_choice"] = {"type": "tool", "name": _TOOL}
    return "/messages", sent


def _anthropic_parts(content: Json) -> Iterator[Body]:
    if not isinstance(content, list):
        yield {"type": "text", "text": content}
        return
    for part in content:
        image = _image(part)
        if image is None:
            yield {"type": "text", "text": _text([part])}
        elif image[0]:
            media, data = image
            source: Json = {"type": "base64", "media_type": media, "data": data}
            yield {"type": "image", "source": source}
        else:
            yield {"type": "image", "source": {"type": "url", "url": image[1]}}


def _anthropic_reply(reply: Body) -> Body:
    content = reply.get("content")
    if not isinstance(content, list):
        return reply
    parts = [part for part in content if isinstance(part, dict)]
    tools = [part.get("input") for part in parts if part.get("type") == "tool_use"]
    text = _text([part for part in parts if part.get("type") == "text"])
    if tools:
        text = json.dumps(tools[0], ensure_ascii=False)
    stop = str(reply.get("stop_reason"))
    refusal = (text or "no reason was given") if stop == "refusal" else ""
    stated = reply.get("usage")
    cached = _number(stated, "cache_read_input_tokens")
    prompt = _number(stated, "input_tokens") + cached
    prompt += _number(stated, "cache_creation_input_tokens")
    usage = _usage(prompt, cached, _number(stated, "output_tokens"))
    return _completion(text, stop, refusal, usage)


ANTHROPIC = Api(
    name="anthropic",
    url="https://api.anthropic.com/v1",
    url_variable="ANTHROPIC_BASE_URL",
    key_variables=("ANTHROPIC_API_KEY",),
    headers=lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    request=_anthropic_request,
    reply=_anthropic_reply,
    forms=("response_format", "instruction"),
    odds=False,
)


# ---------------------------------------------------------------- Gemini


def _gemini_request(body: Body) -> tuple[str, Body]:
    """A closed set is JSON too: models keep to a JSON schema, and older ones to nothing else."""
    contents: list[Json] = []
    for role, content in _turns(body):
        if role != "system":
            of = "model" if role == "assistant" else "user"
            contents.append({"role": of, "parts": list(_gemini_parts(content))})
    names = {
        "temperature": "temperature",
        "seed": "seed",
        "max_tokens": "maxOutputTokens",
        "max_completion_tokens": "maxOutputTokens",
    }
    config: Body = {ours: body[name] for name, ours in names.items() if name in body}
    if body.get("reasoning_effort") == "none":
        config["thinkingConfig"] = {"thinkingBudget": 0}
    schema = _schema(body)
    if schema is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
    sent: Body = {"contents": contents, "generationConfig": config}
    if system := _system(body):
        sent["systemInstruction"] = {"parts": [{"text": system}]}
    return f"/models/{quote(str(body['model']), safe='')}:generateContent", sent


def _gemini_parts(content: Json) -> Iterator[Body]:
    if not isinstance(content, list):
        yield {"text": content}
        return
    for part in content:
        image = _image(part)
        if image is None:
            yield {"text": _text([part])}
        elif image[0]:
            yield {"inlineData": {"mimeType": image[0], "data": image[1]}}
        else:
            yield {"fileData": {"fileUri": image[1]}}


def _gemini_reply(reply: Body) -> Body:
    stated = reply.get("usageMetadata")
    thought = _number(stated, "thoughtsTokenCount")
    usage = _usage(
        _number(stated, "promptTokenCount"),
        _number(stated, "cachedContentTokenCount"),
        _number(stated, "candidatesTokenCount") + thought,
    )
    feedback = reply.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return _completion("", "content_filter", str(feedback["blockReason"]), usage)
    candidates = reply.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    if not isinstance(first, dict):
        return reply
    content = first.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    shown = [
        part
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and not part.get("thought")
    ]
    return _completion(_text([*shown]), str(first.get("finishReason")), "", usage)


GEMINI = Api(
    name="gemini",
    url="https://generativelanguage.googleapis.com/v1beta",
    url_variable="GEMINI_BASE_URL",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    headers=lambda key: {"x-goog-api-key": key},
    request=_gemini_request,
    reply=_gemini_reply,
    forms=("response_format", "instruction"),
    odds=False,
    sampling={"reasoning_effort": "none"},
)

APIS = {api.name: api for api in (OPENAI, ANTHROPIC, GEMINI)}
