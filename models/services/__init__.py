"""Optional models and stores: each folder can be taken out.

The ``__init__`` of a folder declares what it adds: ``BACK_ENDS`` by the schemes of models' names
(``LOCAL`` are those that hints name first), ``ADAPTERS`` of foreign models, ``STORES`` by the
schemes of addresses.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


@cache
def offers(field: str) -> dict[str, Any]:
    """The entries of the mapping of this name, of all folders here."""
    folders = [module.name for module in iter_modules(__path__, f"{__name__}.") if module.ispkg]
    found = [getattr(import_module(folder), field, {}) for folder in folders]
    return {name: one for declared in found for name, one in declared.items()}
