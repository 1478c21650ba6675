"""What a model would answer to nothing in particular, so that it can be subtracted.

A small model prefers some options whatever the text says. Its scores are corrected by a prior:

- *contextual calibration* (Zhao, Wallace, Feng, Klein, Singh: "Calibrate Before Use", 2021):
  the mean scores of content-free inputs;
- the mean scores over texts of the kind that the question is about (``banks``), which look more like
  data than "N/A" does; domain words do the same for Fei et al. ("Mitigating Label Biases", 2023);
- *batch calibration* (Zhou et al., 2023): the mean over the values asked together. Then an answer
  depends on its neighbours, so it is an option and not the default.

The default prior is the mean of the first two: the same for every query over the same task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendfusion.models.protocol.model import Values
from blendfusion.models.scores.option_trie import Scores
from blendfusion.models.verbalizer.calibration_texts import bank
from blendfusion.models.verbalizer.lexicon import Idea
from blendfusion.types import Task

CALIBRATION_VERSION = 4
"""Goes into fingerprints: change it with a prior, its texts (``banks``), or the words of replies
(``wordings``, ``related_words``, ``asked_idea``)."""

_NO_SPREAD = 1e-6

MOST_LIFTED = 2.5
"""How much rarer than the middle one an option may be taken to be (natural logarithm): one that is hardly
ever said would win everywhere."""

TRUTH_BESIDE_MANY = 1 / 3
"""What yes and no count, where the words of one idea are told from those of many."""

SURENESS = 2.5
"""What all readings of yes and no count together, where the words of an idea are scored. Power means are closer
to one another than probabilities are; so often as it says, an answer is right (docs/lab.md)."""

CONTENT_FREE = ("N/A", "", "[MASK]")


def probes(task: Task) -> list[Values]:
    """The inputs whose scores make the prior: CONTENT_FREE, then its bank, in every column."""
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
    """What yes and no count, and what the words of the idea that the question asks for (one row each in
    ``parts``), by the log probabilities of ``probes``: ``SURENESS`` times what they count beside each other."""
    truth, words = _beside_each_other(parts, idea)
    return SURENESS * truth, SURENESS * words


def _beside_each_other(parts: Sequence[Scores], idea: Idea) -> tuple[float, float]:
    """So that both vary as much over the bank.

    Where the two contradict each other over the bank, the model hears yes and no as praise rather than as
    the question: they count the less the more they do, and nothing from a correlation of -0.5 on.
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
    """The prior of yes and no where the words of an idea are scored, from the log probabilities of ``probes``:
    of the bank alone, since content-free inputs are closer to some ideas than any text is."""
    bank = np.stack(scores)[len(CONTENT_FREE) :]
    spread = float(np.std(bank[:, 0] - bank[:, 1]))
    rarer = np.array([idea.rarity * spread, 0.0])
    return np.asarray(bank.mean(axis=0) + rarer, dtype=np.float64)


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean log probabilities, as of content-free inputs."""
    return np.asarray(np.stack(scores).mean(axis=0), dtype=np.float64)


def of_column(scores: Sequence[Scores], prior: Scores) -> Scores:
    """The prior by the log probabilities of the values asked together, whose options may be of very
    different shares.

    The mean over all values takes the commonest option for the model's bias: where one message in ten is
    spam, half of them would be called so. So each option that ``prior`` finds has the same weight, and
    what they say together the same as ``prior``, which counts alone where it finds one option only.
    """
    table = np.stack(scores)
    told = (table - prior).argmax(axis=1)
    found = np.unique(told)
    if len(found) < 2:
        return prior
    balanced = np.mean([table[told == option].mean(axis=0) for option in found], axis=0)
    return np.asarray((balanced + prior) / 2, dtype=np.float64)
