"""``llm_join``: whether two values of a join match."""

from __future__ import annotations

from blendfusion.models.prompts.canonical import SAME
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import PairMatch
from blendfusion.udfs.declare.options import MODEL, ON_ERROR
from blendfusion.udfs.declare.pairing import PAIRING

LLM_JOIN = Ingredient(
    name="llm_join",
    summary="in `ON`: which value of the other side is the same thing, or has a matching label",
    example="SELECT t.body, p.name FROM tickets t JOIN products p ON llm_join(t.body, p.name)",
    kind=PairMatch(),
    leading=(),
    values=("value", "other"),
    options=(*PAIRING, MODEL, ON_ERROR),
    question=SAME,
    returns=Constraint("boolean"),
    result="BOOLEAN",
    doc="""Whether ``value`` of one side of a join matches ``other`` of the other side, as BOOLEAN.

In the condition of a join, each distinct ``value`` matches at most one ``other`` (any number with
``many``): an equal one, or one that differs only in case, accents and punctuation, without a call;
else the one that the model chooses among the ``k`` with the most similar spelling. If both values
come from one side, the model is asked about every pair. NULL if a value is NULL or blank.

With ``labels``, the model labels each value, and labels decide which values match (FALSE beside a
NULL, too, if the other's label is in no pair of ``match``). With ``how`` and without ``match``,
sampled pairs of values per pair of labels decide; undecided pairs of labels are asked pair by
pair.""",
)
