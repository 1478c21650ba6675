"""Two short forms of analysts: ``SUMMARIZE t``, a row of figures for each column, and ``USING
SAMPLE``, some of the rows of a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.statements import first_word
from blendfusion.language.query_text.tokenizer import tokenize
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources

_QUARTILES = {"q25": 0.25, "q50": 0.5, "q75": 0.75}
_CLAUSES = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "QUALIFY", "OFFSET", "FETCH"}
_SAMPLE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|PERCENT|ROWS?)?", re.IGNORECASE)
_TABLE = re.compile(
    r"""(?P<table>(?:\w+|"[^"]+"|'[^']+')(?:\.(?:\w+|"[^"]+"))*)(?:\s+(?:AS\s+)?(?P<alias>\w+|"[^"]+"))?""",
    re.IGNORECASE,
)
_HINT = "Write … FROM t USING SAMPLE 100 ROWS, or 10 PERCENT, behind a query of one table."


def spell_out(session: FrameSources, text: str) -> str:
    """The query that ``text`` stands for, if it has one of the short forms; else ``text`` itself.
    Raises QueryError."""
    while True:
        if first_word(text) == "SUMMARIZE":
            text = _summary_query(session, text)
        few = _with_sample(text)
        if few is None:
            return text
        text = few.sql


def _summary_query(session: FrameSources, text: str) -> str:
    """The query of ``SUMMARIZE source``: a row for each column with its name and type, its extremes
    as text, its distinct values, mean, deviation and quartiles where they are numbers, its rows,
    and the share of NULLs in percent. ``source``: a table, a file or a query, which runs once.
    Raises QueryError."""
    tokens = tokenize(text)
    source = text[tokens[0].end + 1 :].strip().rstrip(";").strip()
    if not source:
        raise QueryError(
            "SUMMARIZE needs a table", hint="SUMMARIZE reviews, or SUMMARIZE SELECT …."
        )
    if first_word(source) in ("SELECT", "WITH", "VALUES", "FROM"):
        source = f"({source})"
    schema = session.sql(f"SELECT * FROM {source} AS source").schema()
    rows = ", ".join(map(_column_figures, schema))
    names = [name for name, _ in _figures(pa.field("x", pa.string()))]
    shown = ", ".join(f"figures['{name}'] AS {name}" for name in names)
    return (
        f"SELECT {shown} FROM (SELECT unnest(held) AS figures FROM "
        f"(SELECT make_array({rows}) AS held FROM {source} AS source))"
    )


def _column_figures(field: pa.Field) -> str:
    pairs = ", ".join(f"'{name}', {value}" for name, value in _figures(field))
    return f"named_struct({pairs})"


def _figures(field: pa.Field) -> list[tuple[str, str]]:
    """The figures of a column, and their SQL."""
    types, kind, name = pa.types, field.type, quoted_name(field.name)
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    ordered = not (types.is_nested(kind) or types.is_null(kind) or types.is_interval(kind))
    number = f"CAST({name} AS DOUBLE)"
    text, double = "CAST(NULL AS VARCHAR)", "CAST(NULL AS DOUBLE)"
    return [
        ("column_name", sql_string(field.name)),
        ("column_type", sql_string(str(kind))),
        ("min", f"CAST(min({name}) AS VARCHAR)" if ordered else text),
        ("max", f"CAST(max({name}) AS VARCHAR)" if ordered else text),
        ("distinct_values", f"count(DISTINCT {name})" if ordered else "CAST(NULL AS BIGINT)"),
        ("avg", f"avg({number})" if numeric else double),
        ("std", f"stddev({number})" if numeric else double),
        *(
            (label, f"approx_percentile_cont({number}, {share})" if numeric else double)
            for label, share in _QUARTILES.items()
        ),
        ("count", "count(*)"),
        ("null_percentage", f"100.0 * (count(*) - count({name})) / nullif(count(*), 0)"),
    ]


def _with_sample(text: str) -> Translation | None:
    """``text`` without USING SAMPLE at its end, and with so many random rows of its table in place
    of the table; None without one. As in DuckDB, rows are drawn before WHERE. Raises QueryError for
    another form."""
    if "SAMPLE" not in text.upper():
        return None
    reader = Reader(text)
    words = [token.text.upper() for token in reader.tokens]
    at = next((i for i in range(len(words) - 1) if words[i : i + 2] == ["USING", "SAMPLE"]), None)
    if at is None:
        return None
    start = reader.tokens[at].start
    given = _SAMPLE.fullmatch(
        text[reader.tokens[at + 1].end + 1 :].strip().rstrip(";").strip(" ()")
    )
    froms = [i for i in range(at) if words[i] == "FROM"]
    if given is None or len(froms) != 1:
        raise QueryError("USING SAMPLE is not understood here", hint=_HINT)
    first = froms[0] + 1
    last = next((i for i in range(first, at) if words[i] in _CLAUSES), at)
    begin, end = reader.tokens[first].start, reader.tokens[last - 1].end + 1
    table = _TABLE.fullmatch(text[begin:end])
    if table is None:
        raise QueryError("USING SAMPLE is not understood here", hint=_HINT)
    alias = table["alias"] or table["table"].rpartition(".")[2]
    alias = "sample" if alias.startswith("'") else alias
    share = (given["unit"] or "").upper() in ("%", "PERCENT")
    rows = (
        f"WHERE random() < {float(given['number']) / 100}"
        if share
        else f"ORDER BY random() LIMIT {int(float(given['number']))}"
    )
    source = f"(SELECT * FROM {table['table']} {rows}) AS {alias}"
    return edit(text, [(begin, end, source), (start, len(text), "")])
