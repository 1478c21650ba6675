"""Pictures of an evaluation: which labels got which answers, and how far confidences hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blendfusion.run.reports.html import Html, join_html, tag

if TYPE_CHECKING:
    from blendfusion.services.evaluate.evaluation import Comparison, Evaluation

_CELL, _LEFT, _HIGH = 64, 130, 26
_BAR = 300
_MOST_CLASSES = 12


@dataclass(frozen=True)
class Picture:
    """A picture that a notebook shows. ``save`` writes it as SVG."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, ``accuracy.svg``."""
        Path(path).write_text(self.svg, "utf-8")


def picture_of(evaluation: Evaluation) -> Picture:
    """Labels by answers, where there are few of them, above confidences by tenths; without either,
    the shares with their intervals."""
    parts: list[tuple[Html, int, int]] = []
    if 0 < len(evaluation.classes) <= _MOST_CLASSES:
        parts.append(_confusion(evaluation))
    if evaluation.calibration.num_rows:
        parts.append(_calibration(evaluation))
    if not parts:
        shares = [f for f in evaluation.figures.values() if 0 <= f.value <= 1]
        parts.append(_intervals([(f.name, f.value, f.low, f.high) for f in shares], "shares"))
    return _stack(parts, f"{evaluation.name}: {evaluation.verdict}")


def picture_of_all(comparison: Comparison) -> Picture:
    """The accuracy of each variant with its interval."""
    rows = []
    for one in comparison:
        figure = one.figures["accuracy"]
        rows.append((one.name, figure.value, figure.low, figure.high))
    return _stack([_intervals(rows, "accuracy")], comparison.verdict)


def _stack(parts: Sequence[tuple[Html, int, int]], title: str) -> Picture:
    width = max(wide for _, wide, _ in parts)
    shown, y = [], 0
    for part, _, high in parts:
        shown.append(tag("g", part, transform=f"translate(0 {y})"))
        y += high + 14
    svg = tag(
        "svg",
        tag("title", title),
        *shown,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {y}",
        width=str(width),
        height=str(y),
        role="img",
        aria_label=title,
        font_family="system-ui, sans-serif",
        font_size="12",
    )
    return Picture(str(svg))


def _words(x: float, y: float, text: str, anchor: str = "start", **more: str) -> Html:
    shown = text if len(text) <= 20 else f"{text[:19]}…"
    given = {"fill": "currentColor"} | more
    return tag("text", shown, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, **given)


def _confusion(evaluation: Evaluation) -> tuple[Html, int, int]:
    names = evaluation.classes
    pairs = evaluation.confusion.to_pylist()
    rows = {(one["label"], one["answer"]): one["rows"] for one in pairs}
    most = max(rows.values(), default=0) or 1
    drawn = [_words(0, 14, "label ↓   answer →")]
    for j, name in enumerate(names):
        drawn.append(_words(_LEFT + _CELL * (j + 0.5), 14, name[:9], "middle"))
    for i, label in enumerate(names):
        top = 22 + i * _HIGH
        drawn.append(_words(_LEFT - 6, top + 17, label, "end"))
        for j, answer in enumerate(names):
            count, x = rows[label, answer], _LEFT + _CELL * j
            colour = "#2f7d4f" if i == j else "#b3261e"
            drawn.append(
                tag("rect", x=str(x), y=str(top), width=str(_CELL - 2), height=str(_HIGH - 2),
                    fill=colour, fill_opacity=f"{0.08 + 0.42 * count / most:.2f}")
            )  # fmt: skip
            drawn.append(_words(x + _CELL / 2, top + 17, f"{count:,}", "middle"))
    return join_html(drawn), _LEFT + _CELL * len(names), 22 + _HIGH * len(names)


def _calibration(evaluation: Evaluation) -> tuple[Html, int, int]:
    drawn = [_words(0, 14, "confidence"), _words(_LEFT, 14, "right (bar), as stated (line)")]
    found = evaluation.calibration.to_pylist()
    for i, one in enumerate(found):
        top = 22 + i * _HIGH
        stated = f"{one['from']:.0%} to {one['to']:.0%}"
        drawn.append(_words(_LEFT - 6, top + 17, stated, "end"))
        drawn.append(_bar(top, one["accuracy"]))
        at = f"{_LEFT + _BAR * one['confidence']:g}"
        drawn.append(
            tag("line", x1=at, x2=at, y1=str(top), y2=str(top + _HIGH - 4), stroke="currentColor")
        )
        drawn.append(_words(_LEFT + _BAR + 8, top + 17, f"{one['rows']:,} rows"))
    return join_html(drawn), _LEFT + _BAR + 90, 22 + _HIGH * len(found)


def _intervals(rows: Sequence[tuple[str, float, float, float]], what: str) -> tuple[Html, int, int]:
    drawn = [_words(0, 14, what)]
    for i, (name, value, low, high) in enumerate(rows):
        top = 22 + i * _HIGH
        drawn += [_words(_LEFT - 6, top + 17, name, "end"), _bar(top, value)]
        if low == low and high == high:  # not NaN
            y, x1, x2 = top + (_HIGH - 4) / 2, _LEFT + _BAR * low, _LEFT + _BAR * high
            drawn.append(
                tag("line", x1=f"{x1:g}", x2=f"{x2:g}", y1=f"{y:g}", y2=f"{y:g}",
                    stroke="currentColor", stroke_width="2")
            )  # fmt: skip
        drawn.append(_words(_LEFT + _BAR + 8, top + 17, f"{value:.1%}"))
    return join_html(drawn), _LEFT + _BAR + 90, 22 + _HIGH * len(rows)


def _bar(top: float, share: float) -> Html:
    width = max(_BAR * share, 0) if share == share else 0
    return tag(
        "rect", x=str(_LEFT), y=f"{top:g}", width=f"{width:g}", height=str(_HIGH - 4),
        fill="#1f66b8", fill_opacity="0.35",
    )  # fmt: skip
