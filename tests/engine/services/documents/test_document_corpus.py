"""A hundred generated documents of 17 kinds: their words, the order of these, and their rows."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from document_corpus import Known, compare, make_corpus

import blendfusion as bf


def texts_of(folder: Path, chunk: int) -> dict[str, str]:
    """The text of each file, as one query reads it."""
    found: dict[str, list[str]] = defaultdict(list)
    rows = bf.connect(None, cache=None).read_documents(folder, chunk=chunk).to_pylist()
    for row in rows:
        assert row["error"] is None, row
        found[row["file"]].append(row["text"])
    return {file: "\n".join(texts) for file, texts in found.items()}


@pytest.mark.long
@pytest.mark.parametrize(("seed", "chunk"), [(0, 0), (0, 400), (1, 400)])
def test_no_word_is_lost_and_all_are_in_order(tmp_path: Path, seed: int, chunk: int) -> None:
    corpus = make_corpus(tmp_path, seed)
    assert len(corpus) == 100
    texts = texts_of(tmp_path, chunk)
    lost: dict[str, int] = defaultdict(int)
    bad: list[tuple[str, object]] = []
    for known in corpus:
        found = compare(known, texts[str(known.path)])
        lost[known.kind] += found.lost_rows
        if found.recall < 0.995 or found.order < 0.99:
            bad.append((known.path.name, found))
    assert bad == []
    assert lost["ledgers"] == 0
    assert sum(lost.values()) <= 0.001 * sum(len(known.rows) for known in corpus)


@pytest.mark.parametrize(
    ("text", "recall", "order", "lost_rows"),
    [
        ("one two three four", 1.0, 1.0, 0),
        ("two one three four", 1.0, 0.75, 0),
        ("one two three", 0.75, 1.0, 1),
        ("three x four one two", 1.0, 0.5, 1),
        ("", 0.0, 0.0, 1),
    ],
)
def test_the_measure(text: str, recall: float, order: float, lost_rows: int) -> None:
    known = Known(Path("a 1.pdf"), "one two three four".split(), ["three  four"])
    found = compare(known, text)
    assert (found.recall, found.order, found.lost_rows) == (recall, order, lost_rows)
