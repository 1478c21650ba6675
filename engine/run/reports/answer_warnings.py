"""The warning about values without a valid answer: their number, reasons, and first values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from blendfusion.models.protocol.model import Values
from blendfusion.redaction import Redaction
from blendfusion.run.observe.progress import count_noun
from blendfusion.types import Task
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import Conflict

_OWN = re.compile(
    r"""(?<![\w'"\\])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<!HTTP )(?<!\w)-?\d[\d.,]*\b"""
)
"""The parts of a reason that are specific to one value: quotations, and numbers except HTTP
statuses."""
_MOST_REASONS = 5
_MOST_EXAMPLES = 3


def summary(failed: Mapping[tuple[Task, Values], str], redaction: Redaction) -> str:
    """The number of each reason, the most frequent first, and the first values, in the given order.

    >>> reasons = {("q", ("a",)): "answered 'x', which is not date", ("q", ("b",)): "no answer"}
    >>> print(summary(reasons, Redaction("on")))
    2 values got no valid answer and are NULL (answered …, which is not date: 1; no answer: 1).
    First: 'a': answered 'x', which is not date; 'b': no answer"""
    kinds = Counter(alike(redaction.reason(reason)) for reason in failed.values())
    reasons = [f"{kind}: {n:,}" for kind, n in kinds.most_common(_MOST_REASONS)]
    others = kinds.total() - sum(n for _, n in kinds.most_common(_MOST_REASONS))
    reasons += [f"other reasons: {others:,}"] if others else []
    first = [
        f"{redaction.row(values)}: {redaction.reason(reason)}"
        for (_, values), reason in list(failed.items())[:_MOST_EXAMPLES]
    ]
    verb = "is" if len(failed) == 1 else "are"
    text = f"{count_noun(len(failed), 'value')} got no valid answer and {verb} NULL"
    text += f" ({'; '.join(reasons)}). First: {'; '.join(first)}"
    return f"{text}. {redaction.remedy}" if redaction.remedy else text


def cut_summary(number: int) -> str:
    """The number of answers that ``max_tokens`` cut off, and the remedy.

    >>> print(cut_summary(1))
    1 answer was cut off at max_tokens: only its beginning is in the result. frame.trace.calls marks
    it (cut_off). A larger max_tokens lets models finish."""
    was, its, it = ("was", "its", "it") if number == 1 else ("were", "their", "them")
    return (
        f"{count_noun(number, 'answer')} {was} cut off at max_tokens: only {its} beginning is in the "
        f"result. frame.trace.calls marks {it} (cut_off). A larger max_tokens lets models finish."
    )


def unstated_summary(call: Call, number: int) -> str:
    """The number of answers of a call of which no text states all numbers and dates, and the
    remedy."""
    return (
        f"{call.text}: none of {count_noun(number, 'text')} states all the numbers and dates of its "
        "answer, so they are NULL. evidence => false takes the model's word, also for what it knows from elsewhere."
    )


def conflict_summary(calls: Mapping[str, Sequence[Conflict]], redaction: Redaction) -> str:
    """The number of answers that contradict others, what became of their pairs, and the remedies.

    >>> one = Conflict("IBM", "IBM Bank", answer=False, same=False)
    >>> print(conflict_summary({"llm_same(name, check => 9)": [one]}, Redaction("on")))
    llm_same(name, check => 9): 1 answer contradicts what others imply; 1 pair is apart in the
    result, 0 together. First: 'IBM', 'IBM Bank'. frame.trace.conflicts lists them. A larger check
    => n finds further ones. Say by => '…' what makes values the same, or ask a larger model."""
    every = [conflict for own in calls.values() for conflict in own]
    apart = sum(not one.same for one in every)
    first = "; ".join(redaction.row(one[:2]) for one in every[:_MOST_EXAMPLES])
    text = (
        f"{', '.join(calls)}: {count_noun(len(every), 'answer')} "
        f"{'contradicts' if len(every) == 1 else 'contradict'} what others imply; "
        f"{count_noun(apart, 'pair')} {'is' if apart == 1 else 'are'} apart in the result, "
        f"{len(every) - apart:,} together. First: {first}. frame.trace.conflicts lists them. "
        "A larger check => n finds further ones. Say by => '…' what makes values the same, or ask "
        "a larger model."
    )
    return f"{text} {redaction.remedy}" if redaction.remedy else text


def missed_summary(call: Call, values: int) -> str:
    """The number of values that may have further matches, and the remedy."""
    name = call.ingredient.name
    shown = call.text if call.pairing is None else call.to_sql(["…", "…"])
    return (
        f"{shown}: {count_noun(values, 'value')} may have further matches: other texts are as "
        f"similar as those that {name} compared. A larger k => n compares more of them."
    )


def alike(reason: str) -> str:
    """A reason without the parts specific to one value: reasons of one kind are equal.

    >>> alike("HTTP 429: 'Ann' asked 12 times")
    'HTTP 429: … asked … times'
    """
    return _OWN.sub("…", reason)
