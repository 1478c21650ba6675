"""Any text ends in a result or in one of our errors: never in another exception, a crash or a hang.

``pytest tests/security/test_sql_fuzz.py --cases 20000`` tries more texts, and FUZZ_FROM=100000
others."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import pytest
from random_tables import database, tables
from scripts import Counted
from sql_fuzz import TABLES, fuzzed

import blendfusion as bf

PARTS = 10
PER_SESSION = 40
"""Texts that one session sees: some create and drop tables, or set options."""
PATIENCE_SECONDS = 30


def fresh() -> Counted:
    counted = database(tables(3))
    for name, columns in TABLES.items():
        counted.add(name, columns)
    return counted


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")
def test_any_text_ends_in_a_result_or_an_error_of_ours(
    part: int, cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a COPY may be among them
    first = int(os.environ.get("FUZZ_FROM", "0"))
    number = cases * 3 // 8 // PARTS
    outcomes = set()
    counted = fresh()
    for i in range(number):
        if i % PER_SESSION == 0:
            counted = fresh()
        text = fuzzed(first + part * number + i)
        outcomes.add(outcome(counted, first + part * number + i, text))
    assert outcomes >= {"rows", "QueryError"}


def outcome(counted: Counted, number: int, text: str) -> str:
    """What became of text ``number``: "rows", or the name of an error of ours."""
    started = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.AnswerWarning)
            warnings.simplefilter("ignore", bf.PlanWarning)  # a comparison that is never true
            counted.session.sql(text).to_arrow_table()
        return "rows"
    except bf.BlendFusionError as error:
        return type(error).__name__
    except BaseException as error:
        error.add_note(f"text {number}: {text!r}")
        raise
    finally:
        assert time.monotonic() - started < PATIENCE_SECONDS, f"text {number}: {text!r}"


FOUND = (
    "SELECT " + "NOT (" * 400 + "id" + ")" * 400 + " FROM p",
    "SELECT FROM p WHERE llm_filter('q', x)",
    "SELECT llm_map('q', 1e308.) FROM p",
    "SELECT '\x00', llm_text('q', x) FROM p",
    "SELECT llm_text('\x00', x) FROM p UNION SELECT llm_text('\x00', x) FROM p",
    "SELECT (SELECT 1) FROM p WHERE llm_map('q', x) IN ('a', 'b') UNION SELECT llm_summarize(name) FROM q",
    "SELECT " + "NOT (" * 20 + "," + ")" * 20 + " FROM p",
)


@pytest.mark.parametrize("text", FOUND, ids=lambda text: ascii(text[:40]))
def test_what_was_found_before(text: str) -> None:
    assert outcome(fresh(), 0, text)
