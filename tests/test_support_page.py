"""The page of tests/support lists its modules, each with the first sentence of its docstring."""

from __future__ import annotations

import ast
from pathlib import Path

SUPPORT = Path(__file__).parent / "support"
PAGE = SUPPORT / "README.md"
ABOVE, BELOW = "<!-- modules, from tests/test_support_page.py -->\n", "<!-- to here -->\n"


def table() -> str:
    """The modules in order, each with the first sentence of its docstring."""
    rows = []
    for file in sorted(SUPPORT.glob("*.py")):
        documented = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        first = " ".join(documented.split("\n\n")[0].split())
        rows.append(f"| [{file.stem}]({file.name}) | {first.replace('|', chr(92) + '|')} |\n")
    return f"\n| module | content |\n|---|---|\n{''.join(rows)}\n"


def test_every_module_of_support_stands_on_its_page(update_golden: bool) -> None:
    head, rest = PAGE.read_text("utf-8").split(ABOVE)
    old, tail = rest.split(BELOW)
    if update_golden:
        PAGE.write_text(f"{head}{ABOVE}{table()}{BELOW}{tail}", "utf-8")
    else:
        assert old == table(), "pytest tests/test_support_page.py --update-golden"


def test_every_module_of_support_says_what_it_has() -> None:
    files = sorted(SUPPORT.glob("*.py"))
    silent = [f.name for f in files if not ast.get_docstring(ast.parse(f.read_text("utf-8")))]
    assert silent == []
