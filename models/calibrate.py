"""What a model would answer to nothing in particular, so that it can be subtracted.

A small model prefers some options whatever the text says. Its scores are corrected by a prior:

- *contextual calibration* (Zhao, Wallace, Feng, Klein, Singh: "Calibrate Before Use", 2021):
  the mean scores of content-free inputs;
- the mean scores over a fixed bank of neutral texts, which look more like data than "N/A" does;
- *batch calibration* (Zhou et al., 2023): the mean over the values asked together. Then an answer
  depends on its neighbours, so it is an option and not the default.

The default prior is the mean of the first two: the same for every query over the same task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendfusion.models.model import Values
from blendfusion.models.options_tree import Scores
from blendfusion.types import Task

CONTENT_FREE = ("N/A", "", "[MASK]")

BANK = (
    "The meeting was moved to Thursday afternoon.",
    "She walked along the river until it got dark.",
    "Can you send me the address again?",
    "Two boxes of paper are on the shelf in the hall.",
    "The committee will publish its report next month.",
    "I waited about twenty minutes and then went inside.",
    "It comes in blue, grey and green.",
    "How long does the ferry take to cross the bay?",
    "The bridge will be closed for repairs over the weekend.",
    "He plays the cello in a small orchestra.",
    "The package contains a cable, a charger and a manual.",
    "Let me know when you get home.",
    "Shares of the company were little changed in early trading.",
    "The museum opens at nine and closes at five.",
    "We ordered soup, bread and a pot of tea.",
    "Researchers compared samples from three different lakes.",
    "My sister has the same one at her office.",
    "The second half begins after a short break.",
    "Who wrote the letter that was found in the attic?",
    "Please reply to this message to confirm your appointment.",
    "The film is set in a fishing village in the fifties.",
    "New rules for imported fruit take effect in spring.",
    "There are about forty seats in the room.",
    "The train from the north arrives on platform four.",
)
"""Neutral texts of many kinds (statements, questions, messages, headlines), written for this."""


def probes(task: Task) -> list[Values]:
    """The inputs whose scores make the prior: CONTENT_FREE, then BANK, in every column."""
    width = 1 if task.aggregate else max(1, len(task.columns))
    return [(text,) * width for text in (*CONTENT_FREE, *BANK)]


def prior(scores: Sequence[Scores]) -> Scores:
    """The prior of one fork from the log probabilities of ``probes``, in their order."""
    table = np.stack(scores)
    content_free = table[: len(CONTENT_FREE)].mean(axis=0)
    bank = table[len(CONTENT_FREE) :].mean(axis=0)
    return np.asarray((content_free + bank) / 2, dtype=np.float64)


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean log probabilities: of the values asked together, or of content-free inputs."""
    return np.asarray(np.stack(scores).mean(axis=0), dtype=np.float64)
