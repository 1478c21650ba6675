"""Writes the calls of stored questions in the place of ``llm_ask('name', value, …)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import close_matches
from blendfusion.language.query_text.call_sites import find_sites
from blendfusion.language.query_text.source_map import Translation, edit, identity, refusal
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.declare.ingredient import Ingredient

ASK = "llm_ask"


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call whose values are columns, and the least probability of a yes, if it has one."""

    sql: str
    threshold: float | None = None
    names: tuple[tuple[str, str], ...] = ()
    """Answers, each with the name that queries see instead."""
    version: int = 1
    owner: str = ""
    checks: str = ""
    """SQL of labelled values, the label last; '' without any."""
    at_least: float = 1.0
    """The share of them that must have their label as their answer."""

    def values(self, ingredients: Mapping[str, Ingredient]) -> list[str]:
        """The columns of the call, in order."""
        tree = TokenTree(self.sql)
        sites = find_sites(tree, ingredients)
        return [tree.source_text(*span) for site in sites[:1] for span in site.values]

    def with_values(self, given: list[str], ingredients: Mapping[str, Ingredient]) -> str:
        """The SQL of the question about other values."""
        tree = TokenTree(self.sql)
        (site,) = find_sites(tree, ingredients)
        spans = [tree.span(*span) for span in site.values]
        edits = [(*span, value) for span, value in zip(spans, given, strict=True)]
        if self.names:
            call = edit(self.sql, edits).sql
            cases = " ".join(
                f"WHEN {sql_string(a)} THEN {sql_string(name)}" for a, name in self.names
            )
            return f"(CASE {call} {cases} ELSE {call} END)"
        if self.threshold is None:
            return edit(self.sql, edits).sql
        at = tree.tokens[site.end - 1].start
        call = edit(self.sql, [*edits, (at, at, ", confidence => 'keep'")]).sql
        yes = (
            f"CASE WHEN {call}['value'] THEN {call}['confidence'] ELSE 1 - {call}['confidence'] END"
        )
        return f"({yes} >= {self.threshold})"


def stored_names(text: str) -> list[str]:
    """The names of the stored questions in a text, each once."""
    if ASK not in text.lower():
        return []
    tree = TokenTree(text)
    sites = (at for at in range(len(tree.tokens)) if _is_site(tree, at))
    found = (_arguments(tree, at + 2, tree.close[at + 1])[0] for at in sites)
    return list(dict.fromkeys(name for name in found if name))


def _is_site(tree: TokenTree, at: int) -> bool:
    return tree.word(at) == ASK.upper() and tree.opens(at + 1)


def with_stored_calls(
    text: str, stored: Mapping[str, StoredCall], ingredients: Mapping[str, Ingredient]
) -> Translation:
    """``text`` with the call of a stored question in the place of each ``llm_ask``. Raises
    QueryError for an unknown question, or another number of values."""
    if ASK not in text.lower():
        return identity(text)
    tree = TokenTree(text)
    edits: list[tuple[int, int, str]] = []
    for at in range(len(tree.tokens)):
        if not _is_site(tree, at):
            continue
        end = tree.close[at + 1]
        start, stop = tree.span(at, end + 1)
        name, given = _arguments(tree, at + 2, end)
        call = stored.get(name or "")
        if call is None:
            known = "session.register_question(file) makes one known."
            problem = f"no stored question is called '{name}'" if name else f"{ASK} needs a name"
            near = close_matches(name or "", stored)
            raise refusal((start, stop), problem, f"{near} {known}".strip())
        columns = call.values(ingredients)
        if len(given) != len(columns):
            wanted = f"{ASK}('{name}', {', '.join(columns)})"
            raise refusal(
                (start, stop), f"{ASK}: '{name}' has {len(columns)} values", f"Write {wanted}."
            )
        edits.append((start, stop, call.with_values(given, ingredients)))
    return edit(text, edits) if edits else identity(text)


def _arguments(tree: TokenTree, start: int, end: int) -> tuple[str | None, list[str]]:
    """The name of the question, and the SQL of its values."""
    first, *rest = tree.parts(start, end) or [(start, start)]
    named = first[1] - first[0] == 1 and tree.kind(first[0]) == TokenType.STRING
    name = tree.tokens[first[0]].text if named else None
    return name, [tree.source_text(*part) for part in rest]
