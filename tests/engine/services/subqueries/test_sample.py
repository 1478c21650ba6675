"""The sample of a yes/no question: sample => (SELECT text FROM reviews LIMIT 20)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_model import weights_or_skip

import blendfusion as bf
from blendfusion.udfs.declare.sample import MOST, sample_rows

TEXTS = [
    "Great lamp, I would buy it again for all my friends.",
    "The handle broke on the second day and nobody answers.",
    "Does what it should, nothing special.",
    "Please send me a new charger.",
    "My mother loves it.",
    "Terrible smell, sent it back.",
]
SEEN = ["Works well.", "It fell apart.", "A gift for my brother.", "Too small for the box."]
SEEN_SQL = "SELECT said FROM seen"


def connected(model: bf.ScriptedModel | str, **options: object) -> bf.Session:
    session = bf.connect(model, **{"cache": None, **options})  # type: ignore[arg-type]
    session.from_pydict({"id": [*range(len(TEXTS))], "text": TEXTS}, name="reviews")
    session.from_pydict({"said": [*SEEN, None, " ", SEEN[0]]}, name="seen")
    return session


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: True)


def sample_of(model: bf.ScriptedModel) -> tuple[tuple[str, ...], ...]:
    (task,) = {call.task for call in model.calls}
    assert task.sample_query is None
    return task.sample


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        f"llm_filter('Good?', text, sample => ({SEEN_SQL}))",
        f"llm_filter('Good?', text, sample => ({SEEN_SQL} ORDER BY said DESC))",
        f"llm_bool('Good?', text, sample => {[*SEEN[::-1], SEEN[0], ' ']})",
        f"llm_map('Good?', text, sample => ({SEEN_SQL})) IS TRUE",
        f"llm_map('Good?', text, returns => 'bool', sample => ({SEEN_SQL}))",
    ],
)
def test_texts_in_any_order_are_one_sample(
    model: bf.ScriptedModel, call: str, planner: bool
) -> None:
    connected(model, planner=planner).sql(f"SELECT {call} AS f FROM reviews").collect()
    assert sample_of(model) == sample_rows((text,) for text in SEEN)


def test_python_takes_a_list(model: bf.ScriptedModel) -> None:
    frame = connected(model).table("reviews").filter(bf.llm_filter("Good?", "text", sample=SEEN))
    frame.collect()
    assert sample_of(model) == sample_rows((text,) for text in SEEN)


def test_of_many_texts_the_same_count(model: bf.ScriptedModel) -> None:
    session = connected(model)
    for order in ("ASC", "DESC"):
        query = f"SELECT value FROM generate_series(1, 200) ORDER BY value {order}"
        session.sql(f"SELECT llm_filter('Good?', text, sample => ({query})) FROM reviews").collect()
    assert len(sample_of(model)) == MOST


def test_several_values_have_a_sample_of_rows(model: bf.ScriptedModel) -> None:
    query = "SELECT said, 'b' FROM seen"
    listed = [[text, "b"] for text in SEEN]
    for sample in (f"({query})", str(listed)):
        connected(model).sql(
            f"SELECT llm_filter('Alike?', text, id, sample => {sample}) FROM reviews"
        ).collect()
    assert sample_of(model) == sample_rows((text, "b") for text in SEEN)


def test_a_sample_is_a_part_of_the_question_and_answers_are_stored(tmp_path: Path) -> None:
    def asked(sample: str) -> int:
        model = bf.ScriptedModel(lambda call: True, fingerprint="yes")
        session = connected(model, cache=tmp_path / "answers")
        frame = session.sql(f"SELECT llm_filter('Good?', text{sample}) AS f FROM reviews")
        frame.collect()
        session.close()
        return frame.trace.usage.values

    samples = ["", f", sample => ({SEEN_SQL})", ", sample => ['Works well.']"]
    assert [asked(sample) for sample in samples] == [len(TEXTS)] * 3
    assert [asked(sample) for sample in samples] == [0] * 3
    assert asked(f", sample => {SEEN[::-1]}") == 0


def test_a_call_in_the_subquery_is_answered(model: bf.ScriptedModel) -> None:
    query = "SELECT said FROM seen WHERE llm_filter('Is it about a lamp?', said)"
    frame = connected(model).sql(
        f"SELECT llm_filter('Good?', text, sample => ({query})) FROM reviews"
    )
    assert frame.estimate().total.values == len(TEXTS)
    assert model.calls == []
    frame.collect()
    assert {call.task.question for call in model.calls} == {"Good?", "Is it about a lamp?"}


def test_explain_says_where_a_sample_has_no_effect(model: bf.ScriptedModel) -> None:
    query = f"SELECT llm_filter('Good?', text, sample => ({SEEN_SQL})) FROM reviews"
    for planner in (True, False):
        shown = connected(model, planner=planner).sql(query).explain_text()
        assert "scored by: the sample has no effect: the reply counts" in shown
    assert (
        "the sample"
        not in connected(model).sql("SELECT llm_bool('a', text) FROM reviews").explain_text()
    )


@pytest.mark.parametrize(
    ("call", "problem", "remedy"),
    [
        (
            "llm_filter('a', text, sample => [])",
            "neither NULL nor blank",
            "sample => ['a text', …]",
        ),
        ("llm_filter('a', text, sample => [NULL, ''])", "neither NULL nor blank", "(SELECT text"),
        (
            "llm_filter('a', text, sample => 'x')",
            "must be a list of texts, not 'x'",
            "['a text', …]",
        ),
        ("llm_filter('a', text, sample => ['x', 3])", "has 3, which is no text", "['a text', …]"),
        ("llm_filter('a', text, sample => [['x', 'y']])", "has not 1 parts", "a column for each"),
        ("llm_filter('a', text, id, sample => ['x'])", "has not 2 parts", "a column for each"),
        ("llm_map('a', text, sample => ['x'])", "not of text", "returns => 'bool'"),
        (f"llm_map('a', text, sample => ({SEEN_SQL})) > 3", "not of integer", "returns => 'bool'"),
        ("llm_score('a', text, sample => ['x'])", "no option 'sample'", "examples"),
        (
            "llm_filter('a', text, sample => (SELECT said FROM seen WHERE FALSE))",
            "no sample",
            "NULL",
        ),
        ("llm_filter('a', text, sample => (SELECT said, 1 FROM seen))", "2 columns", "no answer"),
        (
            "llm_filter('a', text, id, sample => (SELECT said FROM seen))",
            "1 columns",
            "in the order",
        ),
        ("llm_filter('a', text, sample => (SELECT [said] FROM seen))", "type list", "texts"),
        (
            "llm_filter('a', text, sample => (SELECT value FROM generate_series(1, 10001)))",
            "10,000",
            "",
        ),
    ],
)
def test_what_is_no_sample_is_an_error(
    model: bf.ScriptedModel, call: str, problem: str, remedy: str
) -> None:
    with pytest.raises(bf.QueryError) as raised:
        connected(model).sql(f"SELECT {call} AS f FROM reviews").collect()
    assert "sample" in raised.value.message
    assert problem in raised.value.message
    assert remedy in (raised.value.hint or "")
    assert model.calls == []


QUESTION = "Would the writer recommend it?"
KEPT = f"llm_filter('{QUESTION}', text, sample => ({SEEN_SQL}), confidence => 'keep')"


@pytest.fixture(scope="module")
def local() -> Iterator[bf.Session]:
    with connected(f"llama:{weights_or_skip()}", n_ctx=1024) as session:
        yield session


def answers(session: bf.Session, rest: str = "", call: str = KEPT) -> dict[str, object]:
    """The answers to texts, with their probabilities."""
    found = session.sql(f"SELECT text, {call} AS f FROM reviews {rest}").to_pydict()
    return dict(zip(found["text"], found["f"], strict=True))


@pytest.mark.long
@pytest.mark.local
def test_answers_depend_on_no_other_value(local: bf.Session) -> None:
    whole = answers(local)
    assert len(whole) == len(TEXTS)
    for rest in ("ORDER BY id DESC", "WHERE id > 2", "WHERE id = 1", "ORDER BY text LIMIT 2"):
        with connected(f"llama:{weights_or_skip()}", n_ctx=1024) as session:
            some = answers(session, rest)
        assert some == {text: whole[text] for text in some}
        assert some


@pytest.mark.long
@pytest.mark.local
def test_the_sample_takes_the_place_of_the_column(local: bf.Session) -> None:
    weights = f"llama:{weights_or_skip()}"
    with connected(weights, n_ctx=1024, calibration="column") as by_column:
        assert answers(by_column) == answers(local)
        plain = KEPT.replace(f"sample => ({SEEN_SQL}), ", "")
        assert answers(by_column, call=plain) != answers(local, call=plain)
    # A sample of all values is the column.
    all_of_them = KEPT.replace(SEEN_SQL, "SELECT text FROM reviews")
    with connected(weights, n_ctx=1024, calibration="column") as by_column:
        column = answers(by_column, call=plain)
    given = answers(local, call=all_of_them)
    for text, one in column.items():
        assert given[text]["value"] == one["value"]  # type: ignore[index]
        assert given[text]["confidence"] == pytest.approx(one["confidence"])  # type: ignore[index]


@pytest.mark.local
def test_explain_and_estimates_count_the_sample(local: bf.Session) -> None:
    def frame(call: str) -> bf.Frame:
        return local.sql(f"SELECT {call.replace(QUESTION, 'Is it late?')} FROM reviews")

    with_sample, without = frame(KEPT), frame(KEPT.replace(f"sample => ({SEEN_SQL}), ", ""))
    assert "threshold by a sample of 4 texts" in with_sample.explain_text()
    assert "threshold" not in without.explain_text()
    more = with_sample.estimate().total, without.estimate().total
    assert more[0].values == more[1].values
    assert more[0].evaluated_tokens > more[1].evaluated_tokens
    without.collect()
    with_sample.collect()
    # The neutral texts are scored once for both.
    assert with_sample.trace.usage.evaluated_tokens < without.trace.usage.evaluated_tokens
