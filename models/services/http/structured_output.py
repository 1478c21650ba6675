"""The forms in which servers take a constraint, as a table in the order of preference."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blendfusion.models.constraints.constraint import Json, closed_set, regex_of, schema_of
from blendfusion.models.constraints.grammar import admits, with_edges
from blendfusion.models.constraints.regex import matches
from blendfusion.models.prompts.parse_reply import FIELD
from blendfusion.models.services.http.gbnf import gbnf_literal, gbnf_of
from blendfusion.types import Constraint

Fields = Mapping[str, Json]
"""Fields to add to the body of a chat request."""

JSON_KINDS = ("list", "struct")
"""Kinds of constraints whose answers are JSON by themselves."""

_BLAMED = ("schema", "grammar", "regex", "guided", "structured", "response_format")


def blames_form(refusal: str) -> bool:
    """True if a server's words of refusal are about structured output, not about the text."""
    return any(word in refusal.lower() for word in _BLAMED)


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One way to send a constraint. ``fields`` is None for a constraint that it cannot express."""

    name: str
    fields: Callable[[Constraint], Fields | None]
    wrapped: bool
    """True: replies are JSON objects with the one field "answer"."""

    def is_obeyed(self, reply: str, constraint: Constraint) -> bool:
        """False if ``reply`` shows that the server ignored these fields, as some do silently.

        A blank reply shows nothing.
        """
        if not reply.strip():
            return True
        if constraint.grammar:
            return admits(constraint.grammar, reply.strip())
        if self.wrapped:
            return reply.lstrip().startswith("{") and f'"{FIELD}"' in reply
        if constraint.kind == "regex":  # the user's, in the syntax of another engine than Python's
            return matches(regex_of(constraint), reply)
        return re.fullmatch(regex_of(constraint), reply) is not None


def _object_schema(constraint: Constraint) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {FIELD: schema_of(constraint)},
        "required": [FIELD],
        "additionalProperties": False,
    }


def _response_format(constraint: Constraint) -> Fields:
    """OpenAI's form (2024), also taken by vLLM, llama-server, Ollama and LM Studio."""
    schema: Json = {"name": FIELD, "strict": True, "schema": _object_schema(constraint)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _json_object(constraint: Constraint) -> Fields:
    """llama-cpp-python's server and several hosted ones, from before the standard."""
    return {"response_format": {"type": "json_object", "schema": _object_schema(constraint)}}


def _structured_outputs(constraint: Constraint) -> Fields:
    """vLLM since 0.11."""
    if constraint.grammar:
        return {"structured_outputs": {"grammar": with_edges(constraint.grammar)}}
    options = closed_set(constraint)
    if options is not None:
        return {"structured_outputs": {"choice": list(options)}}
    return {"structured_outputs": {"regex": regex_of(constraint)}}


def _guided_fields(constraint: Constraint) -> Fields:
    """vLLM before 0.12."""
    if constraint.grammar:
        return {"guided_grammar": with_edges(constraint.grammar)}
    options = closed_set(constraint)
    if options is not None:
        return {"guided_choice": list(options)}
    return {"guided_regex": regex_of(constraint)}


def _regex(constraint: Constraint) -> Fields:
    """SGLang."""
    if constraint.grammar:
        return {"ebnf": with_edges(constraint.grammar)}
    return {"regex": regex_of(constraint)}


def _grammar(constraint: Constraint) -> Fields | None:
    """llama-server and llama-cpp-python: GBNF; not for JSON, which they know better by a schema.
    A llama-server that was built with llguidance takes Lark's form."""
    if constraint.grammar:
        return {"grammar": f"%llguidance {{}}\n{with_edges(constraint.grammar)}"}
    if constraint.kind in JSON_KINDS:
        return None
    options = closed_set(constraint)
    if options is not None:
        return {"grammar": f"root ::= {' | '.join(map(gbnf_literal, options))}"}
    grammar = gbnf_of(regex_of(constraint))
    return None if grammar is None else {"grammar": grammar}


def _bare_schema(constraint: Constraint) -> Fields:
    """llama-server, and servers with its API."""
    return {"json_schema": _object_schema(constraint)}


def _nothing(constraint: Constraint) -> Fields:
    return {}


FORMS: tuple[Form, ...] = (
    Form("response_format", _response_format, wrapped=True),  # the standard, and the most common
    Form("structured_outputs", _structured_outputs, wrapped=False),
    Form("guided", _guided_fields, wrapped=False),
    Form("regex", _regex, wrapped=False),
    Form("grammar", _grammar, wrapped=False),  # before json_schema: costs no JSON tokens
    Form("json_object", _json_object, wrapped=True),
    Form("json_schema", _bare_schema, wrapped=True),
    Form("instruction", _nothing, wrapped=False),  # always taken; the prompt alone asks
)

INSTRUCTION = FORMS[-1]


def wrap(answer: str, constraint: Constraint) -> str:
    """The reply that a wrapping form wants for an answer.

    >>> wrap("3", Constraint("integer")), wrap("Red", Constraint("choice", options=("Red",)))
    ('{"answer": 3}', '{"answer": "Red"}')
    """
    bare = schema_of(constraint)["type"] in ("integer", "number", "array", "object")
    return f'{{"{FIELD}": {answer if bare else json.dumps(answer, ensure_ascii=False)}}}'


PROOF = Constraint("choice", options=("zebra",))
PROOF_QUESTION = "Answer with yes or no: is water wet?"
"""A server that answers this with the word of ``PROOF`` was held to it."""


def forms_named(names: Sequence[str]) -> tuple[Form, ...]:
    """The forms with these names, in their order."""
    return tuple(form for name in names for form in FORMS if form.name == name)


def forms_for(constraint: Constraint) -> tuple[Form, ...]:
    """The forms that can express ``constraint``, best first; never empty."""
    if constraint.grammar:
        return tuple(form for form in FORMS if not form.wrapped)
    if constraint.kind == "text":
        return (INSTRUCTION,)
    return tuple(form for form in FORMS if form.fields(constraint) is not None)
