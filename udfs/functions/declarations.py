"""The declarations of all built-in functions, whose modules this one imports."""

from __future__ import annotations

from importlib import import_module

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions import FUNCTIONS, OF_SERVICES

INGREDIENTS: tuple[Ingredient, ...] = tuple(
    getattr(
        import_module(OF_SERVICES.get(name, f"blendfusion.udfs.functions.{name}")), name.upper()
    )
    for name in FUNCTIONS
)
"""The declarations, in the order of ``FUNCTIONS``."""
