"""``read_text``: whole text files as rows, and who may read them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf
from blendfusion.services.documents import whole_texts

BOTH = "SELECT filename, content, size FROM read_text({})"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        Path(f"{name}.md").write_text(f"{name} é\n", encoding="utf-8")
    model = bf.ScriptedModel(
        lambda r: r.values[0][:1] == "b" if r.constraint.kind == "boolean" else "answer"
    )
    return bf.connect(model, cache=None, read_files="local")


@pytest.mark.parametrize(
    ("argument", "names"),
    [
        ("'a.md'", "a"),
        ("'*.md'", "abc"),
        ("'.'", "abc"),
        ("['c.md', 'a.md']", "ca"),
        ("['[ab].md', 'c.md']", "abc"),
    ],
)
def test_a_row_is_a_file(session: bf.Session, argument: str, names: str) -> None:
    rows = session.sql(BOTH.format(argument)).to_pylist()
    assert [Path(row["filename"]).name for row in rows] == [f"{name}.md" for name in names]
    assert [row["content"] for row in rows] == [f"{name} é\n" for name in names]
    assert {row["size"] for row in rows} == {5}
    moments = session.sql(f"SELECT last_modified AS m FROM read_text({argument})").to_pylist()
    assert all(row["m"].tzname() == "UTC" for row in moments)


def test_a_file_is_read_when_its_content_is(
    session: bf.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = whole_texts.text_of

    def text_of(file: str | Path) -> str:
        read.append(Path(file).name)
        return whole(file)

    monkeypatch.setattr(whole_texts, "text_of", text_of)
    assert session.sql("SELECT count(*) AS n FROM read_text('*.md')").to_pylist() == [{"n": 3}]
    assert session.sql("SELECT filename FROM read_text('*.md')").count() == 3
    query = "SELECT content FROM read_text('*.md') t WHERE t.filename = 'b.md' AND llm_filter('q', content)"
    assert session.sql(query).to_pylist() == [{"content": "b é\n"}]
    assert {*read} == {"b.md"}


def test_a_changed_file_is_read_again(session: bf.Session) -> None:
    query = "SELECT content FROM read_text('a.md')"
    frame = session.sql(query)
    assert frame.to_pylist() == [{"content": "a é\n"}]
    for content in ("b é\n", "a longer text"):
        Path("a.md").write_text(content, encoding="utf-8")
        assert session.sql(query).to_pylist() == [{"content": content}]
    assert frame.to_pylist() == [{"content": "a longer text"}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        ("é\r\n".encode("utf-8-sig"), "é\r\n"),
        ("é\n".encode("utf-16"), "é\n"),
        ("é\n".encode("utf-32"), "é\n"),
    ],
)
def test_encodings_by_their_marks(session: bf.Session, content: bytes, text: str) -> None:
    Path("d.txt").write_bytes(content)
    Path("e.txt.gz").write_bytes(gzip.compress(content))
    rows = session.sql("SELECT content FROM read_text(['d.txt', 'e.txt.gz'])").to_pylist()
    assert [row["content"] for row in rows] == [text, text]


def test_bytes_that_are_no_text_name_the_file(session: bf.Session) -> None:
    Path("d.txt").write_bytes(b"one\ncaf\xe9")
    with pytest.raises(bf.QueryError, match=r"'d.txt' is not UTF-8: see line 2"):
        session.sql("SELECT content FROM read_text('d.txt')").to_pylist()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM read_text('d.md')", "there is no file 'd.md'"),
        ("SELECT * FROM read_text(1)", "read_text: 1 is no path"),
        ("SELECT * FROM read_text()", "read_text: nothing is no path"),
        ("SELECT * FROM read_text(['a.md', 1])", "is no path, nor a list of paths"),
        ("SELECT read_text('a.md')", "read_text belongs in FROM"),
        ("SELECT * FROM read_text('https://a/b.md')", "files of this machine only"),
        ("SELECT * FROM read_text('s3://a/b.md')", "files of this machine only"),
    ],
)
def test_what_is_no_text_is_refused(session: bf.Session, query: str, message: str) -> None:
    with pytest.raises(bf.QueryError, match=message):
        session.sql(query).to_pylist()


def test_files_are_read_as_the_session_allows(session: bf.Session, tmp_path: Path) -> None:
    model = bf.ScriptedModel(lambda request: True)
    with (
        bf.connect(model, cache=None, read_files="off") as closed,
        pytest.raises(bf.QueryError, match="read_text: a query of this session may not read files"),
    ):
        closed.sql("SELECT * FROM read_text('a.md')")


def test_the_first_query_of_blendsql(session: bf.Session) -> None:
    asked: list[Any] = []

    def answer(request: bf.Request) -> str:
        asked.append(request.values)
        return "A language."

    with bf.connect(bf.ScriptedModel(answer), cache=None, read_files="local") as other:
        query = """SELECT {{LLMQA('Describe BlendSQL in 50 words.', context=(
            SELECT content[0:3] AS "README" FROM read_text('a.md')))}} AS answer"""
        assert other.sql(query).to_pylist() == [{"answer": "A language."}]
    assert "a é" in str(asked)
    assert "\n" not in str(asked)


def test_texts_join_and_are_named(session: bf.Session) -> None:
    session.from_pydict({"file": ["a.md", "b.md"], "stars": [1, 2]}, "r")
    query = """SELECT r.stars, t.content FROM r JOIN read_text('*.md') AS t ON t.filename = r.file
        WHERE llm_filter('q', t.content)"""
    frame = session.sql(query)
    assert frame.to_pylist() == [{"stars": 2, "content": "b é\n"}]
    assert "scan read_text [" in frame.explain_text()
    session.sql("CREATE VIEW v AS SELECT * FROM read_text('*.md')")
    assert session.sql("SELECT count(*) AS n FROM v").to_pylist() == [{"n": 3}]
