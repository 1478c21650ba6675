"""Pages as images, as scanners give them: clean, coarse, noisy, blurred, turned."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LINES = (
    "Minutes of the mill's meeting, 14 March 2024",
    "Present: Anna Lee, Boris Kane, Chidi Okafor.",
    "The new stone was delivered on Monday; it weighs 1,250 kg.",
    "Repairs of the roof cost 3,480.50 euros, which the town pays.",
    "Visitors may enter from 10:30 to 16:00, except on Fridays.",
    "Rye costs 2.15 a kilo, wheat 1.90, and spelt 3.40.",
)
SCANS = ("clean", "coarse", "noisy", "blurred", "turned", "grey")
"""Ways in which a page was scanned."""
_DOTS, _MARGIN, _LEADING = 30, 60, 54


def scanned(how: str = "clean", lines: tuple[str, ...] = LINES) -> bytes:
    """A PNG of a page; a line of text has a height of 30 dots, as at 200 dots an inch."""
    width, height = 1240, 2 * _MARGIN + _LEADING * len(lines)
    page = Image.new("L", (width, height), 255 if how != "grey" else 170)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(_DOTS)
    for number, line in enumerate(lines):
        place = (_MARGIN, _MARGIN + _LEADING * number)
        draw.text(place, line, fill=0 if how != "grey" else 110, font=font)
    if how == "coarse":  # 75 dots an inch
        page = page.resize((width * 3 // 8, height * 3 // 8), Image.Resampling.BILINEAR)
    if how == "noisy":
        noise = np.random.default_rng(0).normal(0, 60, (height, width))
        page = Image.fromarray(np.clip(np.asarray(page) + noise, 0, 255).astype(np.uint8))
    if how == "blurred":
        page = page.filter(ImageFilter.GaussianBlur(3))
    if how == "turned":
        page = page.rotate(2, fillcolor=255, expand=True, resample=Image.Resampling.BICUBIC)
    held = BytesIO()
    page.convert("RGB").save(held, "PNG")
    return held.getvalue()


def wrong_share(found: str, right: str) -> float:
    """The least number of characters to change, insert or delete, per character of ``right``."""
    before = list(range(len(right) + 1))
    for i, a in enumerate(found, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1] / len(right)
