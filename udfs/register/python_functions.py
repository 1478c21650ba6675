"""The functions of Python, ``bf.llm_filter`` and the others, made from their declarations.

``python_functions.pyi`` has their signatures for type checkers and editors.
"""

from __future__ import annotations

from blendfusion.udfs.functions import FUNCTIONS
from blendfusion.udfs.functions.declarations import INGREDIENTS
from blendfusion.udfs.register.expr import python_function

__all__ = [*FUNCTIONS]

globals().update({one.name: python_function(one) for one in INGREDIENTS})
