"""A damaged GGUF file ends in an error that names it, and never ends or hangs the process."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from damage import Damage, damage, layout
from gguf_files import write_gguf
from local_model import weights_or_skip
from seconds import least_seconds

from blendfusion.errors import ModelError, ModelFailed
from blendfusion.models.services.llama import first_load, weights
from blendfusion.models.services.llama.first_load import ensure_loads, is_known, remember
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.llama.switch import Interruption
from blendfusion.models.services.weights.gguf import TYPES, BrokenFile, check
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

TASK = Task("llm_text", "What is it?", Constraint("text"), ("text",))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path / "copies"))
    return tmp_path / "copies"


# -- the structure -------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A whole file of 2 + 1 weights' rows."""
    path = write_gguf(tmp_path / "small.gguf", [("a", (64, 2), 8), ("b", (4,), 0)], {"n": 7})
    start = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes(-start % 32 + 2 * 2 * 34))
    return path


def test_a_whole_file_is_right_and_a_byte_less_is_not(small: Path) -> None:
    check(small)

    small.write_bytes(small.read_bytes()[:-1])
    with pytest.raises(BrokenFile, match="it should have"):
        check(small)


def test_every_shorter_file_is_refused(small: Path) -> None:
    whole = small.read_bytes()
    for size in range(len(whole)):
        small.write_bytes(whole[:size])
        with pytest.raises(BrokenFile):
            check(small)


HUGE = (1 << 64) - 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"GGML" + bytes(40), "does not begin"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version is 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version is 50331648"),
        (b"GGUF" + struct.pack("<IQQ", 3, HUGE, 0), "claims 18,446,744,073,709,551,615 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, HUGE), "claims 18,446,744,073,709,551,615 keys"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, HUGE), "ends within key 1 of 1"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 8, 1 << 60), "claims .* texts"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 4, 1 << 60), "ends within"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "list of the unknown"),
        (b"GGUF" + struct.pack("<IQQQ1sIf", 3, 0, 1, 1, b"k", 6, float("nan")), "not a number"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "unknown type 99"),
        (
            b"GGUF" + struct.pack("<IQQQ17sII", 3, 0, 1, 17, b"general.alignment", 4, 3),
            "no power of two",
        ),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 1, 0, 1, b"t", 1 << 30), "dimensions"),
        (
            b"GGUF" + struct.pack("<IQQQ1sIQQIQ", 3, 1, 0, 1, b"t", 2, 1 << 62, 1 << 62, 0, 0),
            "too large",
        ),
        (b"GGUF" + struct.pack("<IQQQ1sIQIQ", 3, 1, 0, 1, b"t", 1, 33, 8, 0), "whole blocks"),
        (b"GGUF" + struct.pack("<IQQQ1sIQIQ", 3, 1, 0, 1, b"t", 1, 32, 8, 1 << 40), "it should"),
    ],
)
def test_the_place_of_the_damage_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)

    with pytest.raises(BrokenFile, match=words):
        check(path)


def test_a_large_file_of_zeros_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gguf"
    texts = struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 8, 1 << 28)
    with path.open("wb") as file:
        file.write(b"GGUF" + texts)
        file.truncate(1 << 33)  # takes no room on the disk

    def refused() -> None:
        with pytest.raises(BrokenFile, match="claims"):
            check(path)

    assert least_seconds(refused, 1) < 1


def test_types_have_the_sizes_of_llama_cpp() -> None:
    weights_or_skip()
    code = (
        "import ctypes as c; from blendfusion.models.services.llama.library import library; library()\n"
        "from llama_cpp._ggml import libggml as g\n"
        "g.ggml_type_size.restype, g.ggml_blck_size.restype = c.c_size_t, c.c_int64\n"
        f"print([(g.ggml_blck_size(n), g.ggml_type_size(n)) for n in {list(TYPES)}])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert eval(found.stdout) == [(kind.weights, kind.bytes) for kind in TYPES.values()]


# -- the first load ------------------------------------------------------------------------------


def nothing() -> None:
    """Nobody ends the wait."""


def _child(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Have children run this code instead of loading the file."""
    monkeypatch.setattr(first_load, "_PROGRAM", code)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "ended the process .*SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "ended the process .*SIGSEGV"),
        ("print('line 1\\nno tensor'); raise SystemExit(3)", "no tensor"),
        ("raise SystemExit(9)", "status 9"),
        ("import time; time.sleep(60)", "had not loaded it after"),
    ],
)
def test_what_a_child_meets_is_an_error_here(
    small: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    _child(monkeypatch, code)
    monkeypatch.setattr(first_load, "LIMIT_SECONDS", 1.0)

    with pytest.raises(ModelFailed, match=rf"small\.gguf.*{words}") as raised:
        ensure_loads([small], 0, nothing)
    assert raised.value.hint == "Download the file again, or name another one."
    assert not is_known(small)


def test_a_file_is_tried_once_as_long_as_it_stays_as_it_is(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _child(monkeypatch, "")
    ensure_loads([small], 0, nothing)

    _child(monkeypatch, "raise SystemExit(9)")
    ensure_loads([small], 0, nothing)
    small.write_bytes(small.read_bytes() + b"x")
    with pytest.raises(ModelFailed):
        ensure_loads([small], 0, nothing)


def test_without_a_folder_for_marks_a_file_is_tried_each_time(
    small: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("a file where the folder should be")
    _child(monkeypatch, "")

    ensure_loads([small], 0, nothing)
    remember(small)
    assert not is_known(small)


def test_where_no_process_can_be_started_the_file_is_loaded_all_the_same(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_load.sys, "executable", "/nowhere/python")

    ensure_loads([small], 0, nothing)
    assert not is_known(small)


def test_ctrl_c_ends_the_child(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _child(monkeypatch, "import time; time.sleep(60)")

    def stopped() -> None:
        started = time.monotonic()

        def stop() -> None:
            if time.monotonic() - started > 0.3:
                raise Interruption

        with pytest.raises(Interruption):
            ensure_loads([small], 0, stop)

    assert least_seconds(stopped, 2, time.monotonic) < 2


@pytest.mark.local
def test_packaged_weights_are_known_by_their_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = weights_or_skip()
    _child(monkeypatch, "raise SystemExit(9)")
    ensure_loads([packaged], 0, nothing)

    other = tmp_path / packaged.name
    with packaged.open("rb") as file:
        other.write_bytes(file.read()[:-1] + b"x")
    assert not is_known(other)


# -- damage --------------------------------------------------------------------------------------


@contextmanager
def damaged(path: Path, harm: Damage, whole: Path) -> Iterator[None]:
    """The file with this damage, and without it again."""
    before: list[tuple[int, bytes]] = []
    with path.open("r+b") as file:
        for at, new in harm.patches:
            file.seek(at)
            before.append((at, file.read(len(new))))
            file.seek(at)
            file.write(new)
        if harm.size is not None:
            file.truncate(harm.size)
    try:
        yield
    finally:
        if harm.size is not None:
            shutil.copyfile(whole, path)
        with path.open("r+b") as file:
            for at, old in reversed(before):
                file.seek(at)
                file.write(old)


@pytest.mark.long
@pytest.mark.local
def test_damage_ends_in_an_error_or_in_a_model_that_answers(
    tmp_path: Path, cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_load, "LIMIT_SECONDS", 20.0)
    whole = weights_or_skip()
    file = tmp_path / "model.gguf"
    shutil.copyfile(whole, file)
    places, size = layout(whole), whole.stat().st_size
    outcomes: list[str] = []

    for seed in range(16 if cases <= 2000 else 200):
        harm = damage(places, size, seed)
        options = Options(max_tokens=2, n_ctx=256, weights="auto" if seed % 9 == 0 else "original")
        started = time.monotonic()
        with damaged(file, harm, whole):
            try:
                with closing(LlamaModel(file, options)) as model:
                    outcomes.append(f"answers: {model.answer(TASK, [('fine',)])[0]}")
            except ModelError as error:
                outcomes.append(f"error: {error.message}")
        assert time.monotonic() - started < 60, harm
        assert outcomes[-1].startswith("answers: ") or "model.gguf" in outcomes[-1], harm
        print(f"{seed:3} {time.monotonic() - started:5.1f} s  {harm.what[:50]:50}  {outcomes[-1]}")

    assert any(said.startswith("error") for said in outcomes)
