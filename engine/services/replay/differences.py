"""The rows in which two recorded runs differ, each with its cause: a value, a wording, a threshold,
the model, an option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.sqlglot_tree import tree_of
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.services.replay.manifest import Manifest
from blendfusion.services.replay.row_changes import Row, row_changes

VALUE, WORDING, THRESHOLD, QUERY = "value", "wording", "threshold", "query"
MODEL, OPTION, ANSWER = "model", "option", "answer"
_PROMISES = ("accuracy", "recall", "precision", "delta")
_OTHERS = (VALUE, QUERY, OPTION)
"""Causes that may change a column in which no answer stands."""


def difference(before: Manifest, now: Manifest) -> pa.Table:
    """A row for each row of the results that was added, removed or changed: ``change``, ``cause``,
    the changed ``columns`` (NULL unless both results have the row), and the row ``before`` and
    ``now`` as structs. Rows come in the order of the later result, those that were removed behind
    them. A cause with `` or `` names those that the two records do not tell apart."""
    causes = causes_of(before, now)
    answers = _answer_columns(str(now.sections["query"]["text"] or ""))
    found = row_changes(before.result, now.result)
    rows: list[tuple[str, Row | None, Row | None]]
    rows = [("changed", old, new) for old, new in found.changed]
    rows += [("added", None, new) for new in found.added]
    rows += [("removed", old, None) for old in found.removed]
    listed = [_record(change, old, new, causes, answers) for change, old, new in rows]
    columns = {name: [row[name] for row in listed] for name in ("change", "cause", "columns")}
    made = pa.table(columns, schema=_SCHEMA)
    for name, result, place in (("before", before.result, 1), ("now", now.result, 2)):
        kind = pa.struct(list(result.schema.remove_metadata()))
        made = made.append_column(name, pa.array([row[place] for row in rows], kind))
    return made


_SCHEMA = pa.schema(
    [("change", pa.string()), ("cause", pa.string()), ("columns", pa.list_(pa.string()))]
)


def _record(
    change: str,
    old: Row | None,
    new: Row | None,
    causes: Iterable[str],
    answers: frozenset[str] | None,
) -> dict[str, Any]:
    if old is None or new is None:
        return {"change": change, "cause": " or ".join(causes), "columns": None}
    columns = [n for n in {**old, **new} if n not in old or n not in new or old[n] != new[n]]
    fitting = list(causes)
    if answers is not None and VALUE in fitting:
        plain = [name for name in columns if name not in answers]
        if plain:  # no answer stands there
            fitting = [cause for cause in fitting if cause in _OTHERS]
    return {"change": change, "cause": " or ".join(fitting), "columns": columns}


def causes_of(before: Manifest, now: Manifest) -> list[str]:
    """The differences of two runs that may change rows, by kind. If there is none, the model gave
    other answers to the same questions."""
    old, new = before.sections, now.sections
    found = []
    if _inputs(old["inputs"]) != _inputs(new["inputs"]):
        found.append(VALUE)
    if old["query"] != new["query"]:
        found += _text_causes(old["query"], new["query"])
    options = {n for n in new["options"] if old["options"].get(n) != new["options"][n]}
    if options & {*_PROMISES} and THRESHOLD not in found:
        found.append(THRESHOLD)
    if _models(old["models"]) != _models(new["models"]):
        found.append(MODEL)
    if options - {*_PROMISES} or old["versions"] != new["versions"]:
        found.append(OPTION)
    return found or [ANSWER]


def _inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: (one["columns"], one["digest"]) for name, one in inputs.items()}


def _models(models: Mapping[str, Any]) -> Any:
    own = [one["fingerprint"] for one in models["own"]]
    return own, {n: one["fingerprint"] for n, one in models["named"].items()}, models["embedder"]


def _text_causes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The kinds of the differences between two texts: of numbers, of texts in calls, or others."""
    if old["text"] is None or new["text"] is None:
        return [QUERY]
    first, second = TokenTree(old["text"]), TokenTree(new["text"])
    if len(first.tokens) != len(second.tokens):
        return [QUERY] if _outline(first) != _outline(second) else [WORDING]
    found = set()
    for at, (one, other) in enumerate(zip(first.tokens, second.tokens, strict=True)):
        if (one.token_type, one.text) != (other.token_type, other.text):
            found.add(_cause_at(first, at, other))
    return [cause for cause in (WORDING, THRESHOLD, QUERY) if cause in found]


def _cause_at(tree: TokenTree, at: int, other: Token) -> str:
    kind = tree.tokens[at].token_type
    if kind != other.token_type:
        return QUERY
    if kind == TokenType.NUMBER:
        return THRESHOLD
    return WORDING if kind == TokenType.STRING and _in_call(tree, at) else QUERY


def _in_call(tree: TokenTree, at: int) -> bool:
    """Whether a token stands among the arguments of a function that asks."""
    outer = (i for i, end in tree.close.items() if i < at < end and tree.opens(i))
    return any(tree.word(i - 1).startswith("LLM_") for i in outer)


def _outline(tree: TokenTree) -> list[str]:
    """The words of a text without the arguments of calls."""
    return [w for at, w in enumerate(tree.words) if not _in_call(tree, at)]


def _answer_columns(query: str) -> frozenset[str] | None:
    """The columns of a query's result that hold answers; None where the text does not tell."""
    tree = tree_of(query)
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select))) != 1:
        return None
    return frozenset(
        one.alias_or_name
        for one in tree.expressions
        if any(call.name.lower().startswith("llm_") for call in one.find_all(exp.Anonymous))
    )
