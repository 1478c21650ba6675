"""Local models through llama.cpp, in process: one shared prefix, many rows, closed sets by score.

- A closed set (boolean, choice) is decided by comparing the scores of its replies (``choosing``); a
  score is what these odds of the points of its scale let expect (``scoring``), or how probable a
  yes is (``how_much``, ``grading``).
- An open pattern is written token by token under an automaton (``writing``).
- Answers do not depend on their neighbours. On a CPU attention is our own (``attention``), and no
  row changes another by a bit. Elsewhere rows share batches that change scores a little; where that
  could change an answer (a near-tie), it is asked again alone."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import answer_without_model
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.events import model_call, model_loaded, rows_computed
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.protocol.run_aside import run_aside
from blendfusion.models.services.llama.attention import ATTENTION_VERSION, attends
from blendfusion.models.services.llama.batch import TaskBatch
from blendfusion.models.services.llama.binary_scale import BinaryScaleDecoder
from blendfusion.models.services.llama.closed_set import ChoiceDecoder
from blendfusion.models.services.llama.context import check_gguf
from blendfusion.models.services.llama.generate import TextDecoder
from blendfusion.models.services.llama.images import about_images
from blendfusion.models.services.llama.known_idea import IdeaDecoder
from blendfusion.models.services.llama.model_cache import (
    NOISE,
    NOISE_GPU,
    NOISE_GPU_QUANTISED,
    OpenModel,
    borrow,
)
from blendfusion.models.services.llama.projectors import projector_of
from blendfusion.models.services.llama.query_likelihood import LikelihoodDecoder
from blendfusion.models.services.llama.ref_counts import Loan
from blendfusion.models.services.llama.scale import ScaleDecoder
from blendfusion.models.services.llama.sizes import STREAM_WINDOW, STREAMS, STREAMS_OF_LARGE
from blendfusion.models.services.llama.switch import Switch
from blendfusion.models.services.llama.weights import (
    ConversionFailed,
    WeightsChoice,
    choose,
    identity,
    parameters,
)
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.models.services.prompts.prompt import BEHIND, PROMPT_VERSION
from blendfusion.models.services.verbalizer.calibration import CALIBRATION_VERSION
from blendfusion.models.services.verbalizer.describe import scored_by
from blendfusion.models.services.verbalizer.label_similarity import label_weight
from blendfusion.models.services.verbalizer.query_likelihood import (
    LIKELIHOOD_VERSION,
    Score,
    question_behind,
)
from blendfusion.models.services.verbalizer.score_as_yes_no import model_tasks
from blendfusion.models.services.verbalizer.ways import Way, way_of, weights_digest
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, ModelInfo, Task, Usage

BATCH_ROWS = 256
CPU_ROWS = 4


class LlamaModel(StreamingAnswers):
    """A GGUF file as a model. Weights load at the first use, once for all models of one file and
    equal settings, and are freed when the last of these is closed or dropped. Safe for threads:
    they are served one after the other. On a CPU quantised weights are copied to F16 first, once
    (``weights``).

    Ctrl-C (any exception of a signal handler) ends what is being computed within milliseconds on
    a CPU, within a micro-batch on a GPU.

    Raises ModelNotFound at once if the file is missing or no GGUF, and at the first use if
    llama.cpp cannot load it or llama-cpp-python is not installed. A forked child loads a copy of
    its own; if the parent's was on a GPU, which a child cannot use, it raises ModelFailed.
    """

    def __init__(self, path: Path | str, options: Options, *, tuned: bool = True) -> None:
        """``tuned``: questions about no known idea are asked in the way chosen for the weights
        (``ways``); else by yes and no."""
        self.path = Path(path).expanduser()
        self._options = options
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._loan: Loan[OpenModel] | None = None
        check_gguf(self.path)
        self.projector = projector_of(self.path, options.projector)
        """The projector, which encodes images; None: the model reads text only."""
        self._way = way_of(self.path) if tuned else None
        self._model_tasks: Callable[[Task], tuple[Task, ...]] = partial(
            model_tasks, options=options, way=self._way
        )
        self._choose(choose(self.path, options))
        self._parameters = parameters(self.path)

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            at_once=self.at_once,
            sees_images=self.sees_images,
            stops_early=True,
            scores_options=True,
            follows_grammars=True,
            shares_prefix=True,
            shots=shows_examples(self._options.shots),
            # Answers that depend on the values beside them differ between runs.
            fingerprint_lasts=self._options.calibration != "column",
            loaded=self.is_loaded,
            name=self.name,
            fingerprint=self.fingerprint,
            weights=self.weights,
            parameters=self._parameters,
            model_tasks=self._model_tasks,
            takes_sample=partial(_takes_sample, self._options),
            scored_by=partial(_scored_by, self._model_tasks, options=self._options, way=self._way),
        )

    @property
    def digest(self) -> str:
        """The name of the weights among the ways of asking."""
        return weights_digest(self.path)

    @property
    def display_name(self) -> str:
        """The name in the file of ways."""
        return self.path.name

    def without_way(self) -> LlamaModel:
        """A copy that asks by yes and no."""
        return LlamaModel(self.path, self._options, tuned=False)

    @property
    def sees_images(self) -> bool:
        """Whether there is a projector; it loads at the first image."""
        return self.projector is not None

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in memory: ``info`` and ``count_tokens`` load them otherwise."""
        return self._loan is not None

    @property
    def name(self) -> str:
        """The name in ``info``, at hand without the weights."""
        return f"llama:{self.path.name}"

    @property
    def weights(self) -> str:
        """The weights in use, known without loading: those of the file, or a copy of another
        type."""
        return self._chosen.says

    @property
    def fingerprint(self) -> str:
        """The fingerprint in ``info``, at hand without the weights."""
        return self._fingerprint

    @property
    def info(self) -> ModelInfo:
        context = self._ready().context
        return ModelInfo(
            name=self.name,
            fingerprint=self._fingerprint,
            window=context.n_ctx,
            settings={
                "shots": str(shows_examples(self._options.shots)).lower(),
                "wordings": str(self._options.wordings).lower(),
                "calibration": self._options.calibration,
                "max_tokens": str(self._options.max_tokens),
                "weights": self.weights,
                "attention": "own" if context.attends else "llama.cpp",
                **({} if self.projector is None else {"projector": self.projector.name}),
            },
        )

    @property
    def batch_size(self) -> int:
        return BATCH_ROWS

    @property
    def at_once(self) -> int:
        """Rows that take little longer than one: on a CPU, which one row nearly fills, a few; one
        where rows go one after the other, or as long as none was asked."""
        loan = self._loan
        if loan is None or loan.thing.slots == 1:
            return 1
        return loan.thing.slots if loan.thing.weights.thing.on_gpu else CPU_ROWS

    def count_tokens(self, text: str) -> int:
        with self._borrow() as opened:
            return len(opened.context.tokenize(text, special=False))

    def can_ask(self, way: Way) -> bool:
        """Whether the weights can be asked in a way: some have no chat template."""
        return way.prompt != "chat" or bool(self._ready().context.chat_template())

    def question_scores(self, task: Task, values: Sequence[Values], way: Way) -> list[Score]:
        """The scores of a yes/no question behind values, which ``way`` would weigh."""
        task = question_behind(task, way)
        switch = Switch()

        def work() -> list[Score]:
            with opened.lock:
                opened.watch(switch)
                try:
                    asking = TaskBatch(opened, task, self._options, in_chat=way.prompt == "chat")
                    asking.begin()
                    rows = [asking.row(one) for one in values]
                    return LikelihoodDecoder(asking, way).scores(rows)
                except BaseException:
                    opened.forget()
                    raise

        with self._borrow() as opened:
            return run_aside(work, switch.stop)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; an answer is reported when its last token is chosen."""
        switch = Switch()

        def tell(place: int, answer: Answer) -> None:
            switch.check()  # after an interruption nobody listens any more
            on_answer(place, answer)

        def work() -> list[Answer]:
            with opened.lock:
                opened.watch(switch)
                try:
                    return self._answer_locked(opened, task, values, tell)
                except BaseException:
                    opened.forget()
                    raise

        with self._borrow() as opened, model_call("llama.cpp", self.name) as call:
            answers = run_aside(work, switch.stop)
            call.spent = Usage.total(answer.usage for answer in answers)
        return answers

    def _answer_locked(
        self, opened: OpenModel, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """The answers of an open model, whose lock the caller holds."""
        if task.images and self.projector is not None:
            return about_images(
                opened, task, self._options, values, on_answer, self.projector, answer_values
            )
        runs = self._model_tasks(task)
        asking, *beside = (
            TaskBatch(opened, run, self._options, on_answer, in_chat=self._in_chat(run))
            for run in runs
        )
        scored = task.constraint if task.constraint.kind == "score" else None
        answers = answer_values(
            asking, values, None if runs[0] is task else scored, self._way, *beside
        )
        spent = asking.spent
        rows_computed(self.name, spent.given, spent.tokens, spent.again, spent.extra)
        return answers

    def _in_chat(self, task: Task) -> bool:
        return task.form in BEHIND and self._way is not None and self._way.prompt == "chat"

    def close(self) -> None:
        with self._lock:
            if self._loan is not None:
                self._loan.release()
                self._loan = None

    def _ready(self) -> OpenModel:
        """The model, in memory until this object is closed or dropped."""
        with self._borrow() as opened:
            return opened

    @contextmanager
    def _borrow(self) -> Iterator[OpenModel]:
        """The model for one use, in which nobody frees it."""
        if self._process != os.getpid():
            self._after_fork()
        with self._lock:
            if self._loan is None:
                self._loan = self._load()
            loan = self._loan.again()
        try:
            yield loan.thing
        finally:
            loan.release()

    def _load(self) -> Loan[OpenModel]:
        switch, started = Switch(), time.perf_counter()
        try:
            loan = run_aside(lambda: borrow(self._chosen, self._options, switch), switch.stop)
        except ConversionFailed as error:
            if self._options.weights != "auto":
                raise
            self._choose(self._chosen.keep_file(str(error)))
            return self._load()
        model_loaded(self.name, time.perf_counter() - started)
        return loan

    def _choose(self, chosen: WeightsChoice) -> None:
        self._chosen = chosen
        self._fingerprint = fingerprint(chosen, self._options, self.projector, self._way)

    def _after_fork(self) -> None:
        """In a child: the parent's model is of no use here, where its threads are not."""
        if self._loan is not None and self._options.n_gpu_layers != 0:
            raise ModelFailed(
                f"the model {self.path.name} was loaded on the GPU before this process was forked",
                hint="Load it in the child only, or start processes by 'spawn' or 'forkserver'.",
            )
        self._lock, self._loan, self._process = threading.Lock(), None, os.getpid()


def fingerprint(
    chosen: WeightsChoice, options: Options, projector: Path | None = None, way: Way | None = None
) -> str:
    """A digest of all that can change an answer: the weights, whether they are a copy of another
    type, llama.cpp, the wording, shots, calibration, how long an answer and a prompt may be, what
    makes vectors of images, and how questions about no known idea are asked."""
    on_gpu = (NOISE_GPU, NOISE_GPU_QUANTISED, STREAM_WINDOW, STREAMS, STREAMS_OF_LARGE)
    limits = on_gpu if options.n_gpu_layers else (NOISE,)
    facts = [
        identity(chosen.source),
        chosen.type,
        PROMPT_VERSION,
        (*limits, ATTENTION_VERSION if attends() else 0),
        shows_examples(options.shots),
        options.calibration,
        CALIBRATION_VERSION,
        options.wordings,
        options.max_tokens,
        options.n_ctx,
        options.n_gpu_layers,
        *([] if projector is None else [identity(projector)]),
        *([] if way is None else [_facts(way)]),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _facts(way: Way) -> tuple[object, ...]:
    vectors = version("wordllama") if way.needs_vectors else ""
    weights = (way.likelihood, way.answer, way.similarity, way.threshold, way.labels)
    beside = (way.ideas,) if way.ideas else ()
    share = (way.neutral_share,) if way.neutral_share != 1 else ()
    same: tuple[float, ...] = (way.same_answer, way.same_likeness, way.same_threshold)
    same = same if any(same) else ()
    return (way.prompt, *weights, *beside, *share, *same, vectors, LIKELIHOOD_VERSION)


def answer_values(
    asking: TaskBatch,
    values: Sequence[Values],
    scored: Constraint | None = None,
    way: Way | None = None,
    *beside: TaskBatch,
) -> list[Answer]:
    """The answers to values, the way that their constraint is answered; ``scored``: the scores that
    are wanted of what is asked as a yes or no; ``way``: the weights of questions by likelihood;
    ``beside``: the question behind the text, whose odds are added."""
    only = answer_without_model(asking.task.constraint)
    if only is not None:
        for place in range(len(values)):
            asking.tell(place, only)
        return asking.answers()
    method: (
        ChoiceDecoder
        | BinaryScaleDecoder
        | IdeaDecoder
        | LikelihoodDecoder
        | ScaleDecoder
        | TextDecoder
    )
    if beside and way is not None:
        method = IdeaDecoder(asking, beside[0], values, way, scored)
    elif asking.task.form in BEHIND and way is not None:
        method = LikelihoodDecoder(asking, way, scored)
    elif scored is not None:
        method = BinaryScaleDecoder(asking, scored)
    elif not asking.layout.prompt.replies:
        method = TextDecoder(asking)
    else:
        weighs_all = asking.task.constraint.kind == "score" or asking.task.constraint.distribution
        method = ScaleDecoder(asking, way) if weighs_all else ChoiceDecoder(asking, way)
    rows = asking.fitting(values, method.reserve)
    if rows:
        try:
            if not isinstance(method, LikelihoodDecoder) or method.reads_texts:
                asking.begin()
            method.decide(rows)
        finally:
            asking.end()
    return asking.answers()


def _takes_sample(options: Options, task: Task) -> bool:
    return options.calibration != "none" and not task.images


def _scored_by(
    model_tasks: Callable[[Task], tuple[Task, ...]],
    task: Task,
    *,
    options: Options,
    way: Way | None,
) -> str | None:
    similar = bool(label_weight(task, options, way))
    return scored_by(*model_tasks(task), wordings=options.wordings, way=way, similar=similar)
