"""Distinct tuples of several columns, however Arrow holds the columns: as a loop in Python finds
them."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from blendfusion.udfs.evaluate.distinct import distinct

TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "é", "same", "same1"]), st.text(max_size=4))
TYPES = [pa.string(), pa.large_string(), pa.string_view()]


@st.composite
def columns(draw: st.DrawFn) -> list[pa.ChunkedArray]:
    """Columns of one length, each of a type of text of its own, sliced and in chunks of its own."""
    rows = draw(st.integers(0, 30))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        before = draw(st.integers(0, 9))
        values = draw(st.lists(TEXTS, min_size=rows + before, max_size=rows + before))
        array = pa.array(values, pa.string()).slice(before).cast(draw(st.sampled_from(TYPES)))
        cuts = draw(st.lists(st.integers(0, rows), max_size=3))
        bounds = [0, *sorted(cuts), rows]
        chunks = [array.slice(a, b - a) for a, b in itertools.pairwise(bounds)]
        made.append(pa.chunked_array(chunks, array.type))
    return made


@settings(max_examples=60)
@given(columns=columns())
def test_distinct_tuples_and_their_places(columns: list[pa.ChunkedArray]) -> None:
    values, places = distinct(columns)

    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    assert [values[place] for place in places.to_pylist()] == rows
    assert len(values) == len(set(values)) == len(set(rows))
