"""Embedders: vectors of length one, whatever gives them, and each distinct text once."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from loopback import Body, Reply, closed_port, embeddings, serving

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.embedders.cache import CachedEmbedder, LazyEmbedder
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.embedders.load import load_embedder
from blendfusion.models.embedders.scripted_embedder import ScriptedEmbedder
from blendfusion.models.services.http.embedder import OpenAIEmbedder
from blendfusion.models.vectors.wordllama import WordLlamaEmbedder
from blendfusion.options import Options


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def wordllama() -> WordLlamaEmbedder:
    pytest.importorskip("wordllama", reason="needs the extra 'search'")
    return WordLlamaEmbedder()


def server(url: str, **options: object) -> OpenAIEmbedder:
    return OpenAIEmbedder("tiny", url, "key", Options().with_(**options))


# --- wordllama -----------------------------------------------------------------------------------


def test_vectors_have_length_one_and_texts_without_tokens_none() -> None:
    vectors = wordllama().embed(["a red bicycle", "a blue bike", "the stock market", ""])
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0], abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_a_vector_does_not_depend_on_what_is_beside_it() -> None:
    embedder = wordllama()
    texts = [f"text number {i} " * (1 + i % 7) for i in range(40)] + ["long " * 70_000]
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert np.array_equal(together, alone)


def test_vectors_are_those_of_the_package() -> None:
    """In another process: the package's import sets up the root logger."""
    embedder = wordllama()
    texts = ["a red bicycle", "Der Himmel ist blau.", "x = y + 1"]
    theirs = """
import json, os, sys, wordllama
folder = os.path.dirname(wordllama.__file__)
model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
print(json.dumps(model.embed(json.loads(sys.argv[1]), norm=True).tolist()))
"""
    done = subprocess.run(
        [sys.executable, "-c", theirs, json.dumps(texts)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert np.allclose(embedder.embed(texts), json.loads(done.stdout), atol=1e-5)


def test_the_package_itself_is_not_imported() -> None:
    wordllama()
    code = """
import logging, sys
from blendfusion.models.vectors.wordllama import WordLlamaEmbedder
WordLlamaEmbedder().embed(["text"])
assert "wordllama" not in sys.modules and not logging.getLogger().handlers
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_fingerprint_is_that_of_the_files() -> None:
    first, second = wordllama(), wordllama()
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint.startswith("wordllama:")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blendfusion.models.vectors.wordllama.PACKAGE", "not_installed_anywhere")
    with pytest.raises(ModelNotFound, match=r"pip install 'blendfusion\[search\]'"):
        WordLlamaEmbedder()


# --- a server ------------------------------------------------------------------------------------


def test_a_server_gets_64_texts_a_request_and_answers_in_any_order() -> None:
    with serving(embeddings) as loopback:
        vectors = server(loopback.url).embed(["x" * i for i in range(1, 151)])
    assert sorted(len(body["input"]) for body in loopback.bodies) == [22, 64, 64]
    assert {body["model"] for body in loopback.bodies} == {"tiny"}
    assert loopback.keys == ["Bearer key"] * 3
    wanted = [i / np.hypot(i, 1) for i in range(1, 151)]
    assert vectors[:, 0] == pytest.approx(wanted, abs=1e-6)


def test_a_request_that_fails_passingly_is_sent_again() -> None:
    failures = iter([503, 429])

    def script(body: Body) -> Reply:
        status = next(failures, 200)
        headers = {"retry-after": "0"}
        return embeddings(body) if status == 200 else Reply(status=status, headers=headers)

    with serving(script) as loopback:
        assert server(loopback.url).embed(["four"]).shape == (1, 2)
    assert len(loopback.bodies) == 3


def test_a_text_that_is_too_long_is_embedded_by_its_beginning() -> None:
    def script(body: Body) -> Reply:
        if max(map(len, body["input"])) > 300:
            return Reply(status=400, error="maximum context length is 75 tokens")
        return embeddings(body)

    with serving(script) as loopback:
        vectors = server(loopback.url).embed(["short", "long" * 250])
    assert vectors[:, 0] == pytest.approx([5 / np.hypot(5, 1), 250 / np.hypot(250, 1)], abs=1e-6)
    asked = [[len(text) for text in body["input"]] for body in loopback.bodies]
    assert asked == [[5, 1000], [5], [1000], [500], [250]]


def test_what_is_wrong_for_every_text_is_an_error() -> None:
    def refuses(body: Body) -> Reply:
        return Reply(status=400, error="this model cannot embed")

    with serving(refuses) as loopback, pytest.raises(ModelFailed, match="refuses to embed"):
        server(loopback.url).embed(["text"])
    with pytest.raises(ModelFailed, match="no server answers"):
        server(f"http://127.0.0.1:{closed_port()}/v1").embed(["text"])

    def odd(body: Body) -> Reply:
        return Reply(raw=b'{"data": [{"index": 0, "embedding": "none"}]}')

    with serving(odd) as loopback, pytest.raises(ModelFailed, match="no vectors"):
        server(loopback.url, retries=0).embed(["text"])


def test_a_server_that_only_chats_is_named() -> None:
    def missing(body: Body) -> Reply:
        return Reply(status=404, error="no such path")

    with serving(missing) as loopback, pytest.raises(ModelNotFound, match="no embedding model"):
        server(loopback.url).embed(["text"])


# --- by name -------------------------------------------------------------------------------------


def test_embedders_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options()
    named = load_embedder("openai:e5@http://127.0.0.1:1/v1", options)
    assert (named.name, named.batch_size) == ("openai:e5@http://127.0.0.1:1/v1", 1024)
    assert (
        named.fingerprint != load_embedder("openai:e6@http://127.0.0.1:1/v1", options).fingerprint
    )
    scripted = ScriptedEmbedder(lengths)
    assert load_embedder(scripted, options) is scripted
    assert isinstance(scripted, Embedder)
    monkeypatch.setenv("BLENDFUSION_EMBEDDER", "openai:e5@http://127.0.0.1:1/v1")
    assert load_embedder("auto", options).name == named.name


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("wordlama", "no embedder 'wordlama'. Did you mean 'wordllama'?"),
        (None, "this session has no embedder"),
        (3, "3 is neither an embedder nor the name of one"),
        ("openai:", "names no model"),
    ],
)
def test_what_is_no_embedder_is_an_error(spec: object, message: str) -> None:
    with pytest.raises(ModelNotFound) as raised:
        load_embedder(spec, Options())  # type: ignore[arg-type]
    assert message in str(raised.value)


# --- scripted, cached ----------------------------------------------------------------------------


def test_a_function_that_gives_something_else_is_an_error() -> None:
    with pytest.raises(ModelFailed, match=r"array of shape \(1,\) for 1 texts"):
        ScriptedEmbedder(lambda texts: [1.0]).embed(["text"])  # type: ignore[list-item]


def test_each_text_is_embedded_once_in_batches() -> None:
    scripted = ScriptedEmbedder(lengths, batch_size=2)
    cached = CachedEmbedder(scripted)
    first = cached.embed(["a", "bb", "a", "ccc"])
    again = cached.embed(["ccc", "a", "dddd"])
    assert scripted.texts == ["a", "bb", "ccc", "dddd"]
    assert cached.embedded == 4
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[3], again[0])
    assert cached.embed([]).shape == (0, 0)


def test_the_latest_vectors_are_kept() -> None:
    scripted = ScriptedEmbedder(lengths)
    cached = CachedEmbedder(scripted, most_bytes=16)  # two vectors
    cached.embed(["a", "bb"])
    cached.embed(["a", "ccc"])
    scripted.texts.clear()
    cached.embed(["a", "ccc"])
    cached.embed(["bb"])
    assert scripted.texts == ["bb"]


def test_nothing_is_loaded_before_it_is_needed() -> None:
    lazy = LazyEmbedder("nonsense", Options())
    lazy.close()
    with pytest.raises(ModelNotFound, match="no embedder 'nonsense'"):
        lazy()


def test_weights_are_freed_and_loaded_again() -> None:
    lazy = LazyEmbedder(wordllama(), Options())
    before = lazy().embed(["text"])
    lazy.close()
    lazy.close()
    assert np.array_equal(lazy().embed(["text"]), before)


class Odd:
    """An embedder that gives whatever it is told to."""

    name, fingerprint, batch_size = "odd", "odd", 8

    def __init__(self, vectors: object) -> None:
        self._vectors = vectors

    def embed(self, texts: list[str]) -> object:
        return self._vectors

    def close(self) -> None:
        pass


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        ([[1.0], [2.0], [3.0]], "3 vectors for 2 text"),
        ([[1.0]], "1 vectors for 2 text"),
        ([[1.0], [NAN]], "not finite"),
        ([[INF], [1.0]], "not finite"),
        ([[1e300], [1.0]], "not finite"),
        ([[], []], "an array of shape"),
        ([1.0, 2.0], "an array of shape"),
        ([[1.0], [1.0, 2.0]], "no array of numbers"),
        ([["a"], ["b"]], "no array of numbers"),
        (None, "no array of numbers|an array of shape"),
    ],
)
@pytest.mark.parametrize("scripted", [True, False])
def test_what_is_no_vector_of_each_text_is_an_error(
    vectors: object, problem: str, scripted: bool
) -> None:
    inner = ScriptedEmbedder(lambda texts: vectors) if scripted else Odd(vectors)  # type: ignore[arg-type,return-value]
    with pytest.raises(ModelFailed, match=problem):
        CachedEmbedder(inner).embed(["a", "b"])  # type: ignore[arg-type]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_server_whose_vectors_are_not_finite_is_an_error(number: str) -> None:
    raw = f'{{"data": [{{"index": 0, "embedding": [1.0, {number}]}}]}}'
    with serving(lambda body: Reply(raw=raw.encode())) as at, pytest.raises(ModelFailed):
        CachedEmbedder(server(at.url, retries=0)).embed(["a"])


def test_what_arrived_before_a_batch_failed_is_not_paid_again() -> None:
    """One request of ten fails, and within another one text of 64 is refused."""
    bad = {"500", "97"}

    def script(body: Body) -> Reply:
        if "500" in bad and "500" in body["input"]:
            return Reply(status=500)
        if "97" in bad and "97" in body["input"]:
            return Reply(status=400, error="not this one")
        return embeddings(body)

    texts = [str(n) for n in range(640)]
    with serving(script) as loopback:
        cached = CachedEmbedder(server(loopback.url, retries=0))
        while bad:
            with pytest.raises(ModelFailed) as raised:
                cached.embed(texts)
            bad.remove("500" if "no vectors" in str(raised.value) else "97")
        vectors = cached.embed(texts)
    wanted = [len(text) / np.hypot(len(text), 1) for text in texts]
    assert vectors[:, 0] == pytest.approx(wanted, abs=1e-6)
    good = [text for body in loopback.bodies if len(body["input"]) == 1 for text in body["input"]]
    assert len(good) == len(set(good) - {"97"}) + good.count("97"), (
        "each alone once, but the bad one"
    )


@pytest.mark.parametrize(
    "places",
    [
        (0,),
        (0, 1, 1),
        (0, 0),
        (0, 1, 2),
        (1, 2),
        (-1, 0),
        (None,),
        (0, None, 1),
        (0, "1"),
        (0.0, 1),
    ],
)
def test_vectors_that_are_not_one_of_each_text_are_an_error(places: tuple[object, ...]) -> None:
    data = [
        {"embedding": [1.0, n]} | ({} if place is None else {"index": place})
        for n, place in enumerate(places)
    ]
    raw = json.dumps({"data": data}).encode()
    with serving(lambda body: Reply(raw=raw)) as at, pytest.raises(ModelFailed, match="no vectors"):
        CachedEmbedder(server(at.url, retries=0)).embed(["a", "b"])


def test_vectors_of_another_length_than_before_are_an_error() -> None:
    width = [2]

    def script(body: Body) -> Reply:
        data = [{"index": i, "embedding": [1.0] * width[0]} for i in range(len(body["input"]))]
        return Reply(raw=json.dumps({"data": data}).encode())

    with serving(script) as loopback:
        cached = CachedEmbedder(server(loopback.url, retries=0))
        cached.embed(["a"])
        width[0] = 3
        with pytest.raises(ModelFailed, match="vectors of 2 numbers, and of 3: another model"):
            cached.embed(["a", "b"])
