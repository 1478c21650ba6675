"""Hides operands that DataFusion 55 simplifies to others in texts whose plans Substrait does not
carry (see ``datafusion.substrait.simplifier_bug``): those of ``^``, negative numbers beside bits,
and ``'.*'``."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.repeated_lists import is_carried
from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree

_BITS = (TokenType.AMP, TokenType.PIPE)
_MATCHES = (TokenType.TILDE, TokenType.IRLIKE, TokenType.RLIKE)


def hidden_operands(sql: str) -> str:
    """``sql`` with ``nullif(v, NULL)`` for such operands, and another pattern for ``'.*'``."""
    tree = TokenTree(sql)
    if is_carried(sql) or not tree.balanced:
        return sql
    edits = [(*tree.span(at, at + 1), "'^.*'") for at in _patterns(tree)]
    depth = 0
    for at in range(1, len(tree.tokens) - 1):
        if tree.kind(at) == TokenType.CARET:
            depth += 1  # no two are equal
            hidden = {(tree.operand_before(at), at): depth}
        else:
            hidden = dict.fromkeys(_negatives(tree, at), 1)
        for (start, end), times in hidden.items():
            first, last = tree.span(start, end)
            edits += [(first, first, "nullif(" * times), (last, last, ", NULL)" * times)]
    return str(edit(sql, edits).sql) if edits else sql


def _patterns(tree: TokenTree) -> Iterator[int]:
    for at in range(1, len(tree.tokens)):
        if tree.kind(at) == TokenType.STRING and tree.tokens[at].text == ".*":
            called = tree.kind(at - 1) == TokenType.COMMA
            if called or tree.kind(at - 1) in _MATCHES or tree.tokens[at - 1].text.endswith("~"):
                yield at


def _negatives(tree: TokenTree, at: int) -> Iterator[tuple[int, int]]:
    """The negative numbers beside the operator at ``at``, and what its parentheses negate."""
    if tree.kind(at) in _BITS:
        after = tree.operand_after(at + 1)
        if tree.kind(tree.bare(at + 1, after)[0]) == TokenType.DASH:
            yield at + 1, after
        start = tree.operand_before(at)
        if tree.kind(tree.bare(start, at)[0]) == TokenType.DASH:
            yield start, at
        elif _is_sign(tree, start - 1):
            yield start - 1, at
    elif tree.opens(at) and _is_sign(tree, at - 1):
        end = tree.close[at] + 1
        if any(tree.kind(inside) in (*_BITS, TokenType.CARET) for inside in range(at, end)):
            yield at, end


def _is_sign(tree: TokenTree, at: int) -> bool:
    """Whether the token at ``at`` makes what follows negative."""
    before = tree.tokens[at - 1].text if at > 0 else ""
    operand = before.isidentifier() and tree.words[at - 1] not in _KEYWORDS
    ended = at - 1 in tree.open or tree.kind(at - 1) in (TokenType.NUMBER, TokenType.STRING)
    return tree.kind(at) == TokenType.DASH and not (operand or ended)


_KEYWORDS = ("SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "BY", "ON", "IN", "HAVING", "BETWEEN")  # fmt: skip
