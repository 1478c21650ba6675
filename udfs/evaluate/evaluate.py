"""Evaluates an ingredient on arrays: finds distinct values, asks, scatters the answers back.

The loop is over distinct values only; rows are touched by Arrow kernels alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, singledispatch
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.protocol.images import lend_within
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.audio_columns import named_audio, transcribe
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.embed_columns import Texts
from blendfusion.udfs.ask.evidence_results import in_list
from blendfusion.udfs.ask.image_columns import (
    among_texts,
    answer_images,
    name_images,
    seen_among_texts,
)
from blendfusion.udfs.ask.map_reduce import answer_contexts
from blendfusion.udfs.ask.outcomes import arrow, outcomes
from blendfusion.udfs.ask.reasons import Ask, answer_task, reason_task, with_reasons
from blendfusion.udfs.ask.reviews import answers_of_people
from blendfusion.udfs.ask.validation_loop import check_answers
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import (
    AudioQuestion,
    ColumnQuestion,
    GroupQuestion,
    ImageQuestion,
    Kind,
    ListQuestion,
    PairComparison,
    PairMatch,
    UserBody,
    Vectors,
)
from blendfusion.udfs.evaluate.distinct import Column, distinct, encode
from blendfusion.udfs.evaluate.label_join import label_call, matching
from blendfusion.udfs.evaluate.user_body import run_body

_REMEMBERED = 200_000
"""Decoded answers of a call that are kept for the next chunk."""

_Ask: TypeAlias = Callable[[Call, Sequence[Values], Dispatcher], Sequence[Answer]]


def evaluate(call: Call, columns: Sequence[Column], dispatcher: Dispatcher) -> pa.Array:
    """The answers to ``call``, one a row, of the call's type.

    ``columns`` holds the value columns, all of one length; for an aggregate call each is a list
    column, one list a group. A row whose values are all NULL, empty or blank gives NULL without
    a call, as does a group without rows. A value that fails is NULL, or keeps its error, or raises
    AnswerError, as the call's ``on_error`` says.
    """
    return _of_kind(call.ingredient.kind, call, columns, dispatcher)


@singledispatch
def _of_kind(kind: Kind, call: Call, columns: Sequence[Column], dispatcher: Dispatcher) -> pa.Array:
    """A question about each distinct row of texts, of which some may be images."""
    images = among_texts(columns)
    if images is None:
        return _answer_rows(call, columns, dispatcher, _questions)
    with lend_within(images.held):
        return _answer_rows(call, images.texts, dispatcher, seen_among_texts)


@_of_kind.register(GroupQuestion)
@_of_kind.register(ListQuestion)
def _(kind: Kind, call: Call, columns: Sequence[Column], dispatcher: Dispatcher) -> pa.Array:
    contexts = _contexts(call, [c.to_pylist() for c in columns])
    present = list(dict.fromkeys(c for c in contexts if c))
    answers = _of_own_values(call, present, dispatcher) or _of_groups(call, present, dispatcher)
    if call.check:
        ask = partial(_ask_contexts, call, dispatcher)
        answers = check_answers(call, present, answers, ask)
    results = dict(zip(present, outcomes(call, answers, present, dispatcher), strict=True))
    found = [results.get(c) for c in contexts]
    if call.evidence:
        found = [
            in_list(result, _places(items))
            for result, items in zip(found, columns[0].to_pylist(), strict=True)
        ]
    return arrow(found, call.type)


def _of_own_values(
    call: Call, contexts: Sequence[tuple[str, ...]], dispatcher: Dispatcher
) -> list[Answer] | None:
    """The answers where the options are a group's own values; None where they are not."""
    constraint = call.task.constraint
    choice = constraint.item or constraint
    if not choice.of_group:
        return None
    answers = []
    for rows in contexts:
        own = replace(choice, query=None, options=tuple(dict.fromkeys(rows)))
        held = own if constraint.item is None else replace(constraint, item=own)
        task = replace(call.task, constraint=held)
        answers += _of_groups(replace(call, task=task), [rows], dispatcher)
    return answers


def _of_groups(
    call: Call, contexts: Sequence[tuple[str, ...]], dispatcher: Dispatcher
) -> list[Answer]:
    """One answer a context, behind its reason."""
    ask = partial(_ask_contexts, call, dispatcher)
    return _behind_reasons(call.task, contexts, ask, dispatcher)


def _ask_contexts(
    call: Call, dispatcher: Dispatcher, task: Task, rows: Sequence[Values]
) -> list[Answer]:
    """The answers to ``task``, which takes the place of that of ``call``, one a context."""
    listed = [tuple(map(str, row)) for row in rows]
    return answer_contexts(replace(call, task=task), listed, dispatcher)


@_of_kind.register
def _(
    kind: ImageQuestion, call: Call, columns: Sequence[Column], dispatcher: Dispatcher
) -> pa.Array:
    names, held = name_images(columns)
    with lend_within(held):
        return _answer_rows(call, names, dispatcher, answer_images)


@_of_kind.register
def _(
    kind: AudioQuestion, call: Call, columns: Sequence[Column], dispatcher: Dispatcher
) -> pa.Array:
    names, held = named_audio(columns)
    with lend_within(held):
        return _answer_rows(call, names, dispatcher, transcribe)


@_of_kind.register
def _(kind: PairMatch, call: Call, columns: Sequence[Column], dispatcher: Dispatcher) -> pa.Array:
    if call.pairing is not None and call.pairing.by_labels:
        label = label_call(call)
        return matching(call, *(evaluate(label, [column], dispatcher) for column in columns))
    return _answer_rows(call, columns, dispatcher, _questions)


@_of_kind.register
def _(
    kind: PairComparison, call: Call, columns: Sequence[Column], dispatcher: Dispatcher
) -> pa.Array:
    return _answer_rows(call, columns, dispatcher, kind.compare)


@_of_kind.register
def _(kind: Vectors, call: Call, columns: Sequence[Column], dispatcher: Dispatcher) -> pa.Array:
    texts = [Texts(*encode(column)) for column in columns]
    return kind.compute(texts, dispatcher.embedder_for(call))


@_of_kind.register
def _(kind: UserBody, call: Call, columns: Sequence[Column], dispatcher: Dispatcher) -> pa.Array:
    return run_body(kind, call, columns, dispatcher)


@_of_kind.register
def _(
    kind: ColumnQuestion, call: Call, columns: Sequence[Column], dispatcher: Dispatcher
) -> pa.Array:
    raise QueryError(
        f"{call.text} needs the whole column, and this query runs it batch by batch",
        hint="Compute it in a subquery: SELECT … FROM (SELECT *, "
        f"{call.ingredient.name}(x) AS y FROM t) WHERE y = …. EXPLAIN says why a query is not planned.",
    )


def _answer_rows(
    call: Call, texts: Sequence[Column], dispatcher: Dispatcher, ask: _Ask
) -> pa.Array:
    """The answers, one a row. The model sees equal rows once."""
    values, rows = distinct(texts)
    remembered = dispatcher.values_of(call)
    known = {v: remembered[v] for v in values if v in remembered}
    new = [v for v in values if v not in known]
    if new:
        known.update((v, None) for v in new if _blank(v))
        missing = [v for v in new if v not in known]
        answers = _answers_to(call, missing, dispatcher, ask)
        known.update(zip(missing, outcomes(call, answers, missing, dispatcher), strict=True))
        if len(remembered) + len(new) > _REMEMBERED:
            remembered.clear()  # their answers are known to the dispatcher
        remembered.update((v, known[v]) for v in islice(new, _REMEMBERED))
    return arrow([known[v] for v in values], call.type).take(rows)


def _answers_to(
    call: Call, missing: Sequence[Values], dispatcher: Dispatcher, ask: _Ask
) -> Sequence[Answer]:
    """The answers to distinct values, behind their reasons and as the check of the call wants
    them."""

    def of_task(task: Task, rows: Sequence[Values]) -> Sequence[Answer]:
        own = call if task is call.task else replace(call, task=task)
        return ask(own, rows, dispatcher)

    labels = answers_of_people(call, missing, dispatcher)
    if labels:
        rest = [v for v in missing if v not in labels]
        given = dict(zip(rest, _answers_to(call, rest, dispatcher, ask), strict=True))
        return [labels.get(v) or given[v] for v in missing]
    answers = _behind_reasons(call.task, missing, of_task, dispatcher)
    return check_answers(call, missing, answers, of_task) if call.check else answers


def _behind_reasons(
    task: Task, values: Sequence[Values], ask: Ask, dispatcher: Dispatcher
) -> list[Answer]:
    """One answer a tuple of values, in order, behind its reason where the task wants one."""
    if not task.reasoning or dispatcher.certain(task) is not None:
        return [*ask(task, values)]
    sent = dispatcher.task_to_send(task)
    for made in (reason_task, answer_task):
        dispatcher.settle(made(task), made(sent))
    return with_reasons(task, values, ask)


def _questions(call: Call, missing: Sequence[Values], dispatcher: Dispatcher) -> list[Answer]:
    return dispatcher.ask(call.task, missing, call)


def _blank(values: Values) -> bool:
    for v in values:  # noqa: SIM110 - a plain loop: this runs for every distinct value
        if v is not None and not _empty(v):
            return False
    return True


def _empty(text: str) -> bool:
    """Nothing to ask about: no character that is not blank, or a list of such items.

    A list column arrives as DataFusion writes it, ``[a, b]``; NULL items are nothing between
    commas."""
    text = text.strip()
    return not text or (text[0] == "[" and text[-1] == "]" and not text[1:-1].strip(", \t\n\r"))


def _contexts(call: Call, columns: Sequence[list[list[object] | None]]) -> list[tuple[str, ...]]:
    """One tuple of rows a group. Without an ORDER BY, rows are sorted by their
    texts, so that equal multisets of rows give equal contexts under every plan."""
    labels = [name or f"value {i + 1}" for i, name in enumerate(call.task.columns)]
    contexts = []
    for group in zip(*columns, strict=True):
        lists = [g or [] for g in group]
        rows = [r for r in (_row_text(labels, row) for row in zip(*lists, strict=True)) if r]
        keeps_order = call.ingredient.kind.keeps_order(ordered=call.ordered)
        contexts.append(tuple(rows if keeps_order else sorted(rows)))
    return contexts


def _places(items: Sequence[object] | None) -> list[int]:
    """The places, from 1, of the items of a list that are asked about."""
    return [
        at for at, item in enumerate(items or (), 1) if item is not None and not _empty(str(item))
    ]


def _row_text(labels: Sequence[str], row: Sequence[object]) -> str:
    """One row of a context: the value itself, or ``name: value`` pairs for several; '' if blank."""
    texts = [
        (name, str(value)) for name, value in zip(labels, row, strict=True) if value is not None
    ]
    present = [(name, text) for name, text in texts if not _empty(text)]
    if len(labels) == 1:
        return present[0][1] if present else ""
    return "; ".join(f"{name}: {text}" for name, text in present)
