"""The Markdown tables of docs/functions.md: functions and their options, from declarations."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.parameter import AnyParameter
from blendfusion.udfs.functions.declarations import INGREDIENTS

_FEW = 3
"""An option names its functions if there are so few of them."""


def function_table() -> str:
    """Every function with its question and its result."""
    rows = (f"| `{i.signature}` | {_cell(i.summary)} | {_cell(i.result)} |\n" for i in INGREDIENTS)
    return f"| function | question | result |\n|---|---|---|\n{''.join(rows)}"


def call_option_table() -> str:
    """Every option of a call with its meaning and examples."""
    functions: dict[AnyParameter, list[Ingredient]] = {}
    for ingredient in INGREDIENTS:
        for option in ingredient.options:
            functions.setdefault(option, []).append(ingredient)
    rows = (_row(option, takers) for option, takers in functions.items())
    return f"| option | meaning | examples |\n|---|---|---|\n{''.join(rows)}"


def _row(option: AnyParameter, functions: list[Ingredient]) -> str:
    names = ", ".join(f"`{i.name}`" for i in functions) if len(functions) <= _FEW else ""
    examples = ", ".join(f"`{text.strip()}`" for text in option.example.split(";") if text)
    meaning = (f"{names}: " if names else "") + _cell(option.doc)
    return f"| `{option.name}` | {meaning} | {examples} |\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")
