"""What decision models promise, at the size of the promise: against a strict server of decisions,
which stands beside the repository."""

from __future__ import annotations

import importlib.util
import random
import time
import warnings
from pathlib import Path
from types import ModuleType

import pytest

import blendfusion as bf

SERVER = Path(__file__).parents[5] / "shared" / "decisions" / "server.py"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not SERVER.exists(), reason="no ../shared/decisions/server.py"),
]
QUESTIONS = ("Is it late?", "Is it rude?", "Is it broken?", "Is it dear?", "Is it praise?")
ALL = ", ".join(f"llm_filter('{question}', text) AS a{n}" for n, question in enumerate(QUESTIONS))


@pytest.fixture(scope="module")
def strict() -> ModuleType:
    spec = importlib.util.spec_from_file_location("strict_server", SERVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def own_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def session_at(url: str, texts: list[str], name: str = "m") -> bf.Session:
    session = bf.connect(f"systemone:{name}@{url}", cache=None, progress="off")
    session.from_pydict({"n": [*range(len(texts))], "text": texts}, name="t")
    return session


@pytest.mark.parametrize("questions", [2, 5])
@pytest.mark.parametrize("leaky", [0.0, 0.5])
def test_a_model_whose_questions_change_one_another_is_caught(
    strict: ModuleType, leaky: float, questions: int, given_cases: int | None
) -> None:
    """``--cases 2000``: 100 seeds."""
    seeds, caught = min(100, (given_cases or 60) // 20), 0
    for seed in range(seeds):
        with strict.Server(flavour="typesafe", seed=seed, leaky=leaky, model="mystery") as server:
            session = session_at(server.url, [f"text {seed} {n}" for n in range(41)])
            asked = ", ".join(f"llm_filter('Is it {seed} or {n}?', text)" for n in range(questions))
            query = f"SELECT {asked} FROM t"
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                session.sql(query).collect()
            caught += any("change one another's answers" in str(one.message) for one in told)
    assert caught >= 0.99 * seeds if leaky else caught == 0


def test_a_thousand_reviews_are_read_once_for_five_questions(strict: ModuleType) -> None:
    draw = random.Random(5)
    words = [f"word{n}" for n in range(3000)]
    texts = [" ".join(draw.choices(words, k=draw.randint(20, 120))) for _ in range(1000)]
    spent = {}
    with strict.Server(flavour="typesafe") as server:
        for name in ("m", "jev"):
            session = session_at(server.url, texts, name)
            session.sql("SELECT llm_filter('Is it?', text) FROM t LIMIT 1").collect()
            server.reset()
            started = time.process_time()
            queries = [f"SELECT n, {ALL} FROM t ORDER BY n"]
            if name == "m":  # one by one
                queries = [f"SELECT n, llm_filter('{q}', text) AS a FROM t" for q in QUESTIONS]
            frames = [session.sql(query) for query in queries]
            for frame in frames:
                frame.collect()
            seconds = time.process_time() - started
            stats = server.stats()
            spent[name] = stats["requests"], stats["tokens"]["input"], seconds
            assert sum(frame.trace.values for frame in frames) == 5000
    assert spent["jev"][0] <= 1000
    assert spent["jev"][1] <= 0.30 * spent["m"][1]
    assert spent["jev"][2] <= 0.5 * spent["m"][2]  # both with the server's CPU


def test_a_target_is_kept_where_probabilities_lie(
    strict: ModuleType, given_cases: int | None
) -> None:
    """``--cases 4000``: 200 resamplings. The decision model is right in 70 of 100 answers, and as
    sure of the wrong ones as of the right ones."""
    draws, short = min(200, (given_cases or 60) // 20), 0

    def lies(state: object, question: dict[str, object]) -> float:
        luck = random.Random(f"{state} {question['instructions']}")
        right = int(str(state).rpartition(" ")[2]) % 2 == 0
        sure = luck.uniform(0.5, 1.0)
        return sure if right == (luck.random() < 0.7) else 1 - sure

    with strict.Server(answers=lies, flavour="typesafe", model="jev-1.13.0", decimals=4) as server:
        name = f"systemone:jev@{server.url}"
        for number in range(draws):
            truth = bf.ScriptedModel(lambda call: int(str(call.values[0]).split()[-1]) % 2 == 0)
            session = bf.connect([name, truth], accuracy=0.9, cache=None, progress="off")
            texts = [f"draw {number} text {n}" for n in range(400)]
            session.from_pydict({"text": texts}, name="t")
            rows = session.sql("SELECT text, llm_filter('Is it even?', text) AS a FROM t")
            right = [r["a"] is (int(r["text"].split()[-1]) % 2 == 0) for r in rows.to_pylist()]
            short += sum(right) < 0.9 * len(right)
    assert short <= 0.05 * draws + 2 * (0.05 * draws) ** 0.5
