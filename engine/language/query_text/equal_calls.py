"""Finds the calls of a query that are one call, though written in several places or ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.call_sites import Site
from blendfusion.language.query_text.infer_constraints import Context, combine
from blendfusion.language.query_text.resolve_columns import References
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import Call

_Words: TypeAlias = "tuple[tuple[bool, str], ...]"
"""A call word by word, strings apart, so that two ways of spacing are the same call."""


def share_constraints(
    groups: Sequence[Sequence[int]], contexts: Sequence[Context]
) -> list[Constraint | None]:
    """The inferred constraint of each call, or else of an equal call elsewhere in the query, so
    that a call in several places is one call, of one type, asked once."""
    result = [context.constraint for context in contexts]
    for members in groups:
        together = combine([c for c in (result[i] for i in members) if c is not None])
        if together and together.literals and any(contexts[i].open for i in members):
            together = replace(together, kind="text", pattern=None)  # literals remain as examples
        if together is not None:
            for i in members:
                result[i] = together
    return result


def share_casts(groups: Sequence[Sequence[int]], calls: Sequence[Call]) -> list[Call]:
    """The calls, each with the casts of equal calls with answers of its type."""
    result = list(calls)
    for members in groups:
        if not any(calls[i].casts for i in members):
            continue
        bare = [replace(calls[i], casts=()) for i in members]
        casts: dict[Call, dict[str, None]] = {call: {} for call in bare}
        for i, call in zip(members, bare, strict=True):
            casts[call].update(dict.fromkeys(calls[i].casts))
        for i, call in zip(members, bare, strict=True):
            result[i] = replace(call, casts=tuple(casts[call]))
    return result


def equal_calls(
    tree: TokenTree, sites: Sequence[Site], refers: References | None
) -> list[list[int]]:
    """The positions of the sites of each call."""
    inside = [tuple(_call(tree, site)) for site in sites]
    written = [_words(part) for part in inside]
    ways = [written]
    if refers is not None and len({_bare(w) for w in written}) < len(set(written)):
        ways.append([_words(part, refers) for part in inside])  # t.x and x may be one column
    groups: list[list[int]] = []
    known: dict[_Words, list[int]] = {}
    for i, keys in enumerate(zip(*ways, strict=True)):
        found = [known[key] for key in keys if key in known]
        group = found[0] if found else []
        if not found:
            groups.append(group)
        for other in found[1:]:
            if other is not group:
                group += other
                groups = [g for g in groups if g is not other]
                known = {key: group if g is other else g for key, g in known.items()}
        group.append(i)
        known.update(dict.fromkeys(keys, group))
    return groups


def _call(tree: TokenTree, site: Site) -> Iterator[Token]:
    """The tokens of a call without parentheses around its arguments."""
    left_out: set[int] = set()
    for start, stop in (*site.values, *site.literals):
        while stop < site.end - 1 and tree.close.get(start - 1) == stop:
            left_out |= {start - 1, stop}
            start, stop = start - 1, stop + 1
    for at in range(site.start, site.call_stop):
        if at not in left_out:
            yield tree.tokens[at]


def _words(tokens: Sequence[Token], refers: References | None = None) -> _Words:
    """The words of a call; with ``refers``, each column with the relation that it is of."""
    words: list[tuple[bool, str]] = []
    skipped = 0
    for token in tokens:
        relation = None if refers is None else refers.relation(token.start)
        if relation is not None:
            alias, parts = relation
            words += [(False, alias), (False, ".")]
            skipped = 2 * parts
        if skipped:
            skipped -= 1
            continue
        exact = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        text = str(token.text if exact else token.text.lower())
        words.append((token.token_type == TokenType.STRING, text))
    return tuple(words)


def _bare(words: _Words) -> _Words:
    """The words without the qualifiers of columns."""
    dot = (False, ".")
    return tuple(
        word
        for word, behind in zip(words, (*words[1:], None), strict=True)
        if dot not in (word, behind)
    )
