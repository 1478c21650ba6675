"""Files that come, change or go between two queries of one session: each query has the rows that a
session would have that registers them then, in whatever form the files are."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf

Rows = Sequence[tuple[int, str]]
Writer = Callable[[Rows], bytes]

QUERIES = (
    "SELECT * FROM t ORDER BY id",
    "SELECT count(*) AS n, max(id) AS most FROM t",
    "SELECT id, x FROM t WHERE llm_filter('q', CAST(x AS TEXT)) ORDER BY id DESC",
)


def comma(rows: Rows) -> bytes:
    return "".join(["id,x\n", *(f"{n},{x}\n" for n, x in rows)]).encode()


def other_order(rows: Rows) -> bytes:
    return "".join(["x,id\n", *(f"{x},{n}\n" for n, x in rows)]).encode()


def semicolon(rows: Rows) -> bytes:
    return "".join(["x;id\n", *(f'"{x}";{n}\n' for n, x in rows)]).encode()


def breaks(rows: Rows) -> bytes:
    return "".join(["id,x\n", *(f'{n},"{x}\n{x}"\n' for n, x in rows)]).encode()


def more_columns(rows: Rows) -> bytes:
    return "".join(["id,x,y\n", *(f"{n},{x},{n / 2}\n" for n, x in rows)]).encode()


def texts(rows: Rows) -> bytes:
    return "".join(["id,x\n", *(f"n{n},{x}\n" for n, x in rows)]).encode()


def latin(rows: Rows) -> bytes:
    return "".join(["id,x\n", *(f"{n},{x}é\n" for n, x in rows)]).encode("latin-1")


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps({"id": n, "x": x}) + "\n" for n, x in rows).encode()


def lines_of_kinds(rows: Rows) -> bytes:
    return "".join(json.dumps({"id": n, "x": [x, n][n % 2]}) + "\n" for n, x in rows).encode()


def parquet(rows: Rows, **more: Any) -> bytes:
    content = io.BytesIO()
    columns = {"id": [n for n, _ in rows], "x": [x for _, x in rows], **more}
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def numbers(rows: Rows) -> bytes:
    return parquet(rows, f=[float(n) for n, _ in rows])


def not_a_number(rows: Rows) -> bytes:
    return parquet(rows, f=[math.nan, *(float(n) for n, _ in rows[1:])])


KINDS: dict[str, tuple[str, Sequence[Writer]]] = {
    "csv": (
        ".csv",
        (comma, other_order, semicolon, breaks, more_columns, texts),
    ),
    "csv.gz": (".csv.gz", (lambda rows: gzip.compress(comma(rows)),)),
    "csv.bz2": (".csv.bz2", (lambda rows: bz2.compress(comma(rows)),)),
    "jsonl": (".jsonl", (lines, lines_of_kinds)),
    "json": (".json", (lambda rows: json.dumps([{"id": n, "x": x} for n, x in rows]).encode(),)),
    "parquet": (".parquet", (numbers, not_a_number, lambda rows: numbers(rows))),
}


def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: "b" not in call.values[0]), cache=None)


def found(session: bf.Session) -> list[str]:
    results = []
    for sql in QUERIES:
        try:
            results.append(str(session.sql(sql).to_pylist()))
        except bf.BlendFusionError as error:
            results.append(f"{type(error).__name__}: {error}")
    return [*results, str(session.table("t").sort("id").to_pylist())]


def check(old: bf.Session, place: str) -> None:
    new = session()
    new.register_file(place, "t")
    assert found(old) == found(new)


@pytest.mark.filterwarnings("ignore::blendfusion.FileWarning")
@pytest.mark.parametrize("door", ["folder", "pattern"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_a_folder_come_change_and_go(tmp_path: Path, kind: str, door: str) -> None:
    ending, writers = KINDS[kind]
    place = str(tmp_path) if door == "folder" else f"{tmp_path}/*{ending}"
    (tmp_path / f"0{ending}").write_bytes(writers[0]([(1, "a"), (2, "b")]))
    old = session()
    old.register_file(place, "t")
    check(old, place)
    for number, write in enumerate([*writers, writers[0]], 1):
        (tmp_path / f"{number}{ending}").write_bytes(write([(10 * number, "a"), (11, "c")]))
        check(old, place)
    for number, write in enumerate(writers):
        (tmp_path / f"{number}{ending}").write_bytes(write([(100 + number, "d")]))
        check(old, place)
    for number in range(len(writers)):
        (tmp_path / f"{number}{ending}").unlink()
        check(old, place)


@pytest.mark.filterwarnings("ignore::blendfusion.FileWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_replaced_by_one_of_another_form(tmp_path: Path, kind: str) -> None:
    ending, writers = KINDS[kind]
    place = tmp_path / f"t{ending}"
    place.write_bytes(writers[0]([(1, "a"), (2, "b")]))
    old = session()
    old.register_file(place, "t")
    for number, write in enumerate([*writers, writers[0]]):
        place.write_bytes(write([(number, "a"), (5, "b"), (7, "c")]))
        check(old, str(place))


def swapped(rows: Rows) -> bytes:
    return "".join(["id,n,x\n", *(f"{n},{n + 100},{x}\n" for n, x in rows)]).encode()


def swapped_back(rows: Rows) -> bytes:
    return "".join(["n,id,x\n", *(f"{n + 100},{n},{x}\n" for n, x in rows)]).encode()


def fractions(rows: Rows) -> bytes:
    return parquet(rows, n=[n + 0.5 for n, _ in rows])


def whole_numbers(rows: Rows) -> bytes:
    return parquet(rows, n=[n for n, _ in rows])


def other_case(rows: Rows) -> bytes:
    return parquet(rows, N=[n for n, _ in rows])


def with_note(rows: Rows) -> bytes:
    return b"# exported\n" + comma(rows)


def array(rows: Rows) -> bytes:
    return json.dumps([{"id": n, "x": x} for n, x in rows]).encode()


SHAPES: dict[str, tuple[Writer, ...]] = {
    ".csv": (swapped, swapped_back, comma, other_order, semicolon, more_columns, texts, with_note),
    ".json": (array, lines_of_kinds),
    ".parquet": (whole_numbers, fractions, other_case, parquet),
}
VIEWS = (
    "CREATE VIEW v AS SELECT * FROM t WHERE id IS NOT NULL",
    'CREATE VIEW "W" AS SELECT * FROM v',
    "CREATE VIEW asked AS SELECT v.*, llm_text('q', x) AS z FROM \"W\" AS v WHERE llm_filter('q', x)",
)


def rows_of(make: Callable[[], bf.Frame]) -> list[str]:
    """The rows in the order of their texts, each by the names of its columns."""
    try:
        return sorted(str(sorted(row.items())) for row in make().to_pylist())
    except bf.BlendFusionError:
        return ["an error"]


def over_files(place: Path) -> bf.Session:
    made = session()
    made.register_file(place, "t")
    for view in VIEWS:
        made.sql(view)
    return made


CHANGES = [
    (ending, first, second)
    for ending, writers in SHAPES.items()
    for first in writers
    for second in writers
]


@pytest.mark.filterwarnings("ignore::blendfusion.FileWarning")
@pytest.mark.parametrize(("ending", "first", "second"), CHANGES)
def test_views_read_files_as_they_are(
    tmp_path: Path, ending: str, first: Writer, second: Writer
) -> None:
    place = tmp_path / f"t{ending}"
    place.write_bytes(first([(1, "a"), (2, "b")]))
    old = over_files(place)
    queries = ["SELECT * FROM asked", 'SELECT * FROM "W"', "SELECT id, x FROM v", "SELECT * FROM t"]
    frames = [old.sql(query) for query in queries]
    assert all(map(rows_of, [lambda frame=frame: frame for frame in frames]))
    place.write_bytes(second([(4, "a"), (5, "b"), (7, "c")]))
    new = over_files(place)
    for query in queries:
        due = rows_of(lambda query=query: new.sql(query))
        assert rows_of(lambda query=query: old.sql(query)) == due
    for query, frame in zip(queries, frames, strict=True):
        known = rows_of(lambda frame=frame: frame)
        assert known in (["an error"], rows_of(lambda query=query: new.sql(query)))


def test_a_frame_of_other_columns_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "t.csv"
    place.write_bytes(swapped([(1, "a")]))
    frame = over_files(place).sql("SELECT id FROM t")
    frame.show()
    assert "| 1  |" in capsys.readouterr().out
    place.write_bytes(swapped_back([(2, "a")]))
    for show in (frame.show, frame.describe, frame.count, frame.cache, frame.collect):
        with pytest.raises(bf.QueryError, match="other columns than when this query was planned"):
            show()


def test_a_view_that_no_longer_fits_is_an_error_of_its_queries_alone(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    place.write_bytes(swapped([(1, "a")]))
    old = over_files(place)
    old.sql("CREATE VIEW u AS SELECT n FROM t")
    place.write_bytes(comma([(2, "a")]))
    for _ in range(2):
        with pytest.raises(bf.QueryError, match="view 'u' does not fit the files as they are now"):
            old.sql("SELECT * FROM u")
        assert old.sql("SELECT * FROM v").to_pylist() == [{"id": 2, "x": "a"}]
    place.write_bytes(swapped_back([(3, "a")]))
    assert old.sql("SELECT * FROM u").to_pylist() == [{"n": 103}]
    old.sql("DROP VIEW u")
    old.from_pydict({"n": [9]}, name="u")
    place.write_bytes(swapped([(3, "a")]))
    assert old.sql("SELECT * FROM u").to_pylist() == [{"n": 9}]


def test_a_text_that_is_no_table_any_more_is_an_error_of_its_queries_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "t.csv", tmp_path / "u.csv"
    for place in (first, second):
        place.write_bytes(comma([(1, "a")]))
    old = session()
    old.register_file(first, "t")
    old.register_file(second, "u")
    first.unlink()
    assert old.sql("SELECT id FROM u").to_pylist() == [{"id": 1}]
    with pytest.raises(bf.QueryError, match=r"t\.csv"):
        old.sql("SELECT id FROM t").to_pylist()
    first.write_bytes(comma([(2, "a")]))
    assert old.sql("SELECT id FROM t").to_pylist() == [{"id": 2}]


def test_another_encoding(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    place.write_bytes(latin([(1, "a")]))
    old = session()
    old.register_file(place, "t", encoding="latin-1")
    assert old.sql("SELECT x FROM t").to_pylist() == [{"x": "aé"}]
    place.write_bytes(latin([(1, "b"), (2, "c")]))
    assert old.sql("SELECT x FROM t ORDER BY x").to_pylist() == [{"x": "bé"}, {"x": "cé"}]


@pytest.mark.parametrize("name", ["Notes", '"Notes"', '"my notes"'])
def test_a_name_in_any_case(tmp_path: Path, name: str) -> None:
    place = tmp_path / "t.csv"
    place.write_bytes(comma([(1, "a")]))
    old = session()
    old.register_file(place, name)
    place.write_bytes(other_order([(2, "b")]))
    assert old.sql(f"SELECT id, x FROM {name}").to_pylist() == [{"id": 2, "x": "b"}]


def test_a_name_that_is_another_table_by_now_stays_that(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    for statement in (
        "CREATE OR REPLACE TABLE t AS SELECT 7 AS id",
        "CREATE OR REPLACE VIEW t AS SELECT 7 AS id",
    ):
        place.write_bytes(comma([(1, "a")]))
        old = session()
        old.register_file(place, "t")
        old.sql(statement)
        place.write_bytes(comma([(1, "a"), (2, "b")]))
        assert old.sql("SELECT id FROM t").to_pylist() == [{"id": 7}]


def test_a_users_context_shows_no_settings(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    place.write_bytes(comma([(1, "a")]))
    context = datafusion.SessionContext(datafusion.SessionConfig())
    old = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, ctx=context)
    old.register_file(place, "t")
    place.write_bytes(other_order([(2, "b")]))
    assert old.sql("SELECT id, x FROM t").to_pylist() == [{"id": 2, "x": "b"}]
    with pytest.raises(Exception, match="information_schema"):
        context.sql("SHOW datafusion.optimizer.max_passes")
