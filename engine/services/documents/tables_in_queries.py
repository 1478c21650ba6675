"""Functions in FROM that read files, as tables."""

from __future__ import annotations

from collections.abc import Callable

from blendfusion.errors import QueryError
from blendfusion.language.query_text.lateral import Place
from blendfusion.language.query_text.query_tree import Reader


def with_table(
    place: Place, name: str, table: Callable[[Reader, int, int], str], *, read_only: bool
) -> str:
    """The text around a call of ``name`` with a table in its place: that which ``table`` gives for
    the tokens of the arguments. Raises QueryError in a read-only query."""
    if read_only:
        raise QueryError(
            f"read-only: {name}(…) is refused", hint="A read-only query reads registered tables."
        )
    source, reader = place.source, place.reader
    text = table(reader, source.start + 2, source.end - 1)
    if source.alias is None:
        text += f" AS {name}"
    start = source.start - 1 if source.lateral else source.start
    return reader.edit([(start, source.end, text)])
