"""How many words of documents are read, and in order, beside other readers?

    pip install pypdf pdfplumber 'markitdown[pdf,docx,pptx]'   # those that are missing are left out
    python benchmarks/bench_documents.py

The corpus are a hundred generated files of known text (tests/support/document_corpus.py). ``recall``
is the share of the words of a kind of file, ``order`` the share of the words that occur once which
stand in the right order, ``rows`` the rows of tables and ledgers that are not whole. Then 500 pages
of 40 lines: seconds of the processor, and their ratio to pypdf's."""

from __future__ import annotations

import importlib
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from document_corpus import Found, Known, compare, make_corpus
from reportlab.pdfgen.canvas import Canvas

import blendfusion as bf

Read = Callable[[Path], str]


def blendfusion_reader() -> Read:
    """One query reads the whole folder, as a user's would."""
    texts: dict[str, list[str]] = defaultdict(list)

    def read(path: Path) -> str:
        if not texts:
            session = bf.connect(None, cache=None)
            for row in session.read_documents(path.parent, chunk=400).to_pylist():
                texts[row["file"]].append(row["text"] or "")
        return "\n".join(texts[str(path)])

    return read


def pypdf_reader() -> Read:
    library: Any = importlib.import_module("pypdf")
    return lambda path: "\n".join(page.extract_text() for page in library.PdfReader(path).pages)


def pdfplumber_reader() -> Read:
    library: Any = importlib.import_module("pdfplumber")

    def read(path: Path) -> str:
        with library.open(path) as file:
            return "\n".join(page.extract_text() or "" for page in file.pages)

    return read


def markitdown_reader() -> Read:
    library: Any = importlib.import_module("markitdown")
    reader = library.MarkItDown()
    return lambda path: str(reader.convert(str(path)).text_content)


READERS: dict[str, tuple[Callable[[], Read], tuple[str, ...]]] = {
    "blendfusion": (blendfusion_reader, ()),
    "pypdf": (pypdf_reader, (".pdf",)),
    "pdfplumber": (pdfplumber_reader, (".pdf",)),
    "markitdown": (markitdown_reader, ()),
}
"""How to make each reader, and the endings that it reads (none: all)."""


def measure(make: Callable[[], Read], endings: tuple[str, ...], corpus: list[Known]) -> None:
    read = make()
    found: dict[str, list[Found]] = defaultdict(list)
    start = time.perf_counter()
    for known in corpus:
        if not endings or known.path.suffix in endings:
            try:
                text = read(known.path)
            except Exception as problem:  # a reader that fails has read nothing
                print(f"    {known.path.name}: {type(problem).__name__}")
                text = ""
            found[known.kind].append(compare(known, text))
    seconds = time.perf_counter() - start
    for kind, files in found.items():
        recall = sum(one.recall for one in files) / len(files)
        order = sum(one.order for one in files) / len(files)
        lost = sum(one.lost_rows for one in files)
        print(f"    {kind:10} recall {recall:.4f} order {order:.4f} rows {lost:5}")
    every = [one for files in found.values() for one in files]
    recall = sum(one.recall for one in every) / len(every)
    order = sum(one.order for one in every) / len(every)
    lost = sum(one.lost_rows for one in every)
    print(
        f"  {len(every)} files: recall {recall:.4f} order {order:.4f} rows {lost}, {seconds:.1f} s"
    )


def processor_seconds() -> float:
    """Of this process, and of those that it has waited for."""
    return sum(os.times()[:4])


def write_pages(path: Path, pages: int, lines: int) -> None:
    words, chance = (
        "payment tenant provision rent of and clause house water street".split(),
        Random(1),
    )
    canvas = Canvas(str(path))
    for _ in range(pages):
        for line in range(lines):
            canvas.drawString(60, 790 - 18 * line, " ".join(chance.choices(words, k=11)))
        canvas.showPage()
    canvas.save()


def measure_pages(path: Path) -> None:
    """The time that many pages take, as medians of turns."""
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(3):
        for name in ("blendfusion", "pypdf"):
            read, start = READERS[name][0](), processor_seconds()
            read(path)
            taken[name].append(processor_seconds() - start)
    ours, others = (statistics.median(taken[name]) for name in ("blendfusion", "pypdf"))
    print(f"500 pages: blendfusion {ours:.1f} s, pypdf {others:.1f} s, ratio {ours / others:.1f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.pdf"
        write_pages(path, 500, 40)
        with suppress(ImportError):
            measure_pages(path)
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_corpus(Path(folder))
        for name, (make, endings) in READERS.items():
            print(name)
            try:
                measure(make, endings, corpus)
            except ImportError:
                print("  is not installed")


if __name__ == "__main__":
    main()
