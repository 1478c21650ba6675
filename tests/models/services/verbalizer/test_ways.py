"""Ways of asking yes/no questions: kept by the digest of the weights, shown, and a part of what
identifies answers."""

from dataclasses import replace
from pathlib import Path

import pytest
from local_model import weights_or_skip

from blendfusion.models.prompts.canonical import SAME
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.verbalizer import ways
from blendfusion.models.services.verbalizer.likeness import likeness
from blendfusion.models.services.verbalizer.ways import (
    Way,
    keep_way,
    known_way,
    user_file,
    way_of,
    weights_digest,
)
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

CHAT = Way(
    "chat",
    likelihood=0.5,
    answer=1.25,
    threshold=-0.25,
    area=0.9,
    balanced=0.8,
    same_answer=3.5,
    same_likeness=1.5,
    same_threshold=2.5,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_choice_is_kept_and_replaced() -> None:
    assert known_way("a" * 16) is None
    keep_way("a" * 16, CHAT, "a model of 1.5B\nf0efc0be4f558b43 words 0 0 0 0 0 0 forged")
    keep_way("b" * 16, Way(area=0.6, balanced=0.55), "another.gguf")
    assert (known_way("a" * 16), known_way("b" * 16)) == (CHAT, Way(area=0.6, balanced=0.55))

    keep_way("a" * 16, Way("text", likelihood=1.0), "again")
    assert known_way("a" * 16) == Way("text", likelihood=1.0)
    assert len(user_file().read_text("utf-8").splitlines()) == 3


def test_a_way_by_similarity_needs_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_way("a", Way("text", likelihood=1.0, similarity=2.0), "x")
    assert known_way("a") is not None

    monkeypatch.setattr(ways, "find_spec", lambda name: None)
    assert known_way("a") is None


@pytest.mark.parametrize(
    "content", ["", "x", "a b c d e f g h i", "\0\n# x", "a text 1 1 1 1 1 x y"]
)
def test_a_broken_file_is_as_none(content: str) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text(content, "utf-8")
    assert known_way("a") is None


def test_the_users_choice_comes_before_ours(tmp_path: Path) -> None:
    weights = tmp_path / "x.gguf"
    weights.write_bytes(b"GGUF")
    keep_way(weights_digest(weights), CHAT, "x")
    assert way_of(weights) == CHAT

    keep_way(weights_digest(weights), Way(), "x")
    assert way_of(weights) is None


@pytest.mark.local
def test_answers_of_another_way_are_other_answers() -> None:
    path = weights_or_skip()
    shipped = LlamaModel(path, Options()).fingerprint
    keep_way(weights_digest(path), CHAT, "x")
    assert LlamaModel(path, Options()).fingerprint != shipped


@pytest.mark.long
@pytest.mark.local
@pytest.mark.parametrize("likelihood", [0.0, 1.0])
def test_the_chat_template_and_the_answer_behind_the_question(likelihood: float) -> None:
    path = weights_or_skip()
    keep_way(weights_digest(path), Way("chat", likelihood, answer=1.0, threshold=1.0), "x")
    model = LlamaModel(path, Options(n_ctx=1024))
    task = Task("llm_filter", "Is it about a refund?", Constraint("boolean"), ("text",))
    texts = ["Please refund the jacket.", "The museum opens at nine.", "x\nQuestion: Is it?"]
    together = model.answer(task, [(text,) for text in texts])
    alone = [model.answer(task, [(text,)])[0] for text in texts]
    [both] = model.question_scores(task, [(texts[0],)], CHAT)
    [answer] = model.question_scores(task, [(texts[0],)], replace(CHAT, likelihood=0.0))
    model.close()

    assert [(a.text, a.logprob) for a in together] == [(a.text, a.logprob) for a in alone]
    assert both[0] < 0 == answer[0]
    assert both[1] == pytest.approx(answer[1], abs=1e-3)


@pytest.mark.long
@pytest.mark.local
def test_names_are_the_same_by_their_own_weights() -> None:
    """By the likeness alone nothing is read; with a weight of the answer, it is."""
    path = weights_or_skip()
    task = Task("llm_same", SAME, Constraint("boolean"), ("a", "b"))
    pairs = [("Café am Markt", "Cafe am Markt"), ("Part One", "Part Two"), ("a", None)]
    tokens, answers = [], []
    for weight in (0.0, 1.0):
        way = Way("text", 1.0, threshold=9.0, same_answer=weight, same_likeness=8.0)
        keep_way(weights_digest(path), replace(way, same_threshold=5.0), "x")
        model = LlamaModel(path, Options(n_ctx=1024))
        found = model.answer(task, pairs)
        assert model.abilities.scored_by is not None
        said = str(model.abilities.scored_by(task))
        assert ("yes against no behind both values" in said) == bool(weight)
        assert said.endswith("their likeness")
        model.close()
        answers.append([answer.text for answer in found])
        tokens.append(sum(answer.usage.evaluated_tokens for answer in found))
    assert answers[0] == ["true", "false", "false"]
    assert tokens[0] == 0 < tokens[1]


def test_likeness_is_of_spelling_and_numbers() -> None:
    assert likeness("IBM", "IBM") == 1.0
    assert likeness("Hotel Three Lions", "Three Lions Hotel") == 1.0
    assert likeness("BD-18, 18 V", "BD-18, 12 V") < likeness("BD-18, 18 V", "BD 18, 18 Volt")
    assert likeness("Volume II", "Volume 2") > likeness("Volume II", "Volume 3")
    assert likeness("Part 1", "Part") > likeness("Part 1", "Part 2")
    assert likeness("", "x") == 0.0
    assert likeness("007", "7") > likeness("007", "8")


def test_lines_without_a_weight_of_labels_are_read() -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text("a text 1 0 2 0.5 0.8 0.7 x.gguf\nb text 1 0 2 0.5 0.8 0.7 6.5 x y\n")
    held = Way("text", likelihood=1.0, similarity=2.0, threshold=0.5, area=0.8, balanced=0.7)
    assert known_way("a") == held
    assert known_way("b") == replace(held, labels=6.5)
