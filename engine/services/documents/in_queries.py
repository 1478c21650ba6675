"""Rewrites ``FROM read_documents('folder/*.pdf', chunk => 400)`` in the text of a query to the name
of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError, by_surface, close_matches, connect_with
from blendfusion.language.query_text.call_sites import Span, literal_of
from blendfusion.language.query_text.calls_in_from import rewrite_calls
from blendfusion.language.query_text.lateral import Columns
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.places.remote import scheme_of
from blendfusion.planner.ir.document_tables import ON_PROBLEM, Documents
from blendfusion.services.documents.tables_in_queries import with_table

if TYPE_CHECKING:
    from blendfusion.services.documents.session import DocumentReading

NAME = "read_documents"
_FORM = "Write FROM read_documents('folder/*.pdf', chunk => 400)."
_NAMES = tuple(field.name for field in fields(Documents))


def read_in(
    sql: str,
    session: DocumentReading,
    parameters: Mapping[str, str] | None,
    columns: Columns,
    *,
    read_only: bool,
) -> str:
    """``sql`` with its documents as tables, as the session's option ``read_files`` allows. Raises
    QueryError for documents that may not be read, or are not there."""

    def table(reader: Reader, start: int, stop: int) -> str:
        if session.options.read_files == "off":
            raise QueryError(
                f"{NAME}: a query of this session may not read files",
                hint=f"Allow it, {connect_with(read_files='local')}, or make a table of the documents: "
                + by_surface(
                    "session.register_documents('documents', 'folder/*.pdf').", "CREATE TABLE."
                ),
            )
        return session.documents.allow(_documents(reader, start, stop))

    return rewrite_calls(
        sql,
        NAME,
        parameters,
        columns,
        lambda place: with_table(place, NAME, table, read_only=read_only),
        form=_FORM,
    )


def _documents(reader: Reader, start: int, stop: int) -> Documents:
    """The documents that the arguments of a call name."""
    given: dict[str, Any] = {}
    for first, last in reader.parts(start, stop):
        named = last - first > 1 and reader.kind(first + 1) == TokenType.FARROW
        if not named and given:
            raise QueryError(f"{NAME}: only the path has no name", hint=_FORM)
        name = reader.name(first).lower() if named else "path"
        if name in given:
            raise QueryError(f"{NAME}: '{name}' is given twice", hint="Give it once.")
        given[name] = _literal(reader, (first + 2, last) if named else (first, last), name)
    if "path" not in given:
        raise QueryError(f"{NAME}: the path is missing", hint=_FORM)
    return check_documents(**given)


def _literal(reader: Reader, span: Span, name: str) -> object:
    found = literal_of(reader.tokens[slice(*span)])
    if found is None or found.value is None:
        raise QueryError(
            f"{NAME}: {name} => {reader.source_text(*span)} is neither a literal nor a parameter",
            hint=_FORM,
        )
    return found.value


def check_documents(path: object, **options: Any) -> Documents:
    """The documents at ``path``, with valid options. Raises QueryError."""
    for name in options:
        if name not in _NAMES:
            near = close_matches(name, _NAMES) or f"Its options are {', '.join(_NAMES[1:])}."
            raise QueryError(f"{NAME}: no argument '{name}'", hint=near)
    if not isinstance(path, str) or not path:
        raise QueryError(f"{NAME}: {path!r} is no path", hint=_FORM)
    if scheme_of(path) is not None:
        raise QueryError(
            f"{NAME}: '{path}' is a URL; documents are read on this machine",
            hint="Download the files first.",
        )
    whole = {"chunk": 0, "megabytes": 64}
    for name, least in whole.items():
        value = options.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise QueryError(f"{NAME}: {name} is a whole number from {least}, not {value!r}")
    seconds = options.get("seconds", 1.0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise QueryError(f"{NAME}: seconds is a number above 0, not {seconds!r}")
    if not isinstance(options.get("ocr", False), bool):
        raise QueryError(f"{NAME}: ocr is true or false, not {options['ocr']!r}")
    if options.get("on_error", "null") not in ON_PROBLEM:
        raise QueryError(
            f"{NAME}: on_error is one of {', '.join(ON_PROBLEM)}, not {options['on_error']!r}"
        )
    return Documents(path, **options)
