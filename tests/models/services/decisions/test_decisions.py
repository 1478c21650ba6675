"""Decision models over three protocols: right rows, checked probabilities, one reading a value."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from decision_server import Decisions
from loopback import Body, Loopback, Reply, serving

import blendfusion as bf

PROTOCOLS = {"systemone": "", "decisions": "/v1", "sglang-decisions": "/v1"}
SCRIPTS = {"systemone": "systemone", "decisions": "openai", "sglang-decisions": "sglang"}
TEXTS = ["please refund me", "a fine lamp", "it broke, refund!", "ok"]


@pytest.fixture(autouse=True)
def own_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def odds(state: str, question: str, options: Sequence[str]) -> list[float]:
    """Yes, and the second option or level, where a text asks for a refund."""
    sure = 0.9 if "refund" in state else 0.25
    if options == ["yes", "no"]:
        return [sure, 1 - sure]
    rest = (1 - sure) / (len(options) - 1)
    return [rest, sure, *[rest] * (len(options) - 2)]


@contextmanager
def asking(
    decisions: Decisions, scheme: str = "systemone", name: str = "", **options: Any
) -> Iterator[tuple[bf.Session, Loopback]]:
    with serving(getattr(decisions, SCRIPTS[scheme])) as server:
        url = server.url.removesuffix("/v1") + PROTOCOLS[scheme]
        given = {"cache": None, "progress": "off", **options}
        session = bf.connect(f"{scheme}:{name or decisions.model}@{url}", **given)
        session.from_pydict({"id": list(range(len(TEXTS))), "text": TEXTS}, name="t")
        yield session, server


QUERY = (
    "SELECT llm_filter('Is a refund requested?', text) AS refund, "
    "llm_classify(text, ['praise', 'complaint', 'other']) AS label, "
    "llm_score('How angry is it?', text) AS anger, "
    "llm_filter('Is it rude?', text, confidence => 'keep') AS rude FROM t ORDER BY id"
)


@pytest.mark.parametrize("scheme", PROTOCOLS)
def test_each_protocol_gives_the_same_rows(scheme: str) -> None:
    with asking(Decisions(odds), scheme) as (session, _):
        rows = session.sql(QUERY).to_pylist()
    assert [row["refund"] for row in rows] == [True, False, True, False]
    assert [row["label"] for row in rows] == ["complaint", "praise", "complaint", "praise"]
    assert [row["rude"]["confidence"] for row in rows] == pytest.approx([0.9, 0.75, 0.9, 0.75])
    # Eleven points are ten levels: of the points 0, 1, 2, 3, 4, 6, 7, 8, 9 and 10.
    high, low = 0.9 * 1 + 49 * 0.1 / 9, 0.25 * 1 + 49 * 0.75 / 9
    assert [row["anger"] for row in rows] == pytest.approx([high, low, high, low], abs=1e-5)


def test_several_columns_are_an_object_and_rows_of_a_group_a_list() -> None:
    with asking(Decisions(odds)) as (session, server):
        session.sql("SELECT llm_filter('Do {id} and {text} fit?', id, text) AS a FROM t").collect()
        assert {"id": "1", "text": "a fine lamp"} in [body["state"] for body in server.bodies]
        assert {q["instructions"] for b in server.bodies for q in b["questions"].values()} == {
            "Do the id and the text fit?"
        }


# ---------------------------------------------------------------- unusable answers


def _without(name: str) -> Callable[[Body], Body]:
    return lambda answer: {key: held for key, held in answer.items() if key != name}


FAULTS: dict[str, Callable[[Body], Any]] = {
    "missing": lambda answer: None,
    "text": lambda answer: "yes",
    "other kind": lambda answer: answer | {"type": "box"},
    "no figures": lambda answer: {"type": answer["type"]},
    "above one": lambda answer: answer | {"noul": 1.2, "probabilities": {"0": 1.2}},
    "negative": lambda answer: answer | {"noul": -0.1, "probabilities": {"praise": -0.1}},
    "true": lambda answer: answer | {"noul": True, "probabilities": True},
    "not a number": lambda answer: answer | {"noul": float("nan"), "probabilities": {}},
    "huge": lambda answer: answer | {"noul": 10**400, "probabilities": {"praise": 10**400}},
    "other options": lambda answer: answer | {"noul": None, "probabilities": {"x": 1.0}},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_unusable_answer_is_the_value_s_failure(fault: str) -> None:
    with asking(Decisions(odds, spoil=FAULTS[fault]), retries=0) as (session, _):
        with pytest.warns(bf.AnswerWarning, match="values got no valid answer"):
            rows = session.sql(QUERY).to_pylist()
        assert {held for row in rows for held in row.values()} == {None}


def test_a_sum_that_rounding_does_not_explain_is_no_answer() -> None:
    def off(share: float) -> Callable[[Body], Body]:
        def spoil(answer: Body) -> Body:
            table = answer.get("probabilities", {})
            return answer | {"probabilities": {key: p * share for key, p in table.items()}}

        return spoil

    query = "SELECT llm_classify(text, ['praise', 'complaint', 'other']) AS a FROM t"
    with asking(Decisions(odds, spoil=off(0.99))) as (session, _):
        rows = session.sql(query.replace("AS a", "AS a, id") + " ORDER BY id").to_pylist()
        assert [row["a"] for row in rows] == ["complaint", "praise", "complaint", "praise"]
    with (
        asking(Decisions(odds, spoil=off(0.9)), retries=0) as (session, _),
        pytest.warns(bf.AnswerWarning, match=r"probabilities whose sum is 0\.900"),
    ):
        session.sql(query).collect()


def test_a_refusal_of_one_question_is_one_failure() -> None:
    def spoil(answer: Body) -> Body:
        rude = answer["name"] == "q4"
        return {"type": "refusal", "name": "q4"} if rude else answer

    with (
        asking(Decisions(odds, spoil=spoil), "decisions", "kev-4b", retries=0) as (session, _),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        rows = session.sql(QUERY).to_pylist()
        assert [row["refund"] for row in rows] == [True, False, True, False]
        assert [row["label"] for row in rows] == ["complaint", "praise", "complaint", "praise"]


@pytest.mark.parametrize("scheme", PROTOCOLS)
def test_random_replies_are_answers_or_failures(scheme: str, cases: int) -> None:
    draw = random.Random(scheme)

    def junk(depth: int = 0) -> Any:
        kinds = ["list", "object", "number", "text", "null", "odds"] if depth < 4 else ["number"]
        kind = draw.choice(kinds)
        if kind == "list":
            return [junk(depth + 1) for _ in range(draw.randrange(4))]
        if kind == "object":
            names = ["answers", "q1", "type", "noul", "probabilities", "name", "value", "model"]
            names += ["usage", "input_tokens", "probability", "yes", "no", "result"]
            return {draw.choice(names): junk(depth + 1) for _ in range(draw.randrange(6))}
        figures = [draw.random(), -1, 2, 1e308, 10**30, True, draw.randrange(9)]
        return {"number": draw.choice(figures), "text": draw.choice(["q1", "noul", "yes", ""])}.get(
            kind
        )

    def script(body: Body) -> Reply:
        if draw.random() < 0.2:
            good: Reply = getattr(Decisions(odds), SCRIPTS[scheme])(body)
            return good
        status = draw.choice([200, 200, 200, 200, 422, 500])
        raw = json.dumps(junk()).encode()
        return Reply(raw=raw, status=status, error="no")

    with serving(script) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        url = server.url.removesuffix("/v1") + PROTOCOLS[scheme]
        session = bf.connect(f"{scheme}:m@{url}", cache=None, progress="off", retries=0)
        texts = [f"{draw.random()}" for _ in range(max(60, cases // 4))]
        session.from_pydict({"text": texts}, name="t")
        for query in ("llm_filter('Is it so?', text)", "llm_classify(text, ['yes', 'no', 'q1'])"):
            try:
                found = session.sql(f"SELECT {query} AS a FROM t").to_pylist()
            except bf.ModelFailed:  # too many values in a row without an answer
                continue
            assert {row["a"] for row in found} <= {None, True, False, "yes", "no", "q1"}


# ---------------------------------------------------------------- servers


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (501, "answers no decisions: HTTP 501"),
        (404, "does not have jev"),
        (401, "refused access"),
    ],
)
def test_a_server_without_decisions_is_an_error_at_once(status: int, message: str) -> None:
    said = "This model is not a decision model" if status == 501 else "no"
    with serving(lambda body: Reply(status=status, error=said)) as server:
        session = bf.connect(f"systemone:jev@{server.url.removesuffix('/v1')}", cache=None)
        session.from_pydict({"text": TEXTS}, name="t")
        with pytest.raises((bf.ModelFailed, bf.ModelNotFound), match=message):
            session.sql("SELECT llm_filter('Is it so?', text) FROM t").collect()
        assert len(server.bodies) <= len(TEXTS)


@pytest.mark.parametrize("scheme", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "The model `fig-7` does not exist"),
        (400, "fig-7 is not a valid model ID"),
        (400, "The model 'fig-7' is not supported with the Decisions API."),
        (422, "unknown model 'fig-7'"),
        (422, "Model fig-7 is unknown. Available models: fig-8, fig-9"),
    ],
)
def test_a_model_that_the_server_does_not_have_is_one_error(
    scheme: str, status: int, words: str
) -> None:
    with serving(lambda body: Reply(status=status, error=words)) as server:
        url = server.url.removesuffix("/v1") + PROTOCOLS[scheme]
        session = bf.connect(f"{scheme}:fig-7@{url}", cache=None)
        session.from_pydict({"text": [f"{n}" for n in range(200)]}, name="t")
        with pytest.raises(bf.ModelNotFound, match="does not have fig-7") as found:
            session.sql("SELECT llm_filter('A?', text), llm_filter('B?', text) FROM t").collect()
        assert words in str(found.value)
        assert len(server.bodies) == 1


@pytest.mark.parametrize("words", ["fig-7 does not read this state", "unknown model 'fig-70'"])
def test_what_a_server_says_of_one_value_is_that_values_failure(words: str) -> None:
    with serving(lambda body: Reply(status=422, error=words)) as server:
        session = bf.connect(f"systemone:fig-7@{server.url.removesuffix('/v1')}", cache=None)
        session.from_pydict({"text": TEXTS}, name="t")
        frame = session.sql("SELECT llm_filter('A?', text) AS a FROM t")
        with pytest.warns(bf.AnswerWarning):
            assert [row["a"] for row in frame.to_pylist()] == [None] * len(TEXTS)


def test_a_busy_server_is_asked_again() -> None:
    decisions = Decisions(odds)
    busy = iter([Reply(status=529, headers={"Retry-After": "0"}, error="busy")] * 3)
    with serving(lambda body: next(busy, None) or decisions.systemone(body)) as server:
        session = bf.connect(f"systemone:jev@{server.url.removesuffix('/v1')}", cache=None)
        session.from_pydict({"text": TEXTS}, name="t")
        rows = session.sql("SELECT llm_filter('A refund?', text) AS a FROM t").to_pylist()
        assert sum(row["a"] for row in rows) == 2
        assert len(server.bodies) == len(TEXTS) + 3


def test_a_name_without_a_server_says_how_to_name_one() -> None:
    with pytest.raises(bf.ModelNotFound, match="'systemone:jev' names no server"):
        bf.connect("systemone:jev").model_names  # noqa: B018


def test_text_goes_to_the_next_model_and_without_one_is_an_error() -> None:
    decisions = Decisions(odds)
    with serving(decisions.systemone) as server:
        name = f"systemone:jev@{server.url.removesuffix('/v1')}"
        words = bf.ScriptedModel(lambda call: "words")
        session = bf.connect([name, words], cache=None, progress="off")
        session.from_pydict({"text": TEXTS}, name="t")
        query = (
            "SELECT llm_map('What is it?', text) AS a, llm_filter('A refund?', text) AS b FROM t"
        )
        assert sum(row["b"] for row in session.sql(query).to_pylist()) == 2
        assert (len(words.calls), len(server.bodies)) == (4, 4)
        alone = bf.connect(name, cache=None, progress="off")
        alone.from_pydict({"text": TEXTS}, name="t")
        before = len(server.bodies)
        with pytest.raises(
            bf.QueryError, match=r"llm_map: .* answers yes or no, choices and scores"
        ):
            alone.sql(query).collect()
        assert len(server.bodies) == before  # nothing is asked before
        plan, refused = session.sql(query).explain_text(), alone.sql(query).explain_text()
        assert f"asked of scripted: {name} answers yes or no" in plan
        assert f"no model answers it: {name} answers yes or no" in refused


@pytest.mark.parametrize(("scheme", "most"), [("systemone", 255), ("sglang-decisions", 26)])
def test_more_options_than_a_protocol_takes_are_for_another_model(scheme: str, most: int) -> None:
    decisions = Decisions(lambda state, question, options: [1, *[0] * (len(options) - 1)])
    with asking(decisions, scheme) as (session, server):
        for count in (most, most + 1):
            options = [f"o{n}" for n in range(count)]
            query = f"SELECT llm_filter('A?', text), llm_map('B?', text, options => {options}) AS b"
            frame = session.sql(f"{query} FROM t")
            if count == most:
                assert {row["b"] for row in frame.to_pylist()} == {"o0"}
                assert len(server.bodies) == 4
            else:
                with pytest.raises(bf.QueryError, match=f"choices of at most {most} options"):
                    frame.collect()
                assert len(server.bodies) == 4


# ---------------------------------------------------------------- one reading


def test_one_reading_answers_all_questions_about_a_value() -> None:
    decisions = Decisions(odds)
    with asking(decisions) as (session, server):
        frame = session.sql(QUERY)
        assert len(frame.to_pylist()) == 4
        assert decisions.counts == [4] * 4
        assert (frame.trace.usage.values, frame.trace.usage.calls) == (16, 4)
        session.sql("SELECT llm_filter('Is it rude?', text) FROM t").collect()
        assert len(server.bodies) == 4  # each answer is stored by itself


@pytest.mark.parametrize("scheme", PROTOCOLS)
def test_values_readings_and_requests_are_counted_apart(
    scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions = Decisions(odds)
    with asking(decisions, scheme) as (session, server):
        frame = session.sql(QUERY)
        expected = frame.estimate()
        assert server.bodies == []
        assert (expected.total.values, expected.total.readings, expected.total.calls) == (16, 4, 4)
        assert "16 values in 4 readings and 4 requests" in str(expected)
        frame.explain(analyze=True)  # runs the query
        text = capsys.readouterr().out
        trace = frame.trace
        assert (trace.values, trace.readings, trace.requests) == (16, 4, 4)
        assert text.count("4 values asked (4 expected), 4 of them beside another question") == 3
        assert "Total: 16 values asked (16 expected) in 4 readings and 4 requests" in text
        assert "readings=4, requests=4" in repr(trace)


@pytest.mark.parametrize("stored", [0, 2, 4])
@pytest.mark.parametrize("questions", [1, 2, 3, 8, 40])
def test_an_estimate_of_readings_is_what_a_run_takes(questions: int, stored: int) -> None:
    decisions = Decisions(odds)
    with asking(decisions, cache="memory") as (session, server):
        session.sql(f"SELECT llm_filter('Is it 0?', text) FROM t WHERE id < {stored}").collect()
        before = len(server.bodies)
        calls = ", ".join(f"llm_filter('Is it {n}?', text) AS a{n}" for n in range(questions))
        frame = session.sql(f"SELECT {calls} FROM t")
        expected = frame.estimate().total
        frame.collect()
        spent = frame.trace.usage
        assert (expected.values, expected.readings) == (spent.values, spent.readings)
        assert expected.calls == spent.calls == len(server.bodies) - before


def test_a_failure_beside_another_question_is_a_reading_of_its_own() -> None:
    def spoil(answer: Body) -> Body:
        return {"type": "refusal", "name": "q4"} if answer["name"] == "q4" else answer

    with (
        asking(Decisions(odds, spoil=spoil), "decisions", "kev-4b", retries=0) as (session, server),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        frame = session.sql(QUERY)
        frame.collect()
        assert frame.trace.requests == len(server.bodies)
        assert frame.trace.readings == frame.trace.requests


@pytest.mark.parametrize("seed", range(12))
def test_what_a_server_refuses_of_a_request_costs_no_other_answer(seed: int) -> None:
    """A server refuses a request for the number of its questions, one question, its length or a
    text. Each answer is that of the question by itself, and soon no request is refused in vain."""
    draw = random.Random(seed)
    count = draw.randint(2, 12)
    most, longest = draw.choice([1, 2, 3, 5, 64]), draw.choice([1, 3, 64])
    odd = {f"Is it {n}?" for n in draw.sample(range(count), draw.choice([0, 0, 1, 2]))}
    bad = {f"text {n}" for n in draw.sample(range(60), draw.choice([0, 3]))}
    decisions = Decisions(odds)

    def script(body: Body) -> Reply:
        asked = body["questions"]
        if body["state"] in bad or odd & {one["instructions"] for one in asked.values()}:
            return Reply(status=draw.choice([400, 422]), error="this cannot be answered")
        if len(asked) > most:
            return Reply(status=422, error=f"too many questions, at most {most}")
        if len(asked) > longest and body["state"].endswith("7"):
            return Reply(status=413, error="request body too large")
        return decisions.systemone(body)

    with serving(script) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = f"systemone:jev@{server.url.removesuffix('/v1')}"
        session = bf.connect(name, cache=None, progress="off", concurrency=1)
        session.from_pydict({"text": [f"text {n}" for n in range(60)]}, name="many")
        calls = ", ".join(f"llm_filter('Is it {n}?', text) AS \"Is it {n}?\"" for n in range(count))
        frame = session.sql(f"SELECT text, {calls} FROM many")
        rows = frame.to_pylist()
    lost = 0
    for row in rows:
        text = row.pop("text")
        for question, answer in row.items():
            none = text in bad or question in odd
            lost += none
            assert answer is (None if none else False), (text, question)
    assert frame.trace.failed == lost
    assert frame.trace.requests == len(server.bodies)
    rest = count - len(odd)
    usual = len(odd) + math.ceil(rest / max(1, (min(most, count) + 1) // 2))
    lengthy = 6 * 2 * count if longest < count else 0
    assert len(server.bodies) <= 60 * usual + lengthy + (len(bad) + len(odd) + 1) * 6 * count


def test_a_failure_of_the_server_at_a_whole_request_costs_no_answer() -> None:
    decisions = Decisions(odds)

    def script(body: Body) -> Reply:
        if len(body["questions"]) > 1:
            return Reply(status=500, error="internal server error")
        return decisions.systemone(body)

    with serving(script) as server:
        name = f"systemone:jev@{server.url.removesuffix('/v1')}"
        session = bf.connect(name, cache=None, progress="off", retries=0)
        session.from_pydict({"id": [*range(4)], "text": TEXTS}, name="t")
        rows = session.sql(QUERY).to_pylist()
    assert [row["label"] for row in rows] == ["complaint", "praise", "complaint", "praise"]
    assert [row["refund"] for row in rows] == [True, False, True, False]


def test_stored_answers_are_left_out_of_a_reading() -> None:
    decisions = Decisions(odds)
    with asking(decisions) as (session, _):
        session.sql("SELECT llm_filter('Is it rude?', text) FROM t WHERE id < 2").collect()
        session.sql(QUERY).collect()
        assert sorted(decisions.counts) == [1, 1, 3, 3, 4, 4]
        assert sum(decisions.counts) == 16


@pytest.mark.parametrize(
    ("select", "counts"),
    [
        ("CASE WHEN llm_filter('A refund?', text) THEN llm_filter('Rude?', text) END", [1] * 6),
        ("llm_filter('A refund?', text) AND llm_filter('Rude?', text)", [1] * 6),
        ("llm_score('Angry?', text) + 1, llm_score('Rude?', text) > 3", [2] * 4),
        ("CASE WHEN llm_filter('A refund?', text) THEN 1 END, llm_filter('Rude?', text)", [2] * 4),
        ("sum(CASE WHEN llm_filter('A?', text) THEN 1 END), min(llm_score('B?', text))", [2] * 4),
        ("llm_filter('A refund?', text), llm_filter('A refund?', upper(text))", [1] * 8),
    ],
)
def test_a_question_that_may_be_spared_is_asked_later(select: str, counts: list[int]) -> None:
    decisions = Decisions(odds)
    with asking(decisions) as (session, _):
        session.sql(f"SELECT {select} FROM t").collect()
        assert decisions.counts == counts


SUMS = (
    "SELECT id % 2 AS g, sum(CASE WHEN llm_filter('A?', text) THEN 1 ELSE 0 END) AS a, "
    "sum(CASE WHEN llm_filter('B?', text) THEN 1 ELSE 0 END) AS b FROM t GROUP BY g"
)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (SUMS, ["AB"] * 4),
        # The other sum is read of the group that passes.
        (
            f"{SUMS} HAVING sum(CASE WHEN llm_filter('A?', text) THEN 1 ELSE 0 END) > 1",
            ["A", "A", "A", "B", "B"],
        ),
        (f"SELECT * FROM ({SUMS}) WHERE a > 9", []),
        # B is asked first: where it is true, A waits for the columns of the row.
        (
            "SELECT llm_filter('A?', text) AS a, llm_filter('B?', text) AS b FROM t "
            "WHERE llm_filter('B?', text) OR llm_filter('A?', text) LIMIT 3",
            ["B", "A", "B", "A", "B", "A", "B", "A"],
        ),
    ],
)
def test_what_was_asked_together_binds_no_other_rows(query: str, asked: list[str]) -> None:
    decisions = Decisions(odds)
    with asking(decisions, chunk_rows=1, first_chunk_rows=1) as (session, server):
        session.sql(query).collect()
        named = [[q["instructions"][0] for q in b["questions"].values()] for b in server.bodies]
        assert ["".join(sorted(names)) for names in named] == asked


def test_a_model_that_reads_all_questions_together_is_asked_one_by_one() -> None:
    decisions = Decisions(odds, model="clef-flash", leaks=0.3)
    with asking(decisions) as (session, _):
        rows = session.sql(QUERY).to_pylist()
        assert [row["refund"] for row in rows] == [True, False, True, False]
        assert set(decisions.counts) == {1}


@pytest.mark.parametrize("leaks", [0.0, 0.3])
def test_the_independence_of_an_unknown_model_is_measured(leaks: float) -> None:
    decisions = Decisions(odds, model="mystery", leaks=leaks)
    texts = [f"{text} {number}" for number in range(25) for text in TEXTS]
    with asking(decisions) as (session, _), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.from_pydict({"id": list(range(100)), "text": texts}, name="many")
        rows = session.sql(QUERY.replace("FROM t", "FROM many")).to_pylist()
        assert [row["refund"] for row in rows] == [True, False, True, False] * 25
        assert [row["rude"]["confidence"] for row in rows] == pytest.approx([0.9, 0.75] * 50)
    told = [
        str(one.message) for one in caught if "change one another's answers" in str(one.message)
    ]
    assert len(told) == (leaks > 0)
    assert decisions.counts.count(4) == (20 if leaks else 99)


def test_another_model_behind_a_name_is_asked_anew_and_told(tmp_path: Path) -> None:
    decisions = Decisions(odds)
    query = "SELECT llm_filter('A refund?', text) AS a FROM t"
    with asking(decisions, name="latest", cache=tmp_path / "answers.db") as (session, server):
        session.sql(query).collect()
        again = bf.connect(session.model_names[0], cache=tmp_path / "answers.db", progress="off")
        again.from_pydict({"text": [*TEXTS, "a refund"]}, name="t")
        again.sql(query).collect()
        assert len(server.bodies) == 5  # stored answers are found in another session
        decisions.model = "jev-1.14.0"
        again.from_pydict({"text": ["new", "newer", *TEXTS]}, name="u")
        with pytest.warns(
            bf.ModelWarning, match=r"answered by jev-1\.13\.0, and is now .* jev-1\.14"
        ):
            again.sql(query.replace("FROM t", "FROM u")).collect()
        again.sql(query).collect()
        assert len(server.bodies) == 5 + 2 + 5  # the answers of the other model do not count


def _changed_at(session: bf.Session, decisions: Decisions, seed: int, *, changes: bool) -> int:
    """The number of answers from a silent change of the model to the warning; 0 without one."""
    made = random.Random(seed)
    before, after = made.randrange(20, 120), 0
    shift = made.random()

    def other(state: str, question: str, options: Sequence[str]) -> list[float]:
        nonlocal after
        after += 1
        yes = random.Random(f"{shift} {state} {question}").random()
        return [yes, 1 - yes]

    def noisy(state: str, question: str, options: Sequence[str]) -> list[float]:
        yes = random.Random(f"{seed} {state} {question}").random()
        yes = min(1.0, max(0.0, yes + made.choice([-0.01, 0, 0.01])))
        return [yes, 1 - yes]

    decisions.odds = noisy
    texts = [f"text {seed} {number}" for number in range(240)]
    session.from_pydict({"text": texts[:before]}, name="first")
    session.from_pydict({"text": texts[before:]}, name="then")
    query = "SELECT llm_filter('A refund?', text) AS a FROM {}"
    session.sql(query.format("first")).collect()
    if changes:
        decisions.odds = other
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "jev.* answers questions otherwise", bf.ModelWarning)
        try:
            session.sql(query.format("then")).collect()
        except bf.ModelWarning:
            return after
    return 0


@pytest.mark.parametrize("changes", [True, False])
def test_a_silent_change_of_the_model_is_named(changes: bool, cases: int) -> None:
    seeds = min(100, max(10, cases // 20))
    told = []
    for seed in range(seeds):
        decisions = Decisions(odds)
        with asking(decisions, drift_checks=3, concurrency=1) as (session, _):
            told.append(_changed_at(session, decisions, seed, changes=changes))
    if changes:
        assert sum(0 < after <= 50 for after in told) >= 0.95 * seeds
    else:
        assert told == [0] * seeds


# ---------------------------------------------------------------- independence


@pytest.mark.parametrize("scheme", PROTOCOLS)
@pytest.mark.parametrize("leaks", [0.0, 0.3])
def test_a_check_finds_answers_that_depend_on_their_company(scheme: str, leaks: float) -> None:
    with asking(Decisions(odds, leaks=leaks), scheme) as (session, _):
        frame = session.sql("SELECT llm_filter('A refund?', text) FROM t")
        found = frame.check_independence(k=20)
        assert (found.asked, found.moved) == (4, 4 if leaks else 0)
        assert repr(found) == f"{4 if leaks else 0} of 4 answers moved in other company"
        assert found.rows["probability_alone"].to_pylist() == pytest.approx(
            [0.9 if "refund" in values[0] else 0.75 for values in found.rows["values"].to_pylist()]
        )
        assert session.ledger.usage.values == 4 + 4 + 4


def test_noise_and_failures_of_a_check_are_no_moved_answers() -> None:
    """Repeats differ in the second decimal, and every fifth answer is missing."""
    made = random.Random(3)

    def noisy(state: str, question: str, options: Sequence[str]) -> list[float]:
        first, *rest = odds(state, question, options)
        shift = made.choice([-0.01, 0, 0.01])
        return [first + shift, rest[0] - shift, *rest[1:]]

    def lose(answer: Body) -> Body | None:
        return None if made.random() < 0.2 else answer

    query = (
        "SELECT llm_filter('Is it late?', text), llm_score('How angry?', text, low => 1, high => 5)"
        ", llm_map('Which?', text, options => ['a', 'b'], confidence => 'all') FROM t"
    )
    with (
        asking(Decisions(noisy, spoil=lose), retries=0) as (session, _),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        found = session.sql(query).check_independence(k=20)
    assert found.rows.num_rows == 12
    assert 4 < found.asked < 12
    assert found.moved == 0


def test_a_check_of_any_other_model_has_other_values_for_company() -> None:
    model = bf.ScriptedModel(lambda call: "refund" in str(call.values[0]), batch_size=8)
    session = bf.connect(model, cache=None, progress="off")
    session.from_pydict({"text": TEXTS}, name="t")
    frame = session.sql("SELECT llm_filter('A refund?', text), llm_filter('Rude?', text) FROM t")
    found = frame.check_independence(k=3)
    assert (found.asked, found.moved) == (6, 0)
    assert len(model.calls) == 8 + 12
    with pytest.raises(bf.errors.ArgumentError, match="k=0 is not possible"):
        frame.check_independence(k=0)
