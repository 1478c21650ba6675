"""``llm_redact``: a text without personal data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import UserBody
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, text
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.services.texts.personal_data import without_personal_data, without_spans

if TYPE_CHECKING:
    from blendfusion.udfs.ask.user_model import UserModel

MARK = "[REDACTED]"
USUAL = "names of people and postal addresses"

ALSO = Parameter(
    "also",
    "What the model looks for, beside the e-mail addresses, telephone and card numbers that rules "
    "find; '' for rules alone, without a call.",
    text,
    default=USUAL,
    example="llm_redact(mail, also => 'names of people and companies')",
)


def _redact(model: UserModel, values: pa.Array, also: str = USUAL) -> pa.Array:
    texts = [value and without_personal_data(value) for value in values.to_pylist()]
    if not also.strip():
        return pa.array(texts, pa.string())
    question = f"Which {also.strip()} are in the text? List each as it is written there."
    found = model.ask(question, pa.array(texts, pa.string()), returns="list").to_pylist()
    # Without a valid answer there is no text: it might not be redacted.
    return pa.array(
        [
            value
            if not (value or "").strip()
            else None
            if spans is None
            else without_spans(value, spans, MARK)
            for value, spans in zip(texts, found, strict=True)
        ],
        pa.string(),
    )


LLM_REDACT = Ingredient(
    name="llm_redact",
    summary="a text without e-mail addresses, telephone and card numbers, names and addresses",
    example="SELECT llm_redact(body) AS shareable FROM tickets LIMIT 3",
    kind=UserBody(_redact, pa.string(), (pa.string(),)),
    leading=(),
    values=("value",),
    options=(ALSO, MODEL, ON_ERROR),
    question="Which personal data are in the text?",
    returns=Constraint("list", item=Constraint("text")),
    result="TEXT",
    doc=f"""``value`` with [EMAIL], [PHONE] and [CARD] for what rules find, and {MARK} for what the model
finds, as TEXT; nothing else changes. The model sees the text after the rules, and lists spans; those
that the text does not contain are left out. A text without a valid answer is NULL, or raises.""",
)
