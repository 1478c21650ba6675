"""Pages that are images: the text that the extra ``ocr`` reads, and how much of it is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanned_pages import LINES, scanned, wrong_share

import blendfusion as bf

pytest.importorskip("rapidocr_onnxruntime")


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "most_wrong", "most_without_blanks"), [("clean", 0.06, 0.03), ("blurred", 0.25, 0.06)]
)
def test_a_scan_is_read_line_by_line(
    how: str, most_wrong: float, most_without_blanks: float, tmp_path: Path
) -> None:
    """Most of what is wrong are blanks: words run together."""
    (tmp_path / "page.png").write_bytes(scanned(how))
    session = bf.connect(None, cache=None)
    frame = session.read_documents(tmp_path / "page.png", ocr=True)
    found = " ".join(" ".join(row["text"].split()) for row in frame.to_pylist())
    right = " ".join(LINES)
    assert wrong_share(found, right) <= most_wrong
    assert wrong_share(found.replace(" ", ""), right.replace(" ", "")) <= most_without_blanks
