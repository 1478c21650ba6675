"""The Markdown tables of docs/options.md, generated from ``Options``."""

from __future__ import annotations

from dataclasses import Field, fields
from itertools import groupby
from typing import Any

from blendfusion.options import About, Options, about


def option_table() -> str:
    """Every option with its default, unit, allowed values and meaning: one Markdown table per
    group."""
    parts = []
    for group, members in groupby(fields(Options), key=lambda option: about(option).group):
        parts.append(f"## {group}\n\n| option | default | unit | allowed | meaning |")
        parts[-1] += "\n|---|---|---|---|---|\n" + "".join(map(_line, members))
    return "\n".join(parts)


def _line(option: Field[Any]) -> str:
    spec = about(option)
    cells = (
        f"`{option.name}`",
        f"`{option.default!r}`",
        spec.unit,
        _allowed_values(spec, option.default),
        spec.doc,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _allowed_values(spec: About, default: object) -> str:
    if spec.choices:
        return ", ".join(f"`{choice!r}`" for choice in spec.choices)
    if spec.least is not None:
        return f"whole numbers from {spec.least}"
    if spec.share:
        return "numbers from 0 to 1"
    if isinstance(default, bool):
        return "`True`, `False`"
    if isinstance(default, float):
        return "positive numbers"
    return "text" if isinstance(default, str) else "a function, `None`"
