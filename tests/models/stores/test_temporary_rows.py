"""Rows in a file without a name: each holder finds what it added last, and takes the oldest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from blendfusion.models.stores.temporary_rows import TemporaryRows


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_those_of_a_dictionary_for_each_holder(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    file = TemporaryRows(str(tmp_path))
    expected: list[dict[bytes, bytes]] = [{}, {}]
    for _ in range(60):
        holder = rng.randrange(2)
        own = expected[holder]
        new = {rng.randbytes(2): rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(30))}
        file.add(holder, [*new.items()])
        for key, data in new.items():
            own.pop(key, None)  # a row that comes again is the youngest
            own[key] = data
        asked = [*own, *(rng.randbytes(2) for _ in range(600))]
        assert dict(file.find(holder, asked)) == {key: own[key] for key in asked if key in own}
        first, last = sorted(rng.randbytes(2) for _ in range(2))
        there = {key for key in own if first <= key <= last}
        between = file.between(holder, first, last, 2)
        assert {*between} <= there
        assert len(between) == min(2, len(there))
        oldest = [*own.items()][: rng.randrange(20)]
        assert file.pop(holder, len(oldest)) == oldest
        for key, _ in oldest:
            del own[key]
    assert file.size > 0
    assert [*tmp_path.iterdir()] == []
