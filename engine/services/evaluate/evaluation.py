"""The outcome of an evaluation: figures, confusion, calibration, cost and wrong rows."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from blendfusion.budget import money
from blendfusion.errors import ArgumentError, close_matches
from blendfusion.redaction import printable
from blendfusion.run.observe.progress import count_noun
from blendfusion.run.reports.html import Html, cut, join_html, style, tag
from blendfusion.run.reports.html import table as html_table
from blendfusion.services.evaluate.compare_answers import ComparedAnswers
from blendfusion.services.evaluate.figures import (
    BINS,
    Figure,
    area_figures,
    bin_of,
    confidence_figures,
    confusion,
    figures_of_class,
    label_figures,
    number_figures,
    share,
    yes_no_figures,
)
from blendfusion.services.evaluate.intervals import correct, sign_test
from blendfusion.services.evaluate.pictures import Picture, picture_of, picture_of_all
from blendfusion.types import Usage

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame, BaseSession

FIGURES_SCHEMA = pa.schema(
    [
        ("variant", pa.string()),
        ("figure", pa.string()),
        ("class", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("method", pa.string()),
        ("rows", pa.int64()),
    ]
)
_SHOWN = ("accuracy", "f1", "macro_f1", "mae", "area", "calibration_error", "answered")
_CALIBRATION_HEADS = ("confidence", "rows", "mean", "right")
_HEADS = ("figure", "value", "95 % interval", "method")
_CHANCE = 0.05
"""The p-value below which a difference counts as one."""
_NAME = 60
"""Characters of a variant's name in a table."""


@dataclass(frozen=True)
class Evaluation:
    """Answers of one call measured against labels.

    ``rows`` counts all rows, ``unlabelled`` those whose label is NULL, ``unanswered`` the labelled
    ones whose answer is NULL. The figures are over the other rows, except ``answered``, the share
    of labelled rows that have an answer. ``figures`` maps their names to ``Figure``s with intervals
    at 95 %, which count rows of one value only as far as they say more than one row does.
    ``usage`` and ``cost`` are the spending of the run.
    """

    name: str
    compared: ComparedAnswers = field(repr=False)
    table: pa.Table = field(repr=False)
    """The rows, in their order, with the columns ``answer`` and ``label`` as the last ones."""
    session: BaseSession = field(repr=False)
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None

    @property
    def rows(self) -> int:
        return len(self.compared.labels)

    @cached_property
    def unlabelled(self) -> int:
        """The rows whose label is NULL."""
        return sum(label is None for label in self.compared.labels)

    @cached_property
    def unanswered(self) -> int:
        """The labelled rows whose answer is NULL."""
        return self.rows - self.unlabelled - len(self.compared.counted_rows)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The labels and answers of a boolean or a closed set, in order; () for other kinds."""
        if self.compared.kind == "boolean":
            return ("false", "true")
        if self.compared.kind != "label":
            return ()
        held = self.compared
        return tuple(sorted({str(v) for v in (*held.answers, *held.labels) if v is not None}))

    @cached_property
    def _class_numbers(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The numbers of the answers and of the labels among the classes, of the counted rows."""
        held, place = self.compared, {name: i for i, name in enumerate(self.classes)}
        if held.kind == "boolean":
            place |= {False: 0, True: 1}  # type: ignore[dict-item]
        answers = [place[held.answers[i]] for i in held.counted_rows]  # type: ignore[index]
        labels = [place[held.labels[i]] for i in held.counted_rows]  # type: ignore[index]
        return np.array(answers, np.intp), np.array(labels, np.intp)

    @cached_property
    def _groups(self) -> NDArray[np.intp]:
        """The numbers of the values of the counted rows."""
        return self.compared.groups[np.array(self.compared.counted_rows, np.intp)]

    @cached_property
    def right(self) -> list[bool | None]:
        """Whether each row is right; None without a label, or without an answer."""
        return [self.compared.right(row) for row in range(self.rows)]

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        held, rows, groups = self.compared, self.compared.counted_rows, self._groups
        labelled = np.array([i for i, v in enumerate(held.labels) if v is not None], np.intp)
        answered = np.array([held.answers[i] is not None for i in labelled], bool)
        right = np.array([bool(self.right[i]) for i in rows], bool)
        made = [share("answered", answered, held.groups[labelled])]
        if held.kind == "boolean":
            answers, labels = self._class_numbers
            made += yes_no_figures(answers.astype(bool), labels.astype(bool), groups)
        elif held.kind == "label":
            made += label_figures(*self._class_numbers, len(self.classes), groups)
        elif held.kind == "number":
            numbers = [float(held.answers[i] or 0) for i in rows]
            true = [float(held.labels[i] or 0) for i in rows]
            made += number_figures(numbers, true, held.within, groups)
        else:
            made.append(share("accuracy", right, groups))
        stated = [(i, held.confidences[i]) for i in rows if held.confidences[i] is not None]
        confidences = [float(c) for _, c in stated if c is not None]
        of_stated = held.groups[np.array([i for i, _ in stated], np.intp)]
        made += confidence_figures(confidences, [bool(self.right[i]) for i, _ in stated], of_stated)
        if held.kind == "boolean" and len(stated) == len(rows):
            pairs = zip(stated, confidences, strict=True)
            yes = [c if held.answers[i] else 1 - c for (i, _), c in pairs]
            made += area_figures(yes, [bool(held.labels[i]) for i in rows], groups)
        return {figure.name: figure for figure in made}

    @property
    def accuracy(self) -> float:
        """The share of right answers among the rows that have a label and an answer."""
        return self.figures["accuracy"].value

    @property
    def confusion(self) -> pa.Table:
        """The number of rows for each pair of ``label`` and ``answer``; empty for numbers and
        texts."""
        counts = confusion(*self._class_numbers, len(self.classes))
        pairs = [
            {"label": label, "answer": answer, "rows": int(counts[i, j])}
            for i, label in enumerate(self.classes)
            for j, answer in enumerate(self.classes)
        ]
        kinds = [("label", pa.string()), ("answer", pa.string()), ("rows", pa.int64())]
        return pa.Table.from_pylist(pairs, pa.schema(kinds))

    @property
    def calibration(self) -> pa.Table:
        """For each tenth of confidence that occurs: its ``rows``, their mean ``confidence`` and
        their ``accuracy``; empty without confidences."""
        held, bins = self.compared, dict[int, list[tuple[float, bool]]]()
        for row in held.counted_rows:
            if (stated := held.confidences[row]) is not None:
                number = int(bin_of(np.array([stated]))[0])
                bins.setdefault(number, []).append((stated, bool(self.right[row])))
        rows = [
            {
                "from": number / BINS,
                "to": (number + 1) / BINS,
                "rows": len(bins[number]),
                "confidence": sum(c for c, _ in bins[number]) / len(bins[number]),
                "accuracy": sum(r for _, r in bins[number]) / len(bins[number]),
            }
            for number in sorted(bins)
        ]
        floats = [(name, pa.float64()) for name in ("confidence", "accuracy")]
        kinds = [("from", pa.float64()), ("to", pa.float64()), ("rows", pa.int64()), *floats]
        return pa.Table.from_pylist(rows, pa.schema(kinds))

    @property
    def wrong(self) -> BaseFrame:
        """The rows whose answer is not their label, in their order, with ``answer`` and ``label``
        as the last columns."""
        return self._rows([right is False for right in self.right])

    @property
    def without_answer(self) -> BaseFrame:
        """The labelled rows whose answer is NULL."""
        pairs = zip(self.right, self.compared.labels, strict=True)
        return self._rows([right is None and label is not None for right, label in pairs])

    def _rows(self, mask: list[bool]) -> BaseFrame:
        return self.session.from_arrow(self.table.filter(pa.array(mask, pa.bool_())))

    def to_arrow_table(self) -> pa.Table:
        """One row per figure, with its interval; precision, recall and F1 of each class, too."""
        rows = [self._row(figure) for figure in self.figures.values()]
        if self.compared.kind == "label":
            for of, name in enumerate(self.classes):
                figures = figures_of_class(*self._class_numbers, of, self._groups)
                rows += [self._row(figure, name) for figure in figures]
        return pa.Table.from_pylist(rows, FIGURES_SCHEMA)

    def _row(self, figure: Figure, of: str | None = None) -> dict[str, object]:
        row = {"variant": self.name, "class": of, **figure._asdict()}
        row["figure"] = row.pop("name")
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}

    @property
    def verdict(self) -> str:
        """The outcome in a sentence or two, without statistics: how many answers are right, how
        sure that is, and what always giving the same answer would reach."""
        counted, figure = len(self.compared.counted_rows), self.figures["accuracy"]
        if not counted:
            return "No row has both an answer and a label: nothing can be said."
        right = sum(one is True for one in self.right)
        sentence = (
            f"{right:,} of {count_noun(counted, 'answer')} "
            f"{'is' if right == 1 else 'are'} right ({figure.value:.0%}; for more rows like these, "
            f"between {figure.low:.0%} and {figure.high:.0%})."
        )
        return f"{sentence} {self._against_always_the_same(figure)}".strip()

    def _against_always_the_same(self, figure: Figure) -> str:
        if not self.classes:
            return ""
        labels = self._class_numbers[1]
        counts = np.bincount(labels, minlength=len(self.classes))
        most, share_of_most = self.classes[int(counts.argmax())], counts.max() / len(labels)
        start = f"Always answering {printable(most)!r} would be right for {share_of_most:.0%}"
        if figure.low > share_of_most:
            return f"{start}: these answers are better."
        if figure.high < share_of_most:
            return f"{start}: these answers are worse."
        return f"{start}: more labels are needed to tell whether these answers are better."

    def plot(self) -> Picture:
        """A picture of the answers by labels and of the confidences, as SVG."""
        return picture_of(self)

    @property
    def summary(self) -> str:
        """The rows and the spending in one line."""
        wrong = sum(right is False for right in self.right)
        values = len({*self.compared.values})
        repeated = f" of {count_noun(values, 'value')}" if 0 < values < self.rows else ""
        parts = [f"{count_noun(self.rows, 'row')}{repeated}", f"{wrong:,} wrong"]
        parts += [f"{self.unanswered:,} without an answer"] if self.unanswered else []
        parts += [f"{self.unlabelled:,} without a label"] if self.unlabelled else []
        return f"{', '.join(parts)}; {_spending(self)}"

    def _cells(self) -> list[list[str]]:
        return [
            [f.name, _number(f.value), f"{_number(f.low)} to {_number(f.high)}", f.method]
            for f in self.figures.values()
        ]

    def __repr__(self) -> str:
        head = f"{self.verdict}\n\n{printable(self.name)}"
        return f"{head}\n{_draw(_HEADS, self._cells())}\n{self._calibration_text}{self.summary}"

    @property
    def _calibration_text(self) -> str:
        """How often the answers of each tenth of confidence are right, as a table; '' without
        confidences."""
        cells = [
            [
                f"{row['from']:.1f} to {row['to']:.1f}",
                f"{row['rows']:,}",
                f"{row['confidence']:.3f}",
                f"{row['accuracy']:.3f}",
            ]
            for row in self.calibration.to_pylist()
        ]
        return f"{_draw(_CALIBRATION_HEADS, cells)}\n" if cells else ""

    def _repr_html_(self) -> str:
        drawn = html_table(self.name, _HEADS, self._cells(), kinds=("", "n", "", ""))
        parts = [tag("p", tag("b", self.verdict)), drawn, tag("p", self.summary)]
        if self.compared.counted_rows:
            parts.append(Html(self.plot().svg))
        return str(tag("div", style(), *parts, class_="bf"))


class Comparison(Sequence[Evaluation]):
    """Several evaluations on the same rows, in their order; by position or by name.

    ``best`` is the one with the highest accuracy over all labelled rows, where a row without an
    answer is not right; of equal ones the first.
    """

    def __init__(self, evaluations: Sequence[Evaluation]) -> None:
        self._all = tuple(evaluations)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._all)

    def __getitem__(self, key: int | str) -> Evaluation:  # type: ignore[override]
        if isinstance(key, int):
            return self._all[key]
        for evaluation in self._all:
            if evaluation.name == key:
                return evaluation
        hint = close_matches(key, [evaluation.name for evaluation in self._all])
        raise ArgumentError(f"no variant is called {key!r}", hint=hint)

    @property
    def best(self) -> Evaluation:
        return max(self._all, key=lambda e: sum(right is True for right in e.right))

    def p_value(self, name: int | str) -> float:
        """The probability that a variant is right on this many more values than the first one if
        there is no difference: McNemar's exact test, one-sided, on the values that both answer
        otherwise. A value of several rows has one vote, that of most of them. For several variants
        see ``corrected_p_values``."""
        first, other = self._all[0], self[name]
        votes: dict[tuple[int, int], int] = {}
        values = zip(first.compared.groups, other.compared.groups, strict=True)
        for value, a, b in zip(values, first.right, other.right, strict=True):
            votes[value] = votes.get(value, 0) + (b is True) - (a is True)
        return sign_test(sum(v > 0 for v in votes.values()), sum(v < 0 for v in votes.values()))

    @property
    def corrected_p_values(self) -> list[float]:
        """The p-value of each variant but the first, corrected for their number (Holm 1979)."""
        return correct([self.p_value(place) for place in range(1, len(self))])

    @property
    def verdict(self) -> str:
        """The outcome in one sentence, without statistics."""
        if len(self) == 1:
            return self._all[0].verdict
        first, best = self._all[0], self.best
        shares = [sum(right is True for right in one.right) for one in (first, best)]
        names = [printable(one.name) for one in (first, best)]
        if best is first:
            return f"No other variant is right more often than {names[0]}."
        counts = f"{shares[1]:,} right answers against {shares[0]:,}"
        p = self.corrected_p_values[self._all.index(best) - 1]
        if p < _CHANCE:
            return f"{names[1]} is better than {names[0]}: {counts}."
        return (
            f"{names[1]} has {counts} of {names[0]}, "
            "a difference that may be chance: more labels would tell."
        )

    def plot(self) -> Picture:
        """A picture of the accuracies with their intervals, as SVG."""
        return picture_of_all(self)

    def to_arrow_table(self) -> pa.Table:
        """The figures of all variants, one row each."""
        return pa.concat_tables(evaluation.to_arrow_table() for evaluation in self._all)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        names = [n for n in _SHOWN if any(n in e.figures for e in self._all)]
        heads = ["variant", *names, "spending"]
        if len(self._all) > 1:
            heads.append("p")
        rows, p_values = [], ["", *(f"{p:.3f}" for p in self.corrected_p_values)]
        for place, one in enumerate(self._all):
            figures = [one.figures.get(name) for name in names]
            cells = [
                ""
                if f is None
                else f"{_number(f.value)} ({_number(f.low, 2)}–{_number(f.high, 2)})"
                for f in figures
            ]
            row = [cut(printable(one.name), _NAME), *cells, _spending(one)]
            if len(self._all) > 1:
                row.append(p_values[place])
            rows.append(row)
        return heads, rows

    def __repr__(self) -> str:
        heads, rows = self._cells()
        more = "; p: one-sided, were no variant better than the first" if len(self) > 1 else ""
        return (
            f"{self.verdict}\n\n{_draw(heads, rows)}\n"
            f"{count_noun(self._all[0].rows, 'row')}, intervals at 95 %{more}"
        )

    def _repr_html_(self) -> str:
        heads, rows = self._cells()
        caption = f"{count_noun(self._all[0].rows, 'row')}, intervals at 95 %"
        verdict = tag("p", tag("b", self.verdict))
        parts = join_html([verdict, html_table(caption, heads, rows), Html(self.plot().svg)])
        return str(tag("div", style(), parts, class_="bf"))


def _spending(evaluation: Evaluation) -> str:
    usage = evaluation.usage
    text = f"{count_noun(usage.values, 'value')} asked"
    if usage.cached:
        text += f", {usage.cached:,} cached"
    tokens = usage.prompt_tokens + usage.completion_tokens
    text += f", {tokens:,} tokens, {usage.seconds:.1f} s"
    return text + (f", cost {money(evaluation.cost)}" if evaluation.cost else "")


def _number(value: float, decimals: int = 3) -> str:
    return "?" if math.isnan(value) else f"{value:.{decimals}f}"


def _draw(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text, as wide as it needs."""
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        drawn.add_column(head, no_wrap=True)
    for row in rows:
        drawn.add_row(*row)
    console = Console(
        file=io.StringIO(),
        width=10_000,
        highlight=False,
        markup=False,
        color_system=None,  # a kernel of Jupyter sets FORCE_COLOR
    )
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").splitlines())
