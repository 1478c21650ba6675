"""The text of images by rapidocr (extra ``ocr``), whose models are in its package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from blendfusion.services.documents.blocks import Box, Unreadable
from blendfusion.services.documents.page_layout import Page, turned_box
from blendfusion.services.documents.words import Word

_DOTS_PER_POINT = 2.0
"""144 dots an inch."""
_MOST_DOTS = 16_000_000
_MOST_IMAGES = 10_000
_SHARE = 0.9
"""The part of a recognised line's height that letters have."""
_SAMPLE = 6
"""The lines that tell how a page is turned."""
_SURE_PAGE, _SURE_LINE = 0.7, 0.5
"""The least confidence in a page, by the recogniser's own measure, and in a line of it."""
_LETTER_O = re.compile(r"(?<=\d)[oO](?=[\doO]*\d)|(?<=\d)[oO](?=[oO]*\b)")
_EXTRA = "text in images needs {}: pip install 'blendfusion[ocr]'"

_Recognised = tuple[Box, str, float]
"""A line on the page as it is shown, its text, and the confidence in it."""


def recognise(page: Any, width: float, height: float) -> Page:
    """The lines of a page of a PDF, drawn as an image. Raises Unreadable for one in which the
    recogniser has little confidence."""
    scale = min(_DOTS_PER_POINT, (_MOST_DOTS / (width * height)) ** 0.5)
    dots = page.render(scale=scale).to_numpy()[:, :, :3]
    return _page(dots, width, height, 1 / scale)


def image_pages(path: str) -> Iterator[Page | str]:
    """The lines of each image of a file, upright as its EXIF data states; one dot is one point. For
    an image that cannot be read, the reason. Raises Unreadable."""
    try:
        from PIL import Image
    except ImportError:
        raise Unreadable(_EXTRA.format("Pillow")) from None
    try:
        with Image.open(path) as image:
            for number in range(min(getattr(image, "n_frames", 1), _MOST_IMAGES)):
                image.seek(number)
                try:
                    yield _image_page(image)
                except Unreadable as problem:
                    yield str(problem)
    except (Unreadable, GeneratorExit):
        raise
    except Exception:  # Pillow's, of several kinds
        raise Unreadable("it is a damaged image, or none") from None


def _image_page(image: Any) -> Page:
    import numpy as np
    from PIL import Image, ImageOps

    width, height = image.size
    if width * height > 4 * _MOST_DOTS:
        raise Unreadable(f"its image has {width:,} × {height:,} dots")
    upright = ImageOps.exif_transpose(image).convert("RGBA")
    white = Image.new("RGBA", upright.size, "white")
    dots = np.asarray(Image.alpha_composite(white, upright).convert("RGB"))[:, :, ::-1]
    return _page(dots, float(upright.width), float(upright.height), 1.0)


def _page(dots: Any, width: float, height: float, scale: float) -> Page:
    quarter_turns, lines = _read(dots)
    page = Page(width, height)
    doubtful = 0
    for box, text, confidence in lines:
        doubtful += confidence < _SURE_LINE
        if confidence >= _SURE_LINE and text.strip():
            left, top, right, bottom = (side * scale for side in box)
            word = Word(_LETTER_O.sub("0", text.strip()), (left, top, right, bottom))
            page.words.setdefault(quarter_turns, []).append(word)
    length = sum(len(text) for _, text, _ in lines)
    if length:
        mean = sum(len(text) * confidence for _, text, confidence in lines) / length
        if mean < _SURE_PAGE:
            raise Unreadable(
                f"its text is recognised with a confidence of {mean:.2f} only; "
                f"{_SURE_PAGE} is the least"
            )
    if doubtful:
        page.doubt = (
            f"{doubtful} of {len(lines)} lines are left out: their text is recognised with a "
            f"confidence below {_SURE_LINE}"
        )
    return page


def _read(dots: Any) -> tuple[int, list[_Recognised]]:
    """The lines of an image, and the quarter turns clockwise after which it is upright."""
    import numpy as np

    engine = _engine()
    height, width = dots.shape[:2]
    found, _ = engine(dots, use_cls=False, use_rec=False)
    corners = [np.asarray(points, dtype=np.float32) for points in found or ()]
    if not corners:
        return 0, []
    boxes = [_around(points) for points in corners]
    turns = _turns(dots, boxes)
    if turns:
        dots = np.ascontiguousarray(np.rot90(dots, -turns))
        corners = [_corners(turned_box(box, turns, width, height)) for box in boxes]
    texts, _ = engine.text_rec(engine.get_crop_img_list(dots, corners), False)
    return turns, [
        (_letters(box, turns), text, float(confidence))
        for box, (text, confidence, *_) in zip(boxes, texts, strict=True)
    ]


def _turns(dots: Any, boxes: Sequence[Box]) -> int:
    """The quarter turns clockwise after which most lines are recognised best."""
    import numpy as np

    longest = sorted(boxes, key=lambda box: max(_across(box), _down(box)))[-_SAMPLE:]
    tall = sum(_down(box) for box in longest if _down(box) > 1.5 * _across(box))
    wide = sum(_across(box) for box in longest if _across(box) > 1.5 * _down(box))
    choices = (1, 3) if tall > wide else (0, 2)
    crops = [dots[int(box[1]) : int(box[3]) + 1, int(box[0]) : int(box[2]) + 1] for box in longest]

    def confidence(turns: int) -> float:
        images = [np.ascontiguousarray(np.rot90(crop, -turns)) for crop in crops]
        found, _ = _engine().text_rec(images, False)
        return float(sum(confidence for _, confidence, *_ in found))

    return max(choices, key=confidence)


def _around(points: Any) -> Box:
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    return float(left), float(top), float(right), float(bottom)


def _across(box: Box) -> float:
    return box[2] - box[0]


def _down(box: Box) -> float:
    return box[3] - box[1]


def _corners(box: Box) -> Any:
    import numpy as np

    left, top, right, bottom = box
    return np.asarray([(left, top), (right, top), (right, bottom), (left, bottom)], np.float32)


def _letters(box: Box, turns: int) -> Box:
    """The box of the letters of a line."""
    left, top, right, bottom = box
    spare = (_across(box) if turns % 2 else _down(box)) * (1 - _SHARE) / 2
    if turns % 2:
        return left + spare, top, right - spare, bottom
    return left, top + spare, right, bottom - spare


@cache
def _engine() -> Any:
    try:
        from rapidocr_onnxruntime import RapidOCR
    except ImportError:
        raise Unreadable(_EXTRA.format("rapidocr")) from None
    return RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
