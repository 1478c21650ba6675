"""Thirty PDF files of ten layouts, whose words are numbered: they are read in the right order."""

from __future__ import annotations

from pathlib import Path

import pytest
from document_pages import LAYOUTS, Made, make, numbers_in
from reportlab.pdfgen.canvas import Canvas

from blendfusion.services.documents.blocks import Block
from blendfusion.services.documents.pdf import PdfFile

SEEDS = (21, 22, 23)
"""No layout was adjusted to these."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Made]:
    folder = tmp_path_factory.mktemp("pages")
    return [make(folder, layout, seed, pages=2) for layout in LAYOUTS for seed in SEEDS]


def right(made: Made) -> tuple[int, int]:
    """How many blocks of a file are read whole, and before the block that follows them; and how
    many blocks there are."""
    of_file = [0, 0]
    for page, blocks in PdfFile(str(made.path)).blocks(None):
        assert not isinstance(blocks, str)
        found = body_of(blocks)
        following = dict(zip(found, [*found[1:], None], strict=True))
        expected = [n for first, last in made.pages[page - 1] for n in range(first, last + 1)]
        after = dict(zip(expected, [*expected[1:], None], strict=True))
        for first, last in made.pages[page - 1]:
            numbers = range(first, last + 1)
            of_file[0] += all(following.get(n, 0) == after[n] for n in numbers)
            of_file[1] += 1
        edges = {(kind, text) for number, kind, text in made.edges if number == page}
        of_file[0] += len(edges & {(block.kind, block.text) for block in blocks})
        of_file[1] += len(edges)
    return of_file[0], of_file[1]


def body_of(blocks: list[Block]) -> list[int]:
    body = [block for block in blocks if block.kind not in ("header", "footer", "aside")]
    return [number for block in body for number in numbers_in(block.text)]


@pytest.mark.long
def test_the_order_of_thirty_files_is_right(files: list[Made]) -> None:
    assert len(files) == 30
    counts = [right(made) for made in files]
    share = sum(good for good, _ in counts) / sum(every for _, every in counts)
    bad = [
        made.path.name for made, (good, every) in zip(files, counts, strict=True) if good < every
    ]
    assert share >= 0.98, f"{share:.4f}: {bad}"


@pytest.mark.parametrize("paragraph", ["Sales rose by 5 %.", "Sales rose by 5 % in spring.", "Up."])
def test_a_title_centred_above_a_short_paragraph_stands_before_it(
    tmp_path: Path, paragraph: str
) -> None:
    """Nothing stands beside the paragraph, so the title and the table are no second column."""
    canvas = Canvas(str(tmp_path / "short.pdf"))
    canvas.setFont("Helvetica-Bold", 18)
    canvas.drawString(268, 760, "Report")
    canvas.setFont("Helvetica", 10)
    canvas.drawString(78, 730, paragraph)
    for row, cells in enumerate((("item", "price"), ("ink", "1"), ("pen", "2"))):
        for place, cell in zip((275, 310), cells, strict=True):
            canvas.drawString(place, 700 - 18 * row, cell)
    canvas.save()
    ((_, blocks),) = PdfFile(str(tmp_path / "short.pdf")).blocks(None)
    assert not isinstance(blocks, str)
    assert [(block.kind, block.text) for block in blocks] == [
        ("title", "Report"),
        ("paragraph", paragraph),
        ("table", "item | price\nink | 1\npen | 2"),
    ]
