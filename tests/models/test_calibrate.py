"""The prior of an option: what a model answers to nothing in particular."""

import numpy as np

from blendfusion.models.calibrate import BANK, CONTENT_FREE, mean, prior, probes
from blendfusion.types import Constraint, Task


def test_probes_fill_every_column():
    task = Task("llm_filter", "?", Constraint("boolean"), columns=("a", "b"))

    asked = probes(task)

    assert len(asked) == len(CONTENT_FREE) + len(BANK)
    assert asked[0] == ("N/A", "N/A")
    assert all(len(values) == 2 for values in asked)


def test_the_probes_of_an_aggregate_are_contexts_of_one_row():
    task = Task(
        "llm_validate", "?", Constraint("boolean"), columns=("a",), aggregate=True, form="statement"
    )

    assert probes(task)[-1] == (BANK[-1],)


def test_content_free_inputs_and_the_bank_weigh_the_same():
    scores = [np.array([0.0, -4.0])] * len(CONTENT_FREE) + [np.array([-2.0, 0.0])] * len(BANK)

    assert prior(scores).tolist() == [-1.0, -2.0]


def test_the_prior_of_a_column_is_the_mean_over_its_values():
    assert mean([np.array([-1.0, -3.0]), np.array([-3.0, -1.0])]).tolist() == [-2.0, -2.0]


def test_the_bank_is_varied():
    assert len(set(BANK)) == len(BANK) >= 24
