"""OpenTelemetry: spans in spans, nothing left open, metrics that agree with the trace."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from itertools import groupby

import pytest
from datafusion import SessionContext
from loopback import Body, Reply, said, serving
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from scripts import Counted, spoken
from telemetry import Seen, watched

import blendfusion as bf
from blendfusion.models.protocol import event_fields as f
from blendfusion.models.services.http.embedder import OpenAIEmbedder

SECRET = "secret value of ann@example.com"
QUERY = "SELECT x, llm_int('length', x) AS n FROM t WHERE llm_filter('holds e', x)"
TWO_STAGES = (
    "SELECT count(*) AS n FROM t WHERE llm_filter('holds e', x) "
    "AND n > (SELECT max(llm_int('length', y)) FROM u)"
)


@pytest.fixture
def seen() -> Iterator[Seen]:
    with watched() as found:
        yield found


@pytest.fixture
def db() -> Counted:
    made = Counted(spoken).add("t", {"x": [SECRET, SECRET, "two", None, "six"], "n": [9] * 5})
    return made.add("u", {"y": ["one", "three"]})


def test_batches_stand_in_stages_and_stages_in_the_query(db: Counted, seen: Seen) -> None:
    frame = db.session.sql(QUERY)
    frame.collect()
    assert seen.tree() == [
        "blendfusion.query",
        "  blendfusion.stage",
        "    blendfusion.batch",
        "    blendfusion.batch",
    ]
    query, stage, first, second = seen.spans
    run, usage = frame.trace.run, frame.trace.usage
    assert run is not None
    assert {s.attributes[f.QUERY_ID] for s in seen.spans} == {run.id}
    assert query.attributes[f.OUTCOME] == "done"
    assert query.attributes[f.VALUES] == usage.values == 4
    assert query.attributes[f.INPUT_TOKENS] == usage.prompt_tokens
    assert (stage.attributes[f.STAGE], stage.attributes[f.ROWS_IN]) == (1, 4)
    assert stage.attributes[f.ROWS_OUT] == 2
    asked = [(s.attributes[f.INGREDIENT], s.attributes[f.SIZE]) for s in (first, second)]
    assert asked == [("llm_filter", 3), ("llm_int", 1)]
    assert first.attributes[f.REQUEST_MODEL] == "scripted"
    assert {s.status.status_code for s in seen.spans} == {StatusCode.UNSET}
    assert {name for s in seen.spans for name in s.attributes} <= set(f.FIELDS)


def test_every_stage_has_a_span(db: Counted, seen: Seen) -> None:
    db.session.sql(TWO_STAGES).collect()
    assert [line for line, _ in groupby(seen.tree())] == [  # a stage may ask in several batches
        "blendfusion.query",
        "  blendfusion.stage",
        "    blendfusion.batch",
        "  blendfusion.stage",
        "    blendfusion.batch",
        "  blendfusion.stage",
    ]
    stages = seen.named("blendfusion.stage")
    assert [s.attributes[f.STAGE] for s in stages] == [1, 2, 3]
    assert {s.attributes[f.STAGE] for s in seen.named("blendfusion.batch")} == {1, 2}


def test_stages_that_run_in_turn_have_a_span_each(seen: Seen) -> None:
    db = Counted(lambda call: "odd" if int((call.values[0] or "x0")[1:]) % 2 else "even")
    db.add("a", {"x": [f"a{i}" for i in range(40)]}).add("b", {"y": [f"b{i}" for i in range(40)]})
    odd = "llm_classify({}, ['odd', 'even'])".format
    rows = db.rows(f"SELECT x, y FROM a JOIN b ON {odd('x')} = {odd('y')} LIMIT 60")
    assert len(rows) == 60
    assert seen.tree() == [
        "blendfusion.query",
        "  blendfusion.stage",
        "    blendfusion.batch",
        "    blendfusion.batch",
        "  blendfusion.stage",
        "    blendfusion.batch",
        "  blendfusion.stage",
    ]
    stages, batches = seen.named("blendfusion.stage"), seen.named("blendfusion.batch")
    told = [[s.attributes[name] for name in (f.STAGE, f.ROWS_IN, f.OUTCOME)] for s in stages]
    assert told == [[1, 15, "closed"], [2, 8, "closed"], [3, 60, "done"]]
    assert sorted((b.attributes[f.STAGE], b.attributes[f.SIZE]) for b in batches) == [
        (1, 7),
        (1, 8),
        (2, 8),
    ]


def test_create_table_as_is_a_query(db: Counted, seen: Seen) -> None:
    db.session.sql("CREATE TABLE kept AS SELECT llm_int('length', y) AS n FROM u")
    assert seen.tree() == ["blendfusion.query", "  blendfusion.stage", "    blendfusion.batch"]
    assert seen.spans[0].attributes[f.VALUES] == 2


def test_the_plain_path_has_batches_below_the_query(seen: Seen) -> None:
    db = Counted(spoken, planner=False).add("t", {"x": ["one", "two", "six"]})
    db.session.sql("SELECT x FROM t WHERE llm_filter('holds e', x)").collect()
    assert seen.tree() == ["blendfusion.query", "  blendfusion.batch"]
    assert seen.spans[0].attributes[f.QUERY_PLAN] == "plain"


def test_a_query_stands_in_the_caller_s_span_and_leaves_it_the_current_one(
    db: Counted, seen: Seen
) -> None:
    with trace.get_tracer("app").start_as_current_span("request") as request:
        stream = db.session.sql("SELECT llm_int('length', x) FROM t").execute_stream()
        next(stream)
        assert trace.get_current_span() is request
        with trace.get_tracer("app").start_as_current_span("between"):
            list(stream)
        assert trace.get_current_span() is request
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert seen.tree()[:3] == ["request", "  blendfusion.query", "    blendfusion.stage"]
    assert "  between" in seen.tree()


def test_what_a_model_s_function_traces_stands_in_the_batch(seen: Seen) -> None:
    def script(call: bf.Request) -> bool:
        with trace.get_tracer("app").start_as_current_span("client"):
            return True

    Counted(script).add("t", {"x": ["a"]}).rows("SELECT x FROM t WHERE llm_filter('q', x)")
    assert seen.tree()[-2:] == ["    blendfusion.batch", "      client"]


def test_an_error_ends_every_span_and_tells_its_class_alone(seen: Seen) -> None:
    def script(call: bf.Request) -> bool:
        if call.values[0] == "b":
            raise ZeroDivisionError(SECRET)
        return True

    db = Counted(script).add("t", {"x": ["a", "b"]})
    with pytest.raises(ZeroDivisionError):
        db.rows("SELECT x FROM t WHERE llm_filter('q', x)")
    assert [s.name.split(".")[-1] for s in seen.spans] == ["query", "stage", "batch"]
    for span in seen.spans:
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes[f.ERROR] == "ZeroDivisionError"
        assert SECRET not in span.to_json()
        assert not span.events
    assert seen.spans[0].attributes[f.VALUES] == 1
    assert seen.total("blendfusion.queries", blendfusion__outcome="failed") == 1


@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_a_stream_that_nobody_reads_on_leaves_no_span_open(seen: Seen, how: str) -> None:
    db = Counted(spoken).add("t", {"x": [f"v{i}" for i in range(100)]})
    stream = db.session.sql("SELECT llm_int('length', x) FROM t").execute_stream()
    next(stream)
    if how == "closed":
        stream.close()
    del stream
    assert [s.name.split(".")[-1] for s in seen.spans] == ["query", "stage", "batch"]
    assert [s.attributes.get(f.OUTCOME) for s in seen.spans] == ["closed", "closed", None]
    assert {s.status.status_code for s in seen.spans} == {StatusCode.UNSET}


def test_threads_have_queries_of_their_own(seen: Seen) -> None:
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        with bf.connect(bf.ScriptedModel(lambda call: number), cache=None) as session:
            session.from_pydict({"x": [f"{number} {i}" for i in range(200)]}, name="t")
            barrier.wait(60)
            session.sql("SELECT llm_int('n', x) FROM t").collect()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batches = ["    blendfusion.batch"] * 4
    assert seen.tree() == ["blendfusion.query", "  blendfusion.stage", *batches] * 4
    assert len({s.context.trace_id for s in seen.spans}) == 4


def test_functions_in_a_context_of_the_user_s_tell_of_batches(seen: Seen) -> None:
    context = SessionContext()
    bf.register(context, bf.ScriptedModel(lambda call: True), cache=None)
    context.from_pydict({"x": ["a", "b"]}, name="t")
    with trace.get_tracer("app").start_as_current_span("request"):
        context.sql("SELECT x FROM t WHERE llm_filter('q', x)").collect()
    (batch,) = seen.named("blendfusion.batch")
    assert batch.attributes[f.VALUES] == 2
    assert seen.total("blendfusion.values", blendfusion__ingredient="llm_filter") == 2


def test_metrics_agree_with_the_trace(seen: Seen) -> None:
    db = Counted(lambda call: None if call.values[0] == "two" else 3).add(
        "t", {"x": ["one", "two"]}
    )
    frame = db.session.sql("SELECT llm_int('length', x) FROM t")
    spent = bf.Usage()
    for _ in range(2):
        with pytest.warns(bf.AnswerWarning):
            frame.collect()
        spent += frame.trace.usage
    assert seen.total("blendfusion.queries", blendfusion__outcome="done") == 2
    assert seen.total("blendfusion.values", blendfusion__ingredient="llm_int") == 3
    assert seen.total("blendfusion.cached") == 1
    assert seen.total("blendfusion.failed") == 2
    asked = seen.total("blendfusion.tokens", gen_ai__token__type="input")
    assert asked == spent.prompt_tokens
    assert seen.total("blendfusion.tokens", gen_ai__token__type="output") == 1
    assert seen.total("blendfusion.batch.duration", gen_ai__request__model="scripted") == 2
    assert {name for name, _ in seen.counted()} <= set(f.METRICS)


def test_every_request_to_a_server_is_a_call_below_its_batch(seen: Seen) -> None:
    asked: list[str] = []
    arrived = itertools.count(1)

    def script(body: Body) -> Reply:
        asked.append(said(body))
        if next(arrived) == 3:
            return Reply(status=503, error="Busy with " + SECRET, headers={"Retry-After": "0"})
        return Reply('{"answer": 7}')

    with serving(script) as server:
        with bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off") as session:
            session.from_pydict({"x": ["a", SECRET, "c"]}, name="t")
            session.sql("SELECT llm_int('q', x) FROM t").collect()
        port = int(server.url.split(":")[2].split("/")[0])
    assert seen.tree() == [
        "blendfusion.query",
        "  blendfusion.stage",
        "    blendfusion.batch",
        *["      chat tiny"] * 3,
    ]
    batch, *calls = seen.spans[2:]
    assert batch.attributes[f.CALLS] == len(asked) == 4
    for call in calls:
        assert call.kind is SpanKind.CLIENT
        assert dict(call.attributes) == {
            f.OPERATION: "chat",
            f.PROVIDER: "openai",
            f.REQUEST_MODEL: "tiny",
            f.SERVER: "127.0.0.1",
            f.PORT: port,
            f.INPUT_TOKENS: 20,
            f.OUTPUT_TOKENS: 3,
        }
    assert seen.total("gen_ai.client.operation.duration", gen_ai__request__model="tiny") == 3
    assert seen.total("blendfusion.retries", error__type="503") == 1
    assert not any(SECRET in span.to_json() for span in seen.spans)


def test_a_call_that_fails_is_marked_and_tells_no_words(seen: Seen) -> None:
    def script(body: Body) -> Reply:
        return Reply(status=400, error=f"I do not take {said(body)}")

    with (
        serving(script) as server,
        bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off") as session,
    ):
        session.from_pydict({"x": [SECRET]}, name="t")
        with pytest.warns(bf.AnswerWarning):
            session.sql("SELECT llm_int('q', x) FROM t").collect()
    calls = seen.named("chat tiny")
    assert {c.status.status_code for c in calls} == {StatusCode.ERROR}
    assert {c.attributes[f.ERROR] for c in calls} == {"Refusal"}
    assert not any(SECRET in span.to_json() for span in seen.spans)


@pytest.mark.local
def test_a_batch_of_a_local_model_is_one_call(seen: Seen) -> None:
    with bf.connect("smollm2", cache=None, progress="off") as session:
        session.from_pydict({"x": ["a cat", "a dog"]}, name="t")
        frame = session.sql("SELECT llm_filter('Is it a cat?', x) FROM t")
        frame.collect()
    (batch,) = seen.named("blendfusion.batch")
    (call,) = [s for s in seen.spans if s.name.startswith("chat llama:")]
    assert call.parent is not None
    assert call.parent.span_id == batch.context.span_id
    assert call.kind is SpanKind.INTERNAL
    assert call.attributes[f.PROVIDER] == "llama.cpp"
    assert call.attributes[f.INPUT_TOKENS] == frame.trace.usage.prompt_tokens
    assert call.attributes[f.REQUEST_MODEL] == batch.attributes[f.REQUEST_MODEL]


def test_a_request_for_vectors_is_a_call(seen: Seen) -> None:
    def script(body: Body) -> Reply:
        data = [{"index": i, "embedding": [1.0, 0.0]} for i in range(len(body["input"]))]
        return Reply(raw=json.dumps({"data": data}).encode())

    with serving(script) as server:
        OpenAIEmbedder("tiny", server.url, None, bf.Options()).embed([SECRET, "b"])
    (call,) = seen.spans
    assert call.name == "embeddings tiny"
    assert call.attributes[f.OPERATION] == "embeddings"
    assert f.INPUT_TOKENS not in call.attributes
    assert SECRET not in call.to_json()
