"""Writes the types of the functions for type checkers and editors, from their declarations.

``python -m blendfusion.udfs.register.stub`` prints ``udfs/register/python_functions.pyi``.
"""

from __future__ import annotations

import inspect
import textwrap

from blendfusion.udfs.functions import FUNCTIONS
from blendfusion.udfs.functions.declarations import INGREDIENTS
from blendfusion.udfs.register.signature import docstring, signature

_HEAD = '''"""Made from the declarations of the functions by ``make stubs``."""

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.options import OnError
from blendfusion.udfs.declare.struct_schema import SchemaLike
from blendfusion.udfs.register.expr import ColumnLike
'''


def stub() -> str:
    """The text of the stub: one function per ingredient, with its docstring."""
    names = "".join(f'    "{name}",\n' for name in sorted(FUNCTIONS))
    parts = [f"{_HEAD}\n__all__ = [\n{names}]\n"]
    for ingredient in INGREDIENTS:
        declared = signature(ingredient).parameters.values()
        named = next((p.name for p in declared if p.kind is p.KEYWORD_ONLY), "")
        starred = any(p.kind is p.VAR_POSITIONAL for p in declared)
        lines = []
        for parameter in declared:
            lines += ["*"] if parameter.name == named and not starred else []
            lines.append(_parameter_text(parameter))
        arguments = "".join(f"    {line},\n" for line in lines)
        text = textwrap.indent(docstring(ingredient), "    ").lstrip()
        parts.append(f'def {ingredient.name}(\n{arguments}) -> Expr:\n    """{text}\n    """\n')
    return "\n".join(parts)


def _parameter_text(parameter: inspect.Parameter) -> str:
    """A parameter with its annotation, which is text, and its default."""
    bare = str(parameter.replace(default=parameter.empty)).replace("'", "")
    if parameter.default is parameter.empty:
        return bare
    default = parameter.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{bare} = {shown}"


if __name__ == "__main__":
    print(stub(), end="")
