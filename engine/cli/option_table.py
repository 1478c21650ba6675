"""The table of all options, for docs/options.md: written from options.py, so that it is never old."""

from __future__ import annotations

from dataclasses import Field, fields
from itertools import groupby
from typing import Any

from blendfusion.options import About, Options, about


def option_table() -> str:
    """Every option with its default, its unit and what is possible, as Markdown: a table a group."""
    parts = []
    for group, members in groupby(fields(Options), key=lambda option: about(option).group):
        parts.append(f"## {group}\n\n| option | default | unit | possible | what it is |")
        parts[-1] += "\n|---|---|---|---|---|\n" + "".join(map(_line, members))
    return "\n".join(parts)


def _line(option: Field[Any]) -> str:
    said = about(option)
    cells = (
        f"`{option.name}`",
        f"`{option.default!r}`",
        said.unit,
        _possible(said, option.default),
        said.says,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _possible(said: About, default: object) -> str:
    if said.choices:
        return ", ".join(f"`{choice!r}`" for choice in said.choices)
    if said.least is not None:
        return f"whole numbers from {said.least}"
    if said.share:
        return "numbers from 0 to 1"
    if isinstance(default, bool):
        return "`True`, `False`"
    if isinstance(default, float):
        return "positive numbers"
    return "text" if isinstance(default, str) else "a function, `None`"
