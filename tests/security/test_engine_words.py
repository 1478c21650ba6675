"""Messages of DataFusion and Arrow where values are withheld: they keep their own words, and no value
of the data is left. Each line provokes an error over a row whose values are secret."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import process_time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf
from blendfusion import redaction as redactions
from blendfusion.datafusion import columns, error_gate, error_translation, foreign_words
from blendfusion.datafusion.foreign_words import foreign
from blendfusion.language.query_text.clause_places import clause_place
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.models.services.verbalizer import label_words
from blendfusion.redaction import Redaction
from blendfusion.run.reports import answer_warnings
from blendfusion.services.documents import margins

SECRETS: dict[str, object] = {
    "y": "merge field zqvalue equal 4711 table",
    "w": "zqword",
    "q": "it's zq 4711's",
    "i": 4711474747,
    "big": 9223372036854774711,
    "small": -9223372036854771097,
    "f": 4711.4747e300,
    "neg": -4711.5,
    "z": 0,
    "p": "zq(4711[",
    "n": "4711zq",
    "d": "2024-47-11",
    "l": [4711, 4712],
    "b": b"\xff\xfe4711",
}
VALUE = re.compile(r"4711|zq|9223372036854775808")
"""What only values have."""

TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "TINYINT UNSIGNED", "INT UNSIGNED"),
    *("BIGINT UNSIGNED", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,10)", "DATE", "TIME"),
    *("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "SMALLINT UNSIGNED"),
)
NARROW = ("TINYINT", "SMALLINT", "INT", "TINYINT UNSIGNED", "SMALLINT UNSIGNED", "INT UNSIGNED")
ARROW = (
    *(
        "Int8",
        "Int16",
        "UInt8",
        "UInt16",
        "UInt64",
        "Float16",
        "Decimal128(3, 1)",
        "Decimal256(40, 2)",
        "Date32",
        "Date64",
    ),
    *("Time32(Second)", "Time64(Nanosecond)", "Timestamp(Nanosecond, None)", "Duration(Second)"),
    *("Interval(MonthDayNano)", "List(Int64)", "Dictionary(Int8, Int32)", "FixedSizeBinary(3)"),
)
EXPRESSIONS = """
to_timestamp(y); to_timestamp(q); to_timestamp(d); to_timestamp_millis(y); to_timestamp_seconds(y)
to_timestamp_micros(y); to_timestamp_nanos(y); to_date(y); to_date(q); to_unixtime(y)
date_trunc(w, now()); date_trunc('day', y); date_part(w, now()); make_date(2024, 47, 11)
make_date(CAST(i AS INT), 1, 1); make_date(2024, i, 1); date_bin(INTERVAL '0 days', now())
date_bin(CAST(y AS INTERVAL), now()); decode(y, 'base64'); decode(y, 'hex'); decode(y, w)
encode(y, w); decode(n, 'base64'); regexp_like(y, p); regexp_replace(y, p, 'a')
regexp_match(y, p); regexp_count(y, p); regexp_instr(y, p); regexp_like(y, 'a', w); y ~ p
lpad(y, i); chr(big); chr(-4711); chr(i); substr(y, 1, -4711); substr(y, 1, CAST(neg AS INT))
split_part(y, 'a', 0); left(y, small); overlay(y placing w from -1); big + big; big * i
small - big; i / z; i % z; -small; abs(small - 4711); factorial(i); power(i, i); power(big, 2)
gcd(small - 4711, 0); lcm(big, i); CAST(f AS DECIMAL(10,2)); CAST(i AS DECIMAL(5,0)) / z
CAST(big AS DECIMAL(38,0)) * CAST(big AS DECIMAL(38,0)) * i; sqrt(neg); digest(y, w)
arrow_cast(y, w); l[0]; l[big]; array_slice(l, 1, 2, 0); array_resize(l, small)
array_position(l, 4711, -4711); range(1, 10, z); generate_series(1, 10, 0)
generate_series(1, big, z); array_distance(l, [1]); array_sort(l, w); array_sort(l, 'DESC', w)
map([y, y], [1, 2]); map(['a', NULL], [1, 2]); named_struct(y, 1); struct(y)['nosuch']
CAST(q AS INTERVAL); now() + CAST(y AS INTERVAL); CAST(q AS INT); CAST(q AS DATE)
CAST(d AS TIMESTAMP); to_char(now(), y); CAST(b AS TEXT); arrow_cast(b, 'Utf8')
CAST(big AS TIMESTAMP); to_timestamp(big); to_timestamp(f); CAST(big AS DATE)
CASE WHEN y THEN 1 END; y + l; y - i; -y; y LIKE i; concat_ws(y); translate(y); initcap()
nth_value(y, y) OVER (); ntile(z) OVER (); sum(y); avg(y); approx_percentile_cont(i, 17)
approx_percentile_cont(i, y); array_agg(DISTINCT y ORDER BY i); bit_and(y); bool_and(i)
union_tag(y); version(y); isnan(y); bit_length(i); starts_with(l, y); uuid_bad(y)
unnest(y); greatest(y, l); coalesce(y, l); y IN (1, l); NOT y; y AND i; string_agg(l, y)
percentile_cont(17) WITHIN GROUP (ORDER BY i); sum(i) FILTER (WHERE y); lag(y, y) OVER ()
"""
STATEMENTS = """
SELECT (SELECT y FROM t UNION ALL SELECT y FROM t) FROM t; SELECT y FROM t WHERE y; SELECT * FROM nosuch
SELECT * FROM t WHERE i = (SELECT i FROM t UNION ALL SELECT 1); SELECT nosuch FROM t; SELECT y FROM t GROUP BY i
SELECT y FROM t UNION SELECT y, i FROM t; SELECT y FROM t UNION SELECT l FROM t; SELECT y FROM t ORDER BY 17
SELECT y FROM t LIMIT y; SELECT y FROM t LIMIT -1; VALUES (1, 2), (3); SELECT FROM WHERE; SELECT * FROM t JOIN t
INSERT INTO t SELECT y FROM t; DROP TABLE nosuch; SELECT $1; SELECT y FROM t WHERE i; SELECT y FROM t HAVING y
SET datafusion.execution.batch_size = 'many'; SET datafusion.no.batch_size = 17; EXECUTE nosuch(17)
SELECT row_number() OVER (PARTITION BY y ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM t; SHOW nosuch
SELECT sum(i) OVER (ORDER BY y RANGE BETWEEN 17 PRECEDING AND CURRENT ROW) FROM t; SELECT * FROM nosuch(17)
SELECT * EXCEPT (nosuch) FROM t; SELECT DISTINCT ON (y) i FROM t ORDER BY i; SELECT y, y FROM t a, t b
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a; EXPLAIN FORMAT nosuch SELECT 1; DESCRIBE nosuch
CREATE EXTERNAL TABLE e (a INT) STORED AS NOSUCH LOCATION '/nosuch'; CREATE TABLE t AS SELECT 1
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT y FROM r, t) SELECT * FROM r; TRUNCATE TABLE t
"""


def _queries() -> list[str]:
    casts = [f"CAST({c} AS {to})" for to in TYPES for c in ("y", "d", "n")]
    narrow = [f"CAST({c} AS {to})" for to in (*NARROW, "DECIMAL(5,2)") for c in ("i", "f", "neg")]
    arrow = [f"arrow_cast({c}, '{to}')" for to in ARROW for c in ("y", "i", "f")]
    others = [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()]
    statements = [e.strip() for e in STATEMENTS.replace("\n", ";").split(";") if e.strip()]
    return [*(f"SELECT {e} FROM t" for e in (*casts, *narrow, *arrow, *others)), *statements]


@cache
def _session(show: str) -> bf.Session:
    model = bf.ScriptedModel(lambda call: call.constraint.kind == "boolean" or 1)
    session = bf.connect(model, cache=None, progress="off", show_values=show)  # type: ignore[arg-type]
    session.from_pydict({name: [value] for name, value in SECRETS.items()}, "t")
    return session


def _message(show: str, query: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _session(show).sql(query).to_pylist()
    except bf.BlendFusionError as error:
        return error.message
    return None


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[A-Za-z]+(?:_[a-z]+)*", text))


VALUE_WORDS = {
    *(word for value in SECRETS.values() for word in _words(str(value))),
}


@pytest.mark.long
def test_messages_keep_their_words_and_lose_the_values() -> None:
    kinds = set()
    problems = []
    for query in _queries():
        whole = _message("on", query)
        if whole is None:
            continue
        shown = _message("off", query)
        assert shown is not None, query
        kinds.add(shown)
        lost = [
            word
            for word in _words(whole) - _words(shown)
            if len(word) > 1 and word not in VALUE_WORDS
        ]
        own = set(query.split())
        if lost or any(VALUE.search(t) for t in shown.split() if not own & {t, t.strip("'()")}):
            problems.append((query, whole, shown, lost))
    assert not problems, "\n".join(map(repr, problems))
    assert len(kinds) >= 150


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Schema error: Fail to merge schema field 'id' because the from data_type = Int64 does "
            "not equal Int32",
            "Schema error: Fail to merge schema field 'id' because the from data_type = Int64 does "
            "not equal Int32",
        ),
        (
            "called `Option::unwrap()` on a `None` value",
            "called `Option::unwrap()` on a `None` value",
        ),
        (
            "Arrow error: Cannot yet unify dictionaries with nulls",
            "Arrow error: Cannot yet unify dictionaries with nulls",
        ),
        ("map key must be unique, duplicate key found: equal field\nnext line", None),
        ("Cannot cast string 'it's 4711's' to value of Int32 type", None),
        ("array_element got invalid index: 4711", "array_element got invalid index: …"),
        ("lpad requested length 4711 too large, maximum allowed length is 9", None),
        ("found Int64Array at line 3 of the file", "found Int64Array at line 3 of the file"),
    ],
)
def test_words_of_messages_stay(text: str, shown: str | None) -> None:
    found = foreign(text, Redaction("off"))
    if shown is not None:
        assert found == shown
    assert "4711" not in found
    assert "equal field" not in found


def _read(session: bf.Session, folder: Path) -> None:
    session.register_parquet("t", str(folder))
    session.sql("SELECT * FROM t").to_pylist()


def test_types_that_do_not_fit_in_a_folder_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"id": pa.array(["x"])}), tmp_path / "2.parquet")
    said = []
    for show in ("on", "off"):
        session = bf.connect(bf.ScriptedModel(lambda call: 1), cache=None, show_values=show)  # type: ignore[arg-type]
        with pytest.raises(bf.BlendFusionError) as failed:
            _read(session, tmp_path)
        said.append(failed.value.message)
    assert said[0] == said[1]


def _all(pattern: re.Pattern[str]) -> Callable[[str], object]:
    return lambda text: [*pattern.finditer(text)]


SEARCHES: dict[str, Callable[[str], object]] = {
    "token": _all(foreign_words._TOKEN),
    "report": _all(foreign_words._REPORT),
    "quoted": _all(redactions._QUOTED),
    "own": _all(answer_warnings._OWN),
    "message": error_gate._MESSAGE.fullmatch,
    "last": columns.column_of,
    "line": _all(error_translation._QUOTED_LINE),
    "file": _all(error_translation._BARE_FILE),
    "call": error_translation._CALL.fullmatch,
    "between": _all(label_words._BETWEEN),
    "page": margins._PAGE.fullmatch,
    "roman": margins._ROMAN.fullmatch,
}
"""The patterns that are searched in long texts, or have to fit them, as the code does."""
PUMPS = (
    *(
        ".",
        "a",
        "_",
        " ",
        "'",
        '"',
        "/",
        "-",
        "1,",
        "1.",
        "a.",
        "a-",
        "\\'",
        '\\"',
        "' ",
        " '",
        "a(",
    ),
    *(
        "('",
        "I(",
        "Int8(",
        ", ",
        "a b",
        "\n",
        ".\n",
        "1e5",
        "p.",
        "#",
        " - ",
        "\\",
        "`",
        "''",
        '""',
    ),
)
LONG = 60_000


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("pump", PUMPS)
def test_a_pattern_takes_linear_time(name: str, pump: str) -> None:
    for end in ("", "x", "'"):
        text = (pump * (LONG // len(pump))) + end
        start = process_time()
        SEARCHES[name](text)
        assert process_time() - start < 1, f"{len(text)} characters"


@pytest.mark.parametrize("show", ["on", "auto", "off"])
@pytest.mark.parametrize("pump", [".", "a", "_", "a.", "1,", "\\'", "' ", '" ', "/", "é"])
def test_an_error_about_a_long_value_takes_little_time(pump: str, show: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: 1), cache=None, show_values=show)  # type: ignore[arg-type]
    session.from_pydict({"y": [pump * (40_000 // len(pump))]}, "p")
    for query in ("SELECT cast(y AS int) FROM p", "SELECT to_timestamp(y) FROM p"):
        start = process_time()
        with pytest.raises(bf.BlendFusionError):
            session.sql(query).to_pylist()
        assert process_time() - start < 1


def test_a_place_is_found_at_the_start_of_a_long_message() -> None:
    start = process_time()
    for pump in ("a", "_", "ab "):
        assert clause_place(pump * 40_000, Reader("SELECT 1")) is None
    assert process_time() - start < 1
