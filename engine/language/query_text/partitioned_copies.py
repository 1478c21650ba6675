"""Keeps NULL in the keys of COPY … PARTITIONED BY.

DataFusion 55 takes NULL in a key for 0, FALSE, 1970-01-01 or an empty text, and folders of those
names get its rows. The keys are texts here, as in the names of folders, with Hive's name for
NULL."""

from __future__ import annotations

from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.places.partitions import NULL_NAME
from blendfusion.planner.stages.offset_bug import ALL
from blendfusion.udfs.declare.arguments import quoted_name


def keep_null_keys(sql: str) -> str:
    """``sql`` with a source whose keys are the names of folders, if it is such a COPY. DataFusion
    takes the word of a key as it stands, and with its quotes."""
    tree = TokenTree(sql)
    start = tree.statement
    if tree.word(start) != "COPY":
        return sql
    first, end = start + 1, _end_of_source(tree, start + 1)
    at = _keys_at(tree, end)
    if at is None:
        return sql
    keys = [key for key in range(at + 1, tree.close[at]) if tree.is_name(key)]
    names = [quoted_name(tree.tokens[key].text) for key in keys]
    texts = ", ".join(f"coalesce(CAST({n} AS VARCHAR), '{NULL_NAME}') AS {n}" for n in names)
    source = f"(SELECT * REPLACE ({texts}) FROM {_order_source(tree, first, end)})"
    bare = [(*tree.span(key, key + 1), tree.tokens[key].text) for key in keys]
    return edit(sql, [(*tree.span(first, end), source), *bare]).sql


def _order_source(tree: TokenTree, start: int, end: int) -> str:
    """The source of a COPY, whose order is kept inside of another query: DataFusion drops one
    without a limit."""
    text = str(tree.source_text(start, end))
    words = {tree.word(at) for at in range(start + 1, end - 1) if tree.depth(start + 1, at) == 0}
    is_bare = "ORDER" in words and not words & {"LIMIT", "FETCH"}
    return f"{text[:-1]}\nLIMIT {ALL})" if tree.opens(start) and is_bare else text


def _end_of_source(tree: TokenTree, at: int) -> int:
    """Where the query or the table behind COPY ends."""
    if tree.opens(at):
        return tree.close[at] + 1
    while at < len(tree.tokens) and tree.word(at) != "TO":
        at += 1
    return at


def _keys_at(tree: TokenTree, at: int) -> int | None:
    """Where the parenthesis of the keys opens; None if there is none."""
    for place in range(at, len(tree.tokens)):
        behind = place + 1 + (tree.word(place + 1) == "BY")
        if tree.word(place) == "PARTITIONED" and tree.opens(behind):
            return behind
    return None
