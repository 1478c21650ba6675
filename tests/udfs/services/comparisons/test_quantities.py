"""What texts say without a model: only what can mean one thing."""

from __future__ import annotations

import pytest

from blendfusion.udfs.services.comparisons import quantities as readings
from blendfusion.udfs.services.comparisons.quantities import order, same_text

EQUAL = [
    ("12", "12.0"),
    ("1,234", "1.234e3"),
    ("-5", "−5"),
    ("50%", "50 %"),
    ("$1,200", "$1200.00"),
    ("3 million", "3,000,000"),
    ("3 kilometers per hour", "3 km/h"),
    ("2020-01-01T10:00", "2020-01-01 10:00:00"),
    ("Café  Noir", "cafe noir."),
]
EQUAL_BY_LIBRARIES = [
    ("twelve", "12"),
    ("Twenty-one", "21"),
    ("5 km", "5000 m"),
    ("five km", "5,000 metres"),
    ("12 inches", "1 foot"),
    ("1 inch", "2.54 cm"),
    ("90 minutes", "1.5 hours"),
    ("12 months", "1 year"),
    ("2022/10/01", "2022-10-01"),
    ("2022/10/01", "Oct 1st, 2022"),
    ("5th of May 2020", "Tuesday, May 5, 2020"),
    ("13/04/2020", "April 13, 2020"),
]
LESS = [
    ("9", "10"),
    ("-1e3", "0"),
    ("$5", "$5.01"),
    ("2020-01-01", "2020-01-02T00:00:00"),
    ("5 km", "5001 m"),
    ("5 miles", "20 km"),
    ("10 lb", "10 kg"),
    ("21 Sep 2021", "21 Nov, 2030"),
]
UNDECIDED = [
    ("03/04/2020", "4 March 2020"),  # two dates
    ("May 2020", "5 May 2020"),  # no day
    ("5 May 99", "5 May 1999"),  # no century
    ("21 Nov, 2030", "09-31-2021"),  # no such day
    ("Monday, May 5, 2020", "5 May 2020"),  # a Tuesday
    ("5 May 2020 BC", "5 May 2020"),
    ("0001-01-01", "1 Jan 0001"),
    ("2020-01-01", "2020-01-01T00:00:00"),  # a moment of that day
    ("2020", "5 May 2020"),
    ("12", "12 apples"),
    ("12 apples", "13 apples"),
    ("1 BC", "5 BC"),
    ("007", "7"),
    ("50%", "0.5"),
    ("$5", "5"),
    ("$5", "€5"),
    ("26 miles", "42.2 km"),  # one of them is rounded
    ("1 year", "365 days"),
    ("5 GB", "5000 MB"),
    ("5 gallons", "20 liters"),
    ("5 km", "5 hours"),
    ("5 km", "5"),
    ("1e99999", "1"),
    ("9" * 100, "1"),
    ("C++", "C"),
    ("A+", "A"),
    ("5 MW", "5 mw"),
    ("Beijing", "the capital of China"),
    ("...", "!"),
]


@pytest.mark.parametrize(("a", "b"), [*EQUAL, *EQUAL_BY_LIBRARIES])
def test_equal(a: str, b: str) -> None:
    assert (order(a, b), order(b, a)) == (0, 0)


@pytest.mark.parametrize(("a", "b"), LESS)
def test_less(a: str, b: str) -> None:
    assert (order(a, b), order(b, a)) == (-1, 1)


@pytest.mark.parametrize(("a", "b"), UNDECIDED)
def test_what_may_mean_two_things_is_not_decided(a: str, b: str) -> None:
    assert (order(a, b), order(b, a)) == (None, None)


def test_equal_texts_are_equal_whatever_they_are() -> None:
    assert order("03/04/2020", "03/04/2020") == order("C++", "C++") == order("5 GB", " 5  GB") == 0


def test_marks_and_case_count_where_they_may_mean_something() -> None:
    assert same_text("Paris, France", "paris france")
    for a, b in [("5 MW", "5 mW"), ("-5", "5"), ("1.5", "1,5"), ("C#", "C"), ("3/4", "3-4")]:
        assert not same_text(a, b)


def test_without_the_libraries_only_figures_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str) -> None:
        raise ImportError(module)

    caches = (readings.reading, readings._library, readings._factor, readings._registry)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setattr(readings, "import_module", absent)
    try:
        assert {order(a, b) for a, b in EQUAL} == {0}
        assert {order(a, b) for a, b in EQUAL_BY_LIBRARIES} == {None}
        assert order("5 km", "6 km") == order("2020-01-31", "2020-02-01") == -1
    finally:
        for cached in caches:
            cached.cache_clear()
