"""Nine promises of the docs that once were untrue, by name: the sentence, and a compact test of
each. Their suites are named behind them."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_program import running

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.apps.ui.workspace import Workspace
from blendfusion.models.services.batch.model import BatchApi, BatchModel
from blendfusion.options import Options
from blendfusion.redaction import on_one_line
from blendfusion.types import Constraint, Task

DOCS = Path(__file__).parent.parent.parent / "docs"
KEY = "sk-SECRETKEY-1234"
DEEP = b"[" * 200_000
ODD = (DEEP, b"[]", b"null", b"7", b"<html>", b"", b'{"id": 7}', b'{"choices": [[]]}', b"\xff\xfe")
TASK = Task("llm_filter", "q", Constraint("boolean"), ("x",))
needs_processes = pytest.mark.skipif(
    not os.path.isdir("/proc/self"), reason="processes are found in /proc"
)


def says(page: str, sentence: str) -> None:
    """A page has a sentence, whatever its line breaks."""
    assert sentence in " ".join((DOCS / page).read_text("utf-8").split())


@contextmanager
def answering(get: bytes, post: bytes) -> Iterator[str]:
    """A server that replies to every request with these bytes."""

    class Handler(BaseHTTPRequestHandler):
        def _reply(self, data: bytes) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._reply(get)

        def do_POST(self) -> None:
            self._reply(post)

        def log_message(self, *args: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask_batch(url: str, options: Options) -> None:
    model = BatchModel("m", BatchApi(url, KEY, options, poll_seconds=0.01), options)
    model.answer(TASK, [("v",)])


def stored(folder: Path, call: str, value: object, text: str) -> Path:
    """A store with an answer that somebody else has put there, with a right checksum."""
    model = bf.ScriptedModel(lambda call: value, fingerprint="f")  # type: ignore[arg-type,return-value]
    with bf.connect(model, cache=folder / "own.sqlite", progress="off") as session:
        session.from_pydict({"x": ["v"]}, name="t")
        session.sql(f"SELECT {call} AS z FROM t").collect()
    lines, store = folder / "lines", folder / "theirs.sqlite"
    assert main(["cache", "export", "--path", str(folder / "own.sqlite"), str(lines)]) == 0
    header, line = lines.read_text("utf-8").splitlines()
    lines.write_text(f"{header}\n{json.dumps({**json.loads(line), 'text': text})}\n", "utf-8")
    assert main(["cache", "import", "--path", str(store), str(lines)]) == 0
    return store


def result_over(store: Path, call: str, value: object) -> object:
    model = bf.ScriptedModel(lambda call: value, fingerprint="f")  # type: ignore[arg-type,return-value]
    with bf.connect(model, cache=store, progress="off") as session:
        session.from_pydict({"x": ["v"]}, name="t")
        return session.sql(f"SELECT {call} AS z FROM t").to_pylist()[0]["z"]


@pytest.mark.parametrize("text", ["five", "", "1e999999", "[" * 99_999, "\x00"])
def test_1_any_text_ends_in_a_result_or_an_error_of_ours_also_one_that_was_stored(
    tmp_path: Path, text: str
) -> None:
    """Also: test_stored_trouble.py, test_outside_fuzz.py."""
    says("security.md", "**Any text** ends in a result or a `bf.BlendFusionError`")
    assert result_over(stored(tmp_path, "llm_int('q', x)", 5, text), "llm_int('q', x)", 5) == 5


@pytest.mark.parametrize("listing", ODD)
def test_1_also_a_list_of_models(listing: bytes) -> None:
    message = {"role": "assistant", "content": "7"}
    said = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
    with (
        answering(listing, said.encode()) as url,
        bf.connect(f"openai:tiny@{url}", cache=None, progress="off") as session,
    ):
        session.from_pydict({"x": ["v"]}, name="t")
        rows = session.sql("SELECT llm_int('q', x) AS z FROM t").to_pylist()
    assert rows == [{"z": 7}]


@pytest.mark.parametrize("reply", ODD)
def test_1_also_what_a_batch_server_replies(tmp_path: Path, reply: bytes) -> None:
    with answering(reply, reply) as url, pytest.raises(bf.BlendFusionError):
        ask_batch(url, Options(batch_folder=str(tmp_path), retries=0))


@pytest.mark.parametrize(
    ("call", "value", "texts"),
    [
        ("llm_classify(x, ['a', 'b'])", "a", ("zzz", "A", "")),
        ("llm_float('q', x)", 2.5, ("1e400", "nan", "inf")),
        ("llm_bool('q', x)", True, ("maybe", "yes")),
        ("llm_list('q', x)", ["a"], ("{no", '"a"')),
        ("llm_map('q', x, regex => '[A-Z]{2}')", "AB", ("ab", "ABC")),
    ],
)
def test_2_an_answer_is_always_a_value_of_its_type(
    tmp_path: Path, call: str, value: object, texts: tuple[str, ...]
) -> None:
    """Also: test_stored_trouble.py."""
    says("security.md", "An answer is always a value of its type in the result")
    for number, text in enumerate(texts):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert result_over(stored(folder, call, value, text), call, value) == value, text


ANSWERS = ("abc", "", "9" * 5_000, [1], {"a": 1}, True, 7)


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_3_a_manifest_from_somebody_else_is_data(
    tmp_path: Path, answer: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also: test_replay.py, test_outside_fuzz.py."""
    says("security.md", "A manifest from somebody else is data")
    says("reproduce.md", "edits and damage are refused, by the name of the part")
    session = bf.connect(bf.ScriptedModel(lambda call: 7, fingerprint="f"), cache=None)
    session.from_pydict({"x": ["a"]}, name="t")
    pq.write_table(session.table("t").to_arrow_table(), tmp_path / "t.parquet")
    session.sql("SELECT x, llm_int('q', x) AS n FROM t").manifest().save(tmp_path / "run.json")
    replay = ["replay", str(tmp_path / "run.json"), "--table", f"t={tmp_path / 't.parquet'}"]
    answers = tmp_path / "run.answers.jsonl"
    lines = list(map(json.loads, answers.read_text("utf-8").splitlines()))
    for line in lines:
        if isinstance(line, list) and len(line) == 4:
            line[1] = answer
    answers.write_text("\n".join(map(json.dumps, lines)))
    assert main(replay) == 2  # the digest
    assert "answers" in capsys.readouterr().err
    whole = json.loads((tmp_path / "run.json").read_text("utf-8"))
    whole["files"]["answers"] = sha256(answers.read_bytes()).hexdigest()
    text = json.dumps(whole["files"], sort_keys=True).encode()
    whole["digests"]["files"] = sha256(text).hexdigest()
    (tmp_path / "run.json").write_text(json.dumps(whole))
    assert main(replay) in (1, 2, 4)  # anybody can compute digests
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("show", ["off", "on"])
def test_4_what_a_batch_server_says_is_cut_and_without_keys(tmp_path: Path, show: str) -> None:
    """Also: test_batch_trouble.py, test_leaks.py."""
    says("operations.md", "They repeat at most 300 characters of its message, without the key")
    failed = {"errors": {"data": [{"message": f"no, {KEY} {'A' * 5_000}"}]}, "status": "failed"}

    reply = json.dumps({"id": "x1", **failed}).encode()
    options = Options(batch_folder=str(tmp_path), retries=0, show_values=show)  # type: ignore[arg-type]
    with answering(reply, reply) as url, pytest.raises(bf.ModelFailed) as caught:
        ask_batch(url, options)
    assert "SECRETKEY" not in str(caught.value)
    assert re.search(r"A{301}", str(caught.value)) is None


def files(folder: Path) -> Path:
    (folder / "data").mkdir()
    for place in range(4):
        ids = range(place * 40, place * 40 + 40)
        table = pa.table({"id": ids, "x": [f"value {i}" for i in ids]})
        pq.write_table(table, folder / "data" / f"{place}.parquet")
    return folder / "data"


@needs_processes
@pytest.mark.long
@pytest.mark.alone
def test_5_answers_of_a_cluster_without_a_cache_are_gone_after_a_kill(tmp_path: Path) -> None:
    """Also: test_cluster_stands_still.py."""
    says("security.md", "with a cluster in a file that is removed when the session ends, also by")
    says("operations.md", "even after an error or a kill")
    with running(tmp_path, files(tmp_path)) as run:
        run.wait_for_requests(10)
        os.kill(run.process.pid, signal.SIGKILL)
        run.end()
        assert not run.left()


@needs_processes
@pytest.mark.long
@pytest.mark.alone
def test_6_budgets_of_seconds_and_ctrl_c_hold_while_a_worker_stands_still(tmp_path: Path) -> None:
    """Also: test_cluster_stands_still.py."""
    says("scale.md", "Both take effect within a second")
    says("operations.md", "**Ctrl-C** raises KeyboardInterrupt within a second")
    data = files(tmp_path)
    for seconds, error in ((2.0, "BudgetExceeded"), (None, "KeyboardInterrupt")):
        folder = tmp_path / error
        folder.mkdir()
        with running(folder, data, seconds=seconds) as run:
            run.wait_for_requests(2)
            os.kill(run.wait_for("1"), signal.SIGSTOP)
            began = run.moment()
            if seconds is None:
                os.kill(run.process.pid, signal.SIGINT)
            said = run.end()
            assert said["error"] == error
            assert began.seconds_until(said) < (seconds or 0.0) + 1.0


def test_7_the_page_keeps_the_rows_answers_and_traces_of_twenty_runs() -> None:
    """Also: test_ui.py, which starts a browser and finds the token on no command line."""
    says("ui.md", "No command line has it")
    says("ui.md", "the rows, answers and traces of the last 20 are kept")
    with bf.connect(bf.ScriptedModel(lambda call: 1), cache=None) as session:
        work = Workspace(session, confirm_above=0)
        for number in range(25):
            run = work.start(f"SELECT {number} AS n")
            until = time.monotonic() + 60
            while work.progress(run)["outcome"] == "running":
                assert time.monotonic() < until
                time.sleep(0.01)
        kept = [run.id for run in work._runs.values() if run.planned is not None]
        assert kept == [*range(6, 26)]
        work.close()


CONTROLS = "".join(map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029]))


@pytest.mark.parametrize("character", CONTROLS, ids=map(ascii, CONTROLS))
def test_8_control_characters_of_names_are_escaped(character: str) -> None:
    """Also: test_stored_trouble.py."""
    says("security.md", "control characters of names are escaped")
    shown = on_one_line(f"evil{character}forged")
    assert character not in shown
    assert len(shown.splitlines()) == 1
    assert (shown.startswith("evil"), shown.endswith("forged")) == (True, True)


@pytest.mark.parametrize("read_files", ["off", "local", "urls"])
def test_9_a_session_reads_a_path_in_a_query_only_where_an_option_allows_it(
    tmp_path: Path, read_files: Any
) -> None:
    """Also: test_read_only.py, test_files_in_queries.py."""
    says("security.md", 'The option `read_files="local"`')
    says("security.md", "By default a session never reads a path or URL in a query")
    (tmp_path / "a.csv").write_text("x\n1\n")
    for read_only in (False, True):
        more = {} if read_files == "off" else {"read_files": read_files}
        with bf.connect(None, cache=None, read_only=read_only, **more) as session:
            allowed = read_files != "off" and not read_only
            try:
                rows = session.sql(f"SELECT x FROM '{tmp_path / 'a.csv'}'").to_pylist()
            except bf.QueryError:
                rows = None
            assert rows == ([{"x": 1}] if allowed else None)
