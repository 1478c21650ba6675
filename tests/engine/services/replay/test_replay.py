"""Manifests: a recorded run gives the same bytes without a model, and every change is named."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from datafusion import CsvReadOptions, SessionConfig

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.replay import record
from blendfusion.services.replay.changes import changes
from blendfusion.services.replay.digests import table_digest, unordered_digest
from blendfusion.services.replay.registrations import METHODS
from blendfusion.services.replay.row_changes import RowChanges, row_changes

pytestmark = pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")

QUERY = (
    "SELECT id, text, llm_int('How many letters?', text) AS letters FROM reviews "
    "WHERE llm_filter('Is it good?', text, sample => (SELECT text FROM reviews WHERE id < 3)) "
    "ORDER BY id"
)
ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5],
    "text": ["good lamp", "bad lamp", "good box", None, "strange"],
}


def script(call: bf.Request) -> object:
    text = call.values[0] or ""
    if text == "strange":
        return None  # a value that the model fails at
    return "good" in text if call.constraint.kind == "boolean" else len(text)


def scripted(fingerprint: str = "letters") -> bf.ScriptedModel:
    return bf.ScriptedModel(script, fingerprint=fingerprint)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> bf.ScriptedModel:
    made, connect = scripted(), bf.connect

    def connect_scripted(model: Any = None, **options: Any) -> bf.Session:
        return connect(made if model is None else model, progress="off", **options)

    monkeypatch.setattr(bf, "connect", connect_scripted)
    monkeypatch.setenv("BLENDFUSION_CACHE", "off")
    return made


@pytest.fixture
def folder(tmp_path: Path, model: bf.ScriptedModel) -> Path:
    """A recorded run: reviews.parquet, run.json and its files, out.csv."""
    place = tmp_path / "first"
    place.mkdir()
    pq.write_table(pa.table(ROWS), place / "reviews.parquet")
    arguments = ["query", QUERY, "--table", str(place / "reviews.parquet")]
    made = [*arguments, "--manifest", str(place / "run.json"), "--output", str(place / "out.csv")]
    here = Path.cwd()
    os.chdir(place)
    try:
        assert main(["query", QUERY, "--table", "reviews.parquet", *made[4:]]) == 0
    finally:
        os.chdir(here)
    model.calls.clear()
    return place


def edited(file: Path, change: Callable[[Any], None]) -> None:
    whole = json.loads(file.read_text())
    change(whole)
    file.write_text(json.dumps(whole))


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet", "arrow", "tsv"])
def test_a_replay_on_another_machine_gives_the_same_bytes(
    tmp_path: Path, folder: Path, model: bf.ScriptedModel, suffix: str
) -> None:
    """The folder is moved, and a process without a model or stored answers replays it."""
    first = tmp_path / f"first.{suffix}"
    table = f"reviews={folder / 'reviews.parquet'}"
    assert main(["query", QUERY, "--table", table, "--output", str(first)]) == 0
    other = tmp_path / "other"
    folder.rename(other)
    second = tmp_path / f"second.{suffix}"
    command = [
        sys.executable,
        "-c",
        "from blendfusion.apps.cli.main import main; raise SystemExit(main())",
    ]
    done = subprocess.run(
        [*command, "replay", str(other / "run.json"), "--output", str(second)],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BLENDFUSION_MODEL": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("the recorded result: 2 rows, 0 values asked\n")
    assert second.read_bytes() == first.read_bytes()


def replayed(folder: Path, *arguments: str) -> int:
    return main(["replay", str(folder / "run.json"), "--format", "csv", *arguments])


def rewritten(rows: dict[str, list[Any]]) -> Callable[[Path], None]:
    return lambda folder: pq.write_table(pa.table(rows), folder / "reviews.parquet")


def section(part: str, change: Callable[[Any], None]) -> Callable[[Path], None]:
    return lambda folder: edited(folder / "run.json", lambda whole: change(whole[part]))


def line_of_answers(folder: Path) -> None:
    file = folder / "run.answers.jsonl"
    file.write_text(file.read_text().replace('"8"', '"9"'))


BY_NAME: dict[str, tuple[Callable[[Path], None], str]] = {
    "a value": (
        rewritten(ROWS | {"text": ["good lamp", "bad lamp", "good BOX", None, "strange"]}),
        "table reviews: values in it changed",
    ),
    "the content of a file": (
        lambda f: pq.write_table(pa.table(ROWS), f / "reviews.parquet", compression="none"),
        "table reviews: the content of its file 'reviews.parquet' changed",
    ),
    "the order of rows": (
        rewritten({name: column[::-1] for name, column in ROWS.items()}),
        "table reviews: the order of its rows changed",
    ),
    "a row more": (
        rewritten({"id": [*ROWS["id"], 6], "text": [*ROWS["text"], "new"]}),
        "table reviews: it had 5 rows, has 6",
    ),
    "a row fewer": (
        rewritten({name: column[:4] for name, column in ROWS.items()}),
        "table reviews: it had 5 rows, has 4",
    ),
    "the type of a column": (
        rewritten(ROWS | {"id": [1.0, 2.0, 3.0, 4.0, 5.0]}),
        "table reviews: the type of its column 'id' was int64, is double",
    ),
    "a column less": (
        rewritten({"text": ROWS["text"]}),
        "table reviews: its column 'id' is missing",
    ),
    "a column more": (
        rewritten(ROWS | {"n": [0] * 5}),
        "table reviews: its column 'n' is new",
    ),
    "the order of columns": (
        rewritten({"text": ROWS["text"], "id": ROWS["id"]}),
        "table reviews: the order of its columns changed",
    ),
    "a missing file": (
        lambda f: (f / "reviews.parquet").unlink(),
        "table reviews: it cannot be read",
    ),
    "a file that is no Parquet": (
        lambda f: (f / "reviews.parquet").write_text("no table"),
        "table reviews: it cannot be read",
    ),
    "the query": (
        section("query", lambda query: query.update(text="SELECT 1")),
        "its part 'query' is not as it was recorded",
    ),
    "an option": (
        section("options", lambda options: options.update(shots=False)),
        "its part 'options' is not as it was recorded",
    ),
    "a fingerprint": (
        section("models", lambda models: models["own"][0].update(fingerprint="other")),
        "its part 'models' is not as it was recorded",
    ),
    "a recorded path": (
        section("inputs", lambda inputs: inputs["reviews"].update(path="/etc/passwd")),
        "its part 'inputs' is not as it was recorded",
    ),
    "the recorded result": (
        section("result", lambda result: result.update(rows=3)),
        "its part 'result' is not as it was recorded",
    ),
    "an answer": (line_of_answers, "the file of its answers, 'run.answers.jsonl', is not as"),
    "missing answers": (
        lambda f: (f / "run.answers.jsonl").unlink(),
        "the file of its answers, 'run.answers.jsonl', cannot be read",
    ),
    "the stored result": (
        lambda f: (f / "run.result.arrow").write_bytes(b"ARROW1"),
        "the file of its result, 'run.result.arrow', is not as",
    ),
    "half a manifest": (
        lambda f: (f / "run.json").write_text((f / "run.json").read_text()[:200]),
        "the text is not as it was recorded",
    ),
    "another version of manifests": (
        lambda f: edited(f / "run.json", lambda whole: whole.update(blendfusion_manifest=2)),
        "a manifest of version 2, not 1",
    ),
    "another file of JSON": (
        lambda f: (f / "run.json").write_text("{}"),
        "is no manifest",
    ),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_what_changed_is_named(
    folder: Path, model: bf.ScriptedModel, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    change, shown = BY_NAME[name]
    change(folder)
    assert replayed(folder) == 2
    assert shown in capsys.readouterr().err
    assert model.calls == []


def test_another_query_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.sql").write_text(QUERY.replace("good", "fine"))
    assert replayed(folder, "--query", str(folder / "other.sql")) == 2
    assert "query: its text is another one" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["python", *record.PACKAGES])
def test_another_version_is_a_warning(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    package: str,
) -> None:
    found = record.versions() | {package: "0.0.1"}
    monkeypatch.setattr("blendfusion.services.replay.compare.versions", lambda: found)
    assert replayed(folder) == 0
    assert f"warning: version {package}: was" in capsys.readouterr().err


def session_of(model: bf.ScriptedModel, rows: dict[str, list[Any]], **options: Any) -> bf.Session:
    session = bf.connect(model, cache=None, progress="off", **options)
    session.from_pydict(rows, name="reviews")
    return session


def test_options_and_models_are_named() -> None:
    before = session_of(scripted(), ROWS).sql(QUERY).manifest()

    def named(session: bf.Session, query: str = QUERY) -> list[str]:
        return [str(change) for change in session.sql(query).changes(before)[0]]

    assert named(session_of(scripted(), ROWS)) == []
    assert named(session_of(scripted(), ROWS, on_error="null", planner=False)) == [
        "option planner: was True, is False"
    ]
    assert named(session_of(scripted("other"), ROWS)) == [
        "model scripted: its weights, prompts or settings changed"
    ]
    other = bf.ScriptedModel(script, fingerprint="letters", name="other", window=9)
    assert named(session_of(other, ROWS)) == ["model 1: was scripted, is other"]
    assert named(session_of(scripted(), ROWS), QUERY + " LIMIT 1") == [
        "query: its text is another one"
    ]


def test_tables_in_memory_are_recorded_by_their_arrow_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session_of(scripted(), ROWS).sql(QUERY).manifest().save(tmp_path / "run.json")
    assert replayed(tmp_path) == 2
    assert "table reviews: it was of no file of this machine" in capsys.readouterr().err
    pq.write_table(pa.table(ROWS), tmp_path / "elsewhere.parquet")
    assert replayed(tmp_path, "--table", f"reviews={tmp_path / 'elsewhere.parquet'}") == 0


def test_a_manifest_asks_nothing_that_was_asked() -> None:
    model = scripted()
    frame = session_of(model, ROWS).sql(QUERY)
    frame.to_arrow_table()
    valid = len(model.calls)
    manifest = frame.manifest()
    again = model.calls[valid:]
    assert {call.values for call in again} <= {("strange",)}  # failures are not stored
    assert manifest.sections["answers"]["failed"] == 1


def test_an_update_asks_new_values_only(
    folder: Path, model: bf.ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"id": [2, 3, 1, 6, 7], "text": ["bad lamp", "bad lamp", "good lamp", "good!", "no"]}
    rewritten(rows)(folder)
    new = folder / "new.json"
    assert replayed(folder, "--update", "--record", str(new)) == 0
    shown = capsys.readouterr()
    assert sorted({call.values[0] for call in model.calls}) == ["good!", "no"]
    assert "rows added: 1, removed: 1, changed: 0" in shown.err
    assert "+ {'id': 6, 'text': 'good!', 'letters': 5}" in shown.err
    assert "- {'id': 3, 'text': 'good box', 'letters': 8}" in shown.err
    model.calls.clear()
    assert main(["replay", str(new), "--format", "csv"]) == 0
    assert model.calls == []
    assert capsys.readouterr().out == shown.out


def test_a_new_model_asks_all_values_again(
    folder: Path,
    model: bf.ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model._info = scripted("newer").info
    assert replayed(folder, "--update") == 0
    assert "changed: model scripted: its weights, prompts or settings" in capsys.readouterr().err
    assert len(model.calls) == 6


def test_hidden_values_are_not_in_the_manifest(
    tmp_path: Path, model: bf.ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "reviews.parquet")
    query = QUERY.replace("ORDER BY", "AND text <> 'secret literal' ORDER BY")
    source = ["--table", str(tmp_path / "reviews.parquet"), "--show-values", "off"]
    run = tmp_path / "run.json"
    assert main(["query", query, *source, "--manifest", str(run)]) == 0
    manifest = run.read_text()
    for text in ("secret", "Is it good", *filter(None, ROWS["text"])):
        assert text not in manifest
    assert all(f.stat().st_mode & 0o077 == 0 for f in tmp_path.glob("run.*"))
    assert replayed(tmp_path) == 2
    assert "Pass the text: --query FILE" in capsys.readouterr().err
    (tmp_path / "query.sql").write_text(query)
    assert replayed(tmp_path, "--query", str(tmp_path / "query.sql")) == 0


def test_a_manifest_runs_read_only(folder: Path, tmp_path: Path, model: bf.ScriptedModel) -> None:
    """A manifest with digests that are right, but a query that writes."""
    target = tmp_path / "written.csv"
    hostile = bf.Manifest.load(folder / "run.json")
    copy = f"COPY reviews TO '{target}'"
    hostile.sections["query"].update(text=copy, digest=record.query_digest(copy))
    hostile.save(folder / "run.json")
    assert replayed(folder) == 2
    assert not target.exists()


def test_what_cannot_be_recorded_is_refused() -> None:
    session = session_of(scripted(), ROWS)
    with pytest.raises(bf.QueryError, match="parameters"):
        session.sql("SELECT * FROM reviews WHERE id = $a", a=1).manifest()


def test_digests_do_not_depend_on_chunks_and_see_every_part() -> None:
    texts = pa.array(["a", None, "bc", "", "d"])
    nested = pa.array([[1, 2], None, [], [None], [3]])
    structs = pa.array([{"x": 1, "y": "t"}, None, {"x": None, "y": ""}, {"x": 2}, {"x": 3}])
    table = pa.table({"t": texts, "n": nested, "s": structs, "b": [True, None, False, True, True]})
    chunked = pa.concat_tables([table.slice(0, 2), table.slice(2, 0), table.slice(2)])
    assert table_digest(chunked) == table_digest(table) == table_digest(table.take([0, 1, 2, 3, 4]))
    digests = {table_digest(table.take(order)) for order in ([1, 0, 2, 3, 4], [0, 1, 2, 4, 3])}
    assert len(digests | {table_digest(table)}) == 3
    assert table_digest(pa.table({"a": ["ab", "c"]})) != table_digest(pa.table({"a": ["a", "bc"]}))
    assert table_digest(pa.table({"a": [None, "c"]})) != table_digest(pa.table({"a": ["", "c"]}))
    plain = pa.table({"t": texts})
    assert unordered_digest(plain) == unordered_digest(plain.take([4, 3, 2, 1, 0]))
    assert unordered_digest(pa.table({"n": nested})) is None


def test_row_changes() -> None:
    before = pa.table({"id": [1, 2, 3], "x": ["a", "b", "c"]})
    now = pa.table({"id": [3, 2, 4], "x": ["c", "B", "d"]})
    found = row_changes(before, now)
    assert (found.key, found.added, found.removed) == (
        "id",
        [{"id": 4, "x": "d"}],
        [{"id": 1, "x": "a"}],
    )
    assert found.changed == [({"id": 2, "x": "b"}, {"id": 2, "x": "B"})]
    doubled = row_changes(pa.table({"x": [1, 1, 2]}), pa.table({"x": [1, 2, 2]}))
    assert (doubled.added, doubled.removed) == ([{"x": 2}], [{"x": 1}])
    assert not row_changes(before, before.take([2, 0, 1]))


def test_the_embedder_and_lost_models_are_named() -> None:
    facts = session_of(scripted(), ROWS).sql(QUERY).manifest().sections
    models = facts["models"] | {"embedder": ["words", "1"], "named": {"large": {}}}
    before, now = facts | {"models": models}, facts | {"models": facts["models"] | {"own": []}}
    assert [str(change) for change in changes(before, now)] == [
        "model: there were 1, there are 0",
        "model large: it is missing",
        "embedder words: is none, or computes other vectors",
    ]


def test_the_three_files_belong_together(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(folder / "run.json", alone)
    with pytest.raises(bf.QueryError, match="cannot be read") as raised:
        bf.Manifest.load(alone / "run.json")
    assert "copy all three" in str(raised.value.hint)


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_partitions_is_recorded(count: int, model: bf.ScriptedModel) -> None:
    config = SessionConfig().with_target_partitions(count)
    with bf.connect(config=config) as session:
        session.from_pydict(ROWS, name="reviews")
        manifest = session.sql(QUERY).manifest()
    assert manifest.sections["options"]["partitions"] == count


def test_rows_of_a_replay_that_failed_are_hidden_like_other_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    differing = RowChanges("id", [{"id": 1, "x": "secret 1"}], [], [({"x": "secret 2"}, {"x": 3})])
    monkeypatch.setattr("blendfusion.apps.cli.replay.table_digest", lambda table: "another")
    monkeypatch.setattr("blendfusion.apps.cli.replay.row_changes", lambda before, now: differing)
    assert main(["replay", str(folder / "run.json")]) == 2
    shown = capsys.readouterr().err
    assert "rows added: 1, removed: 0, changed: 1" in shown
    assert "secret" not in shown


def _words_of(folder: Path) -> None:
    lines = ["id;text", "1;good lamp", "2;bad lamp", "3;good box"]
    (folder / "rows.csv").write_text("\n".join(lines))
    (folder / "latin.csv").write_bytes("id,text\n1,good café\n2,bad café\n".encode("latin-1"))
    (folder / "rows.txt").write_text("1;good lamp\n2;bad lamp\n")
    objects = [{"id": n, "text": text} for n, text in enumerate(["good lamp", "bad lamp"])]
    for ending in ("json", "jsonl"):
        (folder / f"rows.{ending}").write_text("\n".join(map(json.dumps, objects)))
    with pa.ipc.new_file(folder / "rows.arrow", pa.table(ROWS).schema) as file:
        file.write_table(pa.table(ROWS))
    pq.write_table(pa.table(ROWS), folder / "rows.parquet")
    for month in ("01", "02"):
        (folder / "parts" / f"month={month}").mkdir(parents=True)
        pq.write_table(pa.table(ROWS), folder / "parts" / f"month={month}" / "p.parquet")
    paragraphs = [f"A good sentence about lamp {n}." for n in range(30)]
    (folder / "long.md").write_text("\n\n".join(paragraphs))


def _lance(folder: Path) -> Path:
    lance = pytest.importorskip("lance")
    lance.write_dataset(pa.table(ROWS), folder / "db" / "t.lance")
    return folder / "db" / "t.lance"


def _delta(folder: Path) -> Path:
    lakes = pytest.importorskip("deltalake")
    lakes.write_deltalake(folder / "lake", pa.table(ROWS))
    return folder / "lake"


_COLUMNS = pa.schema([("id", pa.int16()), ("text", pa.string())])
REGISTRATIONS: dict[str, Callable[[bf.Session, Path], object]] = {
    "Parquet": lambda s, f: s.register_parquet("t", f / "rows.parquet"),
    "a quoted name": lambda s, f: s.register_parquet('"t"', f / "rows.parquet"),
    "a name in capitals": lambda s, f: s.register_parquet("T", f / "rows.parquet"),
    "folders": lambda s, f: s.register_parquet("t", f / "parts"),
    "folders by types": lambda s, f: s.register_parquet(
        "t", f / "parts", table_partition_cols=[("month", pa.int32())]
    ),
    "folders by names of types": lambda s, f: s.register_parquet(
        "t", f / "parts", [("month", "string")]
    ),
    "CSV": lambda s, f: s.register_csv("t", f / "rows.csv", delimiter=";"),
    "CSV with a schema": lambda s, f: s.register_csv(
        "t", f / "rows.txt", _COLUMNS, False, ";", file_extension=".txt"
    ),
    "options of CSV": lambda s, f: s.register_csv(
        "t", f / "rows.csv", options=CsvReadOptions(delimiter=";", schema_infer_max_records=1)
    ),
    "JSON": lambda s, f: s.register_json("t", f / "rows.jsonl", file_extension=".jsonl"),
    "documents": lambda s, f: s.register_documents("t", f / "long.md"),
    "chunks": lambda s, f: s.register_documents("t", f / "long.md", chunk=20),
    "a folder of documents": lambda s, f: s.register_documents("t", f, chunk=20, on_error="skip"),
    "a file": lambda s, f: s.register_file(f / "rows.parquet", "t"),
    "an encoding": lambda s, f: s.register_file(f / "latin.csv", "t", encoding="latin-1"),
    "a delimiter": lambda s, f: s.register_file(f / "rows.csv", "t", delimiter=";"),
    "a table of Arrow": lambda s, f: s.register_arrow("t", str(f / "rows.arrow")),
    "a listing": lambda s, f: s.register_listing_table("t", f"{f / 'parts' / 'month=01'}/"),
    "a statement over Parquet": lambda s, f: s.sql(
        f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{f / 'rows.parquet'}'"
    ),
    "a statement over a folder": lambda s, f: s.sql(
        f"create external table \"t\" stored as parquet location '{f / 'parts' / 'month=01'}/';"
    ),
    "a statement over CSV": lambda s, f: s.sql(
        f"CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{f / 'rows.csv'}' "
        "OPTIONS ('format.delimiter' ';', 'format.has_header' 'true')"
    ),
    "a statement with columns": lambda s, f: s.sql(
        "CREATE EXTERNAL TABLE t (id SMALLINT, text VARCHAR) STORED AS CSV "
        f"LOCATION '{f / 'rows.txt'}' OPTIONS (format.delimiter ';', format.has_header false)"
    ),
    "a statement over JSON": lambda s, f: s.sql(
        f"CREATE EXTERNAL TABLE t STORED AS JSON LOCATION '{f / 'rows.json'}'"
    ),
    "a table of Lance": lambda s, f: s.register_lance("t", _lance(f)),
    "tables of LanceDB": lambda s, f: s.attach_lancedb(_lance(f).parent),
    "a table of Delta Lake": lambda s, f: s.register_lake("t", _delta(f)),
    "a version of a lake": lambda s, f: s.register_lake("T", str(_delta(f)), version=0),
    "a time of a lake": lambda s, f: s.register_lake(
        "t", _delta(f), at=datetime.now(UTC) + timedelta(days=1)
    ),
    "a pattern": lambda s, f: s.register_file(f / "parts" / "*" / "*.parquet", "t"),
}
FROM_T = "SELECT text FROM t WHERE llm_filter('Is it good?', text) ORDER BY text"


@pytest.mark.filterwarnings("ignore:using literals for table_partition_cols:DeprecationWarning")
@pytest.mark.parametrize("name", REGISTRATIONS)
def test_files_that_were_registered_in_python_are_replayed(
    tmp_path: Path, model: bf.ScriptedModel, name: str
) -> None:
    """By their paths and options, also after the folder moved."""
    place = tmp_path / "first"
    place.mkdir()
    _words_of(place)
    session = bf.connect(model, cache=None)
    REGISTRATIONS[name](session, place)
    frame = session.sql(FROM_T)
    rows = frame.to_arrow_table()
    assert rows.num_rows
    frame.manifest().save(place / "run.json")
    model.calls.clear()
    moved = place.rename(tmp_path / "second")
    out = tmp_path / "out.parquet"
    assert main(["replay", str(moved / "run.json"), "--output", str(out)]) == 0
    assert pq.read_table(out).to_pylist() == rows.to_pylist()
    assert model.calls == []


def test_chunks_of_a_moved_document_are_the_same(
    tmp_path: Path, model: bf.ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    _words_of(tmp_path)
    session = bf.connect(model, cache=None)
    session.register_documents("t", tmp_path / "long.md", chunk=20)
    session.sql(FROM_T).manifest().save(tmp_path / "run.json")
    (tmp_path / "long.md").rename(tmp_path / "other.md")
    assert replayed(tmp_path) == 2
    assert "table t: it cannot be read: there is no file" in capsys.readouterr().err
    assert replayed(tmp_path, "--table", f"t={tmp_path / 'other.md'}") == 2
    assert "its file 'other.md' is new" in capsys.readouterr().err  # and its rows are the same
    (tmp_path / "more").mkdir()
    (tmp_path / "other.md").rename(tmp_path / "more" / "long.md")
    assert replayed(tmp_path, "--table", f"t={tmp_path / 'more' / 'long.md'}") == 0


@pytest.mark.parametrize(
    "replace",
    [
        lambda s: s.deregister_table("t") or s.from_pydict(ROWS, name="t"),
        lambda s: s.sql("CREATE OR REPLACE TABLE t AS SELECT 'good' AS text"),
    ],
)
def test_a_table_that_has_the_name_by_now_is_no_file(
    tmp_path: Path, model: bf.ScriptedModel, replace: Callable[[bf.Session], object]
) -> None:
    _words_of(tmp_path)
    session = bf.connect(model, cache=None)
    session.register_parquet("t", tmp_path / "rows.parquet")
    replace(session)
    assert "path" not in session.sql(FROM_T).manifest().sections["inputs"]["t"]


@pytest.mark.parametrize(
    "read",
    [
        {"method": "close", "options": {}},
        {"method": "register_file", "options": {"name": "x"}},
        {"method": "register_parquet", "options": {"object_store": "x"}},
        {"method": "register_parquet", "options": {"schema": {"schema": "no"}}},
        {"method": "register_csv", "options": {"options": {"csv": {"secret": 1}}}},
        {"method": "register_csv", "options": {"options": {}}},
        {"method": "register_documents"},
        {"method": "register_lake", "options": {"source": "x"}},
        {"method": "register_file", "options": {"other": 1}},
        {"method": "open_index", "options": {}},
        {"method": "open_index", "options": {"index": 1}},
        {"method": "create_external", "options": {"statement": "DROP TABLE t"}},
        {"method": "create_external", "options": {"statement": "CREATE TABLE t AS SELECT 1"}},
        {
            "method": "create_external",
            "options": {
                "statement": "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'a'; DROP TABLE t"
            },
        },
        {"method": "create_external", "options": {"path": "x"}},
        "register_parquet",
    ],
)
def test_a_registration_that_no_run_records_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], read: object
) -> None:
    hostile = bf.Manifest.load(folder / "run.json")
    hostile.sections["inputs"]["reviews"]["read"] = read
    hostile.save(folder / "run.json")
    assert replayed(folder) == 2
    assert "its registration cannot be repeated" in capsys.readouterr().err


@contextmanager
def serving_files(folder: Path) -> Iterator[str]:
    """The address of a server of the files of a folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda s, f: s.sql("SELECT text FROM v"), "reads the view 'v'"),
        (lambda s, f: s.sql('SELECT a.text FROM t JOIN public."v" a ON a.id = t.id'), "view 'v'"),
        (
            lambda s, f: s.sql(f"SELECT text FROM '{f / 'rows.parquet'}'"),
            "session.register_file('/",
        ),
        (
            lambda s, f: s.read_parquet(f / "rows.parquet").select("text"),
            "'a frame of the program'",
        ),
    ],
)
def test_what_a_replay_would_not_know_is_refused_in_the_words_of_the_user(
    tmp_path: Path,
    model: bf.ScriptedModel,
    read: Callable[[bf.Session, Path], bf.Frame],
    words: str,
) -> None:
    _words_of(tmp_path)
    session = bf.connect(model, cache=None, read_files="local")
    session.register_parquet("t", tmp_path / "rows.parquet")
    session.sql("CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(bf.QueryError) as refused:
        read(session, tmp_path).manifest()
    assert words in str(refused.value)
    assert "__blendfusion" not in str(refused.value)
    assert session.sql("SELECT text AS v FROM t").manifest().sections["result"]["rows"]


def test_files_of_which_no_manifest_can_tell_are_a_warning(
    tmp_path: Path, model: bf.ScriptedModel
) -> None:
    _words_of(tmp_path)
    session = bf.connect(model, cache=None)
    with serving_files(tmp_path) as address:
        session.register_file(f"{address}/rows.parquet", "t")
    with pytest.warns(bf.FileWarning, match="table t: a manifest cannot hold .* --table t=PATH"):
        session.sql(FROM_T).manifest().save(tmp_path / "run.json")
    assert replayed(tmp_path) == 2
    assert replayed(tmp_path, "--table", f"t={tmp_path / 'rows.parquet'}") == 0
    session.deregister_table("t")
    session.from_pydict(ROWS, name="t")
    session.sql(FROM_T).manifest()  # one in memory needs no word


SEARCHES = [
    "SELECT text FROM llm_search('t', 'lamp', k => 2) ORDER BY text",
    "SELECT l.id, r.text FROM t l, LATERAL llm_search('t', l.text, k => 1) r ORDER BY l.id",
    "SELECT text FROM llm_search('it''s', 'lamp', k => 2, where => 'id > 0') "
    "WHERE llm_filter('Is it good?', text) ORDER BY text",
]


@pytest.mark.parametrize("query", SEARCHES)
def test_indexes_are_opened_again(
    tmp_path: Path,
    model: bf.ScriptedModel,
    query: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("lance")
    place = tmp_path / "first"
    place.mkdir()
    _words_of(place)
    session = bf.connect(model, cache=None)
    session.register_parquet("t", place / "rows.parquet")
    for index in ("t", "it's"):
        session.index(index, "t", path=place / f"{index}.index", vectors=False)
    session.sql(query).manifest().save(place / "run.json")
    model.calls.clear()
    moved = place.rename(tmp_path / "second")
    assert replayed(moved) == 0
    assert model.calls == []
    again = bf.connect(model, cache=None)
    again.from_pydict({"id": [1], "text": ["bad lamp"]}, name="t")
    for index in ("t", "it's"):
        again.index(index, "t", path=moved / f"{index}.index", vectors=False)
    capsys.readouterr()
    assert replayed(moved) == 2
    said = capsys.readouterr().err
    assert "table llm_search('" in said
    assert "it had 4 rows, has 1" in said
    shutil.rmtree(moved / "t.index")
    shutil.rmtree(moved / "it's.index")
    assert replayed(moved) == 2
    assert "it cannot be read: there is no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("register", "table"),
    [
        (lambda s, f: s.attach(f"sqlite:///{f / 's.db'}"), "s.t"),
        (lambda s, f: s.register_dataset("t", pads.dataset(f / "rows.parquet")), "t"),
        (
            lambda s, f: s.register_lance("t", _lance(f), storage_options={"timeout": "9s"}),
            "t",
        ),
        (lambda s, f: s.register_csv("t", [f / "rows.csv"], delimiter=";"), "t"),
    ],
)
def test_what_a_replay_cannot_register_is_told_when_it_is_recorded(
    tmp_path: Path,
    model: bf.ScriptedModel,
    register: Callable[[bf.Session, Path], object],
    table: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the rows of a file stand for it."""
    _words_of(tmp_path)
    with closing(sqlite3.connect(tmp_path / "s.db")) as made:
        made.execute("CREATE TABLE t (id INTEGER, text TEXT)")
        made.executemany("INSERT INTO t VALUES (?, ?)", zip(ROWS["id"], ROWS["text"], strict=True))
        made.commit()
    session = bf.connect(model, cache=None)
    register(session, tmp_path)
    frame = session.sql(FROM_T.replace("FROM t", f"FROM {table}"))
    with pytest.warns(bf.FileWarning, match=f"table {table}: a manifest cannot hold"):
        frame.manifest().save(tmp_path / "run.json")
    assert replayed(tmp_path) == 2
    assert f"pass its rows as a file, --table {table}=PATH" in capsys.readouterr().err
    rows = session.sql(f"SELECT * FROM {table}").to_arrow_table()
    pq.write_table(rows, tmp_path / "given.parquet")
    assert replayed(tmp_path, "--table", f"{table}={tmp_path / 'given.parquet'}") == 0


@pytest.mark.parametrize("given", [["a.parquet"], 3, {"a": 1}])
def test_what_is_no_path_is_said(given: Any) -> None:
    session = bf.connect(None)
    for method in {*METHODS, "open_index"} - {"register_lake", "register_csv"}:
        with pytest.raises(bf.QueryError, match=f"a {type(given).__name__} is no path"):
            getattr(session, method)(name="t", path=given)
    with pytest.raises(bf.QueryError, match=r"is no path|there is no file 'a\.parquet'"):
        session.register_csv("t", given)
    with pytest.raises(bf.QueryError, match="is no path"):
        session.attach(given)


def test_documents_in_a_query_are_refused_in_its_words(
    tmp_path: Path, model: bf.ScriptedModel
) -> None:
    (tmp_path / "a.md").write_text("A good lamp.")
    session = bf.connect(model, cache=None, read_files="local")
    path = str(tmp_path / "a.md")
    frame = session.sql(f"SELECT text FROM read_documents('{path}', chunk => 40)")
    with pytest.raises(bf.QueryError) as refused:
        frame.manifest()
    assert f"'read_documents('{path}', chunk => 40)'" in str(refused.value)
    call = f"session.register_documents('documents', '{path}', chunk=40)"
    assert call in str(refused.value)
    exec(call, {"session": session})
    assert session.sql("SELECT text FROM documents").manifest().sections["result"]["rows"] == 1
