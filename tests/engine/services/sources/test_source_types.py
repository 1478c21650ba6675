"""The common types of each database arrive as themselves: values, extremes, zones and NULL."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from attached import KINDS, opened
from mysql_server import connected

import blendfusion as bf

Case = tuple[str, str, str, Any]
"""A type, a value as SQL, the type here, and the value."""

UUID = "00000000-0000-0000-0000-000000000001"
LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
NINE = datetime.datetime(2024, 1, 31, 8, tzinfo=datetime.UTC)
CASES: dict[str, list[Case]] = {
    "sqlite": [
        ("INTEGER", str(2**63 - 1), "int64", 2**63 - 1),
        ("BIGINT", str(-(2**63)), "int64", -(2**63)),
        ("SMALLINT", "7", "int64", 7),
        ("", "7", "int64", 7),
        ("REAL", "1e308", "double", 1e308),
        ("FLOAT", "1", "double", 1.0),
        ("NUMERIC(10,2)", "12.34", "double", 12.34),
        ("DECIMAL(10,2)", "12.34", "decimal128(10, 2)", Decimal("12.34")),
        ("BOOLEAN", "1", "bool", True),
        ("TEXT", "'é'", "string", "é"),
        ("NVARCHAR(5)", "''", "string", ""),
        ("CLOB", "'x'", "string", "x"),
        ("JSON", "'{\"a\": 1}'", "string", '{"a": 1}'),
        ("UUID", f"'{UUID}'", "string", UUID),
        ("TIME", "'10:00:00'", "string", "10:00:00"),
        ("BLOB", "x'00ff'", "binary", b"\x00\xff"),
        ("DATE", "'0001-01-01'", "date32[day]", datetime.date(1, 1, 1)),
        ("DATE", "'9999-12-31'", "date32[day]", datetime.date(9999, 12, 31)),
        ("DATETIME", "'9999-12-31 23:59:59.999999'", "timestamp[us]", LAST),
        ("DATETIME", "'0001-01-01 00:00:00'", "timestamp[us]", datetime.datetime(1, 1, 1)),
        ("DATETIME", "'2024-01-31T10:00:00'", "timestamp[us]", datetime.datetime(2024, 1, 31, 10)),
        ("TIMESTAMP WITH TIME ZONE", "'2024-01-31 08:00:00+00:00'", "timestamp[us, tz=UTC]", NINE),
    ],
    "duckdb": [
        ("HUGEINT", str(10**38 - 1), "decimal128(38, 0)", Decimal(10**38 - 1)),
        ("HUGEINT", str(10**38), "decimal256(39, 0)", Decimal(10**38)),
        ("HUGEINT", str(2**127 - 1), "decimal256(39, 0)", Decimal(2**127 - 1)),
        ("HUGEINT", str(1 - 2**127), "decimal256(39, 0)", Decimal(1 - 2**127)),
        ("UHUGEINT", str(2**128 - 1), "decimal256(39, 0)", Decimal(2**128 - 1)),
        ("UBIGINT", str(2**64 - 1), "uint64", 2**64 - 1),
        ("TINYINT", "-128", "int8", -128),
        ("DECIMAL(38,10)", "1.5", "decimal128(38, 10)", Decimal("1.5")),
        ("FLOAT", "'-inf'", "float", float("-inf")),
        ("BIGNUM", "123456789012345678901234567890", "string", "123456789012345678901234567890"),
        ("DATE", "DATE '0001-01-01'", "date32[day]", datetime.date(1, 1, 1)),
        ("TIMESTAMP", "'9999-12-31 23:59:59.999999'", "timestamp[us]", LAST),
        (
            "TIMESTAMP_S",
            "'2024-01-31 10:00:00'",
            "timestamp[s]",
            datetime.datetime(2024, 1, 31, 10),
        ),
        ("TIMESTAMPTZ", "'2024-01-31 10:00:00+02'", "timestamp[us, tz=UTC]", NINE),
        ("TIME", "'23:59:59.999999'", "time64[us]", datetime.time(23, 59, 59, 999999)),
        ("TIMETZ", "'10:00:00+02'", "string", "10:00:00+02"),
        ("STRUCT(t TIMETZ)", "{'t': '10:00:00+02'}", "struct<t: string>", {"t": "10:00:00+02"}),
        ("TIMETZ[]", "['10:00:00+02']", "list<l: string>", ["10:00:00+02"]),
        ("INTEGER[]", "[1, NULL]", "list<l: int32>", [1, None]),
        ("INTEGER[2]", "[1, NULL]", "fixed_size_list<: int32>[2]", [1, None]),
        ("MAP(VARCHAR, INTEGER)", "MAP {'a': 1}", "map<string, int32>", [("a", 1)]),
        ("UUID", f"'{UUID}'", "string", UUID),
        ("UUID[]", f"['{UUID}']", "list<l: string>", [UUID]),
        ("JSON", "'{\"a\": 1}'", "string", '{"a": 1}'),
        ("BIT", "'101'", "string", "101"),
        ("BLOB", "'\\x00\\xFF'::BLOB", "binary", b"\x00\xff"),
        ("ENUM('a', 'b')", "'b'", "string", "b"),
        ("UNION(n INTEGER, s VARCHAR)", "1", "string", "1"),
    ],
    "postgresql": [
        ("smallint", "-32768", "int16", -(2**15)),
        ("bigint", str(-(2**63)), "int64", -(2**63)),
        ("numeric(10,2)", "-1.25", "decimal128(10, 2)", Decimal("-1.25")),
        ("numeric", "1e40", "decimal256(41, 0)", Decimal(10**40)),
        ("numeric", "'Infinity'", "double", float("inf")),
        ("real", "'-Infinity'", "float", float("-inf")),
        ("boolean", "false", "bool", False),
        ("char(5)", "'ab'", "string", "ab"),
        ("date", "'0001-01-01'", "date32[day]", datetime.date(1, 1, 1)),
        ("timestamp", "'9999-12-31 23:59:59.999999'", "timestamp[us]", LAST),
        ("timestamptz", "'2024-01-31 10:00:00+02'", "timestamp[us, tz=UTC]", NINE),
        ("time", "'23:59:59.999999'", "time64[us]", datetime.time(23, 59, 59, 999999)),
        ("timetz", "'10:00:00+02'", "string", "10:00:00+02"),
        ("bytea", "'\\x00ff'", "binary", b"\x00\xff"),
        ("uuid", f"'{UUID}'", "string", UUID),
        ("jsonb", "'{\"a\": 1}'", "string", '{"a": 1}'),
        ("bit(3)", "B'101'", "string", "101"),
        ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
        ("int4range", "'[1,5)'", "string", "[1,5)"),
        ("int[]", "'{1,NULL}'", "list<item: int32>", [1, None]),
        ("int[]", "'{{1,2},{3,NULL}}'", "string", "{{1,2},{3,NULL}}"),
        ("numeric[]", "'{1.5,NULL}'", "list<item: string>", ["1.5", None]),
        ("uuid[]", f"'{{{UUID}}}'", "list<item: string>", [UUID]),
        ("timestamptz[]", "'{2024-01-31 10:00+02}'", "list<item: timestamp[us, tz=UTC]>", [NINE]),
    ],
    "mysql": [
        ("TINYINT", "-128", "int8", -128),
        ("SMALLINT UNSIGNED", "65535", "uint16", 65535),
        ("MEDIUMINT", "-8388608", "int32", -8388608),
        ("INT UNSIGNED", str(2**32 - 1), "uint32", 2**32 - 1),
        ("BIGINT", str(-(2**63)), "int64", -(2**63)),
        ("BIGINT UNSIGNED", str(2**64 - 1), "uint64", 2**64 - 1),
        ("DECIMAL(65,30)", "1.5", "decimal256(65, 30)", Decimal("1.5")),
        ("DOUBLE", "1e308", "double", 1e308),
        ("BOOLEAN", "1", "bool", True),
        ("BIT(8)", "b'101'", "binary", b"\x05"),
        ("CHAR(5)", "'ab'", "string", "ab"),
        ("LONGTEXT", "'é'", "string", "é"),
        ("BINARY(3)", "x'0001'", "binary", b"\x00\x01\x00"),
        ("LONGBLOB", "x'00ff'", "binary", b"\x00\xff"),
        ("DATE", "'9999-12-31'", "date32[day]", datetime.date(9999, 12, 31)),
        ("DATE", "'0000-00-00'", "date32[day]", None),
        ("DATETIME(6)", "'9999-12-31 23:59:59.999999'", "timestamp[us]", LAST),
        ("TIME(6)", "'23:59:59.999999'", "time64[us]", datetime.time(23, 59, 59, 999999)),
        ("TIME", "'-10:00:00'", "string", "-10:00:00"),
        ("YEAR", "1901", "int16", 1901),
        ("JSON", "'{\"a\": 1}'", "string", '{"a": 1}'),
        ("ENUM('a','b')", "'b'", "string", "b"),
        ("SET('a','b')", "'a,b'", "string", "a,b"),
        ("POINT", "POINT(1,2)", "string", "POINT(1 2)"),
    ],
}
INFINITE = {
    "duckdb": ["DATE", "TIMESTAMP", "TIMESTAMPTZ"],
    "postgresql": ["date", "timestamp", "timestamptz"],
}


def carry_out(kind: str, url: str, statements: Sequence[str]) -> None:
    if kind in ("sqlite", "duckdb"):
        module: Any = sqlite3 if kind == "sqlite" else duckdb
        with closing(module.connect(url.partition("///")[2])) as made:
            for statement in statements:
                made.execute(statement)
            made.commit()
    elif kind == "postgresql":
        import psycopg

        with psycopg.connect(url) as pg:
            for statement in statements:
                pg.execute(statement)  # type: ignore[call-overload,unused-ignore]
    else:
        with connected(url.partition("?")[0].rpartition("/")[2]) as one, one.cursor() as cursor:
            cursor.execute("SET sql_mode = ''")
            for statement in statements:
                cursor.execute(statement)
            one.commit()


@pytest.mark.parametrize("kind", list(CASES))
def test_values_arrive_as_themselves(kind: str, tmp_path: Path) -> None:
    url, statements = KINDS[kind](tmp_path), []
    for n, (name, value, _, _) in enumerate(CASES[kind]):
        statements.append(f"CREATE TABLE t{n} (c {name})")
        statements += [f"INSERT INTO t{n} VALUES ({one})" for one in (value, "NULL")]
    carry_out(kind, url, statements)
    session = opened(url)
    wrong = {}
    for n, (name, value, expected, here) in enumerate(CASES[kind]):
        found = session.sql(f"SELECT c FROM d.t{n}").to_arrow_table().column(0)
        values = found.to_pylist()
        text = f"{values[0]:f}" if isinstance(here, Decimal) else None
        cast = f"SELECT CAST(c AS VARCHAR) AS c FROM d.t{n}"
        is_text = text is None or session.sql(cast).to_pydict()["c"] == [text, None]
        if str(found.type) != expected or values != [here, None] or not is_text:
            wrong[name, value] = (str(found.type), values, is_text)
    assert wrong == {}


@pytest.mark.parametrize("kind", list(INFINITE))
@pytest.mark.parametrize("value", ["infinity", "-infinity"])
def test_an_infinite_day_is_an_error_that_names_its_column(
    kind: str, value: str, tmp_path: Path
) -> None:
    url, statements = KINDS[kind](tmp_path), []
    for name in INFINITE[kind]:
        statements.append(f"CREATE TABLE {name.lower()}s (c {name})")
        statements.append(f"INSERT INTO {name.lower()}s VALUES ('{value}'), ('2024-01-31')")
    carry_out(kind, url, statements)
    session = opened(url)
    for name in INFINITE[kind]:
        with pytest.raises(bf.QueryError, match="column 'c' holds infinity"):
            session.sql(f"SELECT c FROM d.{name.lower()}s").to_arrow_table()
