"""With values off, nothing of the data leaves but results: through whichever method a query
fails."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from datafusion import DataFrame, SessionContext, SQLOptions, col, lit, udf
from datafusion import functions as f

import blendfusion as bf
from blendfusion.datafusion.error_gate import outward
from blendfusion.datafusion.foreign_words import foreign, without_filters
from blendfusion.frame import Frame
from blendfusion.redaction import Redaction
from blendfusion.session import Session

HIDDEN = "4711"
SECRET = f"secret-{HIDDEN}"
CAST = "SELECT CAST(y AS INT) AS n FROM p"
CALLED = "SELECT CAST(y AS INT) + llm_int('How many?', y) AS n FROM p"


def opened(show_values: str = "off", **options: Any) -> bf.Session:
    session = bf.connect(
        bf.ScriptedModel(lambda call: call.constraint.kind == "boolean" or 1),
        cache=None,
        show_values=show_values,
        **options,
    )
    session.from_pydict({"y": [SECRET], "i": [4711]}, name="p")
    return session


def told(error: BaseException) -> str:
    """All that a log or a collector of errors can get out of it."""
    seen = [error]
    for one in seen:
        seen += [e for e in (one.__cause__, one.__context__) if e is not None and e not in seen]
    lines = traceback.format_exception(error, chain=True)
    return "\n".join([*lines, *map(str, seen), *map(repr, seen)])


def fails(work: Callable[[], object]) -> str:
    """What is told of the error of ours that ``work`` raises."""
    with pytest.raises(bf.BlendFusionError) as failed:
        work()
    return told(failed.value)


async def _first(frame: Frame) -> object:
    async for batch in frame:
        return batch
    return None


def _next(stream: Any) -> object:
    return stream.next()


def _awaited(frame: Frame) -> object:
    import asyncio

    return asyncio.run(_first(frame))


RESULTS: dict[str, Callable[[Frame, Path], object]] = {
    "__arrow_c_stream__": lambda frame, _: pa.table(frame),
    "__aiter__": lambda frame, _: _awaited(frame),
    "__iter__": lambda frame, _: list(frame),
    "cache": lambda frame, _: frame.cache(),
    "collect": lambda frame, _: frame.collect(),
    "collect_column": lambda frame, _: frame.collect_column("n"),
    "collect_partitioned": lambda frame, _: frame.collect_partitioned(),
    "count": lambda frame, _: frame.filter(col("n") > 0).count(),
    "describe": lambda frame, _: frame.describe(),
    "execute_stream": lambda frame, _: next(frame.execute_stream()),
    "execute_stream_next": lambda frame, _: _next(frame.execute_stream()),
    "execute_stream_partitioned": lambda frame, _: [list(s) for s in frame.execute_stream_partitioned()],
    "explain_analyze": lambda frame, _: frame.explain(analyze=True),
    "show": lambda frame, _: frame.show(),
    "tail": lambda frame, _: frame.filter(col("n") > 0).tail(1),
    "to_arrow_table": lambda frame, _: frame.to_arrow_table(),
    "to_pandas": lambda frame, _: frame.to_pandas(),
    "to_polars": lambda frame, _: frame.to_polars(),
    "to_pydict": lambda frame, _: frame.to_pydict(),
    "to_pylist": lambda frame, _: frame.to_pylist(),
    "write_csv": lambda frame, folder: frame.write_csv(folder / "a.csv"),
    "write_json": lambda frame, folder: frame.write_json(folder / "a.json"),
    "write_parquet": lambda frame, folder: frame.write_parquet(folder / "a.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("query", [CAST, CALLED])
@pytest.mark.parametrize("method", RESULTS)
def test_off_shows_values_nowhere_whichever_way_a_result_is_taken(
    method: str, query: str, tmp_path: Path
) -> None:
    pytest.importorskip("polars")
    said = fails(lambda: RESULTS[method](opened().sql(query), tmp_path))
    assert HIDDEN not in said
    assert "Int32" in said or "Float64" in said  # what is no value stays


@pytest.mark.parametrize("query", [CAST, CALLED])
def test_a_display_shows_no_values_and_runs_nothing(query: str) -> None:
    for shown in (repr(opened().sql(query)), opened().sql(query)._repr_html_()):
        assert "n: int" in shown
        assert HIDDEN not in shown
    table = opened().table("p")
    assert SECRET not in repr(table) + table._repr_html_()
    assert SECRET in repr(opened("auto").table("p"))


FAILING: dict[str, Callable[[bf.Session, Frame, Path], object]] = {
    "col": lambda s, p, _: p.col("nosuch"),
    "column": lambda s, p, _: p.column("nosuch"),
    "aggregate": lambda s, p, _: p.aggregate([], [f.sum(col("nosuch"))]),
    "cast": lambda s, p, _: p.cast({"nosuch": pa.int32()}),
    "distinct_on": lambda s, p, _: p.distinct_on([col("nosuch")], [col("y")]),
    "drop": lambda s, p, _: p.select("nosuch"),
    "except_all": lambda s, p, _: p.except_all(p.select("y").select(col("y"), col("y"))),
    "fill_null": lambda s, p, _: p.fill_null(SECRET, ["i", "nosuch"]),
    "filter": lambda s, p, _: p.filter(col("y") + lit(pa.scalar(SECRET)) > lit(True)).collect(),
    "filter_text": lambda s, p, _: p.filter("nosuch > 1"),
    "intersect": lambda s, p, _: p.intersect(p.select(col("y"))),
    "join": lambda s, p, _: p.join(p, on="nosuch"),
    "join_on": lambda s, p, _: p.join_on(p, col("nosuch") == col("y")),
    "optimized_logical_plan": lambda s, p, _: s.sql(
        "SELECT CAST($v AS INT)", param_values={"v": SECRET}
    ).optimized_logical_plan(),
    "execution_plan": lambda s, p, _: s.sql(
        "SELECT CAST($v AS INT)", param_values={"v": SECRET}
    ).execution_plan(),
    "parse_sql_expr": lambda s, p, _: p.parse_sql_expr("nosuch +"),
    "select": lambda s, p, _: p.select("nosuch"),
    "select_exprs": lambda s, p, _: p.select_exprs("nosuch"),
    "sort": lambda s, p, _: p.sort("nosuch"),
    "sort_by": lambda s, p, _: p.sort_by("nosuch"),
    "union": lambda s, p, _: p.union(p.select("y")),
    "unnest_columns": lambda s, p, _: p.unnest_columns("nosuch"),
    "with_column": lambda s, p, _: p.with_column("z", col("nosuch")),
    "with_column_renamed": lambda s, p, _: p.with_columns(col("nosuch")),
    "write_table": lambda s, p, _: p.write_table("nosuch"),
    "write_parquet_with_options": lambda s, p, _: s.sql(CAST).write_csv("/nosuch/\0"),
    "session.sql": lambda s, p, _: s.sql("SELECT CAST($v AS INT)", param_values={"v": SECRET}).collect(),
    "session.sql create": lambda s, p, _: s.sql(f"CREATE TABLE u AS {CAST}"),
    "session.sql create called": lambda s, p, _: s.sql(f"CREATE TABLE u AS {CALLED}"),
    "session.sql into": lambda s, p, _: s.sql(
        "SELECT CAST(y AS INT) AS n INTO u FROM p"
    ),
    "session.sql_with_options": lambda s, p, _: s.sql_with_options(CAST, SQLOptions()).collect(),
    "session.table": lambda s, p, _: s.table("nosuch"),
    "session.catalog": lambda s, p, _: s.catalog("nosuch"),
    "session.deregister_object_store": lambda s, p, _: s.deregister_object_store("no", "such"),
    "session.from_pydict": lambda s, p, _: s.from_pydict({"y": [1, SECRET]}),
    "session.from_pylist": lambda s, p, _: s.from_pylist([{"y": 1}, {"y": SECRET}]),
    "session.read_csv": lambda s, p, folder: s.read_csv(
        csv(folder), schema=pa.schema({"y": pa.int32()})
    ).collect(),
    "session.register_csv": lambda s, p, folder: _registered(s, folder).collect(),
    "session.read_parquet": lambda s, p, folder: s.read_parquet(csv(folder)),
    "session.register_parquet": lambda s, p, folder: s.register_parquet("u", csv(folder)),
    "session.read_json": lambda s, p, folder: s.read_json(csv(folder)).collect(),
    "session.register_json": lambda s, p, folder: s.register_json("u", csv(folder)),
    "session.read_arrow": lambda s, p, folder: s.read_arrow(csv(folder), file_extension=".csv").collect(),
    "session.read_avro": lambda s, p, folder: s.read_avro(csv(folder), file_extension=".csv").collect(),
    "session.register_arrow": lambda s, p, folder: s.register_arrow("u", csv(folder), file_extension=".csv"),
    "session.udf": lambda s, p, _: s.udf("nosuch"),
    "session.udaf": lambda s, p, _: s.udaf("nosuch"),
    "session.udwf": lambda s, p, _: s.udwf("nosuch"),
    "session.execute": lambda s, p, _: list(s.execute(s.sql(CAST).execution_plan(), 0)),
    "session.create_dataframe": lambda s, p, _: s.create_dataframe(
        [[pa.record_batch({"y": [1]}), pa.record_batch({"z": [SECRET]})]]
    ).collect(),
}  # fmt: skip


def csv(folder: Path) -> str:
    file = folder / "p.csv"
    file.write_text(f"y\n{SECRET}\n")
    return str(file)


def _registered(session: bf.Session, folder: Path) -> Frame:
    session.register_csv("u", csv(folder), schema=pa.schema({"y": pa.int32()}))
    return session.table("u")


@pytest.mark.long
@pytest.mark.parametrize("method", FAILING)
def test_whatever_datafusion_raises_becomes_an_error_of_ours(method: str, tmp_path: Path) -> None:
    session = opened()
    assert HIDDEN not in fails(lambda: FAILING[method](session, session.table("p"), tmp_path))


@pytest.mark.parametrize(("kind", "base"), [(Frame, DataFrame), (Session, SessionContext)])
def test_every_public_method_goes_through_the_gate(kind: type, base: type) -> None:
    names = [name for name in dir(base) if not name.startswith("_")]
    methods = {name: inspect.getattr_static(kind, name) for name in names}
    ungated = [
        name
        for name, method in methods.items()
        if inspect.isfunction(method) and not method.__code__.co_filename.endswith("method_gate.py")
    ]
    assert ungated == []
    assert len(methods) > 50


PANICS = [type("PanicException", (BaseException,), {}), type("RustPanic", (Exception,), {})]


@pytest.mark.parametrize("panic", PANICS)
def test_a_panic_of_datafusion_is_an_error_of_ours(
    panic: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(*_: object, **__: object) -> object:
        raise panic(f"called unwrap on {SECRET}")

    monkeypatch.setattr(DataFrame, "execute_stream", panics)
    said = fails(lambda: opened().sql("SELECT y FROM p").to_pylist())
    assert HIDDEN not in said


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 1,\n sum(y) FROM p", "line 2: sum does not take (Utf8)"),
        ("SELECT avg(y) OVER () FROM p", "line 1: avg does not take (Utf8)"),
        ("SELECT approx_percentile_cont(y, 2) FROM p", "does not take (Utf8, Int64)"),
        ("SELECT sum(y), llm_int('q', y) FROM p GROUP BY y", "line 1: sum does not take (Utf8)"),
        ("SELECT grouping(y) FROM p", "Argument p.y to grouping function"),
        ("SELECT * FROM p a JOIN p b ON struct(a.y) = [b.y]", "Cannot infer common argument type"),
        ("SELECT (SELECT y FROM p WHERE p.y > q.y) FROM p AS q", "Correlated scalar subquery"),
    ],
)
def test_no_error_blames_datafusion(query: str, words: str) -> None:
    with pytest.raises(bf.BlendFusionError) as failed:
        opened().sql(query).collect()
    said = str(failed.value)
    assert words in said
    assert not any(w in said for w in ("bug", "issue tracker", "Internal error", "caused by"))


def test_an_internal_error_keeps_its_words() -> None:
    raw = (
        "DataFusion error: Internal error: Physical input schema differs.\nThis issue was likely caused by a bug in "
        "DataFusion's code. Please help us to resolve this by filing a bug report in our issue tracker: https://x/issues"
    )
    error = outward(Exception(raw), Redaction("on"))
    assert isinstance(error, bf.BlendFusionError)
    assert str(error) == "DataFusion cannot run this: Physical input schema differs"


def test_a_function_of_the_program_shows_its_class_alone() -> None:
    def model(call: bf.Request) -> object:
        raise LookupError(f"no record of {call.values[0]}")

    def hashed(values: pa.Array) -> pa.Array:
        raise LookupError(f"no record of {values[0]}")

    for planner in (True, False):
        session = bf.connect(
            bf.ScriptedModel(model), cache=None, show_values="off", planner=planner
        )
        session.from_pydict({"y": [SECRET]}, name="p")
        said = fails(lambda session=session: session.sql("SELECT llm_int('q', y) FROM p").collect())
        assert "LookupError" in said
        assert HIDDEN not in said
        session.register_udf(udf(hashed, [pa.string()], pa.int64(), "volatile", "hashed"))
        for query in ("hashed(y)", "hashed(y) + llm_int('q', 'a')"):
            said = fails(
                lambda session=session, q=query: session.sql(f"SELECT {q} FROM p").collect()
            )
            assert "a function of the program raised LookupError" in said
            assert HIDDEN not in said
    log = opened("auto")  # standard error is no terminal here
    log.register_udf(udf(hashed, [pa.string()], pa.int64(), "volatile", "hashed"))
    with pytest.raises(bf.ExecutionError, match="raised LookupError: no record of …\n"):
        log.sql("SELECT hashed(y) FROM p").collect()
    seen = opened("on")
    seen.register_udf(udf(hashed, [pa.string()], pa.int64(), "volatile", "hashed"))
    with pytest.raises(bf.ExecutionError, match=rf"raised LookupError\('no record of {SECRET}'\)$"):
        seen.sql("SELECT hashed(y) FROM p").collect()
    shown = bf.connect(bf.ScriptedModel(model), cache=None)
    shown.from_pydict({"y": [SECRET]}, name="p")
    with pytest.raises(LookupError, match=SECRET):
        shown.sql("SELECT llm_int('q', y) FROM p").collect()


def test_explain_analyze_shows_no_values_of_filters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.parquet"
    pa.parquet.write_table(pa.table({"y": [SECRET, "secret-2", "x"] * 3, "i": range(9)}), file)
    session = opened()
    session.register_parquet("r", str(file))
    for query in (
        "SELECT * FROM r JOIN p ON r.y = p.y WHERE r.i > 4",
        "SELECT * FROM r ORDER BY y LIMIT 1",
        "SELECT max(y) FROM r",
        "SELECT * FROM r JOIN p ON r.y = p.y WHERE llm_filter('Is it?', r.y) LIMIT 2",
    ):
        session.sql(query).explain(analyze=True)
        shown = capsys.readouterr().out + str(session.sql(f"EXPLAIN ANALYZE {query}").to_pylist())
        assert "metrics=" in shown or "llm_filter" in shown
        assert "secret" not in shown


def test_parameters_are_values_in_plans_errors_and_pages() -> None:
    query = "SELECT y FROM p WHERE y <> $v AND llm_filter('Is it?', y)"
    session = opened()
    frame = session.sql(query, param_values={"v": "parameter-4711"})
    frame.collect()
    shown = [frame.explain_text(), frame.explain_text(analyze=True), frame.trace.to_html()]
    shown += [frame.trace._repr_html_(), session.sql("SELECT $v", v=f"'{SECRET}'").explain_text()]
    for text in shown:
        assert "4711" not in text
    assert (
        "parameter-4711"
        in opened("on").sql(query, param_values={"v": "parameter-4711"}).explain_text()
    )


def test_what_a_function_says_of_a_value_is_withheld() -> None:
    def model(call: bf.Request) -> object:
        raise bf.ModelFailed(f"no record of {call.values[0]}")

    session = bf.connect(bf.ScriptedModel(model), cache=None, show_values="off")
    session.from_pydict({"y": [SECRET]}, name="p")
    with pytest.warns(bf.AnswerWarning) as warned:
        session.sql("SELECT llm_int('q', y) FROM p").collect()
    assert HIDDEN not in str(warned[0].message)
    assert HIDDEN not in fails(
        lambda: session.sql("SELECT llm_int('q', y, on_error => 'raise') FROM p").collect()
    )


def test_of_a_filter_its_place_and_what_was_measured_stay() -> None:
    plan = "SortExec: TopK(fetch=1), filter=[y@0 < a], metrics=[rows=1]\n  X, metrics=[rows=2]"
    assert without_filters(plan) == (
        "SortExec: TopK(fetch=1), filter=…, metrics=[rows=1]\n  X, metrics=[rows=2]"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Error during planning: No function 'f' takes Utf8", None),
        ("Arrow error: Cast error: Can't cast value 300 to type Int8", "Arrow error: Cast error: Can't cast value … to type Int8"),
        ("Overflow happened on: 12 * 3.5e7", "Overflow happened on: … * …"),
        ("index 7 is out of bounds: length 3", None),
        ("Parser error: Error while parsing value 'a, 'b'' as type 'Int64' for column 1 at line 3. Row data: '[a,b]'", "Parser error: Error while parsing value …, ……  as type 'Int64' for column 1 at line 3. Row data: …"),
        ("map key must be unique, duplicate key found: Ann Lee", "map key must be unique, duplicate key found: …"),
        ("External error: ValueError: no Ann here", "External error: …: no …"),
    ],
)  # fmt: skip
def test_words_types_names_and_bounds_stay(text: str, shown: str | None) -> None:
    got = foreign(text, Redaction("off"))
    if shown is None:
        assert got == text
    else:
        assert "Ann" not in got
        assert got.split()[0] == shown.split()[0]
    assert foreign(text, Redaction("on")) == text


def test_redact_sees_what_may_be_a_value_without_quotes() -> None:
    said = foreign("duplicate key found: Ann, 4711", Redaction("on", lambda text: f"<{text}>"))
    assert said == "duplicate key found: <Ann>, <4711>"
