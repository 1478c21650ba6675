"""The bank of texts and questions by which ways of asking are chosen."""

from collections import Counter

import pytest
from public_questions import QUESTIONS, public
from public_sets import datasets

from blendfusion.models.services.tuning.bank import BankQuestion, bank
from blendfusion.models.services.verbalizer.calibration_texts import BANKS

CHOOSE, REPORT = (list(bank("choose", rows=1_000)), list(bank("report", rows=1_000)))


def test_the_bank_has_many_questions_of_many_kinds_with_both_answers() -> None:
    questions = CHOOSE + REPORT
    assert len({asked.question for asked in questions}) == len(questions) >= 60
    assert len({asked.kind for asked in questions}) >= 8
    assert all(min(sum(asked.yes), len(asked.yes) - sum(asked.yes)) >= 5 for asked in questions)


def test_the_bank_has_many_different_texts() -> None:
    texts = Counter(
        text for asked in {a.kind: a for a in CHOOSE + REPORT}.values() for text in asked.texts
    )
    assert len(texts) >= 600
    assert max(texts.values()) == 1


def test_no_question_is_in_both_parts_and_some_kinds_are_reported_only() -> None:
    assert not {asked.question for asked in CHOOSE} & {asked.question for asked in REPORT}
    assert len({asked.kind for asked in REPORT} - {asked.kind for asked in CHOOSE}) >= 3


def test_the_bank_and_the_calibration_texts_share_nothing() -> None:
    neutral = {text for texts in BANKS.values() for text in texts}
    assert not neutral & {text for asked in CHOOSE + REPORT for text in asked.texts}


def test_fewer_rows_keep_both_answers_alike() -> None:
    for asked in bank("choose", rows=10):
        assert len(asked.texts) == 10
        assert sum(asked.yes) == 5


def test_the_public_questions_are_many_and_none_is_in_the_bank() -> None:
    assert len({question for _, question, _ in QUESTIONS}) == len(QUESTIONS) >= 40
    assert len({name for name, _, _ in QUESTIONS}) >= 10
    assert not {question for _, question, _ in QUESTIONS} & {a.question for a in CHOOSE + REPORT}


def test_public_questions_have_both_answers() -> None:
    folder = datasets()
    if folder is None:
        pytest.skip("the public data sets are not here")
    found: list[BankQuestion] = list(public(folder, rows=20))
    assert len(found) == len(QUESTIONS)
    assert all(0 < sum(asked.yes) < len(asked.yes) == len(asked.texts) for asked in found)
