"""Attention of our own: what it computes, and that no row has a bit of another's."""

from __future__ import annotations

import numpy as np
import pytest
from attention_step import COMPARED, SCALE, Steps
from hypothesis import given, settings
from hypothesis import strategies as st

from blendfusion.native import reference

kernel = pytest.importorskip("blendfusion.native._attention", reason="it was not compiled here")


def _has(lanes: int) -> bool:
    try:
        with Steps(kernel, lanes=lanes):
            return True
    except ValueError:
        return False


LANES = [lanes for lanes in (4, 8, 16) if _has(lanes)]


def _random(seed: int, tokens: int, cells: int, heads: int, kv_heads: int, dims: int) -> list:
    rng = np.random.default_rng(seed)
    shapes = ((tokens, heads, dims), (cells, kv_heads, dims), (cells, kv_heads, dims))
    return [rng.normal(0, 2, shape).astype(np.float16) for shape in shapes]


@pytest.mark.parametrize("lanes", LANES)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 9999),
    tokens=st.integers(1, 40),
    cells=st.integers(1, 300),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 9),
    dims=st.sampled_from([16, 48, 64, 80, 256]),
    share=st.floats(0, 1),
)
def test_it_is_what_its_specification_says(
    lanes: int,
    seed: int,
    tokens: int,
    cells: int,
    kv_heads: int,
    group: int,
    dims: int,
    share: float,
) -> None:
    arrays = _random(seed, tokens, cells, kv_heads * group, kv_heads, dims)
    rng = np.random.default_rng(seed)
    visible = rng.random((tokens, cells)) < share
    visible[:, : rng.integers(0, cells)] = True
    visible[np.arange(tokens), rng.integers(0, cells, tokens)] = True

    with Steps(kernel, lanes=lanes) as steps:
        steps.trust()
        steps.write(rng.permutation(cells))
        seen = steps.attend(*arrays, visible)
        assert steps.settle() == 1

    np.testing.assert_allclose(
        seen, reference.attention(*arrays, visible, SCALE), rtol=1e-3, atol=1e-4
    )


def _rows(rng: np.random.Generator, beginning: int) -> list[list[int]]:
    """Rows of places: the beginning, and some of their own."""
    free = list(rng.permutation(np.arange(beginning, 400)))
    sizes = rng.integers(1, 40, 9)
    return [[*range(beginning), *(free.pop() for _ in range(size))] for size in sizes]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("beginning", [0, 1, 30, 130])
def test_no_row_has_a_bit_of_another(lanes: int, beginning: int) -> None:
    """Each row alone, in cells in their order, and among others, in any cells."""
    rng = np.random.default_rng(beginning)
    rows = _rows(rng, beginning)
    queries, keys, values = _random(1, len(rows), 400, 9, 3, 64)
    visible = np.zeros((len(rows), 400), bool)
    for token, row in enumerate(rows):
        visible[token, row] = True
    with Steps(kernel, lanes=lanes) as steps:
        steps.trust()
        steps.write(range(beginning))
        for row in rows:
            steps.write(row[beginning:])
        together = steps.attend(queries, keys, values, visible)
        for token, row in enumerate(rows):
            steps.write(range(len(row)))
            alone = steps.attend(
                queries[[token]], keys[row], values[row], np.ones((1, len(row)), bool)
            )
            assert alone is not None
            assert together is not None
            assert np.array_equal(alone[0], together[token])


def test_what_is_computed_otherwise_is_left_to_llama() -> None:
    arrays, visible = _random(0, 2, 8, 3, 1, 16), np.ones((2, 8), bool)
    with Steps(kernel, lanes=LANES[0]) as steps:
        for place in range(COMPARED):
            steps.write(range(8))
            expected = reference.attention(*arrays, visible, SCALE)
            wrong = expected * (1.1 if place else 1.0)
            seen = steps.attend(*arrays, visible, theirs=wrong)
            np.testing.assert_allclose(seen, wrong, rtol=1e-3)
            assert steps.settle() == (0 if place else 1)
            if place:
                break
        steps.write(range(8))
        assert steps.attend(*arrays, visible, theirs=wrong) is None


@pytest.mark.parametrize("place", [1, 2], ids=["ALiBi", "bounded scores"])
def test_other_kinds_of_attention_are_left_to_llama(place: int) -> None:
    arrays, visible = _random(0, 2, 8, 3, 1, 16), np.ones((2, 8), bool)
    params = (np.ctypeslib.ctypes.c_float * 16)(SCALE)
    params[place] = 2.0
    with Steps(kernel, lanes=LANES[0]) as steps:
        steps.trust()
        steps.write(range(8))
        assert steps.attend(*arrays, visible, params=params) is None
        assert steps.settle() == 0


def test_a_token_that_sees_nothing_is_left_to_llama() -> None:
    arrays, visible = _random(0, 2, 8, 3, 1, 16), np.ones((2, 8), bool)
    visible[1] = False
    with Steps(kernel, lanes=LANES[0]) as steps:
        steps.trust()
        steps.write(range(8))
        assert steps.attend(*arrays, visible) is None


def test_numbers_that_are_none_are_left_to_llama() -> None:
    arrays, visible = _random(0, 2, 8, 3, 1, 16), np.ones((2, 8), bool)
    theirs = reference.attention(*arrays, visible, SCALE)
    arrays[2][3] = np.nan
    with Steps(kernel, lanes=LANES[0]) as steps:
        steps.write(range(8))
        assert steps.attend(*arrays, visible, theirs=theirs) is not None
        assert steps.settle() == 0


def test_cells_that_nobody_was_seen_to_write_are_left_to_llama() -> None:
    arrays, visible = _random(0, 2, 8, 3, 1, 16), np.ones((2, 8), bool)
    with Steps(kernel, lanes=LANES[0]) as steps:
        steps.trust()
        assert steps.settle() == 1
        assert steps.attend(*arrays, visible) is None


def test_cells_of_another_batch_keep_their_order() -> None:
    """Those that no batch wrote, as after a state was loaded, come first."""
    arrays, visible = _random(0, 2, 8, 3, 1, 16), np.ones((2, 8), bool)
    with Steps(kernel, lanes=LANES[0]) as steps:
        steps.trust()
        steps.write([2, 1])
        seen = steps.attend(*arrays, visible)
    np.testing.assert_allclose(
        seen, reference.attention(*arrays, visible, SCALE), rtol=1e-3, atol=1e-4
    )


def test_there_are_no_vectors_of_three() -> None:
    with pytest.raises(ValueError, match="no vectors of 3 floats here"):
        Steps(kernel, lanes=3)
