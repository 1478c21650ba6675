"""Functions stay short, modules are worth their header, and engine/ has few entries."""

from __future__ import annotations

from count_lines import figures_of


def test_the_house_keeps_its_measure() -> None:
    figures = figures_of()
    assert figures["functions above 60 lines"].names == []
    assert figures["modules below 40 lines with one importer"].number <= 30
    assert figures["entries of engine/"].number <= 20
    assert figures["largest circle of files"].number <= 2
    assert figures["members of frame beyond DataFusion's"].number <= 40
    assert figures["members of session beyond DataFusion's"].number <= 40
