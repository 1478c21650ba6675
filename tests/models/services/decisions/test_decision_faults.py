"""Random questions over random faults of a strict server of decisions, which stands beside the
repository: right rows, exact losses, nothing invented."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import blendfusion as bf

SERVER = Path(__file__).parents[5] / "shared" / "decisions" / "server.py"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not SERVER.exists(), reason="no ../shared/decisions/server.py"),
]
BODIES = {
    "systemone:m": ("", ["typesafe", "openrouter", "llamacpp", "laya", "clef"], "openai"),
    "decisions:gpt-6-luna": ("/v1", ["openai"], "openai"),
    "sglang-decisions:default": ("/v1", ["sglang"], "sglang"),
}
FAULTS: dict[str, list[Any]] = {
    "rate_limit_every": [2, 3, 7],
    "error_every": [2, 3, 7],
    "overload_every": [5],
    "drop_every": [2, 3, 7],
    "garbage_every": [2, 3, 7],
    "bad_sum": [0.2, 0.3],
    "nan": [True],
    "negative": [True],
    "missing_every": [1, 2, 3],
    "extra_every": [1, 2, 3],
    "wrong_type_every": [1, 2, 3],
    "bad_choice": [True],
    "refuse_every": [2, 3],
    "decimals": [2, 3],
    "slow": [0.02],
}
OF_NAMED_ANSWERS = {"swap_every": [1, 2, 3]}
"""In the other bodies, nobody can tell that two answers of one type are exchanged."""
OPTIONS = ["praise", "complaint", "other"]


def truth(state: object, question: dict[str, Any]) -> Any:
    number = int(str(state).rpartition(" ")[2].rstrip('"}]'))
    if question["kind"] == "noul":
        return 0.9 if number % 3 else 0.1
    if question["kind"] == "choice":
        return {
            OPTIONS[number % 3]: 0.8,
            OPTIONS[(number + 1) % 3]: 0.2,
            OPTIONS[number % 3 - 1]: 0.0,
        }
    return number % 10


CALLS = {
    "yes": ("llm_filter('Is it so?', text)", lambda n: bool(n % 3)),
    "label": (f"llm_classify(text, {OPTIONS})", lambda n: OPTIONS[n % 3]),
    "sure": ("llm_probability('Is it sure?', text)", lambda n: 0.9 if n % 3 else 0.1),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are tried again at once."""
    sleep = asyncio.sleep
    monkeypatch.setattr(
        asyncio, "sleep", lambda seconds, result=None: sleep(min(seconds, 0.001), result)
    )


@pytest.mark.parametrize("body", BODIES)
def test_random_faults_lose_only_what_they_touch(body: str, cases: int) -> None:
    """About ``cases`` answers of each body."""
    spec = importlib.util.spec_from_file_location("strict_server", SERVER)
    assert spec is not None
    assert spec.loader is not None
    strict = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(strict)
    draw, answers, lost = random.Random(body), 0, 0
    path, flavours, decisions = BODIES[body]
    possible = FAULTS | (OF_NAMED_ANSWERS if "openai" in flavours else {})
    while answers < cases:
        names = draw.sample(sorted(possible), draw.randint(0, 2))
        faults = {name: draw.choice(possible[name]) for name in names}
        flavour, rows = draw.choice(flavours), draw.randint(5, 60)
        asked = draw.sample(sorted(CALLS), draw.randint(1, 3))
        with strict.Server(
            truth, flavour=flavour, decisions=decisions, retry_after=0.01, **faults
        ) as server:
            session = bf.connect(
                f"{body}@{server.url}{path}", cache=None, progress="off", retries=2
            )
            session.from_pydict(
                {"n": [*range(rows)], "text": [f"text {n}" for n in range(rows)]}, name="t"
            )
            selected = ", ".join(f"{CALLS[name][0]} AS {name}" for name in asked)
            frame = session.sql(f"SELECT n, {selected} FROM t")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = frame.to_pylist()
                except bf.ModelFailed:  # too many values in a row without an answer
                    answers += rows
                    continue
        assert sorted(row["n"] for row in found) == [*range(rows)]
        none = 0
        for row in found:
            for name in asked:
                right = CALLS[name][1](row["n"])
                none += row[name] is None
                if isinstance(right, float) and row[name] is not None:  # one number has no sum
                    assert abs(row[name] - right) < 0.011 or "bad_sum" in faults, (faults, row)
                else:
                    assert row[name] in (None, right), (faults, flavour, row)
        assert frame.trace.failed == none, faults
        if not {*faults} - {"extra_every", "bad_choice", "decimals", "slow", "swap_every"}:
            assert not none, faults
        answers += rows * len(asked)
        lost += none
    assert 0 < lost < answers / 2
