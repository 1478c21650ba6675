"""Sessions that share a file of answers, where the file is, and the command that looks after it."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from golden import cases, pages
from loopback import Body, Reply, serving
from scripts import Counted, hashed, unordered
from stores import KINDS, place

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.store_names import FILE_NAME, cache_path

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = pages("queries")
SQL = "SELECT llm_map('q', x) AS y FROM t WHERE llm_filter('f', x) ORDER BY y"


def counted(cache: object, **options: object) -> Counted:
    """A session with a model that another one has the like of."""
    made = Counted(hashed)
    made.model = bf.ScriptedModel(hashed, fingerprint="hashed")
    made.session = bf.connect(made.model, cache=cache, progress="off", **options)  # type: ignore[arg-type]
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.sqlite"


@pytest.mark.filterwarnings("ignore:.*states all the numbers and dates:blendfusion.AnswerWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_same_query_in_another_session_asks_nothing(page: Path, path: Path) -> None:
    for case in cases(page):
        *before, query = case.given.split(";")
        rows = []
        for first in (True, False):
            db = counted(path)
            for file in sorted(EXAMPLES.glob("*.csv")):
                db.session.register_csv(file.stem, file)
            for text in before:
                db.session.sql(text)
            rows.append(unordered(db.rows(query)))
            assert first or not db.model.calls
            db.session.close()
        assert rows[0] == rows[1]


def test_one_more_row_is_one_more_value(path: Path) -> None:
    texts = [f"v{i}" for i in range(50)]
    sql = "SELECT count(*) FROM t WHERE llm_filter('f', x)"
    for asked in (50, 0):
        db = counted(path).add("t", {"x": list(texts)})
        db.rows(sql)
        assert len(db.model.calls) == asked
        db.session.close()
    db = counted(path).add("t", {"x": [*texts, "one more"]})
    db.rows(sql)
    assert [call.values for call in db.model.calls] == [("one more",)]
    db.session.close()


def test_estimates_know_the_answers_of_other_sessions(path: Path) -> None:
    first = counted(path).add("t", {"x": ["a", "b", "c"]})
    first.rows(SQL)
    first.session.close()
    second = counted(path).add("t", {"x": ["a", "b", "c"]})
    estimate = second.session.sql(SQL).estimate()
    assert (estimate.total.values, estimate.exact) == (0, True)
    assert not second.model.calls
    second.session.close()


def test_clear_cache_forgets_for_every_session_of_the_model_and_no_other(path: Path) -> None:
    first, second = (counted(path).add("t", {"x": ["a", "b"]}) for _ in range(2))
    other = bf.connect(bf.ScriptedModel(hashed, fingerprint="other"), cache=path, progress="off")
    other.from_pydict({"x": ["a", "b"]}, name="t")
    sql = "SELECT llm_filter('f', x) FROM t"
    other.sql(sql).collect()
    first.rows(sql)
    first.session.clear_cache()
    second.rows(sql)
    assert len(second.model.calls) == 2
    frame = other.sql(sql)
    frame.collect()
    assert frame.trace.usage.values == 0
    for session in (first.session, second.session, other):
        session.close()


def test_a_session_may_forget_before_it_has_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "blendfusion.models.protocol.python_packages.packaged_weights", lambda: None
    )
    bf.connect().clear_cache()


def test_what_may_change_an_answer_is_asked_again(path: Path) -> None:
    asked: list[str] = []

    def script(body: Body) -> Reply:
        asked.append(str(body["model"]))
        return Reply("fine")

    def ask(server_url: str, model: str, sql: str, **options: object) -> int:
        before = len(asked)
        spec = f"openai:{model}@{server_url}"
        with bf.connect(spec, cache=path, progress="off", **options) as session:  # type: ignore[arg-type]
            session.from_pydict({"x": ["a"]}, name="t")
            session.sql(sql).collect()
        return len(asked) - before

    sql = "SELECT llm_text('q', x) FROM t"
    with (
        serving(script, models=("one", "two")) as server,
        serving(script, models=("one",)) as other,
    ):
        assert ask(server.url, "one", sql) == 1
        assert ask(server.url, "one", sql) == 0
        assert ask(server.url, "one", sql, concurrency=3, timeout_seconds=9) == 0
        assert ask(server.url, "two", sql) == 1
        assert ask(other.url, "one", sql) == 1
        assert ask(server.url, "one", sql, max_tokens=9) == 1
        assert ask(server.url, "one", sql, shots=True) == 1
        assert ask(server.url, "one", sql, shots=False) == 0  # as auto is for this name
        assert ask(server.url, "one", "SELECT llm_text('q ', x) FROM t") == 1
        assert ask(server.url, "one", "SELECT llm_text('q', x) AS other FROM t") == 0


def test_plain_functions_share_the_file(path: Path) -> None:
    from datafusion import SessionContext

    for asked in (2, 0):
        model = bf.ScriptedModel(lambda call: True, fingerprint="true")
        context = SessionContext()
        bf.register(context, model, cache=path)
        context.from_pydict({"x": ["a", "b"]}, name="t")
        context.sql("SELECT llm_filter('f', x) FROM t").collect()
        assert len(model.calls) == asked


def test_another_store_is_one_class() -> None:
    class Shared:
        """A dictionary that stands for a service."""

        outlives_process = True

        def __init__(self) -> None:
            self.held: dict[tuple[str, bf.Task, Values], bf.Answer] = {}

        def get_many(
            self, fingerprint: str, task: bf.Task, values: Sequence[Values]
        ) -> dict[Values, bf.Answer]:
            keys = {v: (fingerprint, task, v) for v in values}
            return {v: self.held[key] for v, key in keys.items() if key in self.held}

        def store_many(
            self, fingerprint: str, task: bf.Task, answers: Mapping[Values, bf.Answer]
        ) -> None:
            self.held |= {(fingerprint, task, v): a for v, a in answers.items()}

        def earlier(self, fingerprint: str, task: bf.Task, most: int) -> list[str]:
            return []

        def clear(self, fingerprint: str | None = None) -> None:
            self.held.clear()

        def stats(self) -> bf.StoreStats:
            return bf.StoreStats(len(self.held), 1)

        def close(self) -> None:
            pass

    store = Shared()
    for asked in (3, 0):
        db = counted(store).add("t", {"x": ["a", "b", "c"]})
        db.rows("SELECT llm_filter('f', x) FROM t")
        assert len(db.model.calls) == asked
    assert store.stats().entries == 3


# --- where ---------------------------------------------------------------------------------------


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    name = f"blendfusion/{FILE_NAME}"
    assert cache_path({}, "linux") == home / ".cache" / name
    assert cache_path({"XDG_CACHE_HOME": "relative"}, "linux") == home / ".cache" / name
    assert cache_path({}, "darwin") == home / "Library/Caches" / name
    assert cache_path({}, "win32") == home / "AppData/Local" / name
    assert cache_path({"LOCALAPPDATA": str(home / "L")}, "win32") == home / "L" / name
    assert cache_path({"BLENDFUSION_CACHE": "/a/b"}, "linux") == Path("/a/b")
    assert cache_path({"BLENDFUSION_CACHE": " "}, "linux") == home / ".cache" / name
    for word in ("off", "OFF", "none", ":memory:"):
        assert cache_path({"BLENDFUSION_CACHE": word}, "linux") is None


def test_the_default_is_the_file_that_the_variable_names(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setenv("BLENDFUSION_CACHE", str(path))
    db = counted("auto").add("t", {"x": ["a"]})
    db.rows("SELECT llm_filter('f', x) FROM t")
    assert path.is_file()
    db.session.close()
    memory = counted(None).add("t", {"x": ["a"]})
    memory.rows("SELECT llm_filter('f', x) FROM t")
    assert len(memory.model.calls) == 1


def test_what_is_no_cache_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(bf.OptionError, match=r"is a folder\nHint: Name a file"):
        bf.connect(cache=tmp_path)
    with pytest.raises(bf.OptionError, match=r"cache=5 is not possible\nHint: A path"):
        bf.connect(cache=5)  # type: ignore[arg-type]
    with pytest.raises(bf.OptionError, match="cache_size is a whole number, at least 1"):
        bf.connect(cache_size=0)


def test_set_changes_the_room_of_an_open_file(path: Path) -> None:
    db = counted(path).add("t", {"x": ["a", "b"]})
    store = db.session._store
    assert isinstance(store, bf.SqliteStore)
    db.rows("SELECT llm_filter('f', x) FROM t")
    db.session.sql("SET blendfusion.cache_size = 3")
    assert store.stats().limit_bytes == 3_000_000


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def stored(path: Path) -> Path:
    db = counted(path).add("t", {"x": ["a", "b", "c"]})
    db.rows("SELECT llm_filter('f', x) FROM t")
    db.session.close()
    return path


def test_stats_and_clear(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "stats", "--path", str(stored)]) == 0
    shown = dict(line.strip().split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["answers"], shown["models"], shown["file"]) == ("3", "1", str(stored))
    assert shown["size"] == "0.0 MB"
    assert main(["cache", "clear", "--path", str(stored)]) == 0
    assert capsys.readouterr().out == "forgot 3 answers\n"
    assert main(["cache", "stats", "--path", str(stored)]) == 0
    assert "never" in capsys.readouterr().out


def test_export_and_import(
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, copy = tmp_path / "lines.jsonl", tmp_path / "copy.sqlite"
    assert main(["cache", "export", str(lines), "--path", str(stored)]) == 0
    assert stat.S_IMODE(lines.stat().st_mode) & 0o077 == 0
    lines.chmod(0o666)
    assert main(["cache", "export", str(lines), "--path", str(stored)]) == 0
    assert stat.S_IMODE(lines.stat().st_mode) == 0o600, "a file that was there, too"
    assert main(["cache", "export", "--path", str(stored)]) == 0
    printed = capsys.readouterr().out
    assert printed == lines.read_text(encoding="utf-8")
    assert [sorted(json.loads(line)) for line in printed.splitlines()][1:] == [
        ["finish", "key", "logprob", "text", "used"]
    ] * 3
    assert main(["cache", "import", str(lines), "--path", str(copy)]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(printed))
    assert main(["cache", "import", "-", "--path", str(copy)]) == 0
    assert capsys.readouterr().out == "added 3 answers\nadded 0 answers\n"
    db = counted(copy).add("t", {"x": ["a", "b", "c"]})
    db.rows("SELECT llm_filter('f', x) FROM t")
    assert not db.model.calls
    db.session.close()


def test_errors_of_the_command(
    tmp_path: Path, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("{}\n")
    data = tmp_path / "sales.csv"
    data.write_text("a,b\n")
    none = str(tmp_path / "none.sqlite")
    for arguments, said in (
        (["stats", "--path", none], "there is no file of stored answers at"),
        (["clear", "--path", none], "there is no file of stored answers at"),
        (["export", "--path", none], "there is no file of stored answers at"),
        (["clear", "--path", str(data)], "the file is not a SQLite database"),
        (["import", str(data), "--path", str(stored)], "It is no file of 'cache export'."),
        (["stats"], "no file of stored answers: BLENDFUSION_CACHE is off"),
        (["stats", "--path", str(tmp_path)], "is a folder"),
        (["import", str(wrong), "--path", str(stored)], "line 1: not answers that"),
        (["import", str(tmp_path / "none"), "--path", str(stored)], "No such file"),
        (["export", str(tmp_path / "no" / "x"), "--path", str(stored)], "cannot be written"),
    ):
        assert main(["cache", *arguments]) == 2
        assert said in capsys.readouterr().err


def test_the_query_command_keeps_answers_where_it_is_told(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x\na\nb\n")
    with serving(lambda body: Reply("fine")) as server:
        for cache, asked in ((str(path), 2), (str(path), 2), ("off", 4)):
            arguments = ["--table", f"t={table}", "--model", f"openai:tiny@{server.url}"]
            sql = "SELECT llm_text('q', x) AS y FROM t"
            assert main(["query", sql, *arguments, "--cache", cache, "--format", "csv"]) == 0
            assert len(server.bodies) == asked
            assert capsys.readouterr().out == '"y"\n"fine"\n"fine"\n'


@pytest.mark.parametrize("word", ["off", "none", "Memory", ":memory:"])
def test_a_word_for_no_file_makes_none(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with bf.connect(bf.ScriptedModel(lambda call: True), cache=word) as session:
        assert session.sql("SELECT llm_filter('q', 'x') AS f").to_pydict() == {"f": [True]}
    assert [*tmp_path.iterdir()] == []


# --- answers that machines share -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_session_asks_nothing_wherever_the_answers_are(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    where = place(kind, tmp_path)
    monkeypatch.setenv("BLENDFUSION_CACHE", where)
    for asked in (2, 0):
        db = counted("auto").add("t", {"x": ["a", "b"]})
        db.rows("SELECT llm_filter('f', x) FROM t")
        assert len(db.model.calls) == asked
        db.session.close()
    lines, copy = tmp_path / "lines.jsonl", place(kind, tmp_path / "copy")
    assert main(["cache", "stats"]) == 0
    assert main(["cache", "export", str(lines)]) == 0
    assert main(["cache", "import", str(lines), "--path", copy]) == 0
    assert main(["cache", "clear"]) == 0
    shown = capsys.readouterr()
    assert "added 2 answers\nforgot 2 answers\n" in shown.out
    assert "p%40ss" not in shown.out + shown.err
    db = counted(copy).add("t", {"x": ["a", "b", "c"]})
    db.rows("SELECT llm_filter('f', x) FROM t")
    assert len(db.model.calls) == 1
    db.session.close()


def test_a_row_that_is_decided_without_its_answer_reads_none() -> None:
    db = Counted(lambda call: call.values[0] != "x1")
    db.add("t", {"id": list(range(20)), "x": [f"x{i}" for i in range(20)]})
    db.rows("SELECT llm_filter('q', x) FROM t")
    frame = db.session.sql("SELECT id FROM t WHERE id >= 15 OR llm_filter('q', x)")
    assert len(frame.to_arrow_table()) == 19
    assert (frame.trace.usage.values, frame.trace.usage.cached) == (0, 15)
    (seen,) = frame.estimate().operators
    assert seen.rows == 15
