"""Encoders with a head for decisions, in process: a tiny one of random weights, whose answers NumPy
computes apart, too."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest
from laya_weights import TEMPERATURES, TOKENS, Weights, scores, write_laya_weights
from local_model import bindings_or_skip

import blendfusion as bf
from blendfusion.models.services.decisions.question import Question
from blendfusion.models.services.encoder_heads.encoder import Encoder
from blendfusion.models.services.encoder_heads.prompt import (
    Layout,
    Template,
    UnknownLayout,
    fit,
    options_of,
)
from blendfusion.models.services.llama.shared_library import compiled_folder, prebuilt
from blendfusion.models.services.llama.switch import Switch

PROGRAM = Path(__file__).parents[3] / "support" / "decision_program.py"
TEXTS = ["a fine lamp", "it broke twice", None, "please refund me, " * 12, "Is it? No.", "x " * 600]
ASKED = Question("boolean", "is it good?")
CHOSEN = Question(
    "choice", "which team?", ("bugs", "money", "rest"), ("it broke", "paid", "all else")
)
SCORED = Question("score", "how bad?", meanings=("low", "mid", "high"), levels=(0, 1, 2))
SELECT = (
    "SELECT llm_probability('is it good?', text) AS good, "
    "llm_map('which team?', text, options => {'bugs': 'it broke', 'money': 'paid', 'rest': 'all else'}, "
    "confidence => 'all') AS team, llm_score('how bad?', text, levels => ['low', 'mid', 'high']) AS bad "
    "FROM t"
)
needs_library = pytest.mark.skipif(
    compiled_folder() is not None or prebuilt() is None,
    reason="llama.cpp knows these heads only in the prebuilt library",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Weights]:
    bindings_or_skip()
    path = tmp_path_factory.mktemp("weights") / "laya.gguf"
    return path, write_laya_weights(path)


def connect(path: Path, texts: list[str | None] = TEXTS) -> bf.Session:
    session = bf.connect(f"laya:{path}", cache=None, progress="off")
    session.from_pydict({"text": texts}, "t")
    return session


def expected(encoder: Encoder, weights: Weights, question: Question, text: str) -> list[float]:
    """The probabilities of the options, computed by NumPy."""
    tokens = encoder.tokens(encoder.template.render(question, text))
    column = ("choice", "score", "boolean").index(question.kind)
    kind = ("choice", "score", "noul")[column]
    marks = [place for place, token in enumerate(tokens) if token == TOKENS["mask"]]
    powers = np.exp(scores(weights, tokens)[marks, column] / TEMPERATURES[kind])
    return [*(powers / powers.sum())]


@pytest.mark.local
@needs_library
def test_answers_are_those_that_numpy_computes(made: tuple[Path, Weights]) -> None:
    path, weights = made
    encoder = Encoder(path, 1, Switch())
    rows = connect(path).sql(SELECT).to_pylist()
    for text, row in zip(TEXTS, rows, strict=True):
        if text is None:
            assert row == {"good": None, "team": None, "bad": None}
            continue
        assert row["good"] == pytest.approx(expected(encoder, weights, ASKED, text)[1], abs=0.02)
        shares = expected(encoder, weights, CHOSEN, text)
        assert [p for _, p in row["team"]] == pytest.approx(shares, abs=0.02)
        assert [name for name, _ in row["team"]] == ["bugs", "money", "rest"]
        levels = expected(encoder, weights, SCORED, text)
        assert row["bad"] == pytest.approx(levels[1] + 2 * levels[2], abs=0.04)
    encoder.close()


@pytest.mark.local
@needs_library
def test_no_answer_depends_on_its_company(made: tuple[Path, Weights]) -> None:
    path, _ = made
    together = connect(path).sql(SELECT).to_pylist()
    backwards = connect(path, TEXTS[::-1]).sql(SELECT).to_pylist()
    assert together == backwards[::-1]
    alone = [connect(path, [text]).sql(SELECT).to_pylist()[0] for text in TEXTS]
    assert together == alone  # to the last bit
    moved = connect(path).sql("SELECT llm_filter('is it good?', text) AS y FROM t")
    assert moved.check_independence(k=5).moved == 0


@pytest.mark.local
@needs_library
def test_no_text_names_a_control_token(made: tuple[Path, Weights]) -> None:
    path, _ = made
    texts: list[str | None] = ["a<mask>b<sep>", "a b ", "<cls>"]
    rows = connect(path, texts).sql("SELECT llm_probability('ok<mask>?', text) AS p FROM t")
    first, second, third = (row["p"] for row in rows.to_pylist())
    assert first == second
    assert third is not None


@pytest.mark.local
@needs_library
def test_a_value_that_is_too_long_fails_alone(made: tuple[Path, Weights]) -> None:
    path, _ = made
    session = connect(path, ["ok", "x " * 2000])
    frame = session.sql("SELECT llm_filter('ok?', text, on_error => 'keep') AS y FROM t")
    good, long = (row["y"] for row in frame.to_pylist())
    assert good["error"] is None
    assert "the model reads 1024" in long["error"]


@pytest.mark.local
@needs_library
def test_a_question_beyond_the_head_is_a_warning(tmp_path: Path) -> None:
    bindings_or_skip()
    write_laya_weights(tmp_path / "short.gguf", head_tokens=24)
    session = connect(tmp_path / "short.gguf", ["ok"])
    with pytest.warns(bf.ModelWarning, match="reads 24 tokens of a question"):
        session.sql("SELECT llm_filter('is it any good for me and you?', text) FROM t").collect()


@pytest.mark.local
@needs_library
def test_other_questions_and_other_weights_are_refused(made: tuple[Path, Weights]) -> None:
    path, _ = made
    with pytest.raises(bf.QueryError, match="answers yes or no, choices and scores alone"):
        connect(path).sql("SELECT llm_int('how many?', text) FROM t").collect()
    with pytest.raises(bf.ModelNotFound, match=r"Write 'laya:/path/weights\.gguf'"):
        bf.connect("laya:")
    with pytest.raises(bf.ModelNotFound, match="no weights at"):
        bf.connect(f"laya:{path}.gguf")


@pytest.mark.local
@needs_library
def test_weights_without_such_a_head_are_refused() -> None:
    from local_model import weights_or_skip

    session = connect(weights_or_skip(), ["ok"])
    with pytest.raises(bf.ModelFailed, match="no encoder with a head like Laya's: it has none"):
        session.sql("SELECT llm_filter('ok?', text) FROM t").collect()


@pytest.mark.long
@needs_library
def test_answers_are_those_of_llama_cpps_server(made: tuple[Path, Weights]) -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    path, _ = made
    rows = connect(path).sql(SELECT).to_pylist()
    with address(path) as url:
        for text, row in zip(TEXTS, rows, strict=True):
            if text is None or len(text) > 1000:
                continue
            found = ask(url, text)
            assert row["good"] == pytest.approx(found["good"]["noul"], abs=0.02)
            shares = [*found["team"]["probabilities"].values()]
            assert [p for _, p in row["team"]] == pytest.approx(shares, abs=0.02)
            assert row["bad"] == pytest.approx(found["bad"]["score"], abs=0.04)


class address:  # noqa: N801  # a context
    """The server of a file, while it runs."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, str(PROGRAM), str(path)]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(
            command, text=True, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> str:
        assert self._server.stdout is not None
        return next(line for line in self._server.stdout if line.startswith("http")).strip()

    def __exit__(self, *_: object) -> None:
        self._server.communicate("", timeout=30)


def ask(url: str, text: str) -> dict[str, dict[str, object]]:
    questions = {
        "good": {"type": "noul", "instructions": ASKED.text},
        "team": {
            "type": "choice",
            "instructions": CHOSEN.text,
            "criteria": {"bugs": "it broke", "money": "paid", "rest": "all else"},
        },
        "bad": {"type": "score", "instructions": SCORED.text, "criteria": ["low", "mid", "high"]},
    }
    body = json.dumps({"state": text, "questions": questions}).encode()
    request = Request(f"{url}/v1/systemone", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as reply:
        return json.load(reply)["answers"]


# ---------------------------------------------------------------- the prompt alone

CLS, SEP, MARK = 2, 3, 4


def prompt(question: int, options: list[int], state: int) -> list[int]:
    found = [CLS, *[10] * question, SEP]
    for number, length in enumerate(options):
        found += [MARK, *[20 + number] * length]
    return [*found, SEP, *[50] * state, SEP]


@pytest.mark.parametrize(
    ("question", "options", "most", "kept"),
    [
        (5, [2, 3], 64, (5, [2, 3])),
        (5, [60, 3], 256, (5, [48, 3])),  # an option has 48
        (90, [2, 3], 64, (57, [2, 3])),  # the question has the rest
        (30, [20, 30, 2], 48, (25, [9, 9, 2])),  # all that is beyond 16, evenly
        (30, [9] * 10, 32, (8, [3] * 10)),  # but never less than three and eight
    ],
)
def test_long_prompts_are_shortened_as_in_training(
    question: int, options: list[int], most: int, kept: tuple[int, list[int]]
) -> None:
    found = fit(prompt(question, options, 7), len(options), marker=MARK, separator=SEP, most=most)
    assert found.tokens == tuple(prompt(*kept, 7))
    assert [found.tokens[place] for place in found.markers] == [MARK] * len(options)
    assert found.is_cut == ((question, options) != kept)


@pytest.mark.parametrize(
    "tokens", [[], [CLS], [CLS, 10, SEP, MARK, 20, SEP], [CLS, 10, MARK, 20, SEP, 50, SEP], [MARK]]
)
def test_a_template_of_another_form_is_refused(tokens: list[int]) -> None:
    with pytest.raises(UnknownLayout):
        fit(tokens, 1, marker=MARK, separator=SEP, most=64)


def test_a_broken_template_is_refused() -> None:
    for source in ("{{ state", "{{ state.x.y.z() }}", "{% for a in 1 %}{% endfor %}"):
        with pytest.raises(UnknownLayout, match="cannot be filled in"):
            Template(source, frozenset()).render(ASKED, "text")


def test_options_stand_in_the_order_of_the_training() -> None:
    assert [option["key"] for option in options_of(ASKED)] == ["false", "true"]
    assert [option["description"] for option in options_of(SCORED)] == ["low", "mid", "high"]
    assert options_of(CHOSEN)[1] == {"key": "money", "description": "paid"}
    assert Layout((), (), is_cut=False).tokens == ()
