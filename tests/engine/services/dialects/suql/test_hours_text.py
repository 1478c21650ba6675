"""Hours of the week, as opening hours are written."""

from __future__ import annotations

import re

import pytest
from datafusion import col, lit
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.services.dialects.suql.hours_text import DAYS, PATTERN, Span, during, overlap, read

HOUR, DAY = 60, 24 * 60


def spans(*days: int, start: int, end: int) -> list[Span]:
    return [Span(day * DAY + start, day * DAY + end) for day in days]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Monday 10:00-22:00", spans(0, start=10 * HOUR, end=22 * HOUR)),
        ("tue: 9am - 5 p.m.", spans(1, start=9 * HOUR, end=17 * HOUR)),
        ("Thursday 5-9pm", spans(3, start=17 * HOUR, end=21 * HOUR)),
        ("Thu 9-5pm", spans(3, start=9 * HOUR, end=17 * HOUR)),
        ("Thu 9am-5", spans(3, start=9 * HOUR, end=17 * HOUR)),
        ("Thu 8:30am-4:30", spans(3, start=8 * HOUR + 30, end=16 * HOUR + 30)),
        ("Thu 6pm-11", spans(3, start=18 * HOUR, end=23 * HOUR)),
        ("Thu 6pm-2", spans(3, start=18 * HOUR, end=26 * HOUR)),
        ("Thu 9am-12", spans(3, start=9 * HOUR, end=12 * HOUR)),
        ("Thu 6pm-12", spans(3, start=18 * HOUR, end=24 * HOUR)),
        ("Thu 6pm-12:30", spans(3, start=18 * HOUR, end=24 * HOUR + 30)),
        ("Thu 9am-0:30", spans(3, start=9 * HOUR, end=24 * HOUR + 30)),
        ("Thu 9am-9", spans(3, start=9 * HOUR, end=21 * HOUR)),
        ("Thu 9am-24:00", spans(3, start=9 * HOUR, end=24 * HOUR)),
        ("Thu 9am-17", spans(3, start=9 * HOUR, end=17 * HOUR)),
        ("Thu 10-11am", spans(3, start=10 * HOUR, end=11 * HOUR)),
        ("Thu 17:00-2am", spans(3, start=17 * HOUR, end=26 * HOUR)),
        ("Mon-Wed 8 to 16", spans(0, 1, 2, start=8 * HOUR, end=16 * HOUR)),
        ("Sat through Mon noon–midnight", spans(5, 6, 0, start=12 * HOUR, end=24 * HOUR)),
        ("Mon, Wed and Fri 9:30-10:00", spans(0, 2, 4, start=9 * HOUR + 30, end=10 * HOUR)),
        ("weekends 1130-1145", spans(5, 6, start=11 * HOUR + 30, end=11 * HOUR + 45)),
        ("1700-0200", spans(*range(7), start=17 * HOUR, end=26 * HOUR)),
        ("Sun open 24 hours", spans(6, start=0, end=24 * HOUR)),
        ("Mon closed, Tue 8:00-9:00", spans(1, start=8 * HOUR, end=9 * HOUR)),
        ("closed", []),
        (
            '{"Monday": "11:0-22:0", "Sunday": "0:0-0:0"}',
            [Span(11 * HOUR, 22 * HOUR), Span(6 * DAY, 7 * DAY)],
        ),
        (
            '[{"open": [{"day": 6, "start": "1700", "end": "0200", "is_overnight": true}]}]',
            spans(6, start=17 * HOUR, end=26 * HOUR),
        ),
    ],
)
def test_what_is_read(text: str, expected: list[Span]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "Mon", "Mon-", "-", "ask inside", "Mon 9", "Mon 25:00-26:00", "Mon 9:75-10:00"),
        *(
            "Mon 13am-2pm",
            "10-2",
            "9:00-10:00 or later",
            "[1]",
            "{",
            '[{"day": 9, "start": "1", "end": "2"}]',
            '[{"day": Infinity, "start": "0900", "end": "1000"}]',
            "[" * 100_000,
            "Mon-weekends 9am-5pm",
            "Mon 10-2am",
            "Mon 12-5am",
        ),
    ],
)
def test_what_is_not_read_is_not_guessed(text: str) -> None:
    assert read(text) is None


def test_spans_that_go_over_midnight_and_over_the_week() -> None:
    assert during("Sun 17:00-02:00", "Monday 01:00-01:30") is True
    assert during("Sun 17:00-02:00", "Monday 02:00-03:00") is False
    assert during("Monday 11:30-11:45", "Monday 11:00-11:30") is False
    assert during("Monday 11:30-11:45", "Monday 11:44-12:00") is True
    assert during("closed", "Monday 11:00-12:00") is False


@given(st.from_regex(re.compile(f"{PATTERN}(, {PATTERN}){{0,3}}"), fullmatch=True))
def test_all_that_a_model_may_answer_is_read_and_holds_at_itself(text: str) -> None:
    found = read(text)
    assert found
    assert overlap(found, found)
    assert len(found) == text.count(",") + 1


@given(st.text(alphabet="Monfri 0123456789:-–,;apm./to", max_size=40))
def test_no_text_is_an_error(text: str) -> None:
    for span in read(text) or []:
        assert 0 <= span.start < 7 * DAY
        assert span.start < span.end <= span.start + DAY


def test_it_is_a_function_of_sql_and_of_frames() -> None:
    session = bf.connect(None, cache=None)
    rows = {"h": ["Mon 9:00-12:00", "by appointment", None, f"{DAYS[1]} 9:00-12:00"]}
    frame = session.from_pydict(rows, name="t")
    said = session.sql("SELECT open_during(h, 'Monday 11:00-13:00') AS o FROM t").to_pydict()["o"]
    assert said == [True, None, None, False]
    again = frame.select(bf.open_during("h", lit("Monday 11:00-13:00")).alias("o"))
    assert again.to_pydict()["o"] == said
    assert frame.select(bf.open_during(col("h"), "h").alias("o")).to_pydict()["o"] == [
        True,
        None,
        None,
        True,
    ]
