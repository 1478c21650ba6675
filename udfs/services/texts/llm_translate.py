"""``llm_translate``: a text in another language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import CHECK, EXAMPLES, MODEL, ON_ERROR, RETRIES
from blendfusion.udfs.declare.parameter import Parameter

_LANGUAGE = re.compile(r"[^\W\d_][\w' ()-]{1,39}")


def _language(given: Literal, name: str) -> str:
    if not isinstance(given, str) or not _LANGUAGE.fullmatch(given.strip()):
        raise ArgumentError(
            f"the {name} {given!r} is not possible",
            hint="Write its name, as in llm_translate(text, 'German').",
        )
    return given.strip()


LANGUAGE = Parameter(
    "language",
    "The language of the result, by its name.",
    _language,
    example="llm_translate(x, 'German')",
)


def _question(read: Mapping[str, Any]) -> str:
    return f"What is the text in {read['language']}? Write the translation and nothing else."


LLM_TRANSLATE = Ingredient(
    name="llm_translate",
    summary="a text in another language",
    example="SELECT llm_translate(body, 'German') AS german FROM tickets LIMIT 3",
    leading=(),
    values=("value",),
    trailing=(LANGUAGE,),
    options=(EXAMPLES, CHECK, RETRIES, MODEL, ON_ERROR),
    questions=_question,
    returns=Constraint("text"),
    result="TEXT",
    doc="""``value`` in ``language``, as TEXT.""",
)
