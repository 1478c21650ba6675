"""Pages that are images: the text that the extra ``ocr`` reads, and how much of it is right."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageFilter
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


@pytest.mark.long
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_scan_on_its_side_or_head_is_turned(degrees: int, tmp_path: Path) -> None:
    page = Image.open(BytesIO(scanned())).rotate(degrees, expand=True)
    page.save(tmp_path / "page.png")
    frame = bf.connect(None, cache=None).read_documents(tmp_path / "page.png", ocr=True)
    rows = frame.to_pylist()
    found = " ".join(" ".join(row["text"].split()) for row in rows)
    assert wrong_share(found, " ".join(LINES)) <= 0.06
    sides = [rows[0]["bbox"][side] for side in ("left", "top", "right", "bottom")]
    assert all(0 <= side <= max(page.size) for side in sides)


@pytest.mark.long
def test_what_a_viewer_shows_upright_is_upright_and_all_pages_are_read(tmp_path: Path) -> None:
    page = Image.open(BytesIO(scanned()))
    turned = Image.Exif()
    turned[0x112] = 6
    page.rotate(90, expand=True).save(tmp_path / "photo.jpg", exif=turned, quality=95)
    clear = Image.new("RGBA", page.size, (0, 0, 0, 0))
    clear.paste((0, 0, 0, 255), mask=page.convert("L").point(lambda dot: 255 - dot))
    clear.save(tmp_path / "scan.tiff", save_all=True, append_images=[page.convert("RGBA")])
    rows = bf.connect(None, cache=None).read_documents(tmp_path, ocr=True).to_pylist()
    for name, number in (("photo.jpg", 1), ("scan.tiff", 1), ("scan.tiff", 2)):
        texts = [r["text"] for r in rows if r["file"].endswith(name) and r["page"] == number]
        found = " ".join(" ".join(texts).split())
        assert wrong_share(found, " ".join(LINES)) <= 0.06, (name, number)


@pytest.mark.long
def test_little_confidence_is_an_error_with_its_figure(tmp_path: Path) -> None:
    page = Image.open(BytesIO(scanned())).filter(ImageFilter.GaussianBlur(5))
    page.save(tmp_path / "page.png")
    frame = bf.connect(None, cache=None).read_documents(tmp_path / "page.png", ocr=True)
    (row,) = frame.to_pylist()
    assert (row["kind"], row["text"]) == ("error", None)
    assert "a confidence of 0." in row["error"]
