"""Expectations of a block's predicates before they see a row: see ``Order``.

Earlier answers to a question say how often a predicate over it is true; without any, labels are
equally frequent, and a predicate is true for half of the rows. The cost a row is that of the values
that are not stored: tokens as measured, else by characters, at the prices of their models if all
have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.budget import Price
from blendfusion.models.protocol.model import Values
from blendfusion.planner.ir.builders import boolean_literal
from blendfusion.planner.ir.nodes import (
    Ask,
    Expr,
    Field,
    asks,
    asks_model,
    fields,
    needs_model,
    substitute,
)
from blendfusion.run.execution.expressions import Rows, RowWise
from blendfusion.run.execution.predicate_order import Prior
from blendfusion.udfs.ask.decode import decode
from blendfusion.udfs.declare.call import Call

MOST_EARLIER = 1000
"""Stored answers that are looked at for one question."""
_CHARACTERS_PER_TOKEN = 4
_ANSWER_TOKENS = 2
_AROUND_VALUE = 10
"""Tokens of a prompt that are evaluated for each value besides its own: the end of the question and
of the turn. The packaged model has 11 to 25."""
_TOKENS = 16.0
"""Tokens of a value of which nothing is known."""
_COMPUTED = 1.0
"""Tokens as dear as a value that a user's function computes, if it asks nothing."""
_HALF = 0.5
_ASSUMED_ROWS = 0.5
_MOST_ROWS = 32.0
"""The weights of an assumed pass rate and of one from earlier answers, in rows of the run."""
_MILLION = 1_000_000


def priors(terms: Sequence[Expr], rows: Rows, rowwise: RowWise) -> tuple[list[Prior], bool]:
    """The expectations of each predicate, given some first rows; whether its cost is money."""
    calls = {a.call for term in terms for a in asks(term) if asks_model(a)}
    prices = {call: rowwise.dispatcher.lookup.price_of(call) for call in calls}
    priced = {call: price for call, price in prices.items() if price is not None}
    in_money = bool(calls) and len(priced) == len(calls)
    return [_prior(term, rows, rowwise, priced if in_money else {}) for term in terms], in_money


def expect(
    terms: Sequence[Expr], rowwise: RowWise, first_rows: Callable[[Ask], Sequence[Values]]
) -> tuple[float, float]:
    """The share of rows that predicates pass together, as far as earlier answers tell, and the cost
    of a row without them: money if all models have a price, else tokens, as measured so far.
    ``first_rows`` gives some values of a call, to see which of them are stored."""
    calls = list(dict.fromkeys(a for t in terms for a in asks(t) if asks_model(a)))
    passed = 1.0
    for term in terms:
        passed *= _pass_rate(term, [a for a in asks(term) if asks_model(a)], rowwise)[0]
    dispatcher = rowwise.dispatcher
    prices = [dispatcher.lookup.price_of(ask.call) for ask in calls]
    cost = 0.0
    for ask, price in zip(calls, prices, strict=True):
        seen = dispatcher.ledger.usage_of(ask.call.task)
        tokens = _TOKENS
        if seen is not None and seen.values:
            tokens = (seen.evaluated_tokens + seen.completion_tokens) / seen.values
        if dispatcher.lookup.any_answer(ask.call):
            values = first_rows(ask)
            stored = len(dispatcher.lookup.stored_values(ask.call, values)) if values else 0
            tokens *= 1 - stored / len(values) if values else 1
        cost += tokens * (1.0 if price is None or None in prices else price.prompt)
    return passed, cost


def _prior(term: Expr, rows: Rows, rowwise: RowWise, prices: dict[Call, Price]) -> Prior:
    own = list(dict.fromkeys(a for a in asks(term) if asks_model(a)))
    if not own:
        return Prior(_HALF, _ASSUMED_ROWS, 0.0, 0.0, "no question")
    costs = [_cost(ask, rows, rowwise, prices.get(ask.call)) for ask in own]
    tokens, cost = (sum(parts) for parts in zip(*costs, strict=True))
    each = max((price.prompt / _MILLION for price in prices.values()), default=_COMPUTED)
    rate, weight, basis = _pass_rate(term, own, rowwise)
    price = f", {cost:.2g} of money a row" if prices else ""
    why = f"about {1 - rate:.0%} dropped ({basis}), about {tokens:.1f} tokens{price or ' a row'}"
    return Prior(rate, weight, cost if prices else tokens, each, why)


def _cost(ask: Ask, rows: Rows, rowwise: RowWise, price: Price | None) -> tuple[float, float]:
    """(tokens, cost in money) of a row of which no answer to ``ask`` is stored."""
    dispatcher = rowwise.dispatcher
    found = rowwise.values(ask, rows)
    if found is None:  # its questions are known only when it runs
        mask, distinct = rowwise.new_to_body(ask, rows) or (np.full(len(rows), True), len(rows))
        computed = _COMPUTED * distinct / max(int(mask.sum()), 1)
        return computed, 0.0 if price is None else computed * price.prompt / _MILLION
    values, places = found
    stored = dispatcher.lookup.stored_values(ask.call, values)
    new = [v for v in values if v not in stored]
    n = len(rows)
    if new:
        n = int(np.array([v not in stored for v in values], dtype=bool)[places].sum())
    new = new or values
    seen = dispatcher.ledger.usage_of(ask.call.task)
    if seen is not None and seen.values:
        each = len(new) / n / seen.values
        prompt, completion = seen.prompt_tokens * each, seen.completion_tokens * each
        evaluated = seen.evaluated_tokens * each
    else:
        characters = sum(len(text) for value in new for text in value if text)
        prompt = evaluated = (characters / _CHARACTERS_PER_TOKEN + _AROUND_VALUE * len(new)) / n
        completion = _ANSWER_TOKENS * len(new) / n
    money = 0.0 if price is None else prompt * price.prompt + completion * price.completion
    return evaluated + completion, money / _MILLION


def _pass_rate(term: Expr, own: Sequence[Ask], rowwise: RowWise) -> tuple[float, float, str]:
    """The share of rows that a predicate passes, its weight in rows, and its source."""
    assumed = _HALF, _ASSUMED_ROWS, "assumed"
    if len(own) != 1:
        return assumed
    ask, call = own[0], own[0].call
    if call.type != call.answer_type or _reads_beside(term, ask):
        return assumed
    earlier = rowwise.dispatcher.lookup.earlier(call, MOST_EARLIER)
    options = call.task.constraint.options if call.task.constraint.kind == "choice" else ()
    texts = earlier or list(options)
    if not texts:
        return assumed
    column = pa.table([decode(texts, call.type)], names=["0"])
    alone = substitute(term, lambda part: Field(0) if part == ask else None)
    try:
        passed = rowwise.column(alone, Rows(column))
    except Exception:  # DataFusion may refuse an expression alone; it is evaluated differently then
        return assumed
    if not pa.types.is_boolean(passed.type):
        return assumed
    true = pc.sum(passed, min_count=0).as_py()
    basis = f"{true:,} of {len(earlier):,} earlier answers pass" if earlier else "labels assumed"
    if not earlier:
        return true / len(texts), _ASSUMED_ROWS, basis
    return (true + 1) / (len(texts) + 2), min(len(earlier), _MOST_ROWS), basis


def _reads_beside(term: Expr, ask: Ask) -> bool:
    """Whether a predicate reads columns besides a call's arguments, or other calls."""
    rest = substitute(term, lambda part: boolean_literal(True) if part == ask else None)
    return bool(fields(rest)) or needs_model(rest)
