"""A pattern of queries whose names all come from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable

from blendfusion.text_to_sql.catalog import Catalog
from blendfusion.udfs.declare.arguments import quoted_name
from blendfusion.udfs.declare.ingredient import Ingredient

_KEYWORDS = """
    SELECT DISTINCT FROM WHERE AND OR NOT IN IS NULL LIKE ILIKE BETWEEN GROUP BY HAVING ORDER ASC DESC
    NULLS FIRST LAST LIMIT OFFSET JOIN INNER LEFT ON AS CASE WHEN THEN ELSE END UNION ALL EXCEPT
    INTERSECT EXISTS WITH CAST INTEGER DOUBLE TEXT DATE TIMESTAMP TRUE FALSE INTERVAL
    """.split()
_FUNCTIONS = """
    count sum avg min max abs round floor ceil lower upper trim length substr replace concat coalesce
    nullif date_part date_trunc row_number rank median stddev
    """.split()
_ALIAS = "[a-zA-Z][0-9]?|[a-z]{1,12}_[a-z]{1,12}|[tT][0-9]{1,2}"
_NUMBER = r"[0-9]{1,12}(\.[0-9]{1,6})?"
_STRING = r"'([^'\n]|'')*'"
_BETWEEN = r"[ (),.*=<>!+/\[\]-]+"


def pattern_of(catalog: Catalog, functions: Iterable[Ingredient]) -> str:
    """A regular expression of one query in one line: keywords, the catalogue's names, functions,
    short aliases, numbers and strings. It excludes unknown names, not every invalid query."""
    words = [*_KEYWORDS, *(word.lower() for word in _KEYWORDS)]
    words += [*_FUNCTIONS, *(name.upper() for name in _FUNCTIONS)]
    words += [function.name for function in functions]
    for table in catalog.tables:
        words += [
            written_name(table.name),
            *(written_name(column.name) for column in table.columns),
        ]
    known = "|".join(map(re.escape, dict.fromkeys(words)))
    word = f"({known}|{_ALIAS}|{_NUMBER}|{_STRING})"
    return rf"(SELECT|WITH)({_BETWEEN}{word})+[ )*]*"


def written_name(name: str) -> str:
    """A name as a query writes it, in quotes if it is no plain word."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted_name(name)
