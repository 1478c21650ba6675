"""The prebuilt library of llama.cpp gives the bits of one compiled with the same kernels.

``make nightly`` compiles one and names its folder in BLENDFUSION_COMPILED."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_model import weights_or_skip

from blendfusion.models.services.llama.shared_library import prebuilt

COMPILED = os.environ.get("BLENDFUSION_COMPILED", "")
PROGRAM = Path(__file__).parents[3] / "support" / "library_answers.py"


def answers(values: int, **variables: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(values)],
        env={**os.environ, **variables},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.local
@pytest.mark.long
@pytest.mark.skipif(
    not COMPILED, reason="BLENDFUSION_COMPILED names no folder of a compiled llama.cpp"
)
def test_answers_and_odds_are_the_same_bits(pytestconfig: pytest.Config) -> None:
    weights_or_skip()
    assert prebuilt() is not None
    values = pytestconfig.getoption("cases")
    ours, theirs = answers(values), answers(values, LLAMA_CPP_LIB_PATH=COMPILED)
    assert len(ours) == values
    different = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    assert not different, f"{len(different)} of {values} differ, such as {different[:3]}"
