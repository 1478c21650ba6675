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

from blendfusion.models.banks import bank
from blendfusion.models.model import Values
from blendfusion.models.options_tree import Scores
from blendfusion.types import Task

CALIBRATION_VERSION = 2
"""Goes into fingerprints: change it with a prior, its texts (``banks``), or the words of replies
(``wordings``)."""

MOST_LIFTED = 2.5
"""How much rarer than the middle one an option may be taken to be (natural logarithm): one that is hardly
ever said would win everywhere."""

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
