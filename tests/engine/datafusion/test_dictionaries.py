"""Columns of dictionaries give the rows, and ask the questions, of the same columns without."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from amounts import long_after
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf
from blendfusion.datafusion.arrow_layouts import convert, plain_type

VALUES: dict[pa.DataType, list[Any]] = {
    pa.string(): ["a", "b", "c"],
    pa.large_string(): ["a", "b", "c"],
    pa.string_view(): ["a", "b", "c"],
    pa.int8(): [1, 2, 3],
    pa.int64(): [1, 2, 3],
    pa.uint64(): [1, 2, 3],
    pa.float64(): [1.5, 2.5, 3.5],
    pa.bool_(): [True, False, True],
    pa.date32(): [datetime.date(2020, 1, day) for day in (1, 2, 3)],
    pa.timestamp("us"): [datetime.datetime(2020, 1, day) for day in (1, 2, 3)],
    pa.decimal128(6, 2): [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")],
    pa.binary(): [b"a", b"b", b"c"],
}
INDEXES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
]
CODES = [0, None, 1, 0, 2, 1, None, 0]
OTHER = [0, 1, 3]
"""The rows of ``t`` whose values ``u`` has."""
REFUSED = "which DataFusion cannot read from Parquet"


def by_index(kind: pa.DataType, index: pa.DataType) -> pa.Array:
    """NULL is a missing code, as in pandas' categories."""
    return pa.DictionaryArray.from_arrays(pa.array(CODES, index), pa.array(VALUES[kind], kind))


def by_value(kind: pa.DataType, index: pa.DataType) -> pa.Array:
    """NULL is one of the values."""
    codes = [3 if code is None else code for code in CODES]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, index), pa.array([*VALUES[kind], None], kind)
    )


def by_two_codes(kind: pa.DataType, index: pa.DataType) -> pa.Array:
    """A value has two codes."""
    codes = [4 if code == 0 and row else code for row, code in enumerate(CODES)]
    values = pa.array([*VALUES[kind], None, VALUES[kind][0]], kind)
    return pa.DictionaryArray.from_arrays(pa.array(codes, index), values)


FORMS = [by_index, by_value, by_two_codes]
QUERIES = [
    "SELECT DISTINCT x FROM t WHERE llm_filter('q', k)",
    "SELECT x, max(id) AS m, count(*) AS n FROM t WHERE llm_filter('q', k) GROUP BY x",
    "SELECT x, count(*) AS n FROM t WHERE llm_filter('q', k) GROUP BY ROLLUP (x)",
    "SELECT count(DISTINCT x) AS c, count(x) AS d FROM t WHERE llm_filter('q', k)",
    "SELECT DISTINCT ON (x) x, id FROM t WHERE llm_filter('q', k) ORDER BY x, id",
    "SELECT DISTINCT t.x, u.x AS y FROM t, u WHERE llm_filter('q', t.k) AND t.id < u.id",
    "SELECT x FROM t WHERE llm_filter('q', k) UNION SELECT x FROM u",
    "SELECT x, llm_text('z', k) AS z FROM t UNION ALL SELECT x, 'b' FROM u",
    "SELECT x FROM t WHERE llm_filter('q', k) EXCEPT SELECT x FROM u",
    "SELECT x FROM t WHERE llm_filter('q', k) EXCEPT ALL SELECT x FROM u",
    "SELECT x FROM t WHERE llm_filter('q', k) INTERSECT SELECT x FROM u",
    "SELECT x, id FROM t WHERE llm_filter('q', k) "
    "QUALIFY row_number() OVER (PARTITION BY x ORDER BY id) = 1",
    "SELECT t.id, u.id AS j FROM t JOIN u ON t.x = u.x WHERE llm_filter('q', t.k)",
    "SELECT t.id, u.id AS j, u.x FROM t LEFT JOIN u ON t.x = u.x AND llm_filter('q', u.k)",
    "SELECT t.x AS a, u.x AS b FROM t FULL JOIN u ON t.x = u.x AND llm_filter('q', u.k)",
    "SELECT id FROM t WHERE x IN (SELECT x FROM u WHERE llm_filter('q', k))",
    "SELECT id FROM t WHERE x NOT IN (SELECT x FROM u WHERE x IS NOT NULL AND llm_filter('q', k))",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.x AND llm_filter('q', u.k))",
    "SELECT id FROM t WHERE x IS NULL AND llm_filter('q', k)",
    "SELECT id, CASE WHEN llm_filter('q', k) THEN x END AS y FROM t",
    "SELECT x, id FROM t WHERE llm_filter('q', k) ORDER BY x DESC NULLS LAST, id LIMIT 4",
    "SELECT min(x) AS a, max(x) AS b, first_value(x ORDER BY id) AS c FROM t "
    "WHERE llm_filter('q', k)",
    "SELECT min(x) AS a, max(x) AS b FROM t WHERE llm_filter('q', k)",
    "SELECT id, lag(x) OVER (ORDER BY id) AS y FROM t WHERE llm_filter('q', k)",
    "SELECT array_agg(x ORDER BY id) AS y FROM t WHERE llm_filter('q', k)",
    "SELECT DISTINCT length(CAST(x AS VARCHAR)) AS n FROM t WHERE llm_filter('q', k)",
    "SELECT x, llm_text('z', x) AS z FROM t",
    "SELECT id FROM t WHERE llm_filter('f', x)",
    "SELECT x, llm_qa('z', k ORDER BY id) AS z FROM t GROUP BY x",
    "SELECT llm_qa('z', CAST(x AS VARCHAR) ORDER BY id) AS z FROM t",
]
PARTS = range(4)


def tables(column: pa.Array) -> dict[str, pa.Table]:
    t = {"id": pa.array(range(8)), "k": pa.array(list("abcdefgh")), "x": column}
    u = {"id": pa.array([5, 6, 7]), "k": pa.array(["a", "b", "c"]), "x": column.take(OTHER)}
    return {"t": pa.table(t), "u": pa.table(u)}


def session_of(given: dict[str, pa.Table], folder: Path | None = None) -> Counted:
    """A session over tables, in files of a folder if there is one."""
    db = Counted(hashed)
    for name, table in given.items():
        if folder is None:
            db.session.from_arrow(table, name=name)
        else:
            pq.write_table(table, folder / f"{name}.parquet")
            db.session.register_parquet(name, folder / f"{name}.parquet")
    return db


def outcome(db: Counted, query: str) -> tuple[list[tuple[object, ...]], int]:
    """The rows of a query, whose types are those that its frame promises, and the number of values
    that it asks."""
    db.session.clear_cache()
    frame = db.session.sql(query)
    rows = frame.to_arrow_table()
    rows.validate(full=True)
    assert rows.schema.types == frame.schema().types
    return unordered(tuples(rows)), frame.trace.usage.values


def decoded(kind: pa.DataType) -> pa.Array:
    """The same column without a dictionary."""
    values = [None if code is None else VALUES[kind][code] for code in CODES]
    return pa.array(values, plain_type(kind))


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("part", long_after(1, PARTS))
def test_every_clause(kind: pa.DataType, part: int) -> None:
    """Each clause meets each type of indexes and each form with some type of values. The clauses of
    the first part differ from type to type."""
    plain = session_of(tables(decoded(kind)))
    first = (part + [*VALUES].index(kind)) % len(PARTS)
    for number, query in list(enumerate(QUERIES))[first :: len(PARTS)]:
        place = number + [*VALUES].index(kind)
        index, form = INDEXES[place % len(INDEXES)], FORMS[place % len(FORMS)]
        found = outcome(session_of(tables(form(kind, index))), query)
        assert found == outcome(plain, query), (query, index, form)


@pytest.mark.parametrize("kind", [k for k in VALUES if k != pa.string_view()], ids=str)
def test_parquet(kind: pa.DataType, tmp_path: Path) -> None:
    """DataFusion cannot read some of them: they are refused when they are registered."""
    given = tables(by_index(kind, pa.int8()))
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        with pytest.raises(bf.QueryError, match=REFUSED) as error:
            session_of(given, tmp_path)
        assert "from_arrow" in (error.value.hint or "")
        return
    db, plain = session_of(given, tmp_path), session_of(tables(decoded(kind)))
    for query in QUERIES[[*VALUES].index(kind) % 3 :: 3]:
        assert outcome(db, query) == outcome(plain, query), query


def test_a_refused_file_is_no_table(tmp_path: Path) -> None:
    pq.write_table(tables(by_index(pa.bool_(), pa.int8()))["t"], tmp_path / "t.parquet")
    session = bf.connect(bf.ScriptedModel(hashed))
    with pytest.raises(bf.QueryError, match=REFUSED):
        session.register_parquet("t", tmp_path / "t.parquet")
    with pytest.raises(bf.QueryError, match=REFUSED):
        session.read_parquet(tmp_path / "t.parquet")
    assert not session.table_exist("t")


@pytest.mark.parametrize("chunk_rows", [1, 2, 1000])
def test_batches_of_other_dictionaries(chunk_rows: int) -> None:
    """The code of a value differs from batch to batch; some batches hold a NULL among theirs."""
    parts = [
        pa.array(["b", "a"]).dictionary_encode(),
        pa.array(["a", None]).dictionary_encode(null_encoding="encode"),
        pa.array([None, "b"]).dictionary_encode(),
        pa.array(["c", "a"]).dictionary_encode(),
    ]
    texts = pa.chunked_array([part.cast(pa.string()) for part in parts])
    others = {"id": pa.array(range(8)), "k": pa.array(list("abcdefgh"))}
    for query in QUERIES:
        found = []
        for column in (pa.chunked_array(parts), texts):
            db = Counted(hashed, chunk_rows=chunk_rows)
            table = pa.table({**others, "x": column})
            for name, rows in (("t", table), ("u", table.slice(5))):
                db.session.from_arrow(rows, name=name)
            found.append(outcome(db, query))
        assert found[0] == found[1], query


def test_pandas_and_polars() -> None:
    """Categories of pandas and Polars' Categorical and Enum are such columns."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = {"id": [*range(8)], "k": [*"abcdefgh"], "x": ["b", None, "a", "b", "a", "a", None, "c"]}
    frame = pandas.DataFrame(rows)
    texts = polars.DataFrame(rows)
    plain = session_of({"t": pa.table(rows), "u": pa.table(rows).slice(5)})
    kinds = [
        frame.assign(x=frame.x.astype("category")),
        frame.assign(x=pandas.Categorical(frame.x, ["c", "b", "a"], ordered=True)),
        texts.with_columns(polars.col("x").cast(polars.Categorical)),
        texts.with_columns(polars.col("x").cast(polars.Enum(["c", "b", "a"]))),
    ]
    for number, kind in enumerate(kinds):
        db = Counted(hashed)
        for name, some in (("t", kind), ("u", kind[5:])):
            register = db.session.from_polars if number > 1 else db.session.from_pandas
            register(some, name=name)
        for query in QUERIES[number::4]:
            assert outcome(db, query) == outcome(plain, query), (number, query)


def test_equal_values_ask_once() -> None:
    for form in FORMS:
        db = session_of(tables(form(pa.string(), pa.int8())))
        assert db.asked("SELECT llm_text('q', x) FROM t") == 3
        assert db.asked("SELECT id FROM t WHERE llm_filter('q', x) OR llm_filter('q', x)") == 3


def test_an_index_with_too_few_numbers() -> None:
    """A chunk may hold more values than one dictionary of its type; the type stays."""
    many = pa.array([f"v{i}" for i in range(100)]).dictionary_encode()
    more = pa.array([f"w{i}" for i in range(100)]).dictionary_encode()
    small = pa.dictionary(pa.int8(), pa.string())
    db = Counted(hashed)
    for name, column in (("a", many), ("b", more)):
        db.session.from_arrow(pa.table({"x": column.cast(small)}), name=name)
    frame = db.session.sql(
        "SELECT x, llm_text('q', x) AS y FROM a UNION ALL SELECT x, llm_text('q', x) FROM b"
    )
    rows = frame.to_arrow_table()
    rows.validate(full=True)
    assert rows.schema.field("x").type == frame.schema().field("x").type == small
    assert sorted(rows["x"].to_pylist()) == sorted([*many.to_pylist(), *more.to_pylist()])


NESTED: dict[pa.DataType, Sequence[object]] = {
    pa.list_(pa.dictionary(pa.int8(), pa.int64())): [[1, None], None, [], [2]],
    pa.large_list(pa.dictionary(pa.uint8(), pa.string())): [["a"], None, ["b", None]],
    pa.list_(pa.dictionary(pa.int32(), pa.string_view())): [["a", "a"], None, [None]],
    pa.struct(
        [
            ("a", pa.dictionary(pa.int8(), pa.date32())),
            ("b", pa.list_(pa.dictionary(pa.int16(), pa.float64()))),
        ]
    ): [{"a": datetime.date(2020, 1, 1), "b": [1.5]}, None, {"a": None, "b": None}],
    pa.dictionary(pa.int8(), pa.list_(pa.string())): [["a"], None, ["a"], []],
}


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_dictionaries_inside_and_of_other_types(kind: pa.DataType) -> None:
    whole = pa.array(NESTED[kind], plain_type(kind))
    for part in (whole, whole[1:], whole[:0]):
        made = convert(pa.chunked_array([part]), kind)
        made.validate(full=True)
        assert made.type == kind
        assert made.to_pylist() == part.to_pylist()
