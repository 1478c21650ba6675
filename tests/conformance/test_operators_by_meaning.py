"""Every operator by meaning: cheap predicates first, distinct values once, estimated, stored, within a
budget, in SQL and DataFrames, with EXPLAIN. Each row has the number of values that it asks."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable
from math import log2
from typing import NamedTuple

import pyarrow as pa
import pytest
from datafusion import Expr, col, lit

import blendfusion as bf
from blendfusion.models.embedders.embedder import Vectors, normalise

TEXTS = ["late 1", "late 2", "broken 1", "broken 2", "late 1", None, " ", "never seen"]
PNG = b"\x89PNG\r\n\x1a\n"


def wav(length: int) -> bytes:
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(2 * length))
    return held.getvalue()


PHOTOS = [PNG + bytes([n % 2]) for n in range(8)]
CALLS = [wav(n % 3 + 1) for n in range(8)]


class ByWord:
    """Vectors by the first letter of a text."""

    name = fingerprint = "by word"
    batch_size = 64

    def embed(self, texts: list[str]) -> Vectors:
        return normalise(
            [[text[0] == "l", text[0] == "b", 0.01 * (1 + ord(text[-1]) % 3)] for text in texts]
        )

    def close(self) -> None:
        pass


def answer(request: bf.Request) -> object:
    first, *more = map(str, request.values)
    kind, options = request.constraint.kind, request.constraint.options
    match request.task.ingredient:
        case "llm_group":
            name = first.removeprefix("- ").split()[0]
            return name if not options or name in options else "other"
        case "llm_same":
            return first.split()[0] == more[0].split()[0] if more else first.split()[1].upper()
        case "llm_prefers" if kind == "list":
            lines = [line.split(". ") for line in first.splitlines()]
            return [number for number, text in sorted(lines, key=lambda line: line[1])]
        case "llm_prefers":
            return "first" if first < more[0] else "second"
        case "llm_redact":
            return []
        case "llm_map" | "llm_qa":
            return {"fault": "x", "times": 2} if kind == "struct" else 3
    if kind == "boolean":
        return True
    return options[0] if options else f"{len(request.values)}"


def connected(**options: object) -> tuple[bf.Session, bf.ScriptedModel]:
    model = bf.ScriptedModel(answer, batch_size=1)
    session = bf.connect(model, cache=None, progress="off", embedder=ByWord(), **options)  # type: ignore[arg-type]
    session.register_model("heard", model)
    columns = {
        "id": [*range(8)],
        "x": TEXTS,
        "photo": pa.array(PHOTOS, pa.binary()),
        "audio": pa.array(CALLS, pa.binary()),
    }
    session.from_arrow(pa.table(columns), name="t")
    return session, model


class Operator(NamedTuple):
    call: str
    """The call in SQL, over the rows with ``id < 7``: four distinct texts, two photos, three calls."""
    frame: Callable[[], Expr]
    least: int
    most: int
    """The number of values asked; pairs and lists depend on the answers."""
    of_group: bool = False


def exactly(
    call: str, frame: Callable[[], Expr], values: int, *, of_group: bool = False
) -> Operator:
    return Operator(call, frame, values, values, of_group)


RANKS = int(4 + 2 * 4 * log2(4))
OPERATORS = [
    exactly("llm_group(x, into => 2)", lambda: bf.llm_group("x", into=2), 2 + 4),
    exactly("llm_group(x, into => 2, name => 'g')", lambda: bf.llm_group("x", into=2, name="g"), 6),
    exactly(
        "llm_group(x, into => 2, level => 2)", lambda: bf.llm_group("x", into=2, level=2), 6 + 2 + 2
    ),
    exactly(
        "llm_group(x, into => 2, describe => true)",
        lambda: bf.llm_group("x", into=2, describe=True),
        2 + 2 + 4,
    ),
    Operator(
        "llm_same(x, write => 'the full name')",
        lambda: bf.llm_same("x", write="the full name"),
        5,
        7,
    ),
    Operator("llm_same(x)", lambda: bf.llm_same("x"), 3, 5),
    Operator("llm_same(x, name => 'e')", lambda: bf.llm_same("x", name="e"), 3, 5),
    Operator(
        "llm_prefers('which is first', x)", lambda: bf.llm_prefers("which is first", "x"), 4, RANKS
    ),
    exactly(
        "llm_prefers('which is first', x, list_size => 5)",
        lambda: bf.llm_prefers("which is first", "x", list_size=5),
        1,
    ),
    exactly("llm_sentiment(x)", lambda: bf.llm_sentiment("x"), 4),
    exactly("llm_translate(x, 'German')", lambda: bf.llm_translate("x", "German"), 4),
    exactly("llm_fix_grammar(x)", lambda: bf.llm_fix_grammar("x"), 4),
    exactly("llm_redact(x)", lambda: bf.llm_redact("x"), 4),
    exactly("llm_vqa('What?', photo)", lambda: bf.llm_vqa("What?", "photo"), 2),
    # The photo's parity is that of the row: each text has its own, and rows without text ask, too.
    exactly("llm_vqa('Fits {}?', x, photo)", lambda: bf.llm_vqa("Fits {}?", "x", "photo"), 6),
    exactly("llm_filter('Fits?', x, photo)", lambda: bf.llm_filter("Fits?", "x", "photo"), 6),
    exactly(
        "llm_transcribe(audio, model => 'heard')",
        lambda: bf.llm_transcribe("audio", model="heard"),
        3,
    ),
    exactly(
        "llm_map('How many?', x, returns => 'int', check => 'answer < 9')",
        lambda: bf.llm_map("How many?", "x", returns="int", check="answer < 9"),
        4,
    ),
    exactly(
        "llm_map('What?', x, returns => 'fault TEXT, times INT')",
        lambda: bf.llm_map("What?", "x", returns="fault TEXT, times INT"),
        4,
    ),
    exactly(
        "llm_qa('What?', x, returns => 'fault TEXT, times INT')",
        lambda: bf.llm_qa("What?", "x", returns="fault TEXT, times INT"),
        1,
        of_group=True,
    ),
]


def shown(rows: list[dict[str, object]]) -> list[str]:
    return sorted(repr(row["r"]) for row in rows)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.call)
def test_an_operator_is_planned_like_any_other(operator: Operator) -> None:
    session, model = connected()
    frame = session.sql(f"SELECT {operator.call} AS r FROM t WHERE id < 7")
    name = operator.call.split("(")[0]
    assert f"ask {name}(" in frame.explain_text()
    expected = frame.estimate().total.values
    assert not model.calls
    rows = frame.to_pylist()

    # Cheap predicates first, each distinct value once.
    asked = len(model.calls)
    assert operator.least <= asked <= operator.most
    assert len({(call.task, call.values) for call in model.calls}) == asked
    assert not any("never" in str(value) for call in model.calls for value in call.values)
    if operator.least == operator.most and name != "llm_group":
        assert expected == asked
    else:
        assert 1 <= expected <= 2 * operator.most + 2

    # Stored: by SQL and by a DataFrame, which has the same rows.
    assert shown(frame.to_pylist()) == shown(rows)
    assert frame.estimate().total.values == 0
    table = session.table("t").filter(col("id") < lit(7))
    call = operator.frame().alias("r")
    other = table.aggregate([], [call]) if operator.of_group else table.select(call)
    assert shown(other.to_pylist()) == shown(rows)
    assert f"Total: 0 values asked (0 expected), {asked} cached" in frame.explain_text(
        analyze=True
    ) or (
        "name =>" in operator.call  # kept: nothing of it is looked up again
    )
    assert len(model.calls) == asked


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.call)
def test_a_budget_ends_an_operator_and_a_later_run_goes_on(operator: Operator) -> None:
    session, model = connected()
    query = f"SELECT {operator.call} AS r FROM t WHERE id < 7"
    usual, plain = connected()
    rows = usual.sql(query).to_pylist()
    limit = len(plain.calls) - 1
    with pytest.raises(bf.BudgetExceeded):
        session.sql(query, budget=bf.Budget(values=limit)).to_pylist()
    assert len(model.calls) <= limit
    assert shown(session.sql(query).to_pylist()) == shown(rows)
    assert len(model.calls) == len(plain.calls)


@pytest.mark.parametrize(
    "operator",
    [
        o
        for o in OPERATORS
        if not o.of_group and o.call.split("(")[0] not in ("llm_group", "llm_same", "llm_prefers")
    ],
    ids=lambda operator: operator.call,
)
def test_a_limit_ends_an_operator_of_rows(operator: Operator) -> None:
    session, model = connected()
    (row,) = session.sql(f"SELECT {operator.call} AS r FROM t WHERE id < 7 LIMIT 1").to_pylist()
    assert row["r"] is not None
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("window", "most"),
    [
        ("row_number() OVER (PARTITION BY id % 2 ORDER BY {}) <= 1", int(2 * (2 + 2 * log2(2)))),
        ("rank() OVER (PARTITION BY id % 2 ORDER BY {} DESC) = 1", int(2 * (2 + 2 * log2(2)))),
        ("dense_rank() OVER (ORDER BY {}) < 2", int(4 + 2 * log2(4))),
    ],
)
def test_first_ranks_of_windows_in_sql_estimates_budgets_and_the_cache(
    window: str, most: int
) -> None:
    session, model = connected()
    call = window.format("llm_prefers('which is first', x)")
    query = f"SELECT id, x AS r FROM t WHERE id < 7 QUALIFY {call}"
    frame = session.sql(query)
    assert 0 < frame.estimate().total.values <= 2 * most
    with pytest.raises(bf.BudgetExceeded):
        session.sql(query, budget=bf.Budget(values=1)).to_pylist()
    rows = frame.to_pylist()
    assert 0 < len(model.calls) <= most
    asked = len(model.calls)
    assert session.sql(query).to_pylist() == rows
    assert len(model.calls) == asked
    assert "k => " in frame.explain_text()
    plain, _ = connected()
    plain.sql("SET blendfusion.rules_off = 'ranked_limits, ranked_partitions'")
    assert shown(plain.sql(query).to_pylist()) == shown(rows)
