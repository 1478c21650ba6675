"""Translates a query of MySQL: its names in back quotes, its texts in double quotes, its functions
and operators (``functions.mysql``)."""

from __future__ import annotations

from blendfusion.errors import QueryError
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.language.query_text.source_map import Translation, within
from blendfusion.language.query_text.statements import first_word
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.common.quoting import requote
from blendfusion.services.dialects.functions.claims import claim
from blendfusion.services.dialects.functions.mysql import MYSQL


def translate(text: str, known: SessionFacts) -> Translation:
    """The query in our SQL. Raises QueryError for a text that is no query, or has a form that
    cannot be translated."""
    if first_word(text) not in ("SELECT", "WITH", "EXPLAIN"):
        error = QueryError("this is no query of MySQL", hint="It begins with SELECT or WITH.")
        error.span = (0, len(text))
        raise error
    ours = requote(text, "mysql")
    try:
        weaver = Weaver(Reader(ours.sql))
        claim(weaver, known, MYSQL)
        return ours.then(weaver.whole())
    except QueryError as problem:
        raise within(problem, ours) from None
