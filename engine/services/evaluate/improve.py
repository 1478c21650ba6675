"""Improves a question on labelled rows: chooses on one part, decides on the next, reports on the
last.

The three parts have no value in common. A candidate takes the place of the start only if it is
right significantly more often on the second part (McNemar's exact test at 0.025), so that chance
among many candidates does not decide.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from blendfusion.budget import Budget
from blendfusion.errors import ArgumentError, BudgetExceeded, QueryError
from blendfusion.language.query_text.call_sites import find_sites, only_site
from blendfusion.language.query_text.stored_calls import StoredCall
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.prepare.function_registry import ingredients
from blendfusion.services.evaluate.evaluation import Comparison, Evaluation
from blendfusion.services.evaluate.question_file import StoredQuestion
from blendfusion.services.evaluate.run import evaluate_calls, table_of, with_option
from blendfusion.types import Usage
from blendfusion.udfs.declare.arguments import sql_string

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseSession

_COLUMN = re.compile(r'[^\W\d]\w*|"[^"]+"')
_LEVEL = 0.025
_SHARES = (0.5, 0.25)
"""The parts of the rows for choosing and for deciding; the rest is for the report."""
_LEAST_ROWS = 40
_SHOWN = (1, 3)
"""Examples of each label that are tried."""
_LONGEST_EXAMPLE = 300
_MEANING_WORDS = 5


@dataclass(frozen=True)
class Improvement:
    """The outcome of ``session.improve``.

    ``question`` is the chosen one, the start itself if ``changed`` is false. ``start`` and
    ``chosen`` are the evaluations on rows that were used for no choice, ``p_value`` that of the
    decision. ``tried`` are the candidates with their shares of right answers on the part for
    choosing.
    """

    question: StoredQuestion
    start: Evaluation
    chosen: Evaluation
    p_value: float
    tried: tuple[tuple[str, float], ...]
    usage: Usage
    stopped: bool
    """Whether the budget ended the choice early."""

    @property
    def changed(self) -> bool:
        return self.chosen is not self.start

    @property
    def verdict(self) -> str:
        """The outcome in one sentence, without statistics."""
        name = f"{self.question.name} (version {self.question.version})"
        if self.changed:
            return (
                f"{name}: {self.chosen.name} is better than the start, "
                f"{self.chosen.accuracy:.0%} right against {self.start.accuracy:.0%} on rows that "
                "were used for no choice."
            )
        return (
            f"{name}: no candidate is significantly better than the start, which stays "
            f"({self.start.accuracy:.0%} right)."
        )

    def __repr__(self) -> str:
        lines = [self.verdict, "", "Tried, with the share of right answers:"]
        lines += [f"  {share:.3f} {name}" for name, share in self.tried]
        shown = [self.start, self.chosen] if self.changed else [self.start]
        table = repr(Comparison(shown)).partition("\n\n")[2]
        return "\n".join([*lines, "", "On rows that were used for no choice:", table])


@dataclass(frozen=True)
class _Candidate:
    name: str
    call: str
    threshold: float | None = None

    def sql(self, session: BaseSession) -> str:
        stored, known = StoredCall(self.call, self.threshold), ingredients(session)
        return stored.with_values(stored.values(known), known)


class _Purse:
    """A budget over several runs."""

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self.spent = Usage()
        self.cost = 0.0

    def rest(self, share: float = 1.0) -> Budget | None:
        """The rest of a share of each limit."""
        if self.budget is None:
            return None
        limits = {f.name: getattr(self.budget, f.name) for f in fields(self.budget)}
        spent = {name: getattr(self.spent, name, self.cost) for name in limits}
        kept = {
            n: max(0, type(v)(v * share - spent[n])) for n, v in limits.items() if v is not None
        }
        return Budget(**kept)


def improve(
    session: BaseSession,
    name: str,
    source: object,
    call: str,
    label: str,
    *,
    calls: Sequence[str],
    models: Sequence[str],
    budget: Budget | None,
    seed: int,
    version: int,
) -> Improvement:
    """The best question for labelled rows: see ``Session.improve``."""
    for text in (call, *calls):
        check_call(session, text)
    question = StoredQuestion(name, call, version)
    _, table = table_of(session, source)
    if label not in table.column_names:
        raise QueryError(f"the table has no column '{label}'")
    columns = StoredCall(call).values(ingredients(session))
    pool, choosing, deciding, reporting = _parts(table, columns, label, seed)
    purse = _Purse(budget)

    measure = partial(_measure, session, label, purse)
    start = best = _Candidate("start", call)
    tried: dict[str, float] = {}
    held: dict[str, Evaluation] = {}
    stopped = False
    try:
        for stage in _Stages(session, calls, models, pool, columns, label):
            others = stage(best)
            if others or not tried:
                found = measure(choosing, others if tried else [best, *others], 0.5)
                held |= {one.name: one for one in found}
                tried |= {one.name: _share(one) for one in found}
                best = max([best, *others], key=lambda c: tried[c.name])
        best = _with_threshold(best, held[best.name], tried)
    except BudgetExceeded:
        stopped = True
    p_value = 1.0
    chosen = start
    if best is not start:
        try:
            both = measure(deciding, [start, best], 0.75)
            p_value = both.p_value(1)
            chosen = best if p_value <= _LEVEL else start
        except BudgetExceeded:
            stopped = True
    report = measure(reporting, [start, chosen] if chosen is not start else [start], 1.0)
    question = StoredQuestion(
        name, chosen.call, version, chosen.threshold, _figures_of(report[0], report[-1])
    )
    shares = tuple(tried.items())
    return Improvement(question, report[0], report[-1], p_value, shares, purse.spent, stopped)


def _measure(
    session: BaseSession,
    label: str,
    purse: _Purse,
    part: pa.Table,
    candidates: Sequence[_Candidate],
    share: float,
) -> Comparison:
    """The candidates on a part of the rows, for at most ``share`` of what is left to spend."""
    texts = {c.name: c.sql(session) for c in candidates}
    left = purse.rest(share)
    try:
        found = evaluate_calls(
            session, part, texts, label, models=(), kind=None, within=0.0, budget=left
        )
    except BudgetExceeded as problem:
        purse.spent += problem.usage
        purse.cost += problem.cost or 0.0
        raise
    purse.spent += Usage.total(one.usage for one in found)
    purse.cost += sum(one.cost or 0.0 for one in found)
    return found


def _figures_of(first: Evaluation, last: Evaluation) -> dict[str, float]:
    """The figures that a stored question keeps: of its own wording, and of the first one."""
    figures = {"rows": float(last.rows), "accuracy": last.accuracy, "start": first.accuracy}
    low, high = last.figures["accuracy"][2:4]
    figures |= {"low": low, "high": high}
    return {key: round(value, 4) for key, value in figures.items() if not math.isnan(value)}


def check_call(session: BaseSession, text: str) -> None:
    """Raise ArgumentError unless ``text`` is one call on plain columns."""
    tree = TokenTree(text)
    site = only_site(tree, ingredients(session))
    if site is None or not all(_COLUMN.fullmatch(tree.source_text(*v)) for v in site.values):
        raise ArgumentError(
            f"{text} is not one call on columns",
            hint="An example: llm_filter('Is it a complaint?', text).",
        )


def _parts(
    table: pa.Table, columns: Sequence[str], label: str, seed: int
) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
    """(the pool of examples, the rows for choosing, for deciding, for the report), in random order
    without the rows that have no label; equal values are in one part."""
    labelled = table.filter(table[label].is_valid())
    missing = [c for c in columns if c.strip('"') not in table.column_names]
    if missing:
        raise QueryError(f"the table has no column '{missing[0]}'")
    keys = _rows(labelled, columns)
    distinct = sorted(set(keys), key=repr)
    if len(distinct) < _LEAST_ROWS:
        raise QueryError(
            f"{len(distinct)} labelled values are too few to improve a question",
            hint=f"Label at least {_LEAST_ROWS} different ones.",
        )
    order = np.random.default_rng(seed).permutation(len(distinct))
    first, second = (round(len(distinct) * share) for share in (_SHARES[0], sum(_SHARES)))
    shown = round(first * 0.2)
    part_of = {}
    for place, number in enumerate(order):
        bounds = (shown, first, second)
        part_of[distinct[number]] = sum(place >= bound for bound in bounds)
    parts = np.array([part_of[key] for key in keys])
    return tuple(labelled.filter(pa.array(parts == part)) for part in range(4))


def _rows(table: pa.Table, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """The values of columns, by their names as SQL writes them, row by row."""
    return list(zip(*(table[c.strip('"')].to_pylist() for c in columns), strict=True))


def _share(evaluation: Evaluation) -> float:
    """The share of right rows; a row without an answer is not right."""
    return sum(right is True for right in evaluation.right) / max(1, evaluation.rows)


@dataclass(frozen=True)
class _Stages:
    """Makes the candidates of each stage from the best one so far. ``pool``: the rows for examples
    and words, on which nothing is measured."""

    session: BaseSession
    calls: Sequence[str]
    models: Sequence[str]
    pool: pa.Table
    columns: Sequence[str]
    label: str

    def __iter__(self) -> Iterator[Callable[[_Candidate], list[_Candidate]]]:
        """The stages, in order."""
        yield from (self.wordings, self.meanings, self.examples, self.with_models)

    def wordings(self, best: _Candidate) -> list[_Candidate]:
        return [_Candidate(text, text) for text in self.calls]

    def meanings(self, best: _Candidate) -> list[_Candidate]:
        """The labels of a classification with the words that tell them apart as their meanings."""
        tree = TokenTree(best.call)
        (site,) = find_sites(tree, ingredients(self.session))
        given = site.arguments and [
            a for a in site.arguments if isinstance(getattr(a, "value", None), list | tuple)
        ]
        if site.ingredient.name != "llm_classify" or not site.literals or not given:
            return []
        words = _telling_words(self.pool, self.columns, self.label)
        options = [str(option) for option in given[0].value]  # type: ignore[union-attr]
        if not all(words.get(option.casefold()) for option in options):
            return []
        pairs = ", ".join(
            f"{sql_string(o)}: {sql_string(', '.join(words[o.casefold()]))}" for o in options
        )
        first, last = tree.span(*site.literals[-1])
        text = f"{best.call[:first]}{{{pairs}}}{best.call[last:]}"
        return [_Candidate("labels with their words", text)]

    def examples(self, best: _Candidate) -> list[_Candidate]:
        """The best call with worked examples of each label."""
        values = _rows(self.pool, self.columns)
        of_label: dict[str, list[tuple[object, ...]]] = {}
        for row, of in zip(values, self.pool[self.label].to_pylist(), strict=True):
            texts = ["" if v is None else str(v) for v in row]
            if all(t.strip() for t in texts) and sum(map(len, texts)) <= _LONGEST_EXAMPLE:
                of_label.setdefault(_spell(of), []).append(row)
        if len(of_label) > 10:  # no closed set of labels
            of_label = {}
        found: list[_Candidate] = []
        for each in _SHOWN:
            turns = [
                (row, of)
                for i in range(each)
                for of in sorted(of_label)
                for row in of_label[of][i : i + 1]
            ]
            rows = [f"[{', '.join(sql_string(str(v)) for v in (*row, of))}]" for row, of in turns]
            if rows:
                try:
                    text = with_option(self.session, best.call, "examples", f"[{', '.join(rows)}]")
                    nulls = ", ".join(f"NULL AS {column}" for column in self.columns)
                    self.session.sql(f"SELECT {text} FROM (SELECT {nulls})")
                except QueryError:  # it has examples, or takes none
                    return found
                found.append(_Candidate(f"{best.name}, {len(rows)} examples", text))
        return found

    def with_models(self, best: _Candidate) -> list[_Candidate]:
        named = [
            (m, with_option(self.session, best.call, "model", sql_string(m))) for m in self.models
        ]
        return [_Candidate(f"{best.name}, {model}", text) for model, text in named]


def _telling_words(pool: pa.Table, columns: Sequence[str], label: str) -> Mapping[str, list[str]]:
    """For each label the words that are more frequent in its rows than in the others, the most
    telling first: by the difference of smoothed logarithms of odds."""
    texts = [" ".join(map(str, row)) for row in _rows(pool, columns)]
    counts: dict[str, Counter[str]] = {}
    for text, of in zip(texts, pool[label].to_pylist(), strict=True):
        words = set(re.findall(r"[^\W\d_]{4,}", text.casefold()))
        counts.setdefault(str(of).casefold(), Counter()).update(words)
    total = sum(counts.values(), Counter())
    found = {}
    for of, own in counts.items():
        score = {w: math.log((n + 0.5) / (total[w] - n + 0.5)) for w, n in own.items() if n > 1}
        found[of] = sorted(score, key=lambda w: (-score[w] * own[w], w))[:_MEANING_WORDS]
    return found


def _spell(label: object) -> str:
    if isinstance(label, bool):
        return "yes" if label else "no"
    return str(label)


def _with_threshold(
    best: _Candidate, evaluation: Evaluation, tried: dict[str, float]
) -> _Candidate:
    """The candidate with the probability of yes from which most rows are right, if that is another
    than one half."""
    held = evaluation.compared
    if held.kind != "boolean" or any(held.confidences[i] is None for i in held.counted_rows):
        return best
    stated = [(i, float(held.confidences[i] or 0)) for i in held.counted_rows]
    pairs = sorted((c if held.answers[i] else 1 - c, bool(held.labels[i])) for i, c in stated)
    yes = np.array([p for p, _ in pairs])
    truth = np.array([t for _, t in pairs])
    cuts = np.flatnonzero(np.diff(yes)) + 1
    if not len(cuts):
        return best
    right = [int(truth[cut:].sum() + (~truth[:cut]).sum()) for cut in cuts]
    most = int(np.argmax(right))
    now = sum(right is True for right in evaluation.right)
    if right[most] <= now:
        return best
    threshold = round(float(yes[cuts[most] - 1] + yes[cuts[most]]) / 2, 6)
    made = _Candidate(f"{best.name}, yes from {threshold:g}", best.call, threshold)
    tried[made.name] = right[most] / max(1, evaluation.rows)
    return made
