"""The groups and entities that a view's query names: they stay with the view, so that they are the
same in every session that refreshes it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import sql_of
from blendfusion.places.whole_file import replacing
from blendfusion.services.views.folder import escape
from blendfusion.udfs.declare.arguments import sql_string

_CALLS = re.compile(r"\bllm_(group|same)\b", re.IGNORECASE)


def with_group_names(view: str, query: str) -> str:
    """The query in which each call of llm_group has a name: a view's own where it has none, another
    one for each call.

    >>> with_group_names("v", "SELECT llm_group(x, name => 'a') FROM t")
    "SELECT llm_group(x, name => 'a') FROM t"
    """
    tree, edits = TokenTree(query), []
    for at in range(len(tree.tokens)) if _CALLS.search(query) else ():
        if tree.word(at) != "LLM_GROUP" or not tree.opens(at + 1):
            continue
        close = tree.close[at + 1]
        inside = range(at + 2, close - 1)
        if any(tree.word(n) == "NAME" and tree.tokens[n + 1].text == "=>" for n in inside):
            continue
        call = " ".join(token.text for token in tree.tokens[at:close])
        name = f"{view} {hashlib.sha256(call.encode()).hexdigest()[:8]}"
        edits.append((close, close + 1, f", name => {sql_string(name)})"))
    return sql_of(tree.edit(edits)) if edits else query


class KeptNames:
    """The names in the query of one view. Those that a session has already are the session's."""

    def __init__(self, session: object, folder: Path, query: str) -> None:
        self._session, self._folder = session, folder
        tokens = TokenTree(query).tokens if _CALLS.search(query) else []
        self._names = sorted({one.text for one in tokens if one.token_type == TokenType.STRING})

    def _places(self) -> Iterator[tuple[Any, str, str, Path]]:
        """The registry of each name and kind, the noun of the kind, the name and its file."""
        for noun in ("groups", "entities") if self._names else ():
            registry: Any = getattr(self._session, noun, None)  # of a service
            for name in self._names if registry is not None else ():
                yield registry, noun, name, self._folder / f"{noun}-{escape(name)}.json"

    def load(self) -> None:
        """Give the session those that the view has. Raises ArgumentError for a damaged file."""
        for registry, _, name, file in self._places():
            if name not in registry and file.is_file():
                registry.load(name, file)

    def save(self) -> None:
        """Keep those of the session with the view."""
        for registry, _, name, file in self._places():
            if name in registry:
                with replacing(file) as part:
                    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
                    registry.save(name, part)

    def digests(self) -> dict[str, str | None]:
        """A digest of each that the session has, by a title."""
        found: dict[str, str | None] = {}
        for registry, noun, name, _ in self._places():
            if name in registry:
                shown = repr(registry[name]).encode("utf-8", "surrogatepass")
                found[f"of {noun} '{name}'"] = hashlib.sha256(shown).hexdigest()
        return found
