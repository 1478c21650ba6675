"""A session over a context that its user made."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from datafusion import SessionConfig, SessionContext, udaf, udf, udtf
from datafusion.catalog import Catalog, Schema, Table
from datafusion.object_store import LocalFileSystem
from datafusion.user_defined import Accumulator

import blendfusion as bf


def good(call: bf.Request) -> object:
    return "good" in str(call.values[0])


@pytest.fixture
def context() -> SessionContext:
    made = SessionContext(SessionConfig().with_information_schema(True))
    made.from_pydict({"id": [1, 2], "text": ["good", "bad"]}, name="reviews")
    shout = udf(lambda x: pc.utf8_upper(x), [pa.string()], pa.string(), "immutable", "shout")
    made.register_udf(shout)
    return made


@pytest.fixture
def session(context: SessionContext) -> bf.Session:
    return bf.connect(bf.ScriptedModel(good), cache=None, ctx=context)


def test_tables_of_the_context_are_asked_about_with_the_planner(session: bf.Session) -> None:
    frame = session.sql("SELECT id FROM reviews WHERE llm_filter('Good?', text) AND id < 5")
    assert frame.to_pylist() == [{"id": 1}]
    assert frame.trace.usage.values == 2
    extracted = session.sql("SELECT llm_extract(text, 'a BOOLEAN, b BOOLEAN') AS x FROM reviews")
    assert "llm_extract" in extracted.explain_text()


def test_what_either_registers_the_other_has(context: SessionContext, session: bf.Session) -> None:
    context.from_pydict({"t": ["good"]}, name="later")
    session.from_pydict({"t": ["bad"]}, name="ours")
    assert session.sql("SELECT llm_bool('Good?', t) AS x FROM later").to_pylist() == [{"x": True}]
    assert context.table("ours").to_pydict() == {"t": ["bad"]}


def test_catalogs_schemas_and_object_stores_of_the_context(
    context: SessionContext, session: bf.Session, tmp_path: Path
) -> None:
    shop = Catalog.memory_catalog()
    context.register_catalog_provider("shop", shop)
    shop.register_schema("eu", Schema.memory_schema())
    shop.schema("eu").register_table("mails", Table(context.table("reviews").into_view()))
    found = session.sql("SELECT id FROM shop.eu.mails WHERE llm_filter('Good?', text)")
    assert found.to_pylist() == [{"id": 1}]

    pyarrow.csv.write_csv(pa.table({"text": ["good", "bad"]}), tmp_path / "a.csv")
    context.register_object_store("file://", LocalFileSystem(), None)
    context.sql(f"CREATE EXTERNAL TABLE stored STORED AS CSV LOCATION 'file://{tmp_path}/a.csv'")
    stored = session.sql("SELECT text FROM stored WHERE llm_filter('Good?', text)")
    assert stored.to_pylist() == [{"text": "good"}]


class Longest(Accumulator):
    def __init__(self) -> None:
        self.found = 0

    def state(self) -> list[pa.Scalar]:
        return [pa.scalar(self.found)]

    def update(self, *values: pa.Array) -> None:
        self.found = max([self.found, *pc.utf8_length(values[0]).to_pylist()])

    def merge(self, states: list[pa.Array]) -> None:
        self.found = max([self.found, *states[0].to_pylist()])

    def evaluate(self) -> pa.Scalar:
        return pa.scalar(self.found)


def test_functions_of_the_context_also_between_two_calls(
    context: SessionContext, session: bf.Session
) -> None:
    """Between two calls, the functions run in a context of the session's."""
    query = (
        "SELECT id FROM reviews WHERE shout(llm_text('What?', text)) = 'X' "
        "AND llm_filter('Good?', shout(text))"
    )
    model = bf.ScriptedModel(
        lambda call: call.values[0] == "GOOD" if call.constraint.kind == "boolean" else "x"
    )
    over = bf.connect(model, cache=None, ctx=context)
    assert over.sql(query).to_pylist() == [{"id": 1}]
    longest = udaf(Longest, pa.string(), pa.int64(), [pa.int64()], "stable", name="longest")
    context.register_udaf(longest)
    counted = over.sql("SELECT longest(text) AS n FROM reviews WHERE llm_filter('G?', shout(text))")
    assert counted.to_pylist() == [{"n": 4}]


def test_a_context_with_registered_functions_gets_the_whole_ones(context: SessionContext) -> None:
    bf.register(context, bf.ScriptedModel(lambda call: False), cache=None)
    session = bf.connect(bf.ScriptedModel(good), cache=None, ctx=context)
    query = "SELECT id FROM reviews WHERE llm_filter('Good?', text, id, confidence => 0.5)"
    assert "ask llm_filter" in session.sql(query).explain_text()


def test_the_newest_session_has_the_context(context: SessionContext) -> None:
    first = bf.connect(bf.ScriptedModel(good), cache=None, ctx=context)
    frame = first.sql("SELECT id FROM reviews WHERE llm_filter('Good?', text)")
    second = bf.connect(bf.ScriptedModel(lambda call: False), cache=None, ctx=context)
    assert second.sql("SELECT id FROM reviews WHERE llm_filter('Good?', text)").to_pylist() == []
    for action in (partial(first.sql, "SELECT 1"), frame.to_pylist):
        with pytest.raises(bf.QueryError, match="another session was opened"):
            action()
    del action, first, frame, second
    gc.collect()
    third = bf.connect(bf.ScriptedModel(good), cache=None, ctx=context)
    found = third.sql("SELECT id FROM reviews WHERE llm_filter('Good?', text)")
    assert found.to_pylist() == [{"id": 1}]


def test_read_only_refuses_table_functions_of_the_context(context: SessionContext) -> None:
    calls = []

    def rows() -> Table:
        calls.append(1)
        return Table(context.table("reviews").into_view())

    context.register_udtf(udtf(rows, "anything"))
    for config in (True, False):
        context.sql(f"SET datafusion.catalog.information_schema = {str(config).lower()}")
        session = bf.connect(bf.ScriptedModel(good), cache=None, ctx=context, read_only=True)
        with pytest.raises(bf.QueryError, match="read-only: anything"):
            session.sql("SELECT * FROM anything()")
        assert session.sql("SELECT count(*) AS n FROM reviews").to_pylist() == [{"n": 2}]
    assert not calls


def test_read_only_refuses_a_context_that_reads_paths(
    context: SessionContext, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    pyarrow.csv.write_csv(pa.table({"text": ["good", "bad"]}), file)
    session = bf.connect(bf.ScriptedModel(good), cache=None, ctx=context.enable_url_table())
    query = f"SELECT text FROM '{file}' WHERE llm_filter('Good?', text)"
    assert session.sql(query).to_pylist() == [{"text": "good"}]
    with pytest.raises(bf.QueryError, match="reads files by their paths"):
        session.sql(query, read_only=True)


def test_what_is_no_context_is_an_error(context: SessionContext, session: bf.Session) -> None:
    model = bf.ScriptedModel(good)
    with pytest.raises(bf.OptionError, match="not ScriptedModel"):
        bf.connect(ctx=model)  # type: ignore[arg-type]
    with pytest.raises(bf.OptionError, match="a session of BlendFusion already"):
        bf.connect(model, ctx=session)
    with pytest.raises(bf.OptionError, match="has its config"):
        bf.connect(model, ctx=context, config=SessionConfig())
    with pytest.raises(bf.OptionError, match="a DataFusion context is no model"):
        bf.connect(context)  # type: ignore[arg-type]
