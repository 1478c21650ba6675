"""llama.cpp's own ``/v1/systemone``, with the packaged weights as a decision model."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from decision_weights import TEMPLATE, write_decision_weights
from local_model import bindings_or_skip, weights_or_skip

import blendfusion as bf

pytestmark = pytest.mark.long
PROGRAM = Path(__file__).parents[3] / "support" / "decision_program.py"
TEXTS = ["I want my money back!", "It is a fine lamp.", "The screen broke twice.", None]
OPTIONS = {"billing": "money", "bugs": "crashes", "other": "all else"}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    path = tmp_path_factory.mktemp("weights") / "decisions.gguf"
    write_decision_weights(weights_or_skip(), path)
    return path


@pytest.fixture(scope="module")
def session(weights: Path) -> Iterator[bf.Session]:
    command = [sys.executable, str(PROGRAM), str(weights)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:
        assert server.stdout is not None
        try:
            address = next(line for line in server.stdout if line.startswith("http")).strip()
            session = bf.connect(f"systemone:smollm2@{address}", cache=None, progress="off")
            session.from_pydict({"text": TEXTS}, "t")
            yield session
            session.close()
        finally:
            server.communicate("", timeout=30)


def label_shares(
    weights: Path, state: str, question: str, options: list[tuple[str, str]]
) -> list[float]:
    """The probabilities of the letters at the beginning of the reply, read in process."""
    llama_cpp = bindings_or_skip()
    jinja2 = pytest.importorskip("jinja2")
    shown = [{"key": key, "description": about} for key, about in options]
    prompt = jinja2.Template(TEMPLATE, keep_trailing_newline=True).render(
        state=state, instructions=question, options=shown
    )
    model = llama_cpp.Llama(str(weights), n_ctx=2048, logits_all=True, verbose=False)
    tokens = model.tokenize(prompt.encode(), add_bos=False, special=True)
    model.eval(tokens)
    logits = model.scores[len(tokens) - 1]
    letters = [model.tokenize(letter, add_bos=False)[0] for letter in (b"A", b"B", b"C")]
    powers = [math.exp(float(logits[letter])) for letter in letters]
    return [power / sum(powers) for power in powers]


def test_choices_are_those_of_the_label_way_in_process(session: bf.Session, weights: Path) -> None:
    frame = session.sql(
        "SELECT text, llm_map('Which team?', text, options => {'billing': 'money', 'bugs': "
        "'crashes', 'other': 'all else'}, confidence => 'all') AS shares FROM t"
    )
    rows = frame.to_pydict()
    assert rows["shares"][3] is None
    for text, shares in zip(rows["text"][:3], rows["shares"][:3], strict=True):
        found = [share for _, share in shares]
        own = label_shares(weights, text, "Which team?", [*OPTIONS.items()])
        assert found.index(max(found)) == own.index(max(own))
        assert found == pytest.approx(own, abs=0.05)  # other kernels


def test_every_kind_of_question_is_answered_in_one_reading(session: bf.Session) -> None:
    frame = session.sql(
        "SELECT llm_probability('Is a refund requested?', text) AS p, "
        "llm_map('Which team?', text, options => ['billing', 'bugs']) AS team, "
        "llm_score('How angry is it?', text, levels => ['calm', 'furious']) AS anger FROM t"
    )
    rows = frame.to_pylist()
    assert rows[3] == {"p": None, "team": None, "anger": None}
    for row in rows[:3]:
        assert 0 < row["p"] < 1
        assert row["team"] in ("billing", "bugs")
        assert 0 < row["anger"] < 1
    assert frame.trace.values == 9
