"""Optional functions: each folder can be taken out.

The ``__init__`` of a folder lists its functions as ``FUNCTIONS``; each has a module of its name
there.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def functions_of_services() -> dict[str, str]:
    """The modules of the functions of all folders here, by the functions' names."""
    folders = [module.name for module in iter_modules(__path__, f"{__name__}.") if module.ispkg]
    return {
        name: f"{folder}.{name}" for folder in folders for name in import_module(folder).FUNCTIONS
    }
