"""Digests in files: what was kept last is found, whatever was merged and however many begin alike."""

from __future__ import annotations

import random
import tempfile
from bisect import bisect_left

import numpy as np
import pytest

from blendfusion.models.stores import key_runs
from blendfusion.models.stores.key_runs import NONE, KeyRuns, bytes_of, keys_of


def any_key(rng: random.Random, different: int) -> bytes:
    """Of so many different first halves."""
    head = random.Random(rng.randrange(different)).randbytes(8)
    return head + (rng.randbytes(8) if rng.random() < 0.8 else rng.choice((b"\0" * 8, b"\xff" * 8)))


@pytest.mark.parametrize("different", [3, 40, 10**9])
@pytest.mark.parametrize("piece", [4, 50, 10_000])
def test_what_was_kept_last_is_found(
    monkeypatch: pytest.MonkeyPatch, different: int, piece: int
) -> None:
    monkeypatch.setattr(key_runs, "_PIECE", piece)
    monkeypatch.setattr(key_runs, "_MERGED", 3)
    rng = random.Random(f"{different} {piece}")
    runs, expected = KeyRuns(tempfile.TemporaryFile), dict[bytes, int]()
    for turn in range(40):
        new = {any_key(rng, different): turn * 1_000 + i for i in range(rng.randrange(1, 60))}
        new |= dict.fromkeys(rng.sample([*expected], min(len(expected), 3)), turn * 1000 + 999)
        runs.add(keys_of(b"".join(new)), np.array([*new.values()]))
        expected |= new
        others = [any_key(rng, different) for _ in range(30)]
        asked = [*rng.sample([*expected], min(len(expected), 50)), *others]
        found = runs.find(keys_of(b"".join(asked))).tolist()
        assert found == [expected.get(key, int(NONE)) for key in asked]
    assert len(runs) <= 2 * 4, "merged"

    known = sorted(expected)
    for bits in (1, 5, 24, 56, 64):
        shift = 64 - bits
        heads = {int.from_bytes(key[:8], "big") >> shift for key in [*known, *others]}
        start = runs.starting(np.array(sorted(heads), np.uint64), bits)
        keys = bytes_of(start.keys)
        for head, count, key in zip(sorted(heads), start.counts.tolist(), keys, strict=True):
            first = bisect_left(known, (head << shift).to_bytes(8, "big"))
            own = [k for k in known[first:] if int.from_bytes(k[:8], "big") >> shift == head]
            assert count >= len(own)
            assert (count > 0) == bool(own)
            if count == 1:
                assert own == [key]


def test_files_are_few_and_hold_each_digest_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, rng = KeyRuns(tempfile.TemporaryFile), np.random.default_rng(0)
    for turn in range(512):
        keys = rng.integers(0, 2**63, (20, 2)).astype(np.uint64)
        runs.add(keys, np.full(20, turn))
    assert len(runs) == 1
    assert runs.bytes == 512 * 20 * 24
