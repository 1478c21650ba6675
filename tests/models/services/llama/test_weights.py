"""The weights that answer: a faster copy where it pays and there is room, never without saying
so."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections import namedtuple
from pathlib import Path

import pytest
from gguf_files import write_gguf
from local_model import weights_or_skip

from blendfusion.errors import ModelFailed
from blendfusion.models.services.llama import weights
from blendfusion.models.services.llama.model import LlamaModel, fingerprint
from blendfusion.models.services.llama.weights import ConversionFailed, WeightsChoice, choose, ready
from blendfusion.models.services.weights.gguf import Head, head
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

Q4_1, Q8_0, F16 = 3, 8, 1
Usage = namedtuple("Usage", "total used free")
TASK = Task("llm_filter", "Is it good?", Constraint("boolean"), ("text",))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of copies of its own, on a processor where they pay."""
    monkeypatch.setenv(weights.VARIABLE, str(tmp_path / "copies"))
    monkeypatch.setattr(weights.platform, "machine", lambda: "x86_64")
    return tmp_path / "copies"


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    tensors = [
        ("token_embd.weight", (64, 1000), Q8_0),
        ("blk.0.ffn_up.weight", (64, 256), Q4_1),
        ("blk.0.attn_norm.weight", (64,), 0),
    ]
    return write_gguf(tmp_path / "small.gguf", tensors)


# -- the head of a file --------------------------------------------------------------------------


def test_a_head_counts_weights_by_type(quantised: Path) -> None:
    found = head(quantised)

    assert found == Head({"Q4_1": 64 * 256}, 64_000, 64, whole=True)
    assert (found.type, found.is_quantised) == ("Q4_1", True)
    assert found.size(16) == (64 * 256 + 64_000) * 2 + 64 * 4


def test_one_of_several_files_is_known(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf", [("w", (2, 2), Q4_1)], {"split.count": 3})

    found = head(file)
    assert found is not None
    assert not found.whole
    assert "one of several" in choose(file, Options()).says


@pytest.mark.parametrize("kept", [0, 3, 4, 11, 30, 60, 120, 200])
def test_what_is_no_whole_head_has_none(quantised: Path, kept: int) -> None:
    quantised.write_bytes(quantised.read_bytes()[:kept])

    assert head(quantised) is None
    assert choose(quantised, Options()) == WeightsChoice(quantised)


def test_a_head_that_promises_too_much_has_none(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + b"\x03\0\0\0" + b"\xff" * 64)

    assert head(file) is None


# -- which weights -------------------------------------------------------------------------------


def test_quantised_weights_are_copied_to_f16(quantised: Path, folder: Path) -> None:
    chosen = choose(quantised, Options())

    assert chosen.copy is not None
    assert (chosen.copy.parent, chosen.type, chosen.says) == (folder, "F16", "F16, made of Q4_1")
    assert list(folder.iterdir()) == []  # nothing is made yet


def test_a_copy_is_not_made_where_it_is_not_wanted(quantised: Path, folder: Path) -> None:
    assert choose(quantised, Options(weights="original")) == WeightsChoice(quantised)
    assert not folder.exists()


def test_a_gpu_has_a_copy_too_but_on_a_mac(
    quantised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu = Options(n_gpu_layers=-1)
    assert choose(quantised, on_gpu).says == "F16, made of Q4_1"
    monkeypatch.setattr(weights.platform, "system", lambda: "Darwin")
    assert choose(quantised, on_gpu) == WeightsChoice(quantised)


def test_a_gpu_has_larger_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MOST_BYTES", 100_000)
    monkeypatch.setattr(weights, "MOST_GPU_BYTES", 200_000)
    tensors = [("blk.0.ffn_up.weight", (64, 1000), Q4_1)]
    file = write_gguf(tmp_path / "large.gguf", tensors)

    assert choose(file, Options()).copy is None
    assert choose(file, Options(n_gpu_layers=-1)).copy is not None


def test_other_processors_keep_what_they_have(
    quantised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights.platform, "machine", lambda: "arm64")

    assert choose(quantised, Options()) == WeightsChoice(quantised)
    assert choose(quantised, Options(weights="f16")).type == "F16"


def test_good_weights_stay(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "good.gguf", [("blk.0.w", (8, 8), F16)])

    for asked in ("auto", "f16"):
        chosen = choose(file, Options(weights=asked))
        assert (chosen.path, chosen.says) == (file, "F16, as in the file")


def test_another_file_under_the_same_name_has_another_copy(quantised: Path) -> None:
    before = choose(quantised, Options()).copy
    quantised.write_bytes(quantised.read_bytes() + b"x")

    assert choose(quantised, Options()).copy != before


def _no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_text("a file where the folder should be")


def _no_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: Usage(10**12, 10**12, 10**6))


def _no_right(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [(_no_folder, "no copy can be kept"), (_no_room, "no room for"), (_no_right, "no right")],
)
def test_without_room_or_right_the_file_itself_answers_and_it_is_said(
    quantised: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: object,
    said: str,
) -> None:
    trouble(folder, monkeypatch)  # type: ignore[operator]
    with caplog.at_level(logging.WARNING, "blendfusion.model"):
        chosen = choose(quantised, Options())

    assert chosen.path == quantised
    assert said in chosen.says
    assert said in caplog.text
    with pytest.raises(ModelFailed, match=said):
        choose(quantised, Options(weights="f16"))


def test_a_large_copy_is_made_only_if_asked_for(
    quantised: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "MOST_BYTES", 1000)

    assert "F16 would take" in choose(quantised, Options()).says
    assert choose(quantised, Options(weights="f16")).type == "F16"


def test_fingerprints_tell_which_weights_answer(quantised: Path) -> None:
    found = {
        fingerprint(choose(quantised, o), o)
        for o in (Options(), Options(weights="original"), Options(weights="q8_0"))
    }
    assert len(found) == 3
    same = Options(weights="f16")
    assert fingerprint(choose(quantised, same), same) in found


# -- making a copy -------------------------------------------------------------------------------


@pytest.fixture
def packaged(no_model_in_memory: None) -> Path:
    return weights_or_skip()


@pytest.mark.long
@pytest.mark.local
def test_a_copy_is_made_once_by_threads_that_want_it_together(
    packaged: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = choose(packaged, Options())
    found: list[Path] = []
    with caplog.at_level(logging.INFO, "blendfusion.model"):
        threads = [threading.Thread(target=lambda: found.append(ready(chosen))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == [chosen.copy, chosen.copy]
    assert list(folder.iterdir()) == [chosen.copy]
    made = head(chosen.path)
    assert made is not None
    assert made.type == "F16"
    assert chosen.path.stat().st_size == pytest.approx(chosen.bytes, rel=0.02)
    assert "weights converted" in caplog.text
    caplog.clear()
    ready(chosen)
    assert not caplog.records


@pytest.mark.local
def test_a_damaged_copy_is_made_anew(packaged: Path) -> None:
    chosen = choose(packaged, Options())
    chosen.path.parent.mkdir(parents=True, exist_ok=True)
    chosen.path.write_bytes(b"GGUF")

    model = LlamaModel(packaged, Options(n_ctx=256))
    assert model.count_tokens("x") == 1
    assert chosen.path.stat().st_size > chosen.bytes
    model.close()


@pytest.mark.long
@pytest.mark.local
def test_where_no_copy_can_be_made_the_file_itself_answers(
    packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_chosen: WeightsChoice) -> None:
        raise ConversionFailed("the disk is full")

    original = LlamaModel(packaged, Options(n_ctx=512, weights="original"))
    with monkeypatch.context() as patched:
        patched.setattr(weights, "_convert", full)
        model = LlamaModel(packaged, Options(n_ctx=512))
        before = model.fingerprint
        answers = model.answer(TASK, [("fine",)])

    assert answers[0].error is None
    assert "the disk is full" in model.info.settings["weights"]
    assert model.fingerprint != before
    assert model.fingerprint == original.fingerprint
    model.close()


@pytest.mark.local
@pytest.mark.usefixtures("packaged")
def test_llama_cpp_refuses_what_it_cannot_convert(quantised: Path, folder: Path) -> None:
    with pytest.raises(ConversionFailed, match=r"small\.gguf"):
        ready(choose(quantised, Options()))

    assert list(folder.iterdir()) == []


def test_old_copies_go_and_what_was_abandoned(folder: Path) -> None:
    folder.mkdir()
    for age, name in enumerate(("new.gguf", "used.gguf", "old.gguf", "making-1.gguf")):
        (folder / name).write_bytes(bytes(100))
        os.utime(folder / name, (10**9 - age, 10**9 - age))
    (folder / "making-2.gguf").write_bytes(b"by another process, now")

    weights._tidy(folder, 250)

    assert {path.name for path in folder.iterdir()} == {"new.gguf", "used.gguf", "making-2.gguf"}
