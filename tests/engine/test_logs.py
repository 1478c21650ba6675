"""Log records: which, at what level, with which fields, and nothing of the data in them."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Body, Reply, serving
from scripts import Counted, spoken

import blendfusion as bf
from blendfusion.models.protocol import event_fields as f

SECRET = "secret value of ann@example.com"
QUERY = "SELECT x FROM t WHERE llm_filter('holds e', x)"


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)

    def of(self, logger: str) -> list[dict[str, object]]:
        return [vars(r) for r in self.found if r.name == f"blendfusion.{logger}"]


@pytest.fixture
def records() -> Iterator[Records]:
    handler, root = Records(), logging.getLogger("blendfusion")
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(logging.NOTSET)


def texts() -> dict[str, list[object]]:
    return {"x": [SECRET, SECRET, "two", None, "six"]}


def own(record: dict[str, object]) -> dict[str, object]:
    """The fields of a record that are ours, without times."""
    return {k: v for k, v in record.items() if k in f.FIELDS and "seconds" not in k}


def test_a_query_is_told_from_start_to_end(records: Records) -> None:
    db = Counted(spoken).add("t", texts())
    frame = db.session.sql(QUERY)
    frame.collect()
    run = frame.trace.run
    assert run is not None
    first, last = records.of("query")
    assert own(first) == {f.QUERY_ID: run.id, f.QUERY_CALLS: 1, f.QUERY_PLAN: "staged"}
    spent = {
        f.VALUES: 3,
        f.CACHED: 0,
        f.FAILED: 0,
        f.CALLS: 1,
        f.INPUT_TOKENS: 16,
        f.EVALUATED_TOKENS: 16,
        f.OUTPUT_TOKENS: 5,
    }
    assert own(last) == {f.QUERY_ID: run.id, f.OUTCOME: "done", **spent}
    assert isinstance(last[f.SECONDS], float)
    assert (first["levelname"], last["levelname"]) == ("INFO", "INFO")
    dotted = {name for r in records.found for name in vars(r) if "." in name}
    assert dotted <= set(f.FIELDS)
    assert {r.name.removeprefix("blendfusion.") for r in records.found} <= set(f.LOGGERS)
    (stage,) = records.of("stage")
    seen = {f.STAGE: 1, f.ROWS_IN: 5, f.ROWS_OUT: 2, f.CHUNKS: 1}
    assert own(stage) == {f.QUERY_ID: run.id, f.OUTCOME: "done", **seen}
    (batch,) = records.of("batch")
    assert own(batch) == {
        f.QUERY_ID: run.id,
        f.STAGE: 1,
        f.INGREDIENT: "llm_filter",
        f.TASK: batch[f.TASK],
        f.SIZE: 3,
        f.REQUEST_MODEL: "scripted",
        **spent,
    }
    assert batch["levelname"] == stage["levelname"] == "DEBUG"


def test_answers_from_the_cache_are_told_as_such(records: Records) -> None:
    db = Counted(spoken).add("t", texts())
    db.rows(QUERY)
    records.found.clear()
    db.rows(QUERY)
    (batch,) = records.of("batch")
    assert (batch[f.CACHED], batch[f.VALUES]) == (3, 0)
    assert records.found[1].getMessage().startswith("answered from the cache query.id=")


def test_what_is_withheld_or_decided_by_a_small_model_is_told_at_the_end(records: Records) -> None:
    def odds(call: bf.Request) -> dict[bool, float]:
        sure = 0.99 if int(str(call.values[0])) % 2 else 0.6
        return {True: sure, False: 1 - sure}

    small, large = bf.ScriptedModel(odds, name="small"), bf.ScriptedModel(odds, name="large")
    with bf.connect([small, large], cache=None, accuracy=0.9) as session:
        session.from_pydict({"x": [str(i) for i in range(400)]}, name="t")
        frame = session.sql("SELECT llm_filter('Odd?', x, confidence => 0.9) AS f FROM t")
        frame.collect()
    last = records.of("query")[-1]
    (outcome,) = frame.trace.cascades.values()
    assert last[f.WITHHELD] == frame.trace.unsure == 200
    assert last[f.DECIDED] == outcome.decided > 0
    asked = {r[f.REQUEST_MODEL]: r[f.VALUES] for r in records.of("batch")}
    assert set(asked) == {"small", "large"}


def test_failed_values_are_a_warning(records: Records) -> None:
    db = Counted(lambda call: None if call.values[0] == "two" else True).add("t", texts())
    with pytest.warns(bf.AnswerWarning):
        db.rows(QUERY)
    (warned,) = [r for r in records.found if r.levelno == logging.WARNING]
    assert warned.name == "blendfusion.query"
    assert vars(warned)[f.FAILED] == 1


def test_a_failed_query_tells_the_class_of_its_error_and_no_more(records: Records) -> None:
    def script(call: bf.Request) -> bool:
        raise ZeroDivisionError(SECRET)

    db = Counted(script).add("t", texts())
    with pytest.raises(ZeroDivisionError):
        db.rows(QUERY)
    end = records.of("query")[-1]
    assert (end[f.OUTCOME], end[f.ERROR]) == ("failed", "ZeroDivisionError")
    assert not any(SECRET in str(vars(r)) for r in records.found)


def test_a_stream_that_is_closed_has_not_failed(records: Records) -> None:
    db = Counted(spoken).add("t", {"x": [f"v{i}" for i in range(100)]})
    stream = db.session.sql("SELECT llm_int('length', x) FROM t").execute_stream()
    next(stream)
    stream.close()
    assert records.of("query")[-1][f.OUTCOME] == "closed"
    assert records.of("stage")[-1][f.OUTCOME] == "closed"


@pytest.mark.parametrize("planner", [True, False])
def test_nothing_of_the_data_is_told(records: Records, planner: bool) -> None:
    db = Counted(spoken, planner=planner).add("t", texts())
    db.rows(QUERY)
    told = [str(vars(r)) + r.getMessage() for r in records.found]
    assert len(told) > 2
    assert not any(SECRET in text or "holds e" in text for text in told)


def test_questions_are_told_where_the_session_says_so(records: Records) -> None:
    db = Counted(spoken, log_questions=True).add("t", texts())
    db.rows(QUERY)
    assert {b[f.QUESTION] for b in records.of("batch")} == {"holds e"}
    assert not any(SECRET in str(vars(r)) for r in records.found)


def test_fields_stand_in_the_text_and_can_be_formatted(records: Records) -> None:
    Counted(spoken).add("t", texts()).rows(QUERY)
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter(f"%(name)s %(levelname)s %({f.VALUES})d"))
    handler.handle(records.found[-1])
    assert text.getvalue() == "blendfusion.query INFO 3\n"
    assert "outcome=done values=3 cached=0 failed=0" in records.found[-1].getMessage()


def test_requests_that_are_tried_again_are_told(records: Records) -> None:
    asked: list[Body] = []

    def script(body: Body) -> Reply:
        asked.append(body)
        if len(asked) == 1:
            return Reply(status=429, error=SECRET, headers={"Retry-After": "0"})
        return Reply('{"answer": 7}')

    with (
        serving(script) as server,
        bf.connect(f"openai:tiny@{server.url}", cache=None, progress="off") as session,
    ):
        session.from_pydict({"x": [SECRET]}, name="t")
        session.sql("SELECT llm_int('q', x) FROM t").collect()
    (retry,) = records.of("retry")
    assert own(retry) == {f.SERVER: "127.0.0.1", f.ATTEMPT: 1, f.ERROR: "429"}
    assert retry["levelname"] == "INFO"
    assert not any(SECRET in str(vars(r)) for r in records.found)


def test_a_file_of_answers_that_is_of_no_use_is_told(records: Records, tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite").write_bytes(b"no database at all" * 100)
    with bf.connect(
        bf.ScriptedModel(spoken, fingerprint="a"), cache=tmp_path / "answers.sqlite", progress="off"
    ) as session:
        session.from_pydict({"x": ["a"]}, name="t")
        with pytest.warns(bf.CacheWarning) as warned:
            session.sql("SELECT llm_int('length', x) FROM t").collect()
    (told,) = [r for r in records.found if r.name == "blendfusion.cache"]
    assert told.getMessage() == str(warned[0].message)


@pytest.mark.long
@pytest.mark.local
def test_loading_a_model_is_told(records: Records) -> None:
    with bf.connect("smollm2", cache=None, progress="off") as session:
        session.from_pydict({"x": ["a cat"]}, name="t")
        session.sql("SELECT llm_filter('Is it a cat?', x) FROM t").collect()
    told = records.of("model")
    (loaded,) = [r for r in told if f.SECONDS in r and f.BYTES not in r]
    assert str(loaded[f.REQUEST_MODEL]).startswith("llama:")
    assert isinstance(loaded[f.SECONDS], float)
    computed = told[-1]
    assert computed[f.GIVEN_TOKENS] > 0
    assert computed[f.EVALUATED_TOKENS] > computed[f.AGAIN_TOKENS] >= 0


def test_without_logging_nothing_is_printed() -> None:
    script = (
        "import blendfusion as bf\n"
        "s = bf.connect(bf.ScriptedModel(lambda call: None), cache=None)\n"
        "s.from_pydict({'x': ['a']}, name='t')\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "s.sql(\"SELECT llm_int('q', x) FROM t\").collect()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout + done.stderr == ""
