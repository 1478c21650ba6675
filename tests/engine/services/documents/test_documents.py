"""Documents as tables: their blocks, which files a query reads, and who may read them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from document_files import (
    DOCX_BLOCKS,
    HTML,
    HTML_BLOCKS,
    MARKDOWN,
    MARKDOWN_BLOCKS,
    write_docx,
)
from reportlab.pdfgen.canvas import Canvas

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.documents.chunks import cut_chunks, tokens_in
from blendfusion.services.documents.process import PageRead, Reader


def write_pages(path: Path, pages: Iterable[tuple[str, str]]) -> None:
    """A page for each title and sentence."""
    canvas = Canvas(os.fspath(path), invariant=True)
    for title, sentence in pages:
        canvas.setFont("Helvetica", 18)
        canvas.drawString(72, 700, title)
        canvas.setFont("Helvetica", 10)
        canvas.drawString(72, 660, sentence)
        canvas.showPage()
    canvas.save()


def write_pdf(path: Path, pages: int, word: str = "mill") -> None:
    numbers = range(1, pages + 1)
    write_pages(path, [(f"Part {n}", f"The {word} of page {n} grinds.") for n in numbers])


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    monkeypatch.chdir(tmp_path)
    Path("m.html").write_text(HTML, encoding="utf-8")
    Path("m.md").write_text(MARKDOWN, encoding="utf-8")
    Path("m.txt").write_text("One.\n\nTwo\nlines.\n", encoding="utf-8")
    write_docx(Path("m.docx"))
    write_pdf(Path("a.pdf"), 4)
    write_pdf(Path("b.pdf"), 2, "barn")
    model = bf.ScriptedModel(lambda request: "barn" in str(request.values[0]))
    return bf.connect(model, cache=None, read_files="local")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """The files and pages that were read."""
    found: list[tuple[str, int | None]] = []
    inherited = Reader.read

    def read(self: Reader, path: str, wanted: Callable[[int], Any] | None) -> Iterator[PageRead]:
        for page in inherited(self, path, wanted):
            found.append((path, page.page))
            yield page

    monkeypatch.setattr(Reader, "read", read)
    return found


@pytest.mark.parametrize(
    ("file", "blocks"),
    [
        ("m.html", HTML_BLOCKS),
        ("m.md", MARKDOWN_BLOCKS),
        ("m.docx", DOCX_BLOCKS),
        ("m.txt", [("paragraph", "One."), ("paragraph", "Two\nlines.")]),
    ],
)
def test_the_blocks_of_a_file(
    session: bf.Session, file: str, blocks: list[tuple[str, str]]
) -> None:
    rows = session.sql(f"SELECT * FROM read_documents('{file}')").to_pylist()
    assert [(row["kind"], row["text"]) for row in rows] == blocks
    assert [row["block"] for row in rows] == list(range(1, len(rows) + 1))
    assert {(row["file"], row["page"], row["bbox"], row["error"]) for row in rows} == {
        (file, None, None, None)
    }


def test_the_blocks_of_a_pdf_have_pages_and_places(session: bf.Session) -> None:
    rows = session.read_documents("b.pdf").to_pylist()
    assert [(r["page"], r["block"], r["kind"], r["text"]) for r in rows] == [
        (1, 1, "title", "Part 1"),
        (1, 2, "paragraph", "The barn of page 1 grinds."),
        (2, 1, "title", "Part 2"),
        (2, 2, "paragraph", "The barn of page 2 grinds."),
    ]
    left, top = rows[0]["bbox"]["left"], rows[0]["bbox"]["top"]
    height = 842
    assert abs(left - 72) < 2
    assert height - 725 < top < height - 700


def test_a_filter_on_files_leaves_others_unread(
    session: bf.Session, reads: list[tuple[str, int | None]]
) -> None:
    query = "SELECT text FROM read_documents('*.pdf') WHERE file = 'b.pdf' AND llm_filter('Barn?', text)"
    assert len(session.sql(query).to_pylist()) == 2
    assert {file for file, _ in reads} == {"b.pdf"}


@pytest.mark.parametrize(
    ("condition", "pages"),
    [("page = 3", {3}), ("page BETWEEN 2 AND 3", {2, 3}), ("page > 9", set())],
)
def test_a_filter_on_pages_leaves_others_unread(
    session: bf.Session, reads: list[tuple[str, int | None]], condition: str, pages: set[int]
) -> None:
    every = session.sql("SELECT * FROM read_documents('a.pdf')").to_pylist()
    reads.clear()
    found = session.sql(f"SELECT * FROM read_documents('a.pdf') WHERE {condition}").to_pylist()
    assert found == [row for row in every if row["page"] in pages]
    assert {page for _, page in reads} == pages


def test_a_limit_ends_the_reading(session: bf.Session, reads: list[tuple[str, int | None]]) -> None:
    Path("many").mkdir()
    for number in range(30):
        Path(f"many/{number:02}.txt").write_text("The barn.", encoding="utf-8")
    query = "SELECT file FROM read_documents('many') WHERE llm_filter('Barn?', text) LIMIT 2"
    assert len(session.sql(query).to_pylist()) == 2
    assert len(reads) < 12


def test_a_query_reads_documents_only_where_it_may_read_files(session: bf.Session) -> None:
    query = "SELECT * FROM read_documents('m.txt')"
    with pytest.raises(bf.QueryError, match="read-only") as refused:
        session.sql(query, read_only=True)
    session.register_documents("docs", "m.txt")
    assert len(session.sql("SELECT * FROM docs", read_only=True).to_pylist()) == 2
    session.sql("SET blendfusion.read_files = 'off'")
    with pytest.raises(bf.QueryError, match="may not read files") as refused:
        session.sql(query)
    assert "register_documents" in str(refused.value.hint)
    hidden = 'SELECT * FROM __blendfusion.documents."{""path"": ""m.md""}"'
    with pytest.raises(bf.QueryError, match=r"unknown table"):
        session.sql(hidden)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ("'m.txd'", "no file 'm.txd'", "m.txt"),
        ("'x*.pdf'", "no file matches", ""),
        ("'m.txt', chnk => 1", "no argument 'chnk'", "chunk"),
        ("'m.txt', chunk => -1", "whole number from 0", ""),
        ("'m.txt', on_error => 'no'", "null, skip, raise", ""),
        ("'m.txt', 400", "only the path has no name", ""),
        ("'https://x.org/a.pdf'", "is a URL", "Download"),
        ("", "the path is missing", "FROM"),
    ],
)
def test_wrong_arguments(session: bf.Session, arguments: str, message: str, hint: str) -> None:
    with pytest.raises(bf.QueryError, match=message) as raised:
        session.sql(f"SELECT * FROM read_documents({arguments})")
    assert hint in str(raised.value.hint)


def test_what_cannot_be_read_is_a_row_nothing_or_an_error(session: bf.Session) -> None:
    Path("m.pdf").write_text("no pdf", encoding="utf-8")
    (row,) = session.sql("SELECT * FROM read_documents('m.pdf')").to_pylist()
    assert (row["kind"], row["text"]) == ("error", None)
    assert row["error"] == "it is no PDF: '%PDF-' is not in its first bytes"
    assert session.read_documents("m.pdf", on_error="skip").to_pylist() == []
    with pytest.raises(bf.QueryError, match=r"'m\.pdf' cannot be read: it is no PDF"):
        session.read_documents("m.pdf", on_error="raise").to_pylist()


def test_plans_name_the_documents(session: bf.Session) -> None:
    query = "SELECT text FROM read_documents($1, chunk => 50) WHERE llm_filter('Barn?', text)"
    plan = session.sql(query, param_values=["m.txt"]).explain_text()
    assert "read_documents('m.txt', chunk => 50) [text]" in plan


def test_chunks_hold_blocks_and_divide_long_ones(session: bf.Session) -> None:
    text = " ".join(f"Sentence {number} is here." for number in range(40))
    rows = [("header", "h", None), ("title", "A", None), ("paragraph", text, None)]
    rows += [("title", "B", None), ("paragraph", "Short.", None)]
    found = cut_chunks(rows, 50)
    assert max(tokens_in(text) for _, text, _ in found) <= 50
    assert " ".join(text.replace("\n\n", " ") for _, text, _ in found) == f"A {text} B Short."
    assert found[-1][1] == "B\n\nShort."
    (chunk,) = session.read_documents("m.md", chunk=400).to_pylist()
    assert chunk["text"].startswith("The mill\n\nIt grinds every day.")


def test_a_question_about_documents_sees_the_best_block_of_each(tmp_path: Path) -> None:
    for name, rent in (("a", 950), ("b", 1200), ("c", 700)):
        sections = [
            "Pets are not allowed.",
            f"The rent is {rent} euros a month.",
            "Two keys exist.",
        ]
        text = "".join(f"<h2>Part</h2><p>{section}</p>" for section in sections)
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")

    def rent_in(request: bf.Request) -> str:
        found = re.search(r"\d+", str(request.values[0]))
        return f'{{"rent": {found[0] if found else "null"}}}'

    session = bf.connect(bf.ScriptedModel(rent_in), cache=None)
    session.register_documents("leases", tmp_path, chunk=100)
    frame = session.sql(
        """
        WITH best AS (
            SELECT *, row_number() OVER (
                PARTITION BY file ORDER BY llm_similarity(text, 'the rent in euros') DESC) AS place
            FROM leases)
        SELECT file, block, text, e.rent.value AS value, e.rent.evidence AS words, e.rent.start AS at
        FROM (SELECT *, llm_extract(text, 'rent INT', evidence => true) AS e
              FROM best WHERE place <= 1) ORDER BY file"""
    )
    rows = frame.to_pylist()
    assert [(Path(row["file"]).name, row["block"], row["value"]) for row in rows] == [
        ("a.html", 2, 950),
        ("b.html", 2, 1200),
        ("c.html", 2, 700),
    ]
    assert all(row["text"][row["at"] :].startswith(row["words"]) for row in rows)
    assert frame.trace.usage.values == 3


LEASES = {
    "a.pdf": [
        ("Premises", "The shop stands at the corner of Mill Street, with a cellar and a yard."),
        ("Rent", "The tenant pays 950 euros each month, on the first day."),
        ("Repairs", "The owner repairs the roof; the tenant paints the walls every five years."),
    ],
    "b.pdf": [
        ("Rooms", "Four rooms on the second floor are let."),
        ("Repairs", "Broken windows are repaired by the tenant within a week."),
        ("Payment", "Every month 1,200 euros are due as rent."),
    ],
}


def rents(session: bf.Session, folder: Path, call: str, blocks: int) -> bf.LazyFrame:
    """``call`` about the best blocks of each lease."""
    for name, pages in LEASES.items():
        write_pages(folder / name, pages)
    session.register_documents("leases", f"{folder}/[ab].pdf")
    return session.sql(
        f"""
        WITH best AS (
            SELECT * FROM leases WHERE kind = 'paragraph'
            QUALIFY row_number() OVER (
                PARTITION BY file ORDER BY llm_similarity(text, 'How much is the rent?') DESC
            ) <= {blocks})
        SELECT file, a.value AS value, a.evidence AS words, a.start AS start, a."end" AS stop,
               texts[a.item] AS text, pages[a.item] AS page, a.reason AS reason
        FROM (SELECT file, array_agg(page ORDER BY page) AS pages,
                     array_agg(text ORDER BY page) AS texts, {call} AS a
              FROM best GROUP BY file) ORDER BY file"""
    )


def test_an_answer_about_a_pdf_has_its_page_and_its_span(tmp_path: Path) -> None:
    def rent_in(request: bf.Request) -> object:
        found = re.search(r"([\d,]+) euros", " ".join(map(str, request.values)))
        return int(found[1].replace(",", "")) if found else None

    model = bf.ScriptedModel(rent_in)
    call = "llm_answer('Rent?', array_agg(text ORDER BY page), returns => 'int', evidence => true)"
    rows = rents(bf.connect(model, cache=None), tmp_path, call, 2).to_pylist()
    assert [(Path(row["file"]).name, row["value"], row["words"], row["page"]) for row in rows] == [
        ("a.pdf", 950, "950", 2),
        ("b.pdf", 1200, "1,200", 3),
    ]
    assert all(row["text"][row["start"] : row["stop"]] == row["words"] for row in rows)
    assert [len(call.values) for call in model.calls] == [2, 2]


@pytest.mark.local
@pytest.mark.parametrize("returns", ["returns => 'int'", "options => ['950 euros', '1,200 euros']"])
def test_the_packaged_model_answers_about_pdfs_with_evidence(tmp_path: Path, returns: str) -> None:
    text = "array_agg(text ORDER BY page)"
    call = f"llm_answer('How much is the rent?', {text}, {returns}, evidence => true)"
    with bf.connect("smollm2", cache=None, progress="off") as session:
        rows = rents(session, tmp_path, call, 1).to_pylist()
    assert len(rows) == 2
    for row in rows:  # a number that the model makes up is no answer
        if row["value"] is None:
            assert row["words"] is None
            assert row["reason"].startswith("not in the text: ")
        else:
            assert row["text"][row["start"] : row["stop"]] == row["words"]
    if "options" in returns:
        found = [(row["value"], row["page"]) for row in rows]
        assert found == [("950 euros", 2), ("1,200 euros", 3)]


def test_documents_are_files_as_others_are(
    session: bf.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {row["page"] for row in session.register_file("a.pdf").to_pylist()} == {1, 2, 3, 4}
    assert session.sql("SELECT count(DISTINCT page) AS n FROM 'b.pdf'").to_pylist() == [{"n": 2}]
    pages = session.register_file("*.pdf", "pages").to_pylist()
    assert {os.path.basename(row["file"]) for row in pages} == {"a.pdf", "b.pdf"}
    query = "SELECT page, text FROM docs WHERE kind = 'paragraph' ORDER BY page"
    assert main(["query", query, "--table", "docs=b.pdf", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *('"page","text"', '1,"The barn of page 1 grinds."', '2,"The barn of page 2 grinds."')
    ]
    assert main(["query", query, "--table", "docs=none.pdf"]) == 2
    assert "there is no file 'none.pdf'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "chunk", "words"),
    [("m.html", 40, 3), ("m.html", 0, 0), ("m.md", 40, 2), ("m.*", 40, 7)],
)
@pytest.mark.parametrize("form", ["staged", "plain", "registered"])
def test_what_chunks_leave_out_is_counted(
    session: bf.Session, files: str, chunk: int, words: int, form: str
) -> None:
    source = f"read_documents('{files}', chunk => {chunk})"
    if form == "registered":
        session.register_documents("d", files, chunk=chunk)
        source = "d"
    call = "llm_filter('Barn?', text)"
    if form == "plain":  # a call inside of a window stays in DataFusion's own plan
        call = f"sum(CASE WHEN {call} THEN 1 ELSE 0 END) OVER (ORDER BY text ROWS 1 PRECEDING) >= 0"
    frame = session.sql(f"SELECT file, {call} AS barn FROM {source}")
    frame.collect()
    first = frame.trace.words_left_out
    frame.collect()
    assert (first, frame.trace.words_left_out) == (words, words)
    lines = session.sql(f"EXPLAIN ANALYZE SELECT file, {call} AS barn FROM {source}")
    said = [line for line in lines.to_pydict()["plan"] if "Left out of chunks" in line]
    noun = "word" if words == 1 else "words"
    expected = f"Left out of chunks, as headers, footers and asides: {words} {noun}"
    assert said == ([expected] if words else [])
