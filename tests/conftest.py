"""Options and profiles of the whole suite."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import sys
import tempfile

import pytest
from amounts import RANDOM_CASES
from hypothesis import HealthCheck, settings

# No test reads or writes the answers of the person who runs it.
os.environ["BLENDFUSION_CACHE"] = "off"

# Nor the ways of asking that they chose, nor other files of theirs.
if "BLENDFUSION_TESTS" not in os.environ:
    os.environ["BLENDFUSION_TESTS"] = tempfile.mkdtemp(prefix="blendfusion-tests-")
    os.environ["XDG_CACHE_HOME"] = os.environ["BLENDFUSION_TESTS"]
    atexit.register(shutil.rmtree, os.environ["BLENDFUSION_TESTS"], ignore_errors=True)

# Nor their converted weights: they are made once a run, of all tests and the processes that they
# start.
if "BLENDFUSION_WEIGHTS" not in os.environ:
    os.environ["BLENDFUSION_WEIGHTS"] = tempfile.mkdtemp(prefix="blendfusion-weights-")
    atexit.register(shutil.rmtree, os.environ["BLENDFUSION_WEIGHTS"], ignore_errors=True)

# A shell that runs the suite in the background has it ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.register_profile("explore", parent=settings.get_profile("default"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write what came out into the golden pages"
    )
    parser.addoption(
        "--cases",
        type=int,
        default=RANDOM_CASES,
        help="how many random queries are planned and compared",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of parallel workers, one runs all tests with local models: they compute on every core. Files
    with long tests say so in words that the Makefile looks for."""
    for item in items:
        if item.get_closest_marker("local"):
            item.add_marker(pytest.mark.xdist_group("local"))
    for file in {item.path for item in items if item.get_closest_marker("long")}:
        if not re.search(r"mark\.long|long_after", file.read_text("utf-8")):
            raise pytest.UsageError(f"`make long` does not find the long tests of {file}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    if config.getvalue("dist") != "loadgroup":
        return None
    from scheduling import Scheduling

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def rules_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the rules stands still: plans do not depend on how busy the machine is."""
    from blendfusion.planner import rule_time

    monkeypatch.setattr(rule_time, "seconds_of_thread", lambda: 0.0)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def no_model_in_memory() -> None:
    """For tests that see whether a model is loaded, and what it has read before: none is there
    yet."""
    gc.collect()  # sessions are in cycles
    opened = sys.modules.get("blendfusion.models.services.llama.model_cache")
    assert opened is None or len(opened._WEIGHTS) == 0, "an earlier test has left its model open"


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> int:
    """How many random queries to run, all tests together."""
    return int(request.config.getoption("--cases"))


@pytest.fixture
def given_cases(request: pytest.FixtureRequest) -> int | None:
    """The number of ``--cases``; None: the command does not have it."""
    is_given = any(word.startswith("--cases") for word in request.config.invocation_params.args)
    return int(request.config.getoption("--cases")) if is_given else None
