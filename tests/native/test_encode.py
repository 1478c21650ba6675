"""The compiled kernels answer as their specification does."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendfusion.native import fallback

compiled = pytest.importorskip(
    "blendfusion.native.compiled",
    reason="no compiler was at hand when blendfusion was installed",
    exc_type=ImportError,
)

texts = st.one_of(
    st.none(), st.sampled_from(["", "a", "é", "eight ch", "same", "same1"]), st.text()
)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(texts, max_size=60), st.lists(st.integers(0, 60), max_size=3), st.booleans())
def test_compiled_encoding_equals_the_specification(
    values: list[str | None], cuts: list[int], offset: bool
) -> None:
    array = pa.array([*(["before"] if offset else []), *values], pa.string())
    array = array.slice(1) if offset else array
    bounds = [0, *sorted(min(c, len(array)) for c in cuts), len(array)]
    chunks = [array.slice(a, b - a) for a, b in itertools.pairwise(bounds)]

    expected_texts, expected_codes = fallback.encode_text(chunks)
    found_texts, found_codes = compiled.encode_text(chunks)

    assert found_texts.to_pylist() == expected_texts.to_pylist()
    assert found_codes.tolist() == expected_codes.tolist()


def test_threads_number_texts_by_first_row() -> None:
    values = [f"v{(i * 7919) % 5000}" for i in range(300_000)]
    array = pa.array(values, pa.string())
    found_texts, found_codes = compiled.encode_text([array])
    expected_texts, expected_codes = fallback.encode_text([array])
    assert found_texts.equals(expected_texts)
    assert (found_codes == expected_codes).all()


def test_no_rows() -> None:
    for kernels in (fallback, compiled):
        found, codes = kernels.encode_text([])
        assert len(found) == len(codes) == 0
