"""Charts of slides and of DOCX: their titles, and their values as tables, by python-pptx."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

from blendfusion.services.documents.blocks import Block, Box, table_text

_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_AXES = tuple(f"{_CHART}{kind}Ax" for kind in ("cat", "date", "val", "ser"))
_QUOTED = re.compile(r'"[^"]*"|\[[^]]*\]|\\.')
_DAY = re.compile(r"[dmy]", re.IGNORECASE)
_FIRST_DAY = {False: datetime.datetime(1899, 12, 30), True: datetime.datetime(1904, 1, 1)}
"""Day 0 of Excel's dates, by whether they count from 1904."""
_MOST_DAYS = 2_950_000


def chart_blocks(chart: Any, box: Box | None) -> list[Block]:
    """The titles of a chart and its axes, and its values: a table with a row for each category, or
    one for each series of points."""
    titles = _titles(chart._chartSpace)
    found = [Block("paragraph", title, box) for title in titles if title]
    for plot in chart.plots:
        series = [*plot.series]
        if any(one._element.find(f"{_CHART}yVal") is not None for one in series):
            tables = [_points(one) for one in series]
        else:
            tables = [_by_category(plot, series)]
        texts = filter(None, map(table_text, tables))
        found += [Block("table", text, box) for text in texts]
    return found


def _titles(space: Any) -> list[str]:
    """The title of the chart, and those of its axes."""
    chart = space.find(f"{_CHART}chart")
    holders = [chart, *(axis for axis in space.iter(*_AXES))]
    titles = [title for holder in holders for title in holder.findall(f"{_CHART}title")]
    return ["".join(t.text or "" for t in title.iter(_TEXT)).strip() for title in titles]


def _points(series: Any) -> list[list[str]]:
    """The places of the points of a series, and their sizes."""
    columns = [_values(series._element, name) for name in ("xVal", "yVal", "bubbleSize")]
    count = max(map(len, columns))
    rows = [[_at(column, at) for column in columns if column] for at in range(count)]
    return [["", series.name or ""], *rows]


def _by_category(plot: Any, series: list[Any]) -> list[list[str]]:
    head = ["", *(one.name or "" for one in series)]
    values = [[_cell_text(value) for value in one.values] for one in series]
    categories = [*_categories(plot)]
    longest = max([len(categories), *map(len, values)], default=0)
    rows = [[_at(column, at) for column in (categories, *values)] for at in range(longest)]
    return [head, *rows]


def _categories(plot: Any) -> Iterator[str]:
    """The names of the categories; one of several levels has those of all."""
    if plot.categories.depth > 1:
        yield from (" ".join(labels) for labels in plot.categories.flattened_labels)
        return
    form = next((code.text or "" for code in _cells(plot._element, "cat", "formatCode")), "")
    is_date = form.lower() != "general" and _DAY.search(_QUOTED.sub("", form)) is not None
    for category in plot.categories:
        yield _day(plot, str(category)) if is_date else _whole(str(category))


def _day(plot: Any, number: str) -> str:
    """A number of Excel as a date, with the time where it has one."""
    try:
        days = float(number)
    except ValueError:
        return number
    if not 0 <= days < _MOST_DAYS:
        return number
    marks = plot._element.getroottree().iter(f"{_CHART}date1904")
    since_1904 = any(mark.get("val", "1") not in ("0", "false") for mark in marks)
    moment = _FIRST_DAY[since_1904] + datetime.timedelta(days=days)
    return moment.strftime("%Y-%m-%d" if days.is_integer() else "%Y-%m-%d %H:%M")


def _values(series: Any, name: str) -> list[str]:
    """The values of a series, each at its place."""
    found: dict[int, str] = {}
    for point in _cells(series, name, "pt"):
        at, value = int(point.get("idx", "0")), point.findtext(f"{_CHART}v") or ""
        if 0 <= at < 100_000:
            found[at] = _whole(value)
    return [found.get(at, "") for at in range(max(found, default=-1) + 1)]


def _cells(element: Any, name: str, tag: str) -> Iterator[Any]:
    """The elements ``tag`` in the first part ``name``."""
    part = next(element.iter(f"{_CHART}{name}"), None)
    yield from () if part is None else part.iter(f"{_CHART}{tag}")


def _at(values: list[str], at: int) -> str:
    return values[at] if at < len(values) else ""


def _whole(text: str) -> str:
    """A number as it is written, without a part behind the point where that is nothing."""
    return re.sub(r"(?<=\d)\.0+\Z", "", text)


def _cell_text(value: Any) -> str:
    return "" if value is None else _whole(str(value))
