"""Answers that others wrote to a store, a copy or a manifest are none where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.models.services.http.response import Response
from blendfusion.models.services.http.server_kind import offered_by
from blendfusion.redaction import on_one_line
from blendfusion.types import Answer, Task, Usage

CASES = [
    ("llm_int('q', x)", 5, 5, ("five", "", "1e999999", "9" * 5_000, "5.5")),
    ("llm_float('q', x)", 2.5, 2.5, ("five", "", "1e400", "nan", "inf")),
    ("llm_bool('q', x)", True, True, ("maybe", "True", "1")),
    ("llm_filter('q', x)", True, True, ("maybe", "")),
    ("llm_list('q', x)", ["a"], ["a"], ("{no", "7", "null", '[["a"]]', "[" * 99_999)),
    (
        "llm_date('q', x, evidence => false)",
        "2024-02-29",
        None,
        ("2020-99-99", "today", "2023-02-29"),
    ),
    ("llm_classify(x, ['a', 'b'])", "a", "a", ("zzz", "A", "")),
    ("llm_score('q', x)", 7, 7.0, ("1e400", "nan", "11")),
    ("llm_map('q', x)::timestamp", "2024-02-29T00:00:00", None, ("2024-02-29", "soon")),
    (
        "llm_extract(x, 'n INT', evidence => false)",
        {"n": 5},
        {"n": 5},
        ('{"n": "five"}', "{}", '{"m": 1}', "[]"),
    ),
]


def session_over(store: Path, value: object) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(lambda call: value, fingerprint="f")  # type: ignore[arg-type,return-value]
    session = bf.connect(model, cache=str(store))
    session.from_pydict({"x": ["v"]}, name="t")
    return session, model


@pytest.mark.parametrize(("call", "value", "result", "texts"), CASES, ids=[c[0] for c in CASES])
def test_an_imported_answer_outside_its_constraint_is_asked_again(
    tmp_path: Path, call: str, value: object, result: object, texts: tuple[str, ...]
) -> None:
    query = f"SELECT {call} AS z FROM t"
    with session_over(tmp_path / "a.sqlite", value)[0] as session:
        [right] = session.sql(query).to_pylist()
    assert main(["cache", "export", "--path", str(tmp_path / "a.sqlite"), str(tmp_path / "a")]) == 0
    header, line = (tmp_path / "a").read_text("utf-8").splitlines()
    assert result is None or right == {"z": result}
    for number, text in enumerate(texts):
        forged = json.dumps({**json.loads(line), "text": text})
        (tmp_path / "b").write_text(f"{header}\n{forged}\n", "utf-8")
        store = tmp_path / f"{number}.sqlite"
        assert main(["cache", "import", "--path", str(store), str(tmp_path / "b")]) == 0
        session, model = session_over(store, value)
        with session:
            assert session.sql(query).to_pylist() == [right]
        assert len(model.calls) == 1, text


@pytest.mark.parametrize("logprob", [5.0, 1e308, float("inf"), float("nan"), "x", True])
def test_a_probability_above_one_is_no_line_of_answers(
    tmp_path: Path, logprob: object, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"key": "00" * 24, "text": "a", "finish": "complete", "logprob": logprob, "used": 5}
    file = tmp_path / "a"
    file.write_text('{"blendfusion": "answers", "keys": 1}\n' + json.dumps(line) + "\n")
    assert main(["cache", "import", "--path", str(tmp_path / "b.sqlite"), str(file)]) == 2
    assert "line 2: 'logprob' is no" in capsys.readouterr().err


def test_a_deep_line_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a"
    file.write_text('{"blendfusion": "answers", "keys": 1}\n' + "[" * 100_000 + "\n")
    assert main(["cache", "import", "--path", str(tmp_path / "b.sqlite"), str(file)]) == 2
    assert "line 2: nested too deeply" in capsys.readouterr().err


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "usage",
    [
        Usage(prompt_tokens=-(10**6)),
        Usage(prompt_tokens="x"),  # type: ignore[arg-type]
        Usage(completion_tokens=10**30, seconds=float("nan")),
        Usage(values=True),
        None,
        "x",
    ],
)
def test_a_models_usage_is_bounded(usage: object) -> None:
    class Model:
        """A foreign model, around the odd one."""

        info, batch_size = bf.ScriptedModel(lambda call: 7).info, 8

        def count_tokens(self, text: str) -> int:
            return len(text)

        def answer(self, task: Task, values: list[tuple[str, ...]]) -> list[Answer]:
            return [Answer("7", usage=usage) for _ in values]  # type: ignore[arg-type]

        def close(self) -> None:
            """Nothing to free."""

    session = bf.connect(Model(), cache=None)  # type: ignore[arg-type]
    session.from_pydict({"x": ["a", "b"]}, name="t")
    frame = session.sql("SELECT llm_int('q', x) AS z FROM t")
    assert frame.to_pylist() == [{"z": 7}, {"z": 7}]
    assert min(frame.trace.usage.numbers) >= 0
    assert max(frame.trace.usage.numbers) < 1 << 42


def test_an_exception_without_words_is_an_error_of_ours() -> None:
    class Model:
        """A foreign model that raises."""

        info, batch_size = bf.ScriptedModel(lambda call: 7).info, 8

        def count_tokens(self, text: str) -> int:
            return len(text)

        def answer(self, task: Task, values: list[tuple[str, ...]]) -> list[Answer]:
            raise Unspeakable

        def close(self) -> None:
            """Nothing to free."""

    session = bf.connect(Model(), cache=None)  # type: ignore[arg-type]
    session.from_pydict({"x": ["a"]}, name="t")
    with pytest.raises(bf.ModelFailed, match="raised Unspeakable"):
        session.sql("SELECT llm_int('q', x) AS z FROM t").to_pylist()


def test_names_of_models_are_lines_of_their_own_only() -> None:
    name = "evil\nforged line\tx\x1b[1m"
    reply = Response(200, json.dumps({"data": [{"id": name}]}).encode())
    assert [on_one_line(found) for found in offered_by(reply)] == ["evil\\nforged line\\tx\\x1b[1m"]
    assert offered_by(Response(200, b"[" * 200_000)) == {}
