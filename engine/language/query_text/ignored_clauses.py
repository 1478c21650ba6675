"""Refuses clauses that DataFusion parses and then leaves out of the plan: rows would be wrong."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.token_tree import TokenTree

_SAMPLED = ("BERNOULLI", "SYSTEM", "RESERVOIR")
_TOTALS = {
    "ROLLUP": "GROUP BY ROLLUP (a, b)",
    "CUBE": "GROUP BY CUBE (a, b)",
    "TOTALS": "GROUP BY GROUPING SETS ((a, b), ())",
}
_OPERANDS = (
    *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN),
    TokenType.NOT,
)


def check_clauses(text: str) -> None:
    """Raise QueryError for a clause that would be ignored, with its place and another form."""
    tree = TokenTree(text)
    for at in range(len(tree.tokens)):
        found = _ignored_clause(tree, at)
        if found is not None:
            raise tree.refusal(at, f"there is no {found[0]}", found[1])


def _ignored_clause(tree: TokenTree, at: int) -> tuple[str, str] | None:
    """The clause that begins at a token, with the remedy."""
    word, after = tree.word(at), tree.word(at + 1)
    sampled = word == "SAMPLE" and tree.opens(at + 1) and tree.kind(at + 2) == TokenType.NUMBER
    if (word == "TABLESAMPLE" and at and (tree.opens(at + 1) or after in _SAMPLED)) or (
        sampled and tree.is_name(at - 1)
    ):
        hint = "Write WHERE random() < 0.1 for a tenth of the rows, LIMIT 100 for any hundred."
        return word, hint
    if word == "PREWHERE" and tree.is_name(at - 1) and tree.kind(at + 1) in _OPERANDS:
        return "PREWHERE", "Write WHERE: what is cheap is evaluated first."
    if tree.kind(at) == TokenType.CONNECT_BY:
        return "CONNECT BY", "Write WITH RECURSIVE tree AS (… UNION ALL …)."
    if word == "WITH" and after in _TOTALS and at and not _is_common(tree, at + 2):
        return f"WITH {after}", f"Write {_TOTALS[after]}."
    if tree.kind(at) == TokenType.STAR and after == "ILIKE":
        return "* ILIKE", "Name the columns, or leave some out: SELECT * EXCLUDE (a, b)."
    return None


def _is_common(tree: TokenTree, at: int) -> bool:
    """Whether a common table expression goes on here, behind its name."""
    return tree.opens(at) or tree.word(at) == "AS"
