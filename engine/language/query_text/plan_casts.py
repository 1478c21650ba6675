"""Finds the casts in the text of a plan of DataFusion, and the calls whose answers they read.

A column is followed down the plan to the expression that makes it, as DataFusion resolves it: by
alias and projection, not by name alone, for the names of a query may collide.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from blendfusion.udfs.declare.call import VALUE
from blendfusion.udfs.declare.call_registry import after_call

_CAST = re.compile(r"\bCAST(?=\()")
_CALL = re.compile(r"(?P<field>get_field\()?(?P<name>\w+)(?=\()")
_GROUPED = re.compile(r"groupBy=\[\[(.*)\]\], aggr=\[\[")
_SETS = re.compile(r"(?:ROLLUP|CUBE|GROUPING SETS) \((.*)\)")


@dataclass(slots=True)
class _Node:
    """A relation of a plan: its line, and the relations below it."""

    kind: str
    text: str
    inputs: list[_Node] = field(default_factory=list)


def casts_of_calls(plan: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each call of ``names`` whose answers a cast of ``plan`` reads and nothing else, and the type
    to which it casts them."""
    if not _CAST.search(plan):
        return
    for node in _nodes(plan):
        for cast in _CAST.finditer(node.text):
            inside = node.text[cast.end() + 1 : after_call(node.text, cast.end()) - 1]
            value, _, kind = inside.rpartition(" AS ")
            name = _call(value, node.inputs, names)
            if name is not None:
                yield name, kind


def _nodes(plan: str) -> list[_Node]:
    """The relations of a plan, each with those that are indented below it."""
    found: list[_Node] = []
    above: list[tuple[int, _Node]] = []
    for line in plan.splitlines():
        text = line.lstrip()
        depth = len(line) - len(text)
        kind, _, rest = text.partition(": ")
        node = _Node(kind, rest)
        while above and above[-1][0] >= depth:
            above.pop()
        if above:
            above[-1][1].inputs.append(node)
        above.append((depth, node))
        found.append(node)
    return found


def _call(value: str, inputs: list[_Node], names: Collection[str]) -> str | None:
    """The call whose answer ``value`` is: a call, or a column of the relations below."""
    while True:  # a plan may be deeper than Python's stack
        call = _CALL.match(value)
        if call is not None:
            rest = value[after_call(value, call.end()) :]
            ends = rf', Utf8\("{VALUE}"\)\)' if call["field"] else ""
            whole = re.fullmatch(rf"{ends}(?: AS \w+)*", rest)
            return call["name"] if whole and call["name"] in names else None
        definition = _definition(value, inputs)
        if definition is None:
            return None
        value, inputs = definition


def _definition(column: str, inputs: list[_Node]) -> tuple[str, list[_Node]] | None:
    """The expression that makes a column, and the relations that it is over."""
    waiting = [(column, False, node) for node in reversed(inputs)]
    while waiting:
        # In an alias, a column may have a qualifier that the alias hides.
        name, inside, node = waiting.pop()
        if node.kind == "SubqueryAlias":
            bare = name if inside else name.removeprefix(f"{node.text}.")
            waiting += [(bare, True, below) for below in node.inputs if inside or bare != name]
        elif node.kind in ("Projection", "Aggregate"):
            for item in _items(node):
                value, _, alias = item.rpartition(" AS ")
                ends = inside and not value and item.endswith(f".{name}")
                if ends or name == (alias if value else item):
                    return value or item, node.inputs
        elif node.kind.partition(":")[0] not in ("Subquery", "Union"):
            waiting += [(name, inside, below) for below in reversed(_visible_inputs(node))]
    return None


def _visible_inputs(node: _Node) -> list[_Node]:
    """The relations below whose columns a relation has."""
    if node.kind == "RecursiveQuery" or re.match(r"Left(Semi|Anti|Mark) Join", node.kind):
        return node.inputs[:1]
    return node.inputs[1:] if re.match(r"Right(Semi|Anti|Mark) Join", node.kind) else node.inputs


def _items(node: _Node) -> list[str]:
    """The columns that a projection makes, or the keys of an aggregate."""
    if node.kind == "Projection":
        return list(_split(node.text))
    keys = _GROUPED.match(node.text)
    sets = _SETS.fullmatch(keys[1]) if keys else None
    if sets is None:
        return list(_split(keys[1])) if keys else []
    return [key for some in _split(sets[1]) for key in _split(_without_brackets(some))]


def _without_brackets(text: str) -> str:
    return text[1:-1] if text.startswith("(") and after_call(text, 0) == len(text) else text


def _split(text: str) -> Iterator[str]:
    """The parts of a list between its outermost commas."""
    depth, start, quoted = 0, 0, False
    for at, character in enumerate(text):
        quoted ^= character == '"'
        if not quoted:
            depth += (character in "([{") - (character in ")]}")
            if character == "," and not depth:
                yield text[start:at].strip()
                start = at + 1
    yield text[start:].strip()
