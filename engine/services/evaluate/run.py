"""Runs evaluations: a frame with answers and labels, or calls over a table with labels."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa

from blendfusion.budget import Budget
from blendfusion.errors import ArgumentError, ModelNotFound, QueryError, close_matches
from blendfusion.files.foreign_tables import table_of_columns
from blendfusion.language.query_text.call_sites import find_sites, only_site
from blendfusion.language.query_text.stored_calls import with_stored_calls
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.prepare.function_registry import ingredients
from blendfusion.run.reports.trace import Trace
from blendfusion.services.evaluate.call_values import (
    numbers_at_worst,
    numbers_of_values,
    with_call_values,
)
from blendfusion.services.evaluate.compare_answers import AnswerKind, compare_columns
from blendfusion.services.evaluate.evaluation import Comparison, Evaluation
from blendfusion.services.evaluate.label_leaks import check_examples_apart, check_label_unseen
from blendfusion.types import Usage
from blendfusion.udfs.ask.outcomes import NoConfidence
from blendfusion.udfs.declare.arguments import quoted_name, sql_string
from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame, BaseSession

Wordings: TypeAlias = "str | Sequence[str] | Mapping[str, str]"
"""SQL of calls; a mapping names them."""

_ROW = "row_of_evaluation"
_BEFORE = "SELECT "


def evaluate_frame(
    frame: BaseFrame, answer: str, label: str, kind: AnswerKind | None, within: float
) -> Evaluation:
    """The evaluation of the column ``answer`` of a frame beside its column ``label``: see
    ``Frame.evaluate``."""
    names = frame.schema().names
    for name in (answer, label):
        if name not in names:
            raise QueryError(f"the frame has no column '{name}'", hint=close_matches(name, names))
    check_label_unseen(frame, label)
    calls = frame.prepared.calls
    whole, values = with_call_values(frame, [answer])
    try:
        table = whole.to_arrow_table()
    finally:
        frame.latest.trace = whole.latest.trace
    check_examples_apart(frame.session, frame.trace)
    others = table.select([n for n in names if n not in (answer, label)])
    return _evaluation(
        answer,
        frame.session,
        others,
        table[answer],
        table[label],
        calls,
        [frame.trace],
        numbers_of_values(table, values[answer]) if answer in values else None,
        kind,
        within,
    )


def evaluate_calls(
    session: BaseSession,
    source: object,
    calls: Wordings,
    label: str,
    *,
    models: Sequence[str],
    kind: AnswerKind | None,
    within: float,
    budget: Budget | None,
) -> Comparison:
    """The evaluations of each call with each model: see ``Session.evaluate``."""
    name, table = table_of(session, source)
    if label not in table.column_names:
        hint = close_matches(label, table.column_names)
        raise QueryError(f"the table has no column '{label}'", hint=hint)
    rows = table.drop_columns([label])
    hidden = f"evaluation_{uuid.uuid4().hex[:12]}"
    numbered = rows.append_column(_ROW, pa.array(range(len(rows)), pa.int64()))
    session.register_record_batches(hidden, [numbered.to_batches() or _no_rows(numbered)])
    try:
        return _side_by_side(
            session,
            f"FROM {hidden} AS {name}",
            _variants(session, calls, models),
            rows,
            table[label],
            kind,
            within,
            budget,
        )
    finally:
        session.deregister_table(hidden)


def _side_by_side(
    session: BaseSession,
    origin: str,
    variants: Mapping[str, str],
    rows: pa.Table,
    labels: pa.ChunkedArray,
    kind: AnswerKind | None,
    within: float,
    budget: Budget | None,
) -> Comparison:
    """One run of all variants, whose columns are then compared with the labels one by one."""
    texts = [_with_confidence(session, text, origin) for text in variants.values()]
    traces: list[Trace] = []
    while True:
        alone = [session.sql(f"{_BEFORE}{text} {origin}").prepared.calls for text in texts]
        for text, found in zip(variants.values(), alone, strict=True):
            if not found:
                hint = "An example: llm_filter('Is it a complaint?', text)."
                raise QueryError(f"{text} asks no model", hint=hint)
        columns = ", ".join(f"{text} AS answer_{i}" for i, text in enumerate(texts))
        query = session.sql(f"{_BEFORE}{_ROW}, {columns} {origin}", budget=budget)
        names = [f"answer_{i}" for i in range(len(texts))]
        frame, values = with_call_values(query, names)
        try:
            result = frame.to_arrow_table().sort_by(_ROW)
            break
        except NoConfidence as problem:  # its answers are stored: the next run asks the others
            plain = zip(alone, texts, variants.values(), strict=True)
            texts = [text if problem.call in found else kept for found, kept, text in plain]
        finally:
            traces.append(frame.trace)
    check_examples_apart(session, frame.trace)
    numbers = {name: numbers_of_values(result, held) for name, held in values.items()}
    return Comparison(
        [
            _evaluation(
                *(name, session, rows, result[names[i]], labels),
                *(alone[i], traces, numbers.get(names[i]), kind, within),
            )
            for i, name in enumerate(variants)
        ]
    )


def _evaluation(
    name: str,
    session: BaseSession,
    rows: pa.Table,
    answers: pa.ChunkedArray,
    labels: pa.ChunkedArray,
    calls: Sequence[Call],
    traces: Sequence[Trace],
    numbers: Sequence[int] | None,
    kind: AnswerKind | None,
    within: float,
) -> Evaluation:
    closed = any(call.task.constraint.kind == "choice" for call in calls)
    taken = [n for n in rows.column_names if n not in ("answer", "label")]
    table = rows.select(taken).append_column("answer", answers).append_column("label", labels)
    once = dict.fromkeys(calls)
    before = Usage.total(trace.usage_of(call) for trace in traces[:-1] for call in once)
    spent = Usage.total((before, *(traces[-1].usage_of(call) for call in once)))
    spent = replace(spent, cached=max(0, spent.cached - before.values - before.cached))
    if numbers is None:
        numbers = numbers_at_worst(answers, labels, spent.values + spent.cached)
    redaction = session.options.redaction
    held = compare_columns(
        answers, labels, kind, closed=closed, within=within, redaction=redaction, values=numbers
    )
    return Evaluation(name, held, table, session, spent, _cost(session, calls, spent))


def _cost(session: BaseSession, calls: Sequence[Call], spent: Usage) -> float | None:
    """The cost of a variant by the session's prices; None without a price."""
    prices = session.ledger.prices
    if not prices:
        return None
    named = {name for call in calls for name in call.models} or set(session.model_names)
    price = prices.of(named.pop()) if len(named) == 1 else None
    return None if price is None else price.of(spent)


def table_of(session: BaseSession, source: object) -> tuple[str, pa.Table]:
    """A name for SQL and the rows of a table: its name in the session, a frame, a mapping of
    columns, a list of rows, or what ``Session.from_arrow`` takes."""
    if isinstance(source, Mapping):
        return "evaluated", table_of_columns(source)
    if isinstance(source, list):
        return "evaluated", pa.Table.from_pylist(source)
    if isinstance(source, str):
        name = quoted_name(source)
        return name, session.table(name).to_arrow_table()
    if hasattr(source, "to_arrow_table"):
        return "evaluated", cast("BaseFrame", source).to_arrow_table()
    return "evaluated", session.from_arrow(source).to_arrow_table()


def _variants(session: BaseSession, calls: Wordings, models: Sequence[str]) -> dict[str, str]:
    """The SQL of every call with every model, by name."""
    texts = [calls] if isinstance(calls, str) else calls
    named = dict(texts) if isinstance(texts, Mapping) else {text: text for text in texts}
    stored, known = session.texts.questions, ingredients(session)
    named = {name: with_stored_calls(text, stored, known).sql for name, text in named.items()}
    if not named:
        raise ArgumentError("there is no call to evaluate", hint="Pass the SQL of a call.")
    if isinstance(models, str):
        models = [models]
    if not models:
        return named
    made = {}
    for name, text in named.items():
        for model in models:
            both = f"{name} · {model}" if len(named) > 1 or not isinstance(calls, str) else model
            made[both] = with_option(session, text, "model", sql_string(model))
    return made


def with_option(session: BaseSession, text: str, option: str, literal: str) -> str:
    """The SQL ``text`` with an option in each of its calls that lacks it."""
    tree = TokenTree(text)
    sites = find_sites(tree, ingredients(session))
    for site in sorted(sites, key=lambda s: -s.end):
        if option in site.named:
            raise QueryError(
                f"{site.text} names its own {option}",
                hint=f"Leave out {option} => … of the call, or the models of the evaluation.",
            )
        if any(p.name == option for p in site.ingredient.options):
            at = tree.tokens[site.end - 1].start
            text = f"{text[:at]}, {option} => {literal}{text[at:]}"
    return text


def _with_confidence(session: BaseSession, text: str, origin: str) -> str:
    """The call with the probability beside each answer, where it is one call that can give it;
    else as it is."""
    site = only_site(TokenTree(text), ingredients(session))
    if site is None or site.part or {"confidence", "accuracy", "recall"} & site.named.keys():
        return text
    kept = with_option(session, text, "confidence", "'keep'")
    try:
        session.sql(f"{_BEFORE}{kept} {origin}")
    except ModelNotFound:
        raise
    except QueryError:  # it has no closed set of answers
        return text
    return kept


def _no_rows(table: pa.Table) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist([], table.schema)]
