"""Reads a JSON schema of an object, as from pydantic and BlendSQL, as the fields of an extraction.

What counts is which kind of value each property is, and its description; bounds, patterns, defaults
and what is required do not: any field may be NULL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint, ConstraintKind, StructField
from blendfusion.udfs.declare.struct_schema import FORM, MOST_DEPTH, MOST_FIELDS

Node: TypeAlias = Mapping[str, Any]

_KINDS: Mapping[str, ConstraintKind] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_FORMATS: Mapping[str, ConstraintKind] = {"date": "date", "date-time": "timestamp"}
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")


def is_json(schema: str) -> bool:
    """Whether a schema is JSON rather than fields in SQL."""
    return schema.lstrip().startswith("{")


def json_fields(schema: str) -> tuple[StructField, ...]:
    """The properties of a JSON schema's object, in their order. Raises ArgumentError, which names
    the property.

    >>> text = '{"type": "object", "properties": {"year": {"type": "integer", "description": "of release"}}}'
    >>> [(f.name, str(f.constraint), f.description) for f in json_fields(text)]
    [('year', 'integer', 'of release')]
    """
    try:
        root = json.loads(schema)
    except (ValueError, RecursionError) as problem:
        raise _error(f"the JSON schema cannot be read: {problem}") from None
    return _Schema(root).fields()


class _Schema:
    def __init__(self, root: Node) -> None:
        self.root = root
        self.read = 0

    def fields(self) -> tuple[StructField, ...]:
        found = self._constraint("the schema", self.root, 0)
        if found.kind != "struct":
            raise _error("the JSON schema is of no object", 'Give {"type": "object", …}.')
        return found.fields

    def _constraint(self, name: str, given: object, depth: int) -> Constraint:
        self.read += 1  # one that refers to itself would never end
        if depth > MOST_DEPTH or self.read > 2 * MOST_FIELDS:
            raise _error(
                f"{name}: the JSON schema has more than {MOST_FIELDS} fields or {MOST_DEPTH} levels"
            )
        node = self._resolve(name, given)
        if "enum" in node or "const" in node:
            return self._choice(name, node)
        kind = node.get("type", "object" if "properties" in node else None)
        if isinstance(kind, list):
            others = [k for k in kind if k != "null"]
            kind = others[0] if len(others) == 1 else kind
        if kind == "object" and isinstance(node.get("properties"), Mapping):
            return Constraint("struct", fields=self._properties(node["properties"], depth))
        if kind == "array":
            items = node.get("items", {"type": "string"})
            return Constraint("list", item=self._constraint(name, items, depth + 1))
        if kind == "string" and node.get("format") in _FORMATS:
            return Constraint(_FORMATS[str(node["format"])])
        if isinstance(kind, str) and kind in _KINDS:
            return Constraint(_KINDS[kind])
        raise _error(
            f"{name}: {json.dumps(node)[:80]} is no type that it can have",
            "Types are string (also of format date and date-time), integer, number, boolean, enum of "
            "strings, array and object with properties.",
        )

    def _properties(self, given: Mapping[str, object], depth: int) -> tuple[StructField, ...]:
        return tuple(
            StructField(
                name,
                self._constraint(f"the property {name}", node, depth + 1),
                str(node.get("description", "")) if isinstance(node, Mapping) else "",
            )
            for name, node in given.items()
        )

    def _choice(self, name: str, node: Node) -> Constraint:
        options = [node["const"]] if "const" in node else node["enum"]
        texts = isinstance(options, list) and all(isinstance(o, str) for o in options)
        if not options or not texts:
            raise _error(f"{name}: its values must be texts", 'Write {"enum": ["a", "b"]}.')
        return Constraint("choice", options=tuple(options))

    def _resolve(self, name: str, given: object) -> Node:
        """The schema behind a reference, or the one alternative besides null."""
        for _ in range(MOST_DEPTH):
            if not isinstance(given, Mapping):
                break
            alternatives = next((given[word] for word in _ALTERNATIVES if word in given), None)
            if isinstance(given.get("$ref"), str):
                given = self._follow(name, given["$ref"])
            elif isinstance(alternatives, list):
                others = [a for a in alternatives if a != {"type": "null"}]
                if len(others) != 1:
                    raise _error(f"{name}: it may be of several types", "Give it one.")
                given = others[0]
            else:
                return given
        raise _error(f"{name}: {str(given)[:80]!r} is no schema")

    def _follow(self, name: str, reference: str) -> object:
        """The schema at ``#/$defs/Name``."""
        found: object = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            found = found.get(part) if isinstance(found, Mapping) else None
        if not reference.startswith("#") or found is None:
            raise _error(f"{name}: nothing is at {reference!r}", "References lead into $defs.")
        return found


def _error(problem: str, hint: str = f"Or write the fields as in {FORM}.") -> ArgumentError:
    return ArgumentError(f"{problem}", hint=hint)
