"""The generated pages of the site: every function, option of a call and public name has its place."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.dialects.dispatch import WAREHOUSES
from blendfusion.dialects.warehouses.calls import Warehouse
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions import INGREDIENTS

ROOT = Path(__file__).parents[1]


def generated() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "site" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.pages())


PAGES = generated()


@pytest.mark.parametrize("ingredient", INGREDIENTS, ids=lambda i: i.name)
def test_a_function_has_a_page_with_its_options(ingredient: Ingredient) -> None:
    page = PAGES[f"functions/{ingredient.name}.md"]
    assert ingredient.signature in page
    for option in ingredient.options:
        assert f"| `{option.name}` |" in page
    assert f"({ingredient.name}.md)" in PAGES["functions/index.md"]


@pytest.mark.parametrize("warehouse", WAREHOUSES, ids=lambda w: w.name)
def test_a_warehouse_has_a_page_of_its_declarations(warehouse: Warehouse) -> None:
    page = PAGES[f"dialects/{warehouse.name}.md"]
    for function in warehouse.functions:
        assert f"| `{function.signature}` | `{function.becomes}` |" in page
    for name in warehouse.refused:
        assert f"| `{name}` |" in page


def test_every_public_name_is_in_the_reference() -> None:
    functions = {ingredient.name for ingredient in INGREDIENTS}
    missing = [
        n for n in bf.__all__ if n not in functions and f"## bf.{n}\n" not in PAGES["api.md"]
    ]
    assert missing == []
    assert "### Session.register_file" in PAGES["api.md"]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "llm_filter" in (tmp_path / "functions" / "llm_filter.html").read_text("utf-8")
