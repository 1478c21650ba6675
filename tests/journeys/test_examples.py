"""The notebooks of examples/ run from the first cell to the last, and show what is stored in them.

``--update-golden`` stores what they show now.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from amounts import long_after

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
STEADY = re.compile(r"\d+(\.\d+)? m?s\b|seconds=\d+\.\d+|0x[0-9a-f]+")


def shown(notebook: Any) -> list[str]:
    """The texts below each cell, without what differs from run to run."""
    texts = []
    for cell in notebook.cells:
        parts = []
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            parts += [output.get("text", ""), data.get("text/plain", "")]
            assert output.get("output_type") != "error", "\n".join(output.get("traceback", []))
        texts.append(STEADY.sub("N", "".join(map(str, parts))))
    return texts


@pytest.mark.parametrize("path", long_after(2, NOTEBOOKS), ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path: Path, update_golden: bool) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra dev has nbclient")
    nbclient = pytest.importorskip("nbclient", reason="the extra dev has nbclient")
    pytest.importorskip("ipykernel", reason="the extra dev has ipykernel")
    stored = nbformat.read(path, 4)
    fresh = nbformat.read(path, 4)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbclient.NotebookClient(fresh, timeout=60, kernel_name="python3").execute(cwd=str(EXAMPLES))
    if update_golden:
        for cell in fresh.cells:
            cell.metadata.pop("execution", None)
        fresh.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        nbformat.write(fresh, path)
    assert shown(fresh) == shown(nbformat.read(path, 4) if update_golden else stored)


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_look", "trusted_answers"]
