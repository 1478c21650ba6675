"""The part of a session that measures questions on labelled rows, and keeps them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blendfusion.budget import Budget
from blendfusion.models.guarantees.accuracy import DELTA
from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.evaluate.calibration_file import StoredCalibration
    from blendfusion.services.evaluate.choose_model import ModelChoice
    from blendfusion.services.evaluate.compare_answers import AnswerKind
    from blendfusion.services.evaluate.evaluation import Comparison
    from blendfusion.services.evaluate.improve import Improvement
    from blendfusion.services.evaluate.question_file import StoredQuestion
    from blendfusion.services.evaluate.run import Wordings
    from blendfusion.udfs.ask.calibrations import Calibration


class Evaluations(FrameSources):
    """A context whose questions are measured, improved and stored."""

    def improve(
        self,
        name: str,
        table: object,
        call: str,
        label: str,
        *,
        calls: Sequence[str] = (),
        models: Sequence[str] = (),
        budget: Budget | None = None,
        seed: int = 0,
        version: int = 1,
    ) -> Improvement:
        """A better question than ``call`` for the labels in the column ``label`` of ``table``.

        Tries the wordings in ``calls``, meanings of labels, worked examples, ``models`` and a
        threshold on one part of the rows, and keeps what is significantly better on another; else
        the start stays. The figures are of a third part. ``budget`` limits the whole; ``seed``
        determines the parts. ``improvement.question.save(file)`` stores the result under ``name``
        for ``llm_ask``. Raises QueryError for fewer than 40 different labelled values.
        """
        from blendfusion.services.evaluate.improve import improve

        options: dict[str, Any] = {"calls": calls, "models": models, "budget": budget}
        return improve(self, name, table, call, label, **options, seed=seed, version=version)

    def choose_model(
        self,
        name: str,
        table: object,
        call: str,
        label: str,
        *,
        models: Sequence[str],
        accuracy: float,
        delta: float = DELTA,
        costs: Mapping[str, float] | None = None,
        within: float = 0.0,
        budget: Budget | None = None,
        version: int = 1,
    ) -> ModelChoice:
        """The cheapest of ``models`` for ``call``, or cascade of several, that is right about at
        least a share ``accuracy`` of the values, by the labels in the column ``label`` of
        ``table``.

        The labelled rows must be a random sample of the values to come; then the target is missed
        with probability ``delta`` at most. ``costs`` is what a value costs of each model, in any
        unit: without it, by the session's prices, else the seconds that each took. For ``within``
        see ``Frame.evaluate``. ``choice.question`` is the call with its models, for ``llm_ask``;
        if no model is certain to reach the target, ``choice.met`` is false, and the question has
        the best one. Raises QueryError, and ArgumentError for a cost that is not known.
        """
        from blendfusion.services.evaluate.choose_model import choose_model

        options: dict[str, Any] = {"models": models, "accuracy": accuracy, "delta": delta}
        options |= {"costs": costs, "within": within, "budget": budget, "version": version}
        return choose_model(self, name, table, call, label, **options)

    def calibrate(
        self,
        question: str,
        labels: object,
        *,
        name: str,
        label: str = "label",
        budget: Budget | None = None,
        version: int | None = None,
    ) -> StoredCalibration:
        """A monotone map from the model's probabilities of a yes to the shares of yes that labels
        show, kept as ``name``: ``llm_probability('…', text, calibrated => 'name')`` and
        ``llm_filter(…, threshold => 0.8, calibrated => 'name')`` use it.

        ``question`` is the SQL of a yes/no call. ``labels`` is a table (its name, a frame, columns,
        rows, or what ``from_arrow`` takes) with the call's columns and the column ``label``: a
        random sample of the values to come. Equal values count once. The map belongs to the wording
        and the model, and other ones are refused. ``version``: None means the next one, and
        'name@2' names one. The measured calibration errors, before and after, are those of maps of
        other values. Raises QueryError below 20 different labelled values, and without
        probabilities.
        """
        from blendfusion.services.evaluate.calibrate import calibrate

        return calibrate(
            self, question, labels, label=label, name=name, budget=budget, version=version
        )

    def register_calibration(self, source: Calibration | str | os.PathLike[str]) -> Calibration:
        """Make a calibration, or that of a file, known to the queries of this session. Raises
        ArgumentError for a file that holds none."""
        from blendfusion.services.evaluate.calibrate import register_calibration

        return register_calibration(self, source)

    def review(self, name: str, labels: object = None) -> Frame:
        """The values that calls with ``review => 'name'`` left to people, one row each: question,
        value, answer, confidence, reason, label. The last three say how probable the model's answer
        was, why it does not count, and the answer of a person, or NULL.

        ``labels`` are answers of people: a table (its name, a frame, columns, rows, or what
        ``from_arrow`` takes) with the columns value and label, and question where the review has
        several. Such calls take them from then on, and ask no model. Raises QueryError for a label
        that is no answer to its question; then none of them is kept.
        """
        from blendfusion.services.evaluate.review import review

        return review(self, name, labels)

    def register_question(self, question: StoredQuestion | str | os.PathLike[str]) -> str:
        """Make a stored question, or that of a file, known to ``llm_ask('name', value, …)``; its
        name. Raises ArgumentError for a file that holds none."""
        from blendfusion.services.evaluate.improve import check_call
        from blendfusion.services.evaluate.question_file import StoredQuestion
        from blendfusion.udfs.ask.answer_samples import AnswerSamples

        held = question if isinstance(question, StoredQuestion) else StoredQuestion.read(question)
        check_call(self, held.call)
        self.texts.questions[held.name] = held.stored_call
        if held.sample is not None:
            self.runs.kept.of(AnswerSamples).keep(held.name, held.sample)
        return held.name

    def evaluate(
        self,
        table: object,
        calls: Wordings,
        label: str,
        *,
        models: Sequence[str] = (),
        kind: AnswerKind | None = None,
        within: float = 0.0,
        budget: Budget | None = None,
    ) -> Comparison:
        """The answers of ``calls`` on the rows of ``table``, measured against its column ``label``.

        ``table`` is the name of a table, a frame or an Arrow table. ``calls`` is the SQL of a call,
        several, or a mapping of names to them; each is asked of each of ``models`` (names as in the
        option ``model``; none: the session's model) in one run, and no call sees the label. For
        ``kind`` and ``within`` see ``Frame.evaluate``. Raises QueryError.
        """
        from blendfusion.services.evaluate.run import evaluate_calls

        return evaluate_calls(
            self, table, calls, label, models=models, kind=kind, within=within, budget=budget
        )
