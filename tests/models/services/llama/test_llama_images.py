"""A local model with a projector: what it says of images lies inside the constraint, and no image
or file takes the process down. The projector's weights are random, so answers mean nothing."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from local_model import weights_or_skip
from projectors import PATCHES, png, png_saying, write_projector

import blendfusion as bf
from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.protocol.images import lend_within, name_of
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.llama.projectors import projector_of
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Task

RED, BLUE = png(60, 40, (255, 0, 0)), png(90, 90, (0, 0, 255))


def task(constraint: Constraint, *names: str) -> Task:
    return Task("llm_vqa", "What is it?", constraint, names or ("photo",), images=True)


def weights() -> Path:
    """Where the packaged model is; skips the test if it, or what it needs to see, is not there."""
    path = weights_or_skip()
    found = importlib.util.find_spec("llama_cpp")
    assert found is not None
    assert found.origin is not None
    if not list((Path(found.origin).parent / "lib").glob("*mtmd*")):
        pytest.skip("llama-cpp-python was built without its multimodal library")
    return path


@pytest.fixture(scope="module")
def projector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_projector(tmp_path_factory.mktemp("projector") / "mmproj.gguf")


@pytest.fixture(scope="module")
def model(projector: Path) -> Iterator[LlamaModel]:
    opened = LlamaModel(
        weights(),
        Options(max_tokens=8, n_ctx=512, calibration="none", projector=str(projector)),
    )
    yield opened
    opened.close()


def ask(model: LlamaModel, asked: Task, *images: tuple[bytes | str | None, ...]) -> list[Answer]:
    """The answers about tuples of images: bytes, or texts in the place of them."""
    held = {name_of(i): i for row in images for i in row if isinstance(i, bytes)}
    names = [tuple(name_of(i) if isinstance(i, bytes) else i for i in row) for row in images]
    with lend_within({name: data for name, data in held.items() if name}):
        return model.answer(asked, names)


@pytest.mark.long
@pytest.mark.local
@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("boolean"),
        Constraint("choice", options=("red", "blue", "dark green")),
        Constraint("integer"),
        Constraint("score", scale=(0, 4)),
        Constraint("list", item=Constraint("integer")),
        Constraint("text"),
    ],
    ids=str,
)
def test_answers_lie_inside_the_constraint_and_are_the_same_again(
    model: LlamaModel, constraint: Constraint
) -> None:
    first, other, again = ask(model, task(constraint), (RED,), (BLUE,), (RED,))
    for answer in (first, other):
        assert answer.text is not None
        assert holds(constraint, answer.text)
    assert again.text == first.text
    (alone,) = ask(model, task(constraint), (RED,))
    assert (alone.text, alone.logprob) == (first.text, first.logprob)


@pytest.mark.local
def test_an_image_is_seen(model: LlamaModel) -> None:
    asked = task(Constraint("choice", options=("one", "two")))
    red, blue = ask(model, asked, (RED,), (BLUE,))
    assert red.logprob != blue.logprob


@pytest.mark.local
def test_an_image_takes_its_tokens_and_the_question_is_computed_once(model: LlamaModel) -> None:
    asked = task(Constraint("boolean"), "photo")
    one, two = ask(model, asked, (RED,), (BLUE,))
    assert one.usage.prompt_tokens == two.usage.prompt_tokens
    assert two.usage.evaluated_tokens < one.usage.evaluated_tokens
    assert two.usage.evaluated_tokens >= PATCHES
    pair = task(Constraint("boolean"), "before", "after")
    (both,) = ask(model, pair, (RED, BLUE))
    (first,) = ask(model, pair, (RED, None))
    assert both.usage.prompt_tokens >= first.usage.prompt_tokens + PATCHES


@pytest.mark.local
def test_a_text_beside_an_image_is_read_with_it(model: LlamaModel) -> None:
    """Both sides count, in either order, and one of them may be absent."""
    asked = task(Constraint("choice", options=("one", "two")), "descr", "photo")
    rows = [("red", RED), ("red", BLUE), ("blue", RED), ("red", None), (None, RED)]
    answers = ask(model, asked, *rows)
    assert all(answer.error is None for answer in answers)
    assert len({answer.logprob for answer in answers}) == len(rows)
    turned = task(Constraint("choice", options=("one", "two")), "photo", "descr")
    (other,) = ask(model, turned, (RED, "red"))
    assert other.text in ("one", "two")
    alone, text = answers[4], answers[3]
    both = answers[0].usage.prompt_tokens
    assert both >= text.usage.prompt_tokens + PATCHES
    assert both > alone.usage.prompt_tokens


@pytest.mark.local
def test_texts_are_answered_as_before_in_between(model: LlamaModel) -> None:
    texts = Task("llm_filter", "Is it positive?", Constraint("boolean"), ("text",))
    before = model.answer(texts, [("I loved it.",)])
    ask(model, task(Constraint("boolean")), (RED,))
    after = model.answer(texts, [("I loved it.",)])
    assert (before[0].text, before[0].logprob) == (after[0].text, after[0].logprob)


@pytest.mark.local
@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (RED[:60], "the image is broken"),
        (b"\x89PNG\r\n\x1a\n", "its size cannot be read"),
        (b"\xff\xd8\xff\xe0no picture", "its size cannot be read"),
        (b"GIF89a\x20\x00", "its size cannot be read"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "not image/webp"),
        (png_saying(100_000, 100_000, b""), "its size cannot be read"),
        (png_saying(12_000, 8_000, b""), "12,000 x 8,000 pixels"),
        (png_saying(3, 1_000, b""), "3 x 1,000 pixels"),
        (png_saying(20, 20, b"\0"), "not enough pixels"),
        (RED.replace(b"IEND", b"I\x1b[m"), "PNG chunk not known"),
        ("https://example.org/a.png", "fetches nothing"),
    ],
)
def test_what_cannot_be_shown_has_failed_alone(
    model: LlamaModel, image: bytes | str, reason: str
) -> None:
    good, bad, last = ask(model, task(Constraint("boolean")), (RED,), (image,), (BLUE,))
    assert good.error is None
    assert last.error is None
    assert bad.text is None
    assert bad.error is not None
    assert reason in bad.error
    assert bad.error.isprintable()


@pytest.mark.local
@pytest.mark.parametrize("size", [(1, 1), (1, 100), (2000, 30), (64, 64)], ids=str)
def test_sizes(model: LlamaModel, size: tuple[int, int]) -> None:
    (answer,) = ask(model, task(Constraint("boolean")), (png(*size, (1, 2, 3)),))
    assert answer.text in ("true", "false")


@pytest.mark.local
def test_more_images_than_the_window_holds_have_failed(model: LlamaModel) -> None:
    many = 30
    asked = task(Constraint("boolean"), *(f"photo {i}" for i in range(many)))
    long, short = ask(model, asked, (RED,) * many, (RED,))
    assert long.error is not None
    assert "the window is 512" in long.error
    assert short.error is None


@pytest.mark.local
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"GGUF", "it ends within its counts"),
        (b"no projector", "does not begin as a GGUF"),
        (None, "as the projector of this model"),
    ],
    ids=["short", "other", "weights"],
)
def test_a_file_that_is_no_projector(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "mmproj.gguf"
    path.write_bytes(weights().read_bytes() if content is None else content)
    broken = LlamaModel(weights(), Options(n_ctx=512, projector=str(path)))
    with pytest.raises(ModelFailed, match=rf"mmproj\.gguf.*{words}"):
        ask(broken, task(Constraint("boolean")), (RED,))
    broken.close()


@pytest.mark.local
def test_a_projector_of_another_model(tmp_path: Path) -> None:
    narrow = write_projector(tmp_path / "narrow.gguf", width=512)
    model = LlamaModel(weights(), Options(n_ctx=512, projector=str(narrow)))
    with pytest.raises(ModelFailed, match="mismatch between text model"):
        ask(model, task(Constraint("boolean")), (RED,))
    model.close()
    marking = write_projector(tmp_path / "marking.gguf", kind="idefics3")
    model = LlamaModel(weights(), Options(n_ctx=512, projector=str(marking)))
    (answer,) = ask(model, task(Constraint("boolean")), (RED,))
    assert answer.error is not None
    assert "has not the tokens" in answer.error
    model.close()


@pytest.mark.long
@pytest.mark.local
def test_in_a_session(projector: Path) -> None:
    session = bf.connect(
        f"llama:{weights()}", cache=None, progress="off", projector=str(projector), n_ctx=512
    )
    photos = pa.table({"id": range(4), "photo": pa.array([RED, None, RED[:60], BLUE], pa.binary())})
    session.from_arrow(photos, name="t")
    colour = "llm_vqa('Which colour?', photo, options => ['red', 'blue'])"
    frame = session.sql(f"SELECT id, {colour} AS colour FROM t ORDER BY id")
    with pytest.warns(bf.AnswerWarning, match="the image is broken"):
        first, empty, broken, last = frame.to_pydict()["colour"]
    assert {first, last} <= {"red", "blue"}
    assert empty is broken is None
    assert frame.trace.usage.values == 3
    # A text of another table beside the image of a join, in a function of rows.
    session.from_pydict(
        {"id": [0, 1, 3, 3], "descr": ["a red bag", "none", "blue", "blue"]}, name="d"
    )
    query = "SELECT d.id, llm_filter('Does {descr} fit?', descr, photo) AS f FROM d JOIN t ON d.id = t.id"
    frame = session.sql(f"{query} ORDER BY 1")
    assert all(isinstance(fits, bool) for fits in frame.to_pydict()["f"])
    assert frame.trace.usage.values == 3  # equal pairs once
    session.close()


def test_the_projector_is_the_one_beside_the_only_weights(tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.touch()
    assert projector_of(model, "") is None
    beside = tmp_path / "mmproj-model-f16.gguf"
    beside.touch()
    assert projector_of(model, "") == beside
    assert projector_of(beside, "") is None
    named = tmp_path / "other" / "mmproj.gguf"
    named.parent.mkdir()
    named.touch()
    assert projector_of(model, str(named)) == named
    with pytest.raises(ModelNotFound, match="there is no projector"):
        projector_of(model, "nowhere.gguf")
    with pytest.raises(ModelNotFound, match="names no file of the Hub"):
        projector_of(model, "hf:owner/mmproj")
    (tmp_path / "second.gguf").touch()
    assert projector_of(model, "") is None


def test_without_a_projector_a_local_model_reads_text_only(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    plain = LlamaModel(path, Options())
    assert not plain.sees_images
    shutil.copy(path, tmp_path / "mmproj.gguf")
    seeing = LlamaModel(path, Options())
    assert seeing.sees_images
    assert seeing.fingerprint != plain.fingerprint
