"""Whatever comes from outside ends in a value inside its constraint, in that value's failure, or in
a clear error: never in another exception. ``--cases N`` tries more."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutations import ODD, changed, damaged, encoded, text_of

import blendfusion as bf
from blendfusion.apps.cli.jsonl import WrongLine, entries_of, lines_of
from blendfusion.apps.cli.main import main
from blendfusion.errors import ArgumentError, BlendFusionError, QueryError
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.protocol.gate import bounded_usage
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.batch.jobs import jobs_of
from blendfusion.models.services.http.chat import Chat
from blendfusion.models.services.http.client import Endpoint
from blendfusion.models.services.http.exchange import Exchange
from blendfusion.models.services.http.response import Response
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.sampling import Sampling
from blendfusion.models.services.http.server_features import FormsTaken
from blendfusion.models.services.http.server_kind import kind_of, offered_by, window_of
from blendfusion.models.services.http.task_requests import TaskRequests
from blendfusion.models.services.shared_stores.segment import BrokenSegment, Name, Segment, _digest
from blendfusion.models.stores.entry import Entry
from blendfusion.models.stores.key import KEY_BYTES
from blendfusion.models.stores.memory import StoreStats
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.services.cluster.messages import AskedAnswers, decode_message
from blendfusion.services.cluster.messages import encode_message as message_of
from blendfusion.services.cluster.protocol import PlaceGone
from blendfusion.services.cluster.worker import Worker
from blendfusion.services.evaluate.checks import read_checks
from blendfusion.services.evaluate.question_file import StoredQuestion
from blendfusion.services.replay.compare import before_a_replay
from blendfusion.services.replay.manifest import SECTIONS, Manifest
from blendfusion.services.search.folder import Folder
from blendfusion.types import Answer, Constraint, StructField, Task, Usage
from blendfusion.udfs.ask.decode import decode
from blendfusion.udfs.declare.returns import arrow_type

INT, TEXT = Constraint("integer"), Constraint()
KINDS = (
    *(Constraint(k) for k in ("text", "boolean", "integer", "number", "date", "timestamp")),
    Constraint("score", scale=(0, 10)),
    Constraint("choice", options=("a", "b")),
    Constraint("regex", pattern="[A-Z]{2}[0-9]*"),
    Constraint("list", item=INT),
    Constraint("list", item=Constraint("date")),
    Constraint("struct", fields=(StructField("n", INT), StructField("t", TEXT))),
)
RIGHT = ("a", "true", "7", "7.5", "2024-02-29", "2024-02-29T00:00:00", "AB1", "[1]", "[]")
TEXTS = (*RIGHT, '["2024-02-29"]', '{"n": 1, "t": "x"}', '{"n": "five", "t": null}', "[" * 99_999)


def cases(request: pytest.FixtureRequest, share: int = 1) -> Iterator[random.Random]:
    for number in range(request.config.getoption("--cases") // share):
        yield random.Random(number)


def some(request: pytest.FixtureRequest) -> int:
    """So many of the cases at least are taken: what is always refused would prove nothing."""
    return int(request.config.getoption("--cases")) * 3 // 200


class Store:
    """A store of somebody else's, with one answer to everything."""

    outlives_process = True

    def __init__(self) -> None:
        self.answer: Any = None

    def get_many(self, fingerprint: str, task: Task, values: Sequence[Values]) -> dict[Values, Any]:
        return dict.fromkeys(values, self.answer)

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        """Keeps nothing."""

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        return [self.answer.text] * most if isinstance(self.answer.text, str) else []

    def clear(self, fingerprint: str | None = None) -> None:
        """Nothing to forget."""

    def stats(self) -> StoreStats:
        return StoreStats(0, 0)

    def close(self) -> None:
        """Nothing to close."""


def some_answer(dice: random.Random) -> Answer:
    text = dice.choice((*TEXTS, *ODD))
    finish = dice.choice(("complete", "complete", "length", "decided", "error", "odd", 3, None))
    logprob = dice.choice((None, None, -0.5, 0.0, 5.0, 1e308, float("inf"), float("nan"), "x"))
    return Answer(text, finish, logprob)


def test_stored_answers(request: pytest.FixtureRequest) -> None:
    store = Store()
    model = CachedModel(bf.ScriptedModel(lambda call: None, fingerprint="f"), store)
    taken = 0
    for dice in cases(request):
        store.answer = some_answer(dice)
        constraint = dice.choice(KINDS)
        task = Task("llm_map", "q", constraint, ("x",))
        for answer in model.known_answers(task, [("v",)]).values():
            taken += 1
            free = answer.text is None or answer.finish == "decided"
            assert free or holds(constraint, answer.text or "")
            assert answer.probability is None or 0 <= answer.probability <= 1
            if answer.finish != "decided" or constraint.kind != "regex":
                decode([answer.text], arrow_type(constraint))
        assert all(holds(constraint, text) for text in model.earlier(task, 2))
    assert taken > some(request)


@pytest.mark.filterwarnings("ignore:.* cut off at max_tokens")
def test_queries_over_stored_answers(request: pytest.FixtureRequest) -> None:
    functions = ("llm_int", "llm_float", "llm_bool", "llm_date", "llm_list", "llm_text")
    calls = [f"{name}('q', x)" for name in functions]
    calls += ["llm_score('q', x)", "llm_classify(x, ['a', 'b'])", "llm_extract(x, 'n INT, t TEXT')"]
    calls += ["llm_classify(x, ['a', 'b'], confidence => 'keep')", "llm_filter('q', x)"]
    store = Store()
    right = {
        "boolean": True,
        "date": "2024-02-29",
        "choice": {"a": 1, "b": 3},
        "list": "[]",
        "text": "b",
    }

    def script(call: bf.Request) -> Any:
        kind = call.constraint.kind
        return {"n": 1} if kind == "struct" else right.get(kind, 3)

    session = bf.connect(bf.ScriptedModel(script, fingerprint="f"), cache=store)
    session.from_pydict({"x": ["v"]}, name="t")
    for dice in cases(request, 20):
        store.answer = some_answer(dice)
        call = dice.choice(calls)
        session.sql(f"SELECT {call} AS z FROM t").to_arrow_table()


def test_imports(request: pytest.FixtureRequest) -> None:
    entry = Entry(bytes(KEY_BYTES), Answer("7", "complete", -0.5), 1_700_000_000)
    header, line = lines_of([entry])
    read, refusals = 0, list[str]()
    for dice in cases(request):
        first = header if dice.random() < 0.9 else text_of(dice, json.loads(header))
        second = text_of(dice, json.loads(line))
        try:
            for found in entries_of([first, second]):
                read += 1
                text, finish = found.answer.text, found.answer.finish
                assert len(found.key) == KEY_BYTES
                assert text is None or isinstance(text, str)
                assert finish in ("complete", "decided", "length")
        except WrongLine as problem:
            refusals.append(str(problem))
    assert [line for line in refusals if not line.startswith("line ") or len(line) > 400] == []
    assert read > 50


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    def script(call: bf.Request) -> object:
        return len(call.values[0] or "")

    session = bf.connect(bf.ScriptedModel(script, fingerprint="f"), cache=None)
    session.from_pydict({"x": ["a", "bb", None]}, name="t")
    frame = session.sql("SELECT x, llm_int('How long?', x) AS n FROM t")
    frame.manifest().save(tmp_path / "run.json")
    pq.write_table(session.table("t").to_arrow_table(), tmp_path / "t.parquet")
    return tmp_path / "run.json"


def digest_of(part: object) -> str:
    return sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()


def forged(dice: random.Random, file: Path, whole: Any, beside: dict[str, bytes]) -> None:
    """Write a manifest with one part changed and all digests computed anew, as anybody can."""
    whole, beside = json.loads(json.dumps(whole)), dict(beside)
    part = dice.choice((*SECTIONS, *SECTIONS, "answers", "answers", "result", "result", "whole"))
    if part == "answers" and dice.random() < 0.9:
        lines = beside["answers"].decode().splitlines()
        place = dice.randrange(len(lines))
        lines[place] = text_of(dice, json.loads(lines[place]))
        beside["answers"] = encoded("\n".join(lines))
    elif part == "result" and dice.random() < 0.9:
        beside["result"] = damaged(dice, beside["result"])
    elif part == "whole":
        whole = changed(dice, whole)
    else:
        whole[part] = changed(dice, whole[part])
    (file.parent / "run.answers.jsonl").write_bytes(beside["answers"])
    (file.parent / "run.result.arrow").write_bytes(beside["result"])
    if isinstance(whole, dict) and isinstance(whole.get("files"), dict):
        whole["files"] = {name: sha256(data).hexdigest() for name, data in beside.items()}
        digests = {name: digest_of(whole.get(name)) for name in (*SECTIONS, "files")}
        whole["digests"] = digests
    file.write_bytes(encoded(json.dumps(whole)))


def test_manifests(request: pytest.FixtureRequest, manifest: Path) -> None:
    whole = json.loads(manifest.read_text())
    names = {"answers": "run.answers.jsonl", "result": "run.result.arrow"}
    beside = {name: (manifest.parent / file).read_bytes() for name, file in names.items()}
    session = bf.connect(bf.ScriptedModel(lambda call: 1), cache=None)
    session.from_pydict({"x": ["a", "bb", None]}, name="t")
    loaded, codes = 0, set[int]()
    replay = ["replay", str(manifest), "--table", f"t={manifest.parent / 't.parquet'}"]
    for dice in cases(request):
        forged(dice, manifest, whole, beside)
        try:
            found = Manifest.load(manifest)
        except QueryError:
            continue
        loaded += 1
        found.result.to_pydict()
        before_a_replay(found, session, "SELECT 1", {})
        if dice.random() < 0.05:
            codes.add(main([*replay, "--format", "csv"]))
    assert codes <= {0, 1, 2}
    assert loaded > 20


CHAT = Chat(
    "m",
    Endpoint("http://127.0.0.1:1/v1", None, 1.0, Retry(attempts=1)),
    FormsTaken(("response_format", "instruction")),
    Sampling(128, odds=True),
    128,
    True,
)


def chat_reply(content: str) -> Any:
    top = [{"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": -2.0}]
    token = {"token": "Yes", "logprob": -0.1, "top_logprobs": top}
    message = {"role": "assistant", "content": content, "reasoning_content": "hm"}
    choice = {"finish_reason": "stop", "message": message, "logprobs": {"content": [token]}}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {}}
    return {"choices": [choice], "usage": usage}


def test_batch_files(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    [job] = jobs_of(str(tmp_path), [{"n": n} for n in range(3)])
    names = [json.loads(line)["custom_id"] for line in job.text.splitlines()]
    answered = 0
    for dice in cases(request):
        constraint = dice.choice(KINDS)
        content = dice.choice(('{"answer": 7}', *RIGHT, *TEXTS))
        line = {
            "custom_id": dice.choice((*names, "value-3")),
            "response": {"status_code": 200, "body": chat_reply(content)},
            "error": None,
        }
        data = encoded(text_of(dice, line))
        found = job.reply_in(damaged(dice, data) if dice.random() < 0.2 else data)
        if found is None:
            continue
        place, (body, reason) = found
        assert place in (0, 1, 2)
        assert isinstance(reason, str)
        if body is not None:
            task = Task("llm_map", "q", constraint, ("x",))
            answer = Exchange(CHAT, None, TaskRequests(CHAT, task), ("v",)).answer_in(body)
            answered += answer.text is not None
            assert answer.text is None or holds(constraint, answer.text)
            assert answer.probability is None or 0 <= answer.probability <= 1
            assert min(answer.usage.numbers) >= 0
    assert answered > some(request)


def test_lists_of_models(request: pytest.FixtureRequest) -> None:
    listed = {"object": "list", "data": [{"id": "a", "owned_by": "vllm", "max_model_len": 4096}]}
    of_gemini = {"models": [{"name": "models/a", "inputTokenLimit": 4096}]}
    named = 0
    for dice in cases(request):
        data = encoded(text_of(dice, dice.choice((listed, of_gemini))))
        data = damaged(dice, data) if dice.random() < 0.2 else data
        offered = offered_by(Response(200, data))
        named += len(offered)
        kind_of(offered.values())
        for name, entry in offered.items():
            name.encode()
            assert (window_of(entry) or 1) > 0
    assert named > 50


def connect(address: str) -> Any:
    raise PlaceGone(address)


def test_cluster_messages(request: pytest.FixtureRequest) -> None:
    answers = {n: Answer("7", usage=Usage(values=1)) for n in range(50)}
    good = [message_of(AskedAnswers(answers)), message_of(AskedAnswers({0: Answer.failed("no")}))]
    worker = Worker(connect, "0")
    for dice in cases(request):
        # Whoever can send pickles is trusted: bytes are lost or are zero, and none are made up.
        data = bytearray(dice.choice(good))
        at = dice.randrange(len(data))
        if dice.random() < 0.5:
            del data[at : at + dice.choice((1, 8, len(data)))]
        else:
            data[at : at + dice.choice((1, 8))] = bytes(1)
        try:
            decode_message(bytes(data))
        except PlaceGone:
            reply = decode_message(worker.call(bytes(data)))
            assert isinstance(reply.error, BlendFusionError)


def test_usages(request: pytest.FixtureRequest) -> None:
    odd = (-1, -(10**6), 10**30, "x", None, float("nan"), float("inf"), -0.5, True, 3)
    for dice in cases(request):
        found = bounded_usage(Usage(*(dice.choice(odd) for _ in range(8))))  # type: ignore[arg-type]
        assert all(type(n) in (int, float) and 0 <= n <= 1 << 40 for n in found.numbers)
        assert found + Usage(values=1) != Usage()


def test_index_files(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    state = {
        "dataset": "rows-0123456789abcdef",
        **dict.fromkeys(("version", "rows", "loose", "clustered"), 1),
        **dict.fromkeys(("language", "embedder", "embedder_name", "table"), None),
        "columns": ["a"],
        "format": 1,
    }
    for dice in cases(request):
        data = encoded(text_of(dice, state))
        (tmp_path / "index.json").write_bytes(damaged(dice, data) if dice.random() < 0.2 else data)
        found = Folder(tmp_path).state()
        assert found is None or (type(found.version), "/" in found.dataset) == (int, False)


def test_segments(request: pytest.FixtureRequest) -> None:
    rows = [(bytes([n]) * KEY_BYTES, "7", "complete", None, 1, 5) for n in range(9)]
    name, data = Segment.of(rows, 0.0).to_file()  # type: ignore[arg-type]
    known = Name.parse(name)
    for dice in cases(request, 4):
        broken = damaged(dice, data)
        forged_name = str(Name(known.milliseconds, known.rows, "00000000", _digest(broken)))
        try:
            segment = Segment.read(forged_name, broken)
        except BrokenSegment:
            continue
        segment.rows()


FILES: dict[str, tuple[Callable[[Path], object], Any]] = {
    "checks": (
        lambda file: read_checks(file),
        {"c": {"table": "t", "call": "f", "label": "l", "at_least": {"accuracy": 0.9}}},
    ),
    "question": (StoredQuestion.read, {"name": "q", "version": 1, "call": "llm_filter('q', x)"}),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_questions(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    read, whole = FILES[kind]
    file = tmp_path / "file.json"
    refusals = []
    for dice in cases(request, 2):
        text = text_of(dice, whole)
        if kind == "question" and dice.random() < 0.7:
            made = changed(dice, whole)
            pairs = made.items() if isinstance(made, dict) else ()
            text = "\n".join(f"{k or 'k'} = {json.dumps(v)}" for k, v in pairs)
        file.write_bytes(damaged(dice, encoded(text)) if dice.random() < 0.2 else encoded(text))
        try:
            read(file)
        except ArgumentError as problem:
            refusals.append(str(problem))
    assert [text for text in refusals if str(file) not in text] == []


@pytest.mark.parametrize(
    "value", ["x", "\0", None, -1, 0, 10**30, 1.5, float("nan"), [1], {}, True]
)
@pytest.mark.parametrize(
    "name", ["at_once", "sees_images", "scores_options", "window", "batch_size"]
)
def test_a_model_of_a_manifest_is_one_that_there_may_be(
    manifest: Path, name: str, value: object
) -> None:
    """Also where its digests are computed anew."""
    whole = json.loads(manifest.read_text())
    assert name in whole["models"]["own"][0]
    whole["models"]["own"][0][name] = value
    whole["digests"]["models"] = digest_of(whole["models"])
    manifest.write_text(json.dumps(whole))
    replay = ["replay", str(manifest), "--table", f"t={manifest.parent / 't.parquet'}"]
    if value is True and name in ("sees_images", "scores_options"):
        assert main(replay) == 0
        return
    with pytest.raises(QueryError, match="not what BlendFusion records"):
        Manifest.load(manifest)
    assert main(replay) == 2


def test_offsets_outside_of_their_buffer_are_refused(manifest: Path) -> None:
    """Arrow does not look at them by itself: they would read foreign memory."""
    rows = manifest.parent / "run.result.arrow"
    table = pa.table({"x": ["a", "bb", "c" * 40]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    good = b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 43))
    assert good in data
    wild = b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 1 << 30))
    rows.write_bytes(data.replace(good, wild))
    whole = json.loads(manifest.read_text())
    whole["files"]["result"] = sha256(rows.read_bytes()).hexdigest()
    whole["digests"]["files"] = digest_of(whole["files"])
    manifest.write_text(json.dumps(whole))
    with pytest.raises(QueryError, match="no sound file of Arrow"):
        Manifest.load(manifest)
