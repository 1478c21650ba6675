"""200 values and keys through every place where a program or a person sees text, with values off:
none is seen."""

from __future__ import annotations

import contextlib
import io
import logging
import random
import string
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from datafusion import col, udf
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.apps.cli.main import main

SECRETS = 200
KEY = "sk-{core}-KEY"

SHAPES = (
    "{core}", "Ann {core}", "{core}@example.org", "4111 {core} 1111", "{{\"name\": \"{core}\"}}", "('{core}'", "{core}' OR '1'='1",
    "line\n{core}\nline", "\"{core}\"", "it's {core}", "é{core}ü", "[{core}", "2026-{core}-31", "-{core}", "{core}.{core}",
    "postgres://u:{core}@host/db?key={core}", "C:\\{core}", "<b>{core}</b>", "column '{core}'", "{core}, 17",
)  # fmt: skip


def cores() -> list[str]:
    """Words that stand nowhere else: of letters, of digits, of both."""
    dice = random.Random(4711)
    kinds = (string.ascii_lowercase, string.digits[1:], string.ascii_uppercase + string.digits)
    return ["".join(dice.choices(kinds[n % 3], k=11)) for n in range(SECRETS)]


def secret_of(number: int) -> str:
    return SHAPES[number % len(SHAPES)].format(core=cores()[number])


def all_told(error: BaseException) -> str:
    seen = [error]
    for one in seen:
        seen += [e for e in (one.__cause__, one.__context__) if e is not None and e not in seen]
    lines = traceback.TracebackException.from_exception(error).format(chain=True)
    return "\n".join([*lines, *map(str, seen), *map(repr, seen), *map(str, (e.args for e in seen))])


def caught(work: Callable[[], object]) -> str:
    """All that is printed, warned of and raised."""
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                work()
                said = ""
            except bf.BlendFusionError as error:
                said = all_told(error)
    return "\n".join([said, out.getvalue(), *(str(w.message) for w in warned)])


FAILING = (
    "CAST(y AS INT)", "CAST(y AS TIMESTAMP)", "CAST(y AS BOOLEAN)", "CAST(y AS DECIMAL(5, 1))", "CAST(y AS INTERVAL)",
    "CAST(n AS TINYINT)", "CAST(n AS DECIMAL(3, 1))", "regexp_like('a', '(' || y)", "regexp_replace(y, y || '(', '')",
    "map([y, y], [1, 2])", "to_timestamp(y, '%Y')", "chr(n)", "factorial(n % 100000 + 1000)", "make_date(n % 1000000, 99, 1)",
    "decode(y || '!', 'hex')", "arrow_cast(y, 'Int8')", "substr(y, 1, -n)", "y ~ ('(' || y)", "broken(y)",
    "CAST(y AS INT) + llm_int('How many?', y)",
)  # fmt: skip
"""Expressions that fail on their values."""


def model(call: bf.Request) -> object:
    value = call.values[0] or ""
    if "raise" in call.task.question:
        raise LookupError(f"no record of {value}")
    if "fail" in call.task.question:
        raise bf.ModelFailed(f"cannot read {value}")
    return f"It says {value}"


def broken(values: pa.Array) -> pa.Array:
    raise ValueError(f"what is {values[0]}?")


def texts(session: bf.Session, secret: str, number: int, folder: Path) -> Iterator[str]:
    """Everything that is to be seen of one value."""
    sql = session.sql
    expression = FAILING[number % len(FAILING)]
    failing = f"SELECT {expression} AS z FROM p"
    yield caught(lambda: sql(failing).to_pylist())
    yield caught(lambda: list(sql(failing)))
    yield caught(lambda: pa.table(sql(failing)))
    yield caught(lambda: sql(failing).show())
    yield caught(lambda: repr(sql(failing)) + str(sql(failing)._repr_html_()))
    yield caught(lambda: sql(failing).explain(analyze=True))
    yield caught(lambda: sql(failing).write_csv(folder / "out.csv"))
    yield caught(lambda: sql(f"CREATE TABLE u AS {failing}"))
    yield caught(lambda: sql("SELECT CAST($v AS INT)", param_values={"v": secret}).to_pylist())
    yield caught(lambda: sql("SELECT y FROM p WHERE y = $v AND nosuch", param_values={"v": secret}))
    yield caught(lambda: session.from_pydict({"y": [1, secret]}))
    yield caught(
        lambda: session.table("p").filter(col("y") == secret).cast({"y": pa.int32()}).collect()
    )
    for option in ("", ", on_error => 'raise'"):
        for question in ("How many?", "raise", "fail"):
            frame = sql(f"SELECT llm_int('{question}', y{option}) AS z FROM p")
            yield caught(frame.collect)
            yield from (repr(frame), frame._repr_html_(), repr(frame.trace), frame.explain_text())
            yield from (frame.trace.to_html(), frame.trace._repr_html_(), str(frame.estimate()))
    yield caught(lambda: sql("SELECT llm_int('q', y) FROM p", budget=bf.Budget(calls=0)).collect())
    for plan in ("ORDER BY y LIMIT 1", "WHERE y = (SELECT max(y) FROM p) AND llm_filter('q', y)"):
        yield str(sql(f"EXPLAIN SELECT y FROM p {plan}").to_pylist())
        yield caught(
            lambda plan=plan: print(sql(f"EXPLAIN ANALYZE SELECT y FROM p {plan}").to_pylist())
        )
        given = sql(f"SELECT y FROM p {plan}".replace("'q'", "'q'"))
        yield repr(given) + str(given._repr_html_())
    yield repr(session.table("p")) + repr(session) + repr(session.options)
    labelled = sql("SELECT llm_filter('fine', 'x') AS a, y AS label FROM p")
    yield caught(lambda: repr(labelled.evaluate("a", "label")))
    yield caught(lambda: repr(labelled.evaluate("a", "label", kind="text")))
    yield caught(lambda: repr(sql("SELECT y FROM p WHERE llm_filter('q', 'x')").manifest()))
    for query in (
        f"SELECT y FROM p WHERE y = '{secret}'",
        f"SELECT nosuch FROM p, '{secret}'",
        f'SELECT y AS "{secret}" FROM p /* {secret} */',
        f'SELECT nullif(y, y) AS "{secret}", nullif(y, \'{secret}\') FROM p AS "x{secret}"',
    ):
        with writer_of(query) as writer:
            writer.from_arrow(session.table("p").to_arrow_table(), name="p")
            yield caught(lambda writer=writer: str(writer.ask("Which row is it?")))
            yield caught(lambda writer=writer: repr(writer.ask("Which row?", candidates=2)))


def writer_of(query: str) -> bf.Session:
    """A session whose model writes ``query`` for every question."""
    model = bf.ScriptedModel(lambda call: query)
    return bf.connect(model, cache=None, progress="off", show_values="off")


class Foreign:
    """A model of another package, which repeats values wherever it says something."""

    info = bf.ModelInfo("foreign", "foreign:1", 4096)
    batch_size = 4

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def count_tokens(self, text: str) -> int:
        return len(text)

    def answer(self, task: bf.Task, values: Sequence[tuple[str | None, ...]]) -> list[bf.Answer]:
        said = f"what is {values[0][0]}, or {values[0][0]!r}?"
        if self._kind == 0:
            return [bf.Answer(said) for _ in values]
        if self._kind == 1:
            return [bf.Answer.failed(said) for _ in values]
        raise (LookupError(said), bf.ModelFailed(said, hint=said), bf.ModelNotFound(said))[
            self._kind - 2
        ]

    def close(self) -> None:
        pass


def foreign_texts(secret: str) -> Iterator[str]:
    """What is to be seen of models of other packages, alone and with others behind them."""
    for kind in range(5):
        for models in ([Foreign(kind)], [Foreign(kind), Foreign(1)], [Foreign(1), Foreign(kind)]):
            with bf.connect(models, cache=None, show_values="off", progress="off") as session:
                session.from_pydict({"y": [secret]}, name="p")
                for option in ("", ", on_error => 'raise'", ", on_error => 'keep'"):
                    frame = session.sql(f"SELECT llm_int('q', y{option}) AS z FROM p")
                    yield caught(frame.collect)
                    yield from (repr(frame), frame._repr_html_(), frame.trace.to_html())
                    yield from (repr(frame.trace), frame.trace._repr_html_(), frame.explain_text())


def server_texts(secret: str, key: str, number: int, folder: Path) -> Iterator[str]:
    """What is to be seen where a server repeats the value and the key, in each status."""
    status = (200, 400, 401, 403, 404, 413, 422, 500, 503)[number % 9]

    def script(body: Body) -> Reply:
        words = f"no {secret} ({secret[::-1]}) for Bearer {key} at https://u:{key}@host/v1?api-key={key}"
        refusal = words if number % 2 else None
        return Reply(words, status=status, error=words, refusal=refusal)

    with serving(script) as server:
        url = server.url.replace("http://", f"http://user:{key}@")
        with bf.connect(
            f"openai:tiny@{url}",
            cache=folder / "answers",
            show_values="off",
            retries=0,
            timeout_seconds=5,
        ) as session:
            session.from_pydict({"y": [secret]}, name="p")
            for option in ("", ", on_error => 'raise'"):
                frame = session.sql(f"SELECT llm_int('q', y{option}) AS z FROM p")
                yield caught(frame.collect)
                yield from (
                    frame.trace.to_html(),
                    repr(frame),
                    repr(session.model),
                    repr(frame.trace),
                )
                yield str(frame.explain_text())


def command_texts(secret: str, folder: Path) -> str:
    """What the command writes to standard error, and in its plans."""
    file = folder / "p.parquet"
    pa.parquet.write_table(pa.table({"y": [secret]}), file)
    said = ""
    for query in (
        "SELECT CAST(y AS INT) AS n FROM p",
        "EXPLAIN ANALYZE SELECT y FROM p ORDER BY y LIMIT 1",
    ):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(["query", query, "--table", f"p={file}", "--cache", "off", "--show-values", "off"])
        said += out.getvalue() + err.getvalue()
    return said


def log_of(caplog: pytest.LogCaptureFixture) -> str:
    said = "\n".join(f"{r.getMessage()} {vars(r)}" for r in caplog.records)
    caplog.clear()
    return said


@pytest.mark.long
def test_no_value_and_no_key_is_seen_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, cases: int
) -> None:
    """As many values as cases by 100, of each shape one at least; all 200 with ``--cases
    20000``."""
    leaks: list[str] = []
    words = cores()
    with (
        caplog.at_level(logging.DEBUG),
        bf.connect(
            bf.ScriptedModel(model), cache=None, show_values="off", progress="off"
        ) as session,
    ):
        session.register_udf(udf(broken, [pa.string()], pa.int64(), "volatile", "broken"))
        for number, core in enumerate(words[: cases // 100]):
            secret, key = secret_of(number), KEY.format(core=core)
            digits = core if core.isdigit() else "98765432109"
            session.deregister_table("p")
            session.from_arrow(pa.table({"y": [secret], "n": [int(digits)]}), name="p")
            monkeypatch.setenv("OPENAI_API_KEY", key)
            seen = [*texts(session, secret, number, tmp_path), log_of(caplog)]
            seen += [*foreign_texts(secret), log_of(caplog)]
            seen += [*server_texts(secret, key, number, tmp_path), log_of(caplog)]
            if number % 10 == 0:
                seen.append(command_texts(secret, tmp_path))
            assert len(seen) > 50
            leaks += [
                around(text, w) for text in seen for w in {core, core[::-1], digits} if w in text
            ]
    assert not leaks, f"{len(leaks)} leaks, among them: {leaks[:5]}"


def around(text: str, word: str) -> str:
    at = text.index(word)
    return text[max(0, at - 150) : at + 80]
