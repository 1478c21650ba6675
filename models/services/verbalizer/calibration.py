"""Priors: the answers of a model to neutral texts, which are subtracted from its scores.

A small model prefers some options whatever the text says. Its scores are corrected by a prior:

- *contextual calibration* (Zhao, Wallace, Feng, Klein, Singh: "Calibrate Before Use", 2021): the
  mean scores of content-free inputs;
- the mean scores over texts of the kind that the question is about (``calibration_texts``), which
  resemble data more than "N/A" does; Fei et al. use domain words ("Mitigating Label Biases", 2023);
- *batch calibration* (Zhou et al., 2023): the mean over the values asked together. An answer then
  depends on other values, so this is an option and not the default.

The default prior is the mean of the first two: the same for every query over the same task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blendfusion.models.protocol.model import Values
from blendfusion.models.services.verbalizer.calibration_texts import TEXTS, bank
from blendfusion.models.services.verbalizer.lexicon import LEXICON, Idea
from blendfusion.models.services.verbalizer.option_trie import Scores
from blendfusion.types import Task


def _digest(*files: Path) -> str:
    content = b"\0".join(file.read_bytes() for file in files)
    return hashlib.blake2s(content, digest_size=6).hexdigest()


_METHOD = 6
"""Change it with a prior, or with the words of replies in ``label_words``."""

CALIBRATION_VERSION = f"{_METHOD}-{_digest(LEXICON, TEXTS)}"
"""A part of fingerprints: answers under another lexicon or other texts are other answers."""

_NO_SPREAD = 1e-6

MOST_LIFTED = 2.5
"""Maximum lift of an option above the median one (natural logarithm): an option that the model
hardly ever gives would otherwise win everywhere."""

TRUTH_BESIDE_MANY = 1 / 3
"""Weight of yes/no evidence relative to lexicon evidence when the idea has no antonym."""

SURENESS = 2.5
"""Total weight of all readings of yes and no when an idea's words are scored. Power means lie
closer together than probabilities; with this weight, probabilities are calibrated
(benchmarks/lab.md)."""

CONTENT_FREE = ("N/A", "", "[MASK]")


def probes(task: Task) -> list[Values]:
    """The inputs whose scores form the prior: CONTENT_FREE, then the calibration texts, in every
    column."""
    width = 1 if task.aggregate else max(1, len(task.columns))
    return [(text,) * width for text in (*CONTENT_FREE, *bank(task))]


def prior(scores: Sequence[Scores]) -> Scores:
    """The prior of one fork from the log probabilities of ``probes``, in their order."""
    table = np.stack(scores)
    content_free = table[: len(CONTENT_FREE)].mean(axis=0)
    like_data = table[len(CONTENT_FREE) :].mean(axis=0)
    both = (content_free + like_data) / 2
    return np.asarray(np.maximum(both, np.median(both) - MOST_LIFTED), dtype=np.float64)


def weights(parts: Sequence[Scores], idea: Idea) -> tuple[float, float]:
    """The weights of yes/no and of the words of the question's idea (one row each in ``parts``), by
    the log probabilities of ``probes``: ``SURENESS`` times their relative weights."""
    truth, words = _beside_each_other(parts, idea)
    return SURENESS * truth, SURENESS * words


def _beside_each_other(parts: Sequence[Scores], idea: Idea) -> tuple[float, float]:
    """Relative weights that give both parts equal variation over the calibration texts.

    If both contradict each other there, the model reads yes and no as praise rather than as
    answers: their weight falls with the correlation, to zero at -0.5.
    """
    odds = np.stack(parts)[len(CONTENT_FREE) :]
    truth, words = (odds[:, :, 0] - odds[:, :, 1]).T
    spread = float(np.std(truth)), float(np.std(words))
    if min(spread) < _NO_SPREAD:
        return (1.0, 0.0) if spread[0] >= spread[1] else (0.0, 1.0)
    agreement = float(np.corrcoef(truth, words)[0, 1])
    share = min(1.0, max(0.0, 1 + 2 * agreement))
    if not idea.has_opposite:
        share *= TRUTH_BESIDE_MANY
    return share, spread[0] / spread[1]


def of_idea(scores: Sequence[Scores], idea: Idea) -> Scores:
    """The prior of yes and no when an idea's words are scored, from the log probabilities of
    ``probes``: of the calibration texts alone, since content-free inputs are closer to some ideas
    than any text is."""
    bank = np.stack(scores)[len(CONTENT_FREE) :]
    spread = float(np.std(bank[:, 0] - bank[:, 1]))
    rarer = np.array([idea.rarity * spread, 0.0])
    return np.asarray(bank.mean(axis=0) + rarer, dtype=np.float64)


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean log probabilities, such as those of content-free inputs."""
    return np.asarray(np.stack(scores).mean(axis=0), dtype=np.float64)


def of_column(scores: Sequence[Scores], prior: Scores) -> Scores:
    """The prior from the log probabilities of the values asked together, or of a sample, whose
    options may have very different shares.

    The plain mean over all values mistakes the most frequent option for the model's bias: if one
    message in ten is spam, half of them would be called so. So each option that ``prior`` finds has
    equal weight, and their mean has the same weight as ``prior``, which counts alone if it finds
    one option only.
    """
    table = np.stack(scores)
    chosen = (table - prior).argmax(axis=1)
    found = np.unique(chosen)
    if len(found) < 2:
        return prior
    balanced = np.mean([table[chosen == option].mean(axis=0) for option in found], axis=0)
    return np.asarray((balanced + prior) / 2, dtype=np.float64)
