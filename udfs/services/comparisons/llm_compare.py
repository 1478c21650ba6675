"""``llm_compare``: the comparison of two values, however they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blendfusion.types import Answer, Constraint
from blendfusion.udfs.declare.comparison import OPERATOR
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import PairComparison
from blendfusion.udfs.declare.options import MODEL, ON_ERROR

if TYPE_CHECKING:
    from blendfusion.models.protocol.model import Values
    from blendfusion.udfs.ask.dispatcher import Dispatcher
    from blendfusion.udfs.declare.call import Call


def _compare(call: Call, pairs: Sequence[Values], dispatcher: Dispatcher) -> list[Answer]:
    from blendfusion.udfs.services.comparisons.compare_pairs import compare_pairs

    return compare_pairs(call, pairs, dispatcher)


LLM_COMPARE = Ingredient(
    name="llm_compare",
    summary="a comparison of two values (`=  <>  <  <=  >  >=`), whatever their notation",
    example="SELECT weight FROM (VALUES ('2 kg'), ('900 g')) AS parcels(weight) WHERE llm_compare(weight, '<', '1 kg')",
    kind=PairComparison(_compare),
    leading=(),
    values=("a", "b"),
    options=(MODEL, ON_ERROR),
    returns=Constraint("boolean"),
    between=(OPERATOR,),
    result="BOOLEAN",
    doc="""Whether ``a = b``, ``a < b``, … holds for the meanings of the values, as BOOLEAN.

``a`` and ``b`` are columns (or their names) or literals, ``lit("5 km")``. NULL if either is NULL or
blank. Equal texts, and two numbers, amounts, dates or times, are compared without a call; number
words, dates and units with the extra ``compare``. The model is asked about any other pair once, in
either order: ``<>`` is the negation of ``=``, ``a > b`` is ``b < a``, and ``a <= b`` is the negation
of ``b < a``.""",
)
