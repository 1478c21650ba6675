"""The answers of a run: in memory up to a size, the rest in a file that leaves no trace."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from blendfusion.errors import BlendFusionError
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.answer_spill import AnswerSpill
from blendfusion.types import Answer, FinishReason, Usage


def any_answer(rng: random.Random) -> Answer:
    finish: FinishReason = rng.choice(("complete", "decided", "length"))
    if rng.random() < 0.1:
        return Answer.failed("no answer, half a pair: \ud800", too_long=rng.random() < 0.5)
    text = rng.choice((None, "", "true", "ünï \ud801", "x" * rng.randrange(2_000)))
    spent = rng.choice(((), (("small", Usage(1)), ("large", Usage(2)))))
    return Answer(text, finish, rng.choice((None, -0.25)), Usage(1, 2), spent=spent)


def any_values(rng: random.Random) -> Values:
    texts = (None, "", "a", "a\0", "\ud800", str(rng.randrange(10_000)), "y" * rng.randrange(500))
    return tuple(rng.choice(texts) for _ in range(rng.randrange(1, 4)))


def parts(answer: Answer) -> tuple[object, ...]:
    """All that a result can depend on."""
    return answer.text, answer.finish, answer.logprob, answer.error, answer.too_long, answer.model


@pytest.mark.parametrize("seed", range(5))
def test_answers_come_back_as_they_were_and_no_file_is_left(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    spill = AnswerSpill(0, str(tmp_path))
    questions = [(spill.answers(), dict[Values, Answer]()) for _ in range(3)]
    for _ in range(300):
        held, expected = rng.choice(questions)
        new = [v for v in (any_values(rng) for _ in range(rng.randrange(60))) if v not in expected]
        answers = {v: any_answer(rng) for v in new}
        held.update(answers)
        expected.update(answers)
        wanted = [*rng.sample([*expected], min(len(expected), 40)), *map(any_values, [rng] * 5)]
        found = held.among(wanted)
        assert {v: parts(a) for v, a in found.items()} == {
            v: parts(expected[v]) for v in wanted if v in expected
        }
    assert spill.spilled_bytes > 0
    assert sum(held.bytes for held, _ in questions) <= spill.most_bytes
    assert list(tmp_path.iterdir()) == []


def test_what_fits_stays_in_memory(tmp_path: Path) -> None:
    held = AnswerSpill(1, str(tmp_path / "none")).answers()
    held.update({(str(i),): Answer("true") for i in range(1_000)})
    assert len(held.among([(str(i),) for i in range(2_000)])) == 1_000


def test_threads_share_a_room(tmp_path: Path) -> None:
    spill = AnswerSpill(1, str(tmp_path))
    problems: list[object] = []

    def work(number: int) -> None:
        held = spill.answers()
        for start in range(0, 4_000, 500):
            held.update({(f"{number} {i}",): Answer(str(i)) for i in range(start, start + 500)})
        found = held.among([(f"{number} {i}",) for i in range(4_000)])
        expected = {(f"{number} {i}",): str(i) for i in range(4_000)}
        if {v: answer.text for v, answer in found.items()} != expected:
            problems.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert spill.spilled_bytes > 0


def test_a_folder_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    held = AnswerSpill(1, str(tmp_path / "none")).answers()
    answers = {(str(i),): Answer("true") for i in range(3_000)}
    with pytest.raises(BlendFusionError, match=r"none.*\n?Hint: They are stored"):
        held.update(answers)
    assert len(held.among([*answers])) == 3_000


def test_a_full_disk_is_named_and_drops_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    held = AnswerSpill(1, str(tmp_path)).answers()
    answers = {(str(i),): Answer(f"{i} " * 100) for i in range(20_000)}
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, usual[1]))  # no file may be larger
    try:
        with pytest.raises(BlendFusionError, match=r"cannot be written to a file in .*: d"):
            held.update(answers)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    found = held.among([*answers])
    assert {values: answer.text for values, answer in found.items()} == {
        values: answer.text for values, answer in answers.items()
    }
    assert 0 < len(held.recent) < 20_000
