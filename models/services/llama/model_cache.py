"""Shares loaded models: weights once, and a context per window and number of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from blendfusion.errors import ModelFailed
from blendfusion.models.services.llama import determinism as exactness
from blendfusion.models.services.llama.constrained_decoding import Guide
from blendfusion.models.services.llama.context import LlamaContext, Weights, check_gguf
from blendfusion.models.services.llama.first_load import ensure_loads, remember
from blendfusion.models.services.llama.image_encoder import Projector
from blendfusion.models.services.llama.ref_counts import Loan, Pool
from blendfusion.models.services.llama.streams import Streams
from blendfusion.models.services.llama.switch import Interruption, Switch
from blendfusion.models.services.llama.weights import ConversionFailed, WeightsChoice, ready
from blendfusion.models.services.verbalizer.lexicon import Idea
from blendfusion.models.services.verbalizer.option_trie import Fork, Scores
from blendfusion.models.services.verbalizer.query_likelihood import Neutral, Score
from blendfusion.options import Options
from blendfusion.types import Task

NOISE = 0.04
"""Scores closer than this (natural logarithm) may swap when rows are batched: benchmarks/lab.md."""
NOISE_GPU = 0.2
"""The limit on a GPU where rows have no streams of their own."""
NOISE_GPU_QUANTISED = 1.0
"""The limit on a GPU for quantised weights, whose activations are rounded to eight bits."""
REMEMBERED_TASKS = 64

TaskKey = tuple[Task, bool, bool]
"""A task, whether its prompt has shots, and whether replies have other words."""

FormKey = tuple[Task, str]
"""A task, and the form of its prompt."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class TaskState:
    """The state that is kept for a task with a closed set. ``root``: the fork of all its options;
    ``idea``: the idea in a yes/no question; ``priors``: the scores to subtract at every fork, None
    until they are measured; from then on ``root`` weighs its readings."""

    root: Fork
    idea: Idea | None
    priors: list[Scores] | None = None


_WEIGHTS: Pool[Weights] = Pool()


@dataclass(slots=True)
class OpenModel:
    """An open context and the state that is kept between calls. Computations hold ``lock``."""

    weights: Loan[Weights]
    context: LlamaContext
    batched: bool
    """Rows that change one another's scores may go together all the same, and near-ties be asked
    again alone."""
    noise: float
    """Maximum change of a score by other rows."""
    streams: Streams | None = None
    """Where rows go together on a GPU; None once they were tried and depended on one another."""
    proven: bool | None = None
    """No row changes another's scores (``exactness``). None: that was not tried yet."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    prefix: tuple[int, ...] = ()
    """The tokens that every sequence of the context begins with; () if uncertain."""
    tasks: dict[TaskKey, TaskState] = field(default_factory=dict)
    neutrals: dict[FormKey, Neutral] = field(default_factory=dict)
    samples: dict[FormKey, list[Score]] = field(default_factory=dict)
    vocabulary: Any = None
    guides: dict[tuple[str, str, str, bool], Guide] = field(default_factory=dict)
    """By pattern, lead and stop."""
    projectors: dict[Path, Projector] = field(default_factory=dict)

    def begin(self, prefix: tuple[int, ...]) -> int:
        """Make ``prefix`` the beginning of every sequence; returns the tokens computed for it."""
        if self.prefix == prefix:
            return 0
        self.forget()
        if self.proven is None:
            self.proven = exactness.prove_equal_rows(
                self.context, quantised=self.weights.thing.quantised
            )
            if self.streams is not None and not self.streams.prove():
                self.streams.context.close()
                self.streams = None
        self.context.decode_prefix(prefix)
        self.context.fan_out()
        self.prefix = prefix
        return len(prefix)

    def forget(self) -> None:
        self.prefix = ()
        self.context.clear()
        if self.streams is not None:
            self.streams.forget()

    def watch(self, switch: Switch) -> None:
        """From here on ``switch`` ends computations, with Stopped."""
        self.context.watch(switch)
        if self.streams is not None:
            self.streams.context.watch(switch)

    @property
    def exact(self) -> bool:
        """Rows that go together come out as each alone."""
        if self.streams is not None:
            return self.proven is not None
        return bool(self.proven) and (self.context.attends or self.context.in_order)

    @property
    def slots(self) -> int:
        """The maximum number of concurrent rows."""
        if self.streams is not None:
            return self.streams.context.rows - 1
        return self.context.slots if self.exact or self.batched else 1

    def state_of(self, key: TaskKey, make: Callable[[], TaskState]) -> TaskState:
        """The cached facts of a task, created at its first use."""
        return _remember(self.tasks, key, make)

    def neutral(self, key: FormKey, make: Callable[[], Neutral]) -> Neutral:
        """The scores of a question behind neutral texts, computed at the first use."""
        return _remember(self.neutrals, key, make)

    def sample(self, key: FormKey, make: Callable[[], list[Score]]) -> list[Score]:
        """The scores of a question behind its sample, computed at the first use."""
        return _remember(self.samples, key, make)

    def guide(self, pattern: str, lead: str, stop: str, *, is_grammar: bool = False) -> Guide:
        key = (pattern, lead, stop, is_grammar)
        if key not in self.guides:
            if self.vocabulary is None:
                self.vocabulary = self.context.guide()
            if len(self.guides) >= REMEMBERED_TASKS:
                self.guides.clear()
            self.guides[key] = Guide(
                self.context, self.vocabulary, pattern, lead, stop, is_grammar=is_grammar
            )
        return self.guides[key]

    def projector(self, path: Path, options: Options) -> Projector:
        """The projector, loaded at its first use. Raises ModelNotFound or ModelFailed."""
        if path not in self.projectors:
            weights = self.weights.thing.path
            ensure_loads([weights, path], options.n_ctx, self.context.check)
            self.projectors[path] = Projector(
                path,
                self.weights.thing,
                gpu=options.n_gpu_layers != 0,
                threads=options.threads,
            )
        return self.projectors[path]

    def close(self) -> None:
        """Free the context, and the weights if no other computes with them."""
        with self.lock:
            for projector in self.projectors.values():
                projector.close()
            self.projectors.clear()
            self.context.close()
            if self.streams is not None:
                self.streams.context.close()
        self.weights.release()


def _remember(held: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """The value of a key, made at its first use; the earliest of too many is forgotten."""
    if key not in held:
        if len(held) >= REMEMBERED_TASKS:
            held.pop(next(iter(held)))
        held[key] = make()
    return held[key]


_OPENED: Pool[OpenModel] = Pool()


def borrow(chosen: WeightsChoice, options: Options, switch: Switch) -> Loan[OpenModel]:
    """A model with a context, shared with all who use the same weights, layers on the GPU, window
    and threads, and loaded for the first of them. Raises ModelNotFound, ModelFailed, or Stopped by
    ``switch``."""
    check_gguf(chosen.source)
    state = chosen.source.stat()
    layers, window, threads = options.n_gpu_layers, options.n_ctx, options.threads
    file = (chosen.source.resolve(), state.st_size, state.st_mtime_ns, chosen.type, layers)

    def open_() -> OpenModel:
        weights = _WEIGHTS.borrow(file, lambda: _load(chosen, options, switch))
        try:
            context = LlamaContext(weights.thing, n_ctx=window, threads=threads)
        except BaseException:
            weights.release()
            raise
        quantised, noise = weights.thing.quantised, NOISE
        if weights.thing.on_gpu:
            noise = NOISE_GPU_QUANTISED if quantised else NOISE_GPU
        batched = weights.thing.on_gpu or not quantised
        streams = _open_streams(weights.thing, threads) if weights.thing.on_gpu else None
        return OpenModel(weights, context, batched=batched, noise=noise, streams=streams)

    return _OPENED.borrow((file, window, threads), open_)


def _open_streams(weights: Weights, threads: int) -> Streams | None:
    sizes = weights.stream_sizes()
    if sizes is None:
        return None
    try:
        return Streams(LlamaContext(weights, n_ctx=0, threads=threads, streams=sizes))
    except ModelFailed:  # the GPU has less room than it says
        return None


def _load(chosen: WeightsChoice, options: Options, switch: Switch) -> Weights:
    def load_weights(file: Path) -> Weights:
        ensure_loads([file], options.n_ctx, switch.check)
        return Weights(file, n_gpu_layers=options.n_gpu_layers, switch=switch)

    if chosen.copy is None:
        return load_weights(chosen.source)
    if chosen.copy.is_file():
        try:
            return load_weights(ready(chosen))
        except Interruption:
            raise
        except ModelFailed:  # the copy was damaged on the disk: another one
            chosen.copy.unlink(missing_ok=True)
    ensure_loads([chosen.source], options.n_ctx, switch.check)
    made = ready(chosen)
    remember(made)
    switch.check()
    try:
        return load_weights(made)
    except Interruption:
        raise
    except ModelFailed as error:  # such as a GPU with too little memory
        raise ConversionFailed(
            f"the {chosen.type} copy cannot be loaded: {error.message}"
        ) from error
