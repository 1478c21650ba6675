"""Optional models and stores: each folder can be taken out.

The ``__init__`` of a folder declares what it adds: ``BACK_ENDS`` by the schemes of models' names
(``LOCAL``, then ``SERVERS`` are those that hints name first), ``EMBEDDERS`` likewise, ``WRAPPERS``
of models whose tokens are paid, ``ADAPTERS`` of foreign models, ``STORES`` by the schemes of
addresses. ``NEEDS`` are the folders without which it adds nothing, nor what needs it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


@cache
def offers(field: str) -> dict[str, Any]:
    """The entries of the mapping of this name, of all folders here."""
    names = [module.name for module in iter_modules(__path__) if module.ispkg]
    whole = {name: import_module(f"{__name__}.{name}") for name in names}
    while lacking := [n for n, f in whole.items() if {*getattr(f, "NEEDS", ())} - whole.keys()]:
        for name in lacking:
            del whole[name]
    found = [getattr(folder, field, {}) for folder in whole.values()]
    return {name: one for declared in found for name, one in declared.items()}
