"""PDF files that do not tell which letters their glyphs are, or whose fonts are elsewhere: no letter
is lost without a word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

import blendfusion as bf

KANA = [chr(code) for code in range(0x3042, 0x3090)] + [*"契約書第一条賃料、。ー「」"]


def write_pdf(path: Path, font: str, stream: bytes, *more: str) -> None:
    """One page, of the font F1, which is object 5, and of Helvetica as F2; ``more`` are objects from
    7 on."""
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"{page}/Resources<</Font<</F1 5 0 R/F2 6 0 R>>>>>>".encode(),
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        font.encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *(text.encode() for text in more),
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % one for one in enumerate(objects, 1))
    path.write_bytes(b"%PDF-1.5\n" + body + b"trailer<</Size 99/Root 1 0 R>>\n%%EOF")


def write_chinese(path: Path, encoding: str, order: str, stream: bytes) -> None:
    """A page in a font that is neither in the file nor on a machine without Chinese fonts."""
    write_pdf(
        path,
        f"<</Type/Font/Subtype/Type0/BaseFont/Elsewhere-{encoding}/Encoding/{encoding}"
        "/DescendantFonts[7 0 R]>>",
        stream,
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/Elsewhere/FontDescriptor 8 0 R/DW 1000"
        f"/CIDSystemInfo<</Registry(Adobe)/Ordering({order})/Supplement 6>>>>",
        "<</Type/FontDescriptor/FontName/Elsewhere/Flags 4/FontBBox[0 -200 1000 900]/ItalicAngle 0"
        "/Ascent 880/Descent -120/CapHeight 700/StemV 80>>",
    )


def shown(texts: Sequence[tuple[str, str, bytes]], size: int) -> bytes:
    """Texts with their fonts and matrices."""
    parts = [b"/%s %d Tf %s Tm %s Tj" % (f.encode(), size, m.encode(), t) for f, m, t in texts]
    return b"BT " + b" ".join(parts) + b" ET"


def in_utf_16(text: str) -> bytes:
    return b"<%s>" % text.encode("utf-16-be").hex().encode()


def rows_of(path: Path) -> list[dict[str, object]]:
    return bf.connect(None, cache=None).read_documents(path).to_pylist()


def text_of(rows: Sequence[dict[str, object]]) -> str:
    return "".join("".join(str(row["text"]).split()) for row in rows if row["error"] is None)


@pytest.mark.parametrize("seed", range(6))
def test_columns_that_run_down_are_read_from_the_right(tmp_path: Path, seed: int) -> None:
    """PDFium leaves out text without width, as such columns are in a font that is elsewhere."""
    chance = Random(seed)
    size, step = chance.choice([10, 11, 12]), chance.choice([18, 20, 22])
    columns = ["".join(chance.choices(KANA, k=chance.randint(20, 45))) for _ in range(20)]
    placed = [
        ("F1", f"1 0 0 1 {540 - step * at} 760", in_utf_16(text)) for at, text in enumerate(columns)
    ]
    write_chinese(tmp_path / "a.pdf", "UniJIS-UTF16-V", "Japan1", shown(placed, size))
    assert text_of(rows_of(tmp_path / "a.pdf")) == "".join(columns)


@pytest.mark.parametrize("turned", ["0 1 -1 0", "0 -1 1 0", "-1 0 0 -1"])
@pytest.mark.parametrize("way", ["H", "V"])
def test_turned_text_in_a_font_that_is_elsewhere(tmp_path: Path, turned: str, way: str) -> None:
    text = "契約書の第一条カタカナ"
    stream = shown([("F1", f"{turned} 300 400", in_utf_16(text))], 12)
    write_chinese(tmp_path / "a.pdf", f"UniJIS-UTF16-{way}", "Japan1", stream)
    found = text_of(rows_of(tmp_path / "a.pdf"))
    assert sorted(found) == sorted(text)


def test_columns_that_are_repeated_by_a_form(tmp_path: Path) -> None:
    text = "賃料は毎月支払う"
    inner = shown([("F1", "1 0 0 1 100 700", in_utf_16(text))], 12).decode()
    write_pdf(
        tmp_path / "a.pdf",
        "<</Type/Font/Subtype/Type0/BaseFont/E/Encoding/UniJIS-UTF16-V/DescendantFonts[7 0 R]>>",
        b"/X Do",
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/E/FontDescriptor 8 0 R"
        "/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 6>>>>",
        "<</Type/FontDescriptor/FontName/E/Flags 4/FontBBox[0 0 1000 900]/ItalicAngle 0/StemV 80>>",
        f"<</Type/XObject/Subtype/Form/BBox[0 0 612 792]/Length {len(inner)}"
        f"/Resources<</Font<</F1 5 0 R>>>>>>stream\n{inner}\nendstream",
    )
    page = (tmp_path / "a.pdf").read_bytes()
    page = page.replace(b"/Resources<</Font", b"/Resources<</XObject<</X 9 0 R>>/Font", 1)
    (tmp_path / "a.pdf").write_bytes(page)
    assert text_of(rows_of(tmp_path / "a.pdf")) == text


NAMES = "<</Type/Font/Subtype/Type1/BaseFont/Some/Encoding<</Differences[{}]>>>>"
PICTURES = (
    "<</Type/Font/Subtype/Type3/FontBBox[0 0 600 700]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 12"
    f"/LastChar 66/Widths[{' '.join(['600'] * 55)}]/Encoding<</Differences[12/a1 65/a2/a3]>>"
    "/CharProcs<</a1 7 0 R/a2 7 0 R/a3 7 0 R>>>>"
)
PICTURE = "<</Length 30>>stream\n600 0 d0 0 0 500 700 re f      \nendstream"


@pytest.mark.parametrize(
    ("font", "shown_text", "text", "unmapped"),
    [
        (NAMES.format("12/f_f_i"), b"(o\x0cce)", "o\ufffdce", 1),  # PDFium knows no such name
        (NAMES.format("65/g1/g2"), b"(ABC)", "ABC", 2),
        (NAMES.format("65/uniFB03/A"), b"(AB)", "ffiA", 0),
        (NAMES.format("65/A"), b"(A\x03B)", "AB", 0),  # a blank without a name
        (PICTURES, b"(AB)", "AB", 0),
        (PICTURES, b"(A\x0cB)", "A\ufffdB", 1),
    ],
)
def test_letters_that_the_file_does_not_tell_are_counted(
    tmp_path: Path, font: str, shown_text: bytes, text: str, unmapped: int
) -> None:
    stream = shown([("F1", "1 0 0 1 72 700", shown_text)], 12)
    write_pdf(tmp_path / "a.pdf", font, stream, PICTURE)
    rows = rows_of(tmp_path / "a.pdf")
    assert text_of(rows) == text
    said = [str(row["error"]) for row in rows if row["error"]]
    assert len(said) == (unmapped > 0)
    assert all(f"does not tell {unmapped} of the {len(text)} letters of page 1" in s for s in said)


def test_glyph_numbers_are_no_letters(tmp_path: Path) -> None:
    stream = shown([("F1", "1 0 0 1 72 700", b"<04b705000600>")], 12)
    write_chinese(tmp_path / "a.pdf", "Identity-H", "Identity", stream)
    text, said = rows_of(tmp_path / "a.pdf")
    assert (text["text"], text["error"]) == ("\ufffd" * 3, None)
    assert "does not tell 3 of the 3 letters" in str(said["error"])


def test_a_page_of_unmapped_letters_is_read_as_an_image(tmp_path: Path) -> None:
    from blendfusion.services.documents.page_layout import Page
    from blendfusion.services.documents.pdf import PdfFile

    asked: list[float] = []

    def recognised(page: object, width: float, height: float) -> Page:
        asked.append(width)
        return Page(width, height)

    stream = shown([("F1", "1 0 0 1 72 700", b"(ABA)"), ("F2", "1 0 0 1 72 600", b"(of)")], 12)
    for number, font in enumerate((NAMES.format("65/g1/g2"), NAMES.format("65/A/B"))):
        write_pdf(tmp_path / "a.pdf", font, stream)
        list(PdfFile(str(tmp_path / "a.pdf"), recognised).blocks(None))
        assert len(asked) == 1, number
