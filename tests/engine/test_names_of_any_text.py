"""Random queries whose tables, columns and aliases have names of any text, such as those that the
engine makes itself: rows, names and questions are those of plain names."""

from __future__ import annotations

import random
import re
import warnings

import pyarrow as pa
import pytest
from corner_queries import CornerQueries, corner_rows
from group_queries import seeded_script

import blendfusion as bf

_NAMES = [
    *("__blendfusion_part_0", "__blendfusion_call_0", "bf_site_0", "bf_rows_0", "bf_gap_0"),
    *("c0", "f0", "column1", "?column?", "?", "$1", ":p", "count(*)", "sum(n)", "__grouping_id"),
    *('llm_filter("f",x)', "llm_filter", "first_value(n)", "__scalar_sq_1", "__correlated_sq_1"),
    *("select", "Order", "group", "from", "lateral", "unnest", "interval", "CURRENT_DATE", "end"),
    *("a b", 'q"q', "a.b", "t.n", "t.*", "*", "n ", " ", "\t", "line\nbreak", "it's", "--", ";"),
    *("/*x*/", "{}", "{0}", "%s", "%", "\\", "1", "NULL", "true", "NaN", "inf", "1e5", "0x1"),
    *("id", "ID", "Id", "N", "é", "É", "ß", "SS", "Σ", "ς", "İ", "i̇", "☃", "value", "alias1"),
]
_WORDS = (
    "id k n z tiny big b s x t a c u q p w v i j m c0 c1 c2 c3 v0 v1 r tag key one other".split()
)
_WORD = re.compile(rf"('(?:[^']|'')*')|\b({'|'.join(_WORDS)})\b(?!\s*\()")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(sql: str, table: pa.Table, name: str, seed: int) -> tuple[list[str], list[str], int]:
    """(the rows in the order of their texts, the names of columns, the values asked); of a query
    that DataFusion has no plan for, the rows are its error."""
    session = bf.connect(bf.ScriptedModel(seeded_script(seed)), cache=None)  # type: ignore[arg-type]
    session.from_arrow(table, name=_quoted(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.AnswerWarning)
        warnings.simplefilter("ignore", bf.PlanWarning)
        try:
            frame = session.sql(sql)
        except bf.QueryError as problem:
            return [str(problem)], [], 0
        found = frame.to_arrow_table()
    columns = [[repr(v) for v in column.to_pylist()] for column in found.columns]
    return (
        sorted(map(str, zip(*columns, strict=True))),
        found.column_names,
        frame.trace.usage.values,
    )


@pytest.mark.parametrize("seed", range(40))
def test_names_of_any_text(seed: int) -> None:
    source = random.Random(seed + 5000)
    table, sql = corner_rows(source), CornerQueries(source).query()
    names = dict(zip(_WORDS, source.sample(_NAMES, len(_WORDS)), strict=True))
    rows, columns, values = _rows(sql, table, "t", seed)
    other = _WORD.sub(lambda found: found[1] or _quoted(names[found[2]]), sql)
    table = table.rename_columns([names[name] for name in table.column_names])
    renamed = _rows(other, table, names["t"], seed)
    assert (renamed[0], renamed[2]) == (rows, values), other
    for before, after in zip(columns, renamed[1], strict=True):
        assert before not in names or after == names[before], other
