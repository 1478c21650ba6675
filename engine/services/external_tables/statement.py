"""CREATE EXTERNAL TABLE over CSV files gets the columns that whole records have, wherever their
lines break, over JSON files those of all rows, and over Parquet files refuses tables of Delta Lake,
Iceberg and Hudi, and heeds NaN that statistics leave out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import CsvReadOptions, SessionContext
from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.parquet_statistics import by_value, read_as_written
from blendfusion.errors import QueryError, table_of
from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.places.folders import list_files
from blendfusion.places.lakes import check_place
from blendfusion.places.remote import LOCAL, local_path, scheme_of
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseSession

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_BREAKS = "newlines_in_values"
_TYPES = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}


@dataclass(frozen=True, slots=True)
class _Statement:
    """CREATE EXTERNAL TABLE, as its tokens say it."""

    tree: TokenTree
    kind: str
    """The format of the files, in capital letters."""
    places: tuple[str, ...]
    location: tuple[int, int] | None
    """The offsets of the one place, with its quotes; None where there are several."""
    options: Mapping[str, str]
    """Without ``format.``."""
    columns: int | None
    """The token in front of which columns would stand; None: the statement has them."""
    behind_options: int | None
    """The offset behind the bracket that opens the options; None: there are none."""


def external_table(session: BaseSession, sql: str) -> str:
    """``sql``, where it is CREATE EXTERNAL TABLE over CSV files of this machine, with their columns
    and with the option for line breaks in values; any other text as it is. Raises QueryError for
    files that are no table, or not one that DataFusion reads."""
    found = _parse(sql)
    if found is None:
        return sql
    if found.kind == "PARQUET":
        for place in found.places:
            check_place(session, place)
            _check_numbers(session, place)
    name = _noted_name(found)
    if name is not None:
        session.note_registration("create_external", name, found.places[0], {"statement": sql})
    if found.kind == "CSV":
        return _with_columns(session, found)
    return _with_all_rows(session, found) if found.kind in ("JSON", "ARROW") else sql


def _check_numbers(session: BaseSession, place: str) -> None:
    """Raise QueryError for Parquet files of which a table of SQL would leave rows out."""
    hidden = read_as_written(place, ".parquet")
    if hidden:
        raise QueryError(
            f"{', '.join(sorted(hidden))} in '{place}' may have NaN, which statistics of the files leave out",
            hint=f"Read them by their path, SELECT … FROM '{place}', or by session.register_parquet.",
        )


def hide_statistics(session: BaseSession, sql: str) -> None:
    """Make the table that ``sql`` created over Parquet files elsewhere, whose numbers nobody has
    looked at, a view that no statistics of theirs are used for."""
    found = _parse(sql)
    if found is None or found.kind != "PARQUET":
        return
    if all(scheme_of(place) in (None, LOCAL) for place in found.places):
        return
    name = _name(found)
    frame = SessionContext.table(session, name)
    read = by_value(session, frame, None)
    if read is not frame:
        SessionContext.deregister_table(session, name)
        SessionContext.register_view(session, name, read)


def _name(found: _Statement) -> str:
    """The name of the table, as SQL has it."""
    tree, words = found.tree, found.tree.words
    first = words.index("EXISTS" if "IF" in words[:6] else "TABLE") + 1
    last = first
    while tree.kind(last + 1) == TokenType.DOT:
        last += 2
    return str(tree.text)[tree.tokens[first].start : tree.tokens[last].end + 1]


def moved_statement(sql: str, place: str) -> str | None:
    """A noted statement for files at another place; None for a text that is none."""
    found = _parse(sql)
    if found is None or found.location is None or _noted_name(found) is None:
        return None
    start, end = found.location
    return edit(str(found.tree.text), [(start, end, sql_string(place))]).sql


def _noted_name(found: _Statement) -> str | None:
    """The name, as SQL has it, of a table of one place whose statement can be repeated as it is:
    its options are those of a format, and no keys of a server."""
    tree, words = found.tree, found.tree.words
    at = words.index("TABLE") + 1 if "TABLE" in words else len(words)
    plain = "IF" not in words[:6] and found.location is not None
    one = TokenType.SEMICOLON not in [tree.kind(n) for n in range(len(words) - 1)]
    if not plain or not one or any("." in key for key in found.options):
        return None
    if at + 1 >= len(words) or tree.kind(at + 1) == TokenType.DOT:
        return None
    return str(tree.text)[tree.tokens[at].start : tree.tokens[at].end + 1]


def _parse(sql: str) -> _Statement | None:
    if "external" not in sql.lower():
        return None
    tree = TokenTree(sql)
    words = tree.words
    if words[:1] != ["CREATE"] or "EXTERNAL" not in words[:5] or "LOCATION" not in words:
        return None
    at, stored = words.index("LOCATION"), words.index("STORED") if "STORED" in words else -3
    inside = range(at + 2, tree.close[at + 1]) if tree.opens(at + 1) else range(at + 1, at + 2)
    texts = [tree.tokens[n] for n in inside if tree.kind(n) == TokenType.STRING]
    places = tuple(token.text for token in texts)
    location = (texts[0].start, texts[0].end + 1) if len(texts) == 1 == len(inside) else None
    options = words.index("OPTIONS") if "OPTIONS" in words else None
    opened = None if options is None or not tree.opens(options + 1) else options + 1
    settings = {} if opened is None else dict(_settings(tree, opened))
    declared = tree.kind(stored - 1) == TokenType.R_PAREN
    behind = None if opened is None else tree.tokens[opened].end + 1
    kind = tree.word(stored + 2) if stored >= 0 else ""
    columns = None if declared else stored
    return _Statement(tree, kind, places, location, settings, columns, behind)


def _settings(tree: TokenTree, opened: int) -> Iterator[tuple[str, str]]:
    """The keys, in small letters, and values of OPTIONS (key value, …)."""
    key: list[str] = []
    for at in range(opened + 1, tree.close[opened] + 1):
        text = tree.tokens[at].text
        if tree.kind(at) in (TokenType.COMMA, TokenType.R_PAREN):
            if len(key) > 1:
                yield "".join(key[:-1]).lower().removeprefix("format."), key[-1]
            key = []
        else:
            key.append(text)


def _with_columns(session: BaseSession, found: _Statement) -> str:
    sql = str(found.tree.text)
    if found.options.get("null_regex"):
        raise QueryError(
            "null_regex: DataFusion reads the texts that stand for NULL as texts",
            hint="Leave the option out, and write nullif(column, 'NA') in queries or in a view.",
        )
    if any(scheme_of(place) not in (None, LOCAL) for place in found.places):
        return edit(sql, _breaks(found, whole=True)).sql
    if not _exist(found):
        return sql
    from blendfusion.files.conversions import folder_of
    from blendfusion.files.csv_doors import prepare_csv
    from blendfusion.files.parts import Table

    options = _csv_options(found)
    if found.columns is None:
        options.schema = pa.schema([])
    table = prepare_csv(list(found.places), options, partial(folder_of, session))
    if not isinstance(table, Table):
        return edit(sql, _breaks(found, whole=table.newlines_in_values)).sql
    if not table.is_plain or table.schema is None or found.columns is None:
        raise _not_plain(found)
    before = found.tree.tokens[found.columns].start
    columns = (before, before, f"({', '.join(map(_column, table.schema))}) ")
    whole = bool(table.parts[0].form.options[_BREAKS])
    return edit(sql, [columns, *_breaks(found, whole=whole)]).sql


def _with_all_rows(session: BaseSession, found: _Statement) -> str:
    """The statement over files of JSON or Arrow, which finds the columns in all rows of JSON.
    Raises QueryError for files that ``register_file`` would read otherwise."""
    from blendfusion.files.conversions import folder_of
    from blendfusion.files.file_doors import prepare_files
    from blendfusion.files.json_tables import ALL_ROWS
    from blendfusion.files.parts import Table

    sql = str(found.tree.text)
    if found.columns is None:
        return sql
    if _exist(found):
        given = {
            "path": [*found.places],
            "file_extension": PurePath(found.places[0]).suffix or f".{found.kind.lower()}",
            "file_compression_type": found.options.get("compression"),
        }
        table = prepare_files(found.kind.lower(), given, partial(folder_of, session))
        if isinstance(table, Table) and not table.is_plain:
            raise _not_plain(found)
    if found.kind != "JSON":
        return sql
    (rows,) = ALL_ROWS.values()
    return edit(sql, _setting(found, "schema_infer_max_rec", str(rows))).sql


def _not_plain(found: _Statement) -> QueryError:
    return QueryError(
        f"the files at '{found.places[0]}' are read one by one, and not as DataFusion reads them",
        hint=f"{table_of(found.places[0], 'name')} makes one table of them.",
    )


def _breaks(found: _Statement, *, whole: bool) -> list[tuple[int, int, str]]:
    """The edit that says whether values hold line breaks."""
    return _setting(found, _BREAKS, str(whole).lower())


def _setting(found: _Statement, name: str, value: str) -> list[tuple[int, int, str]]:
    """The edit that adds an option of the format; none where the statement has it."""
    if name in found.options:
        return []
    setting = f"'format.{name}' '{value}'"
    if found.behind_options is not None:
        return [(found.behind_options, found.behind_options, f"{setting}, ")]
    end = len(str(found.tree.text).rstrip().rstrip(";"))
    return [(end, end, f" OPTIONS ({setting})")]


def _exist(found: _Statement) -> bool:
    """Whether there are files: a table may also be made to be written to."""
    try:
        return all(list_files(local_path(place)).files for place in found.places)
    except QueryError:
        return False


def _csv_options(found: _Statement) -> CsvReadOptions:
    given = found.options
    files = [PurePath(place) for place in found.places]
    return CsvReadOptions(
        has_header=given.get("has_header", "true").lower() == "true",
        delimiter=given.get("delimiter", ","),
        quote=given.get("quote", '"'),
        escape=given.get("escape"),
        comment=given.get("comment"),
        null_regex=given.get("null_regex"),
        truncated_rows=given.get("truncated_rows", "false").lower() == "true",
        newlines_in_values=given.get(_BREAKS, "false").lower() == "true",
        file_compression_type=given.get("compression", ""),
        file_extension=files[0].suffix or ".csv",
    )


def _column(field: pa.Field) -> str:
    kind = _TYPES.get(field.type, "VARCHAR")
    if pa.types.is_timestamp(field.type):
        kind = f"TIMESTAMP({_DIGITS[field.type.unit]})"
    return f"{quoted_name(field.name)} {kind}"
