"""What random queries with colliding names are made of: names, calls, columns and relations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from random_choices import Choices

NAMES = ("n", "x", "v", "k", "b", "w", "id")
"""Of columns, aliases, relations and common table expressions alike."""


@dataclass(eq=False)
class Asked:
    """A call: its question, its value as SQL, and what its uses say."""

    query: int
    number: int
    function: str
    value: str
    said: set[str] = field(default_factory=set)

    @property
    def question(self) -> str:
        return f"q{self.query}_{self.number}"

    @property
    def kind(self) -> str:
        """What its answers look like, as the README has it."""
        fixed = {"llm_int": "integer", "llm_filter": "boolean", "llm_text": "text"}
        if self.function in fixed:
            return fixed[self.function]
        if self.said == {"integer", "number"}:
            return "number"
        return next(iter(self.said)) if len(self.said) == 1 else "text"


@dataclass(frozen=True)
class Column:
    """A column, or an expression: its kind, the calls whose answers its values are, and whether it
    depends on any."""

    sql: str
    kind: str
    calls: tuple[Asked, ...] = ()
    answer: bool = False

    def say(self, kind: str) -> None:
        for call in self.calls:
            call.said.add(kind)


@dataclass(frozen=True)
class Relation:
    """What stands in FROM: the SQL, its alias, and its columns by name."""

    sql: str
    alias: str
    columns: dict[str, Column]
    unnamed: bool = False


TABLES: dict[str, dict[str, str]] = {
    "t": {"id": "int", "n": "int", "x": "text", "k": "text", "b": "bool", "d": "date"},
    "u": {"id": "int", "n": "int", "x": "text", "y": "text", "v": "num"},
    "w": {"id": "int", "v": "int", "k": "text", "x": "text"},
}
KINDS = ("int", "int", "text", "text", "bool", "code", "date", "num")


@dataclass
class Scoped:
    """A query as a template, its calls, and whether its rows are ordered."""

    template: str
    calls: list[Asked]
    ordered: bool

    def rendered(self, call: Callable[[Asked], str], last: str) -> str:
        text = self.template.replace("⟦last⟧", last)
        while "⟦" in text:  # a call may be another's value
            text = re.sub(r"⟦(\d+)⟧", lambda found: call(self.calls[int(found[1])]), text)
        return text


_PARTS = re.compile(
    r"(EXCLUDE \(\w+\)|\$(q?)\$.*?\$\2\$|\"\w+\"|'(?:[^']|'')*')|(\b(?:n|x|v|k|b|w|id)\b(?!\())|([A-Za-z_]\w*)|( )"
)


def rewritten(sql: str, choices: Choices) -> str:
    """The query with other letters, quotes, comments and blanks, which mean the same."""
    most = choices.pick([0, 6, 12])
    if not most:
        return sql

    def other(found: re.Match[str]) -> str:
        string, _, name, word, _ = found.groups()
        if string or not choices.chance(most):
            return found[0]
        if name:
            return choices.pick([name.upper(), f'"{name}"'])
        if word:
            return choices.pick([word.upper(), word.lower()])
        return choices.pick(["  ", "\n", " /* n > 1 */ ", " -- x, '\n", " /**/ "])

    return _PARTS.sub(other, sql)
