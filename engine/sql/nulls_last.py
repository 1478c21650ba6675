"""Sorts answers NULLS LAST in both directions, since rows without an answer are the least wanted.

DataFusion puts NULLs first where an order descends; where it descends by an answer, and the query
does not say otherwise, we say it for the user.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.sql.call_sites import Site, nesting


def nulls_last(sql: str, tokens: Sequence[Token], sites: Sequence[Site]) -> str:
    """``sql`` with NULLS LAST after every DESC of an answer that says nothing of NULLs.

    An answer is a call, anything that contains one, or the alias of a call.
    """
    aliases = _aliases(tokens, sites) | _aliases_of_expressions(tokens, sites)
    structs = _aliases(tokens, [site for site in sites if site.struct])
    inserts = [
        token.end + 1
        for i, token in enumerate(tokens)
        if token.token_type == TokenType.DESC
        and not (i + 1 < len(tokens) and tokens[i + 1].text.upper() == "NULLS")
        and _by_answer(_item(tokens, i), sites, aliases, structs)
    ]
    for at in reversed(inserts):
        sql = f"{sql[:at]} NULLS LAST{sql[at:]}"
    return sql


_FIELD = [TokenType.L_BRACKET, TokenType.STRING, TokenType.R_BRACKET]


def _aliases(tokens: Sequence[Token], sites: Sequence[Site]) -> set[str]:
    ends = {site.end for site in sites}
    found = set()
    for i, token in enumerate(tokens[:-1]):
        if token.end + 1 in ends and token.token_type == TokenType.R_PAREN:
            rest = tokens[i + 1 : i + 12]
            while [t.token_type for t in rest[:3]] == _FIELD:  # f(…)['value'] AS v
                rest = rest[3:]
            while rest and rest[0].token_type == TokenType.DOT:  # f(…).value AS v
                rest = rest[2:]
            if len(rest) > 1 and rest[0].token_type == TokenType.ALIAS:
                rest = rest[1:]
            following = rest[0] if rest else token
            if following.token_type in _NAMES:
                found.add(following.text.lower())
    return found


def _aliases_of_expressions(tokens: Sequence[Token], sites: Sequence[Site]) -> set[str]:
    """The names that select items with a call in them have after AS."""
    found = set()
    for i, token in enumerate(tokens[:-1]):
        if token.token_type == TokenType.ALIAS and tokens[i + 1].token_type in _NAMES:
            item = _item(tokens, i, _BEFORE_SELECTED)
            selected = len(item) < i and nesting(tokens[i - len(item) - 1]) == 0  # no CAST(f AS …)
            if selected and item and _holds_a_call(item, sites):
                found.add(tokens[i + 1].text.lower())
    return found


_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_BEFORE_SELECTED = (
    *(TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA),
    *(TokenType.FROM, TokenType.JOIN),  # of a table's alias: not selected, and without calls
)


def _item(
    tokens: Sequence[Token],
    end: int,
    before: Sequence[TokenType] = (TokenType.COMMA, TokenType.ORDER_BY),
) -> Sequence[Token]:
    """The tokens of the item that ends at position ``end``, after what stands ``before`` items."""
    depth = 0
    for i in range(end - 1, -1, -1):
        depth -= nesting(tokens[i])  # read backwards, a closing bracket opens
        if depth < 0 or (depth == 0 and tokens[i].token_type in before):
            return tokens[i + 1 : end]
    return tokens[:end]


def _holds_a_call(item: Sequence[Token], sites: Sequence[Site]) -> bool:
    start, end = item[0].start, item[-1].end + 1
    return any(start <= site.start and site.end <= end for site in sites)


def _by_answer(
    item: Sequence[Token], sites: Sequence[Site], aliases: set[str], structs: set[str]
) -> bool:
    if not item:
        return False
    if _holds_a_call(item, sites):
        return True
    while len(item) > len(_FIELD) and [t.token_type for t in item[-3:]] == _FIELD:  # k['value']
        item = item[:-3]
    if not all(t.token_type in (*_NAMES, TokenType.DOT) for t in item):
        return False
    *whole, name = (token.text.lower() for token in item)
    return name in aliases or not structs.isdisjoint(whole)
