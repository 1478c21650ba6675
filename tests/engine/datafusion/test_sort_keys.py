"""Keys of ORDER BY are checked in time linear in the length of names."""

from __future__ import annotations

import time

import pytest
from scripts import Counted

import blendfusion as bf


def test_a_name_of_a_hundred_thousand_letters_is_no_burden() -> None:
    db = Counted(lambda call: "a").add("t", {"x": ["b"]})
    name = '"' + "a" * 100_000 + '"'
    started = time.process_time()
    rows = db.rows(f"SELECT llm_text('q', x) AS {name} FROM t ORDER BY {name}")
    assert rows == [("a",)]
    assert time.process_time() - started < 5  # it was eight minutes


def test_a_key_of_no_relation_is_an_error() -> None:
    db = Counted(lambda call: "a").add("t", {"x": ["b"]})
    with pytest.raises(bf.QueryError):
        db.session.sql("SELECT x FROM t ORDER BY t.missing")
