"""Patterns of users: what is written under one matches it, and what matches it can be written.

``pytest tests/models/services/llama/test_pattern.py --cases 200000`` tries 10,000 pairs of a random pattern and a
random text instead of 100.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from local_model import weights_or_skip

import blendfusion as bf
from blendfusion.errors import ArgumentError, ModelFailed
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.constraints.regex import check, matches
from blendfusion.models.services.llama.constrained_decoding import Guide, Writer
from blendfusion.models.services.llama.context import LlamaContext, Weights
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.models.services.llama.switch import Switch
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

SHARE = 0.05
"""Of the option ``--cases``: so many pairs are tried."""
MOST_TOKENS = 40
LETTERS = "ab cdeXYZ019.-_/é\n"
CLASSES = {
    "[a-c]": "abc",
    "[0-9]": "0123456789",
    "[A-Z]": "QXZ",
    "[^0-9\n]": "a é-",
    ".": "a ñ.日🎉",
    "[é-ü]": "éìü",
    r"[\]\^-]": "]^-",
    r"\.": ".",
    r"\\": "\\",
    r"\n": "\n",
}


# -- random pairs: a text is made with its pattern, and so matches it ----------------------------


def pair(rng: random.Random, depth: int = 3) -> tuple[str, Callable[[], str]]:
    """A pattern, and what makes texts that match it."""
    kind = rng.choice(["letters", "class"] if depth == 0 else ["letters", "class", *NESTED])
    if kind == "letters":
        word = "".join(rng.choices(LETTERS, k=rng.randint(1, 4)))
        return re.escape(word), lambda: word
    if kind == "class":
        name, some = rng.choice(list(CLASSES.items()))
        return name, lambda: rng.choice(some)
    if kind == "counted":
        return _counted(rng, *pair(rng, depth - 1))
    parts = [pair(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    patterns = [pattern for pattern, _ in parts]
    if kind == "either":
        return f"({'|'.join(patterns)})", lambda: rng.choice(parts)[1]()
    return "".join(patterns), lambda: "".join(make() for _, make in parts)


NESTED = ("both", "both", "either", "counted")


def _counted(
    rng: random.Random, pattern: str, make: Callable[[], str]
) -> tuple[str, Callable[[], str]]:
    least = rng.randint(0, 2)
    most = least + rng.randint(0, 3)
    sign, most = rng.choice([("*", 4), ("+", 4), ("?", 1), (f"{{{least},{most}}}", most)])
    least = {"*": 0, "+": 1, "?": 0}.get(sign, least)
    group = rng.choice(["({})", "(?:{})"]).format(pattern) + sign
    return group, lambda: "".join(make() for _ in range(rng.randint(least, most)))


def matches_in_re2(pattern: str, text: str) -> bool:
    """Another engine's word. Python's own would never come to an end with some of these
    patterns."""
    found = pc.match_substring_regex(pa.array([text]), pattern=rf"\A(?:{pattern})\z")
    return bool(found[0].as_py())


# -- a vocabulary that writes, without a model that thinks ---------------------------------------


@pytest.fixture(scope="module")
def context() -> Iterator[LlamaContext]:
    weights = Weights(weights_or_skip(), n_gpu_layers=0, switch=Switch())
    context = LlamaContext(weights, n_ctx=256, threads=1)
    yield context
    context.close()
    weights.close()


@pytest.fixture(scope="module")
def vocabulary(context: LlamaContext) -> object:
    return context.guide()


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaModel]:
    model = LlamaModel(weights_or_skip(), Options())
    yield model
    model.close()


@pytest.fixture(scope="module")
def pieces(context: LlamaContext) -> list[bytes]:
    return [
        b"" if context.is_control(token) else context.piece(token)
        for token in range(context.n_vocab)
    ]


class Tastes:
    """Logits of no model: random ones, or ones that want a text."""

    def __init__(self, pieces: list[bytes], ends: frozenset[int], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._random = rng.standard_normal((16, len(pieces))).astype(np.float32)
        self._pieces = pieces
        self._ends = sorted(ends)
        self._by_piece = {piece: token for token, piece in enumerate(pieces) if piece}

    def random(self, rng: random.Random) -> np.ndarray:
        logits = np.roll(self._random[rng.randrange(16)], rng.randrange(len(self._pieces)))
        if rng.random() < 0.1:
            logits[self._ends] = 10
        return logits

    def wanting(self, text: bytes, rng: random.Random, written: bytes) -> np.ndarray:
        """Any token that goes on with ``text``, whatever its length; behind it, the end."""
        logits = np.zeros(len(self._pieces), np.float32)
        rest = text[len(written) :]
        for length in range(1, len(rest) + 1):
            token = self._by_piece.get(rest[:length])
            if token is not None:
                logits[token] = 1 + rng.random()
        if not rest:
            logits[self._ends] = 3
        return logits


def write(writer: Writer, logits: Callable[[bytes], np.ndarray]) -> bytes:
    while writer.step(logits(writer.written)):
        pass
    return writer.written


@pytest.mark.local
def test_what_is_written_matches_and_what_matches_can_be_written(
    context: LlamaContext, vocabulary: object, pieces: list[bytes], cases: int
) -> None:
    rng = random.Random(1)
    tastes = Tastes(pieces, frozenset(context.end_tokens), seed=1)
    unfinished = 0
    for number in range(int(cases * SHARE)):
        pattern, make = pair(rng)
        text = make()
        constraint = Constraint("regex", pattern=pattern)
        lead, stop = ("", "") if number % 2 else (" ", "\n")
        check(pattern)
        guide = Guide(context, vocabulary, pattern, lead, stop)

        wanted = (lead + text).encode()
        writer = guide.writer(len(wanted) + 8, 0.0)
        written = write(writer, partial(tastes.wanting, wanted, rng))
        assert writer.complete, (pattern, text)
        # Under a stop, an answer may come to its end at its last character.
        assert written == wanted, (pattern, text, written)
        assert holds(constraint, text), (pattern, text)
        assert matches_in_re2(pattern, text), (pattern, text)

        writer = guide.writer(MOST_TOKENS, 0.0)
        written = write(writer, lambda _: tastes.random(rng))
        if not writer.complete:
            unfinished += 1
            continue
        answer = written.decode().removeprefix(lead)
        if not holds(constraint, answer):
            answer = answer.removesuffix(stop)
        assert holds(constraint, answer), (pattern, answer)
        assert matches_in_re2(pattern, answer), (pattern, answer)
    assert unfinished < 0.2 * cases * SHARE


# -- patterns that no answer can be written under ------------------------------------------------

REFUSED = {
    r"[^\s\S]": "matches no text",
    r"a[b&&c]": "matches no text",
    r"(?=a)b": "uses look-around or back-references",
    r"a\b.": "uses look-around or back-references",
    r"(a)\1": "uses look-around or back-references",
    r"a^b": "uses look-around or back-references",
    "[a": "is invalid: unclosed character class",
    "a)|(b": "is invalid: unopened group",
    "a{3,1}": "is invalid: invalid repetition count range",
    "a\\": "is invalid: unclosed group",
    r"\p{Nonsense}": "is invalid: Unicode property not found",
    "(.{1,1000}){1,1000}": "its nested counts multiply to 1,000,000",
    "x((a{0,100}){0,100}){0,100}": "its nested counts multiply to 1,000,000",
}


@pytest.mark.parametrize(("pattern", "reason"), REFUSED.items())
def test_an_impossible_or_catastrophic_pattern_is_refused_by_name(
    pattern: str, reason: str
) -> None:
    with pytest.raises(ArgumentError, match=re.escape(reason)) as refused:
        check(pattern)

    assert repr(pattern) in str(refused.value)
    assert "Hint: " in str(refused.value)


def test_half_of_a_surrogate_pair_is_no_pattern() -> None:
    with pytest.raises(ArgumentError, match="half of a surrogate pair"):
        check("a\ud800")


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_query_with_such_a_pattern_asks_nothing(pattern: str) -> None:
    asked: list[object] = []
    session = bf.connect(bf.ScriptedModel(lambda call: asked.append(call) or "a"))
    session.from_pydict({"x": ["some text"]}, "t")

    with pytest.raises(ArgumentError, match=r"llm_map: .*regex"):
        session.sql(f"SELECT llm_map('What?', x, regex => '{pattern}') FROM t").to_arrow_table()

    assert asked == []


@pytest.mark.local
@pytest.mark.parametrize("pattern", [r"[^\s\S]", r"a\b.", "[a"])
def test_a_guide_refuses_by_name_before_anything_is_decoded(
    context: LlamaContext, vocabulary: object, pattern: str
) -> None:
    with pytest.raises(ModelFailed, match=re.escape(repr(pattern))):
        Guide(context, vocabulary, pattern)


@pytest.mark.local
@pytest.mark.parametrize("pattern", REFUSED)
def test_a_model_that_is_asked_directly_refuses_too(model: LlamaModel, pattern: str) -> None:
    task = Task("llm_map", "What?", Constraint("regex", pattern=pattern), ("x",))

    with pytest.raises(ArgumentError, match=re.escape(repr(pattern))):
        model.answer(task, [("some text",)])


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+b|a*", "a" * 5_000),
        ("((a|a)*)*b|.*", "a" * 5_000),
        ("(.*a){10}b|a*", "a" * 5_000),
        ("(x+x+)+y|x*", "x" * 5_000),
    ],
)
def test_a_match_takes_no_longer_than_the_text(pattern: str, text: str) -> None:
    """Any engine that goes back and tries again would still be running."""
    assert matches(pattern, text)
    assert not matches(pattern, text + "!") or pattern.endswith(".*")


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (r"\d+", "٣4", "x"),
        (r"\p{L}+", "naïve", "a b"),
        ("(?i)straße", "STRAßE", "strasse"),
        ("^[A-Z]{2}$", "AB", "ABC"),
        ("^a$|^b$", "b", "ab"),
        ("a|", "", "b"),
        ("a\nb", "a\nb", "a"),
        ("[[:alpha:]]+", "abc", "a1"),
        ("a{2000}", "a" * 2000, "a" * 1999),
    ],
)
def test_what_matches(pattern: str, inside: str, outside: str) -> None:
    check(pattern)
    assert matches(pattern, inside)
    assert not matches(pattern, outside)


@pytest.mark.local
@pytest.mark.parametrize(("lead", "stop"), [("", ""), (" ", "\n")])
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^a$|^b$", "b"),
        (r"\A[A-Z]{2}\z", "AB"),
        ("[^$]+$", "a^b"),
        (r"[]^$]\$\[", "^$["),
        ("a|$", ""),
    ],
)
def test_anchors_say_nothing_whatever_stands_around(
    context: LlamaContext,
    vocabulary: object,
    pieces: list[bytes],
    pattern: str,
    text: str,
    lead: str,
    stop: str,
) -> None:
    tastes = Tastes(pieces, frozenset(context.end_tokens), seed=1)
    wanted = (lead + text).encode()
    writer = Guide(context, vocabulary, pattern, lead, stop).writer(20, 0.0)

    assert write(writer, partial(tastes.wanting, wanted, random.Random(1))) == wanted
    assert writer.complete


@pytest.mark.parametrize(("text", "holds_"), [("12", True), ("1", False), ("12\n", False)])
def test_a_constraint_holds_by_the_same_engine(text: str, holds_: bool) -> None:
    assert holds(Constraint("regex", pattern=r"^\d{2}$"), text) is holds_
