"""The text of images by rapidocr (extra ``ocr``), whose models are in its package."""

from __future__ import annotations

from functools import cache
from typing import Any

from blendfusion.services.documents.blocks import Unreadable
from blendfusion.services.documents.page_layout import Page
from blendfusion.services.documents.words import Word

_DOTS_PER_POINT = 2.0
"""144 dots an inch."""
_MOST_DOTS = 16_000_000
_SHARE = 0.9
"""The part of a recognised line's height that letters have."""


def recognised(page: Any, width: float, height: float) -> Page:
    """The lines of a page of a PDF, drawn as an image."""
    scale = min(_DOTS_PER_POINT, (_MOST_DOTS / (width * height)) ** 0.5)
    dots = page.render(scale=scale).to_numpy()[:, :, :3]
    return _lines(dots, width, height, 1 / scale)


def image_page(path: str) -> Page:
    """The lines of an image file; one dot is one point."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            width, height = image.size
            if width * height > 4 * _MOST_DOTS:
                raise Unreadable(f"its image has {width:,} × {height:,} dots")
            import numpy as np

            dots = np.asarray(image.convert("RGB"))[:, :, ::-1]
    except Unreadable:
        raise
    except Exception:  # Pillow's, of several kinds
        raise Unreadable("it is a damaged image, or none") from None
    return _lines(dots, float(width), float(height), 1.0)


def _lines(dots: Any, width: float, height: float, scale: float) -> Page:
    found, _ = _engine()(dots, use_cls=False)
    page = Page(width, height)
    for corners, text, _ in found or ():
        across = [point[0] * scale for point in corners]
        down = [point[1] * scale for point in corners]
        top, bottom = min(down), max(down)
        spare = (bottom - top) * (1 - _SHARE) / 2
        box = (min(across), top + spare, max(across), bottom - spare)
        if text.strip():
            page.words.setdefault(0, []).append(Word(text.strip(), box))
    return page


@cache
def _engine() -> Any:
    try:
        from rapidocr_onnxruntime import RapidOCR
    except ImportError:
        raise Unreadable("text in images needs rapidocr: pip install 'blendfusion[ocr]'") from None
    return RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
