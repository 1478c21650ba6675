"""Fifty-six documents of kinds that are rare: their words, the order of these, and their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from document_corpus import Author, compare
from document_kinds import COMMENTED, KINDS, make_kind

import blendfusion as bf


@pytest.mark.long
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize(("seed", "chunk"), [(0, 0), (1, 400)])
def test_no_word_is_lost_and_all_are_in_order(
    tmp_path: Path, make: Callable[[Path, Author], None], seed: int, chunk: int
) -> None:
    session = bf.connect(None, cache=None)
    bad: list[tuple[str, object]] = []
    for known in make_kind(make, tmp_path, seed):
        rows = session.read_documents(known.path, chunk=chunk).to_pylist()
        assert [row for row in rows if row["error"]] == []
        found = compare(known, "\n".join(row["text"] for row in rows))
        if chunk and make in COMMENTED:
            left_out = sum(row["left_out"] for row in rows)
            found = replace(found, recall=found.recall + left_out / len(known.words))
        if found.recall < 0.995 or found.order < 0.99 or found.lost_rows:
            bad.append((known.path.name, found))
    assert bad == []
