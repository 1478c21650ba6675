"""Prose and names: line widths and links that a reader meets, checked mechanically."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
MARKDOWN_WIDTH = 120


def prose(text: str) -> list[str]:
    """The lines of a page outside of fences, tables and headings."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in text.splitlines() if not line.startswith(("|", "#", "    "))]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "benchmarks" / "README.md", *PAGES], ids=str)
def test_every_anchor_that_a_page_links_to_is_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
        linked = (page.parent / target) if target else page
        assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_is_wrapped_at_one_width(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    long = [line for line in prose(text) if len(line) > MARKDOWN_WIDTH]
    assert long == []
