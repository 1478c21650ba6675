"""How much a local model takes on at a time: what the machine, a container and a GPU's memory
let."""

from __future__ import annotations

from pathlib import Path

import pytest

from blendfusion.models.services.llama import cpu_cores as cores_module
from blendfusion.models.services.llama.cpu_cores import cores
from blendfusion.models.services.llama.sizes import MOST_SEQUENCES, on_cpu, on_gpu

CELL_BYTES = 36_864
"""Of SmolLM2-135M: 30 layers, 3 heads of 64 for keys and values each, in F16."""


@pytest.mark.parametrize(
    ("trained", "asked", "window"),
    [(2048, 0, 2048), (131072, 0, 8192), (2048, 512, 512), (2048, 9999, 2048)],
)
def test_a_window_is_what_was_asked_for_and_no_more_than_was_trained(
    trained: int, asked: int, window: int
) -> None:
    for sizes in (
        on_cpu(trained, asked),
        on_gpu(trained, asked, free_bytes=1 << 34, cell_bytes=CELL_BYTES),
    ):
        assert sizes.window == window
        assert sizes.cells >= window


def test_a_gpu_takes_as_many_rows_as_its_memory_lets() -> None:
    small, large, none = (
        on_gpu(2048, 0, free_bytes=size, cell_bytes=CELL_BYTES) for size in (1 << 30, 24 << 30, 0)
    )
    assert large.sequences == MOST_SEQUENCES
    assert none.cells == none.window == 2048
    assert on_cpu(2048, 0).rows <= none.rows <= small.rows < large.rows
    for sizes in (small, large):
        assert sizes.cells * CELL_BYTES <= (24 << 30 if sizes is large else 1 << 30) // 2
        assert sizes.micro_batch <= sizes.batch


@pytest.mark.parametrize(
    ("quota", "allowed"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 1),
        ("50000 100000", 1),
        ("nonsense", 8),
    ],
)
def test_a_container_that_may_use_two_cores_gets_two_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, allowed: int
) -> None:
    monkeypatch.setattr(
        cores_module.os, "sched_getaffinity", lambda _: set(range(8)), raising=False
    )
    monkeypatch.setattr(cores_module, "_QUOTA", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(quota)

    assert cores() == allowed


@pytest.mark.parametrize(("quota", "allowed"), [("-1", 8), ("300000", 3)])
def test_so_does_an_older_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, allowed: int
) -> None:
    monkeypatch.setattr(
        cores_module.os, "sched_getaffinity", lambda _: set(range(8)), raising=False
    )
    monkeypatch.setattr(cores_module, "_QUOTA", tmp_path / "none")
    monkeypatch.setattr(cores_module, "_OLD_QUOTA", tmp_path / "quota")
    monkeypatch.setattr(cores_module, "_OLD_PERIOD", tmp_path / "period")
    (tmp_path / "quota").write_text(quota)
    (tmp_path / "period").write_text("100000")

    assert cores() == allowed


def test_without_limits_all_cores_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_QUOTA", "_OLD_QUOTA", "_OLD_PERIOD"):
        monkeypatch.setattr(cores_module, name, tmp_path / "none")

    assert cores() >= 1
