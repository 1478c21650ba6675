"""Speech to text: by a script for what is asked, and by the packaged Moonshine."""

from __future__ import annotations

import io
import random
import shutil
import struct
import subprocess
import wave
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.models.protocol.audio import MOST_BYTES
from blendfusion.models.services.speech.decode import NoAudio, samples_of


def wav(samples: int = 160, tone: int = 7, rate: int = 16_000) -> bytes:
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{samples}h", *[tone * (n % 50) for n in range(samples)]))
    return held.getvalue()


@pytest.fixture
def session() -> bf.Session:
    model = bf.ScriptedModel(lambda request: f"{len(bf.image_bytes(request.values[0]))} bytes")
    session = bf.connect(None, cache=None)
    session.register_model("heard", model)
    rows = [wav(), wav(), None, b"", b"hello", wav(tone=9), b"fLaC" + bytes(20)]
    session.from_pylist([{"id": n, "a": a} for n, a in enumerate(rows)], "calls")
    return session


def test_equal_recordings_are_one_question(session: bf.Session) -> None:
    frame = session.sql("SELECT id, llm_transcribe(a, model => 'heard') AS t FROM calls")
    assert "expected: 3 values of 7 rows" in frame.explain_text()
    with pytest.warns(bf.AnswerWarning, match="1 value got no valid answer"):
        found = [row["t"] for row in frame.to_pylist()]
    size = f"{len(wav())} bytes"
    assert found == [size, size, None, None, None, size, "24 bytes"]
    assert frame.trace.usage.values == 3
    with pytest.warns(bf.AnswerWarning):
        frame.to_pylist()
    assert frame.trace.usage.values == 0, "they are in the cache"


def test_what_is_no_recording_has_a_reason(session: bf.Session) -> None:
    query = "SELECT llm_transcribe(a, model => 'heard', on_error => 'keep') AS t FROM calls WHERE id = 4"
    (row,) = session.sql(query).to_pylist()
    assert row["t"]["value"] is None
    assert row["t"]["error"].startswith("no audio: it is not the bytes of a WAV, FLAC or Ogg")
    session.from_pylist([{"a": wav()[:44] + bytes(MOST_BYTES)}], "large")
    query = "SELECT llm_transcribe(a, model => 'heard', on_error => 'keep') AS t FROM large"
    assert "more than 64 MB" in session.sql(query).to_pylist()[0]["t"]["error"]


def test_paths_of_recordings_are_texts_that_no_function_opens(
    session: bf.Session, tmp_path: Path
) -> None:
    """Nothing that stands in a row is opened; a call says so instead of hearing the path."""
    (tmp_path / "a.wav").write_bytes(wav())
    paths = [str(tmp_path / "a.wav"), "https://sounds.example/a.wav", "data:audio/wav;base64,UklG"]
    session.from_pydict({"p": paths}, name="files")
    query = (
        "SELECT llm_transcribe(p, model => 'heard', on_error => 'keep')['error'] AS e FROM files"
    )
    assert all("a path or URL is not read" in row["e"] for row in session.sql(query).to_pylist())
    asked = bf.ScriptedModel(lambda request: request.values[0])
    texts = bf.connect(asked, cache=None)
    texts.from_pydict({"p": paths}, name="files")
    for sql in (
        "SELECT llm_map('q', p) AS a FROM files",
        "SELECT {{LLMMap('q', p)}} AS a FROM files",
    ):
        assert [row["a"] for row in texts.sql(sql).to_pylist()] == paths


def test_a_budget_limits_recordings(session: bf.Session) -> None:
    frame = session.sql(
        "SELECT llm_transcribe(a, model => 'heard') AS t FROM calls", budget=bf.Budget(values=2)
    )
    with pytest.raises(bf.BudgetExceeded):
        frame.to_pylist()


def test_a_model_that_hears_nothing_is_refused() -> None:
    session = bf.connect(None, cache=None)
    session.from_pylist([{"a": wav()}], "calls")
    with pytest.raises(bf.QueryError, match="transcribes no speech") as raised:
        session.sql("SELECT llm_transcribe(a, model => 'embedding') FROM calls").to_pylist()
    assert "speech" in str(raised.value.hint)


def test_hostile_recordings_have_a_reason() -> None:
    pytest.importorskip("soundfile")
    chance = random.Random(3)
    good = wav(4000)
    endless = good[:40] + struct.pack("<I", 0xFFFFFFFF) + good[44:]
    fast = good[:24] + struct.pack("<I", 0xFFFFFFFF) + good[28:]
    for data in [endless, fast, good[:50], b"OggS" + chance.randbytes(2000), b"fLaC" + bytes(3000)]:
        try:
            found, _ = samples_of(data)
        except NoAudio:
            continue
        assert len(found) <= 4000
    for _ in range(200):
        data = bytearray(good)
        for _ in range(chance.choice([1, 5, 40])):
            data[chance.randrange(60)] = chance.randrange(256)
        try:
            samples_of(bytes(data))
        except NoAudio:
            continue


@pytest.fixture(scope="module")
def recordings() -> Path:
    package = pytest.importorskip("moonshine_voice", reason="the extra 'speech' is not installed")
    return Path(package.__file__).parent / "assets"


def first_seconds(file: Path, seconds: float) -> bytes:
    held = io.BytesIO()
    with wave.open(str(file)) as whole, wave.open(held, "wb") as part:
        part.setparams(whole.getparams())
        part.writeframes(whole.readframes(int(seconds * whole.getframerate())))
    return held.getvalue()


def test_the_packaged_model_transcribes(recordings: Path) -> None:
    session = bf.connect(None, cache=None)
    speech = first_seconds(recordings / "beckett.wav", 2.6)
    session.from_pylist([{"id": 1, "a": speech}, {"id": 2, "a": speech}], "calls")
    frame = session.sql("SELECT id, llm_transcribe(a) AS t FROM calls")
    first, second = [row["t"] for row in frame.to_pylist()]
    assert first == second
    assert first.startswith("Ever tried. Ever fail")
    assert frame.trace.usage.values == 1
    session.from_pylist([{"a": wav(16_000, 0)}], "silence")
    silence = session.sql("SELECT llm_transcribe(a) AS t FROM silence")
    with pytest.warns(bf.AnswerWarning):
        silence.to_pylist()


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_made_speech_is_understood_in_part(recordings: Path, tmp_path: Path) -> None:
    file = tmp_path / "speech.wav"
    words = "The parcel with order number forty two never arrived."
    subprocess.run(["espeak-ng", "-w", str(file), words], check=True, timeout=60)
    session = bf.connect(None, cache=None)
    session.from_pylist([{"a": file.read_bytes()}], "calls")
    (row,) = session.sql("SELECT llm_transcribe(a) AS t FROM calls").to_pylist()
    assert "never arrived" in row["t"]


# --- recordings that are cut, or quiet -----------------------------------------------------------


def _recording(kind: str) -> bytes:
    soundfile = pytest.importorskip("soundfile", reason="the extra 'speech' is not installed")
    import numpy as np

    held = io.BytesIO()
    chance = np.random.default_rng(7)
    samples = (0.3 * chance.standard_normal(40_000)).clip(-1, 1)
    form, subtype = kind.split()
    soundfile.write(held, samples, 16_000, format=form, subtype=subtype)
    return held.getvalue()


@pytest.mark.parametrize("kind", ["WAV PCM_16", "WAV FLOAT", "OGG VORBIS", "FLAC PCM_16"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_recording_without_its_end_is_no_recording(kind: str, share: float) -> None:
    data = _recording(kind)
    assert len(samples_of(data)[0]) == 40_000
    with pytest.raises(NoAudio, match="damaged audio"):
        samples_of(data[: int(share * len(data))])


def test_a_size_that_a_program_did_not_know_is_no_cut() -> None:
    data = bytearray(_recording("WAV PCM_16"))
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    assert len(samples_of(bytes(data))[0]) > 0


@pytest.mark.parametrize("tone", [1, 7, 30])
def test_quiet_speech_is_made_louder(tone: int) -> None:
    samples, _ = samples_of(wav(tone=tone))
    assert abs(float(samples.max()) - 0.25) < 0.01
