"""Accepted queries as templates: a question with other literals only is not drafted anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from blendfusion.language.query_text.sqlglot_tree import tree_of
from blendfusion.services.ask.links import words_of
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.udfs.declare.arguments import quoted

_LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.'\"])[0-9]+(?:\.[0-9]+)?(?![\w.'\"])")
_WORDS = {
    word: n for n, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
_SHORT = 3
"""Words of the longest literal that is no stored value: more are another question."""
_NEAR = 5
"""Values with another spelling that a model chooses among."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A literal of a query that its question states. ``column``: the column that it is compared
    with, without qualifiers; '' if unknown."""

    start: int
    stop: int
    column: str
    is_number: bool
    pattern: str = "{}"
    """The text of the literal, with ``{}`` for what the question states: ``%{}%``."""


@dataclass(frozen=True, slots=True)
class Template:
    """An accepted question with its query. ``parts`` are the question's words between the slots, in
    their order."""

    question: str
    sql: str
    slots: tuple[Slot, ...]
    order: tuple[int, ...]
    """The slot of each gap between ``parts``."""
    parts: tuple[tuple[str, ...], ...]

    def stated(self, question: str) -> list[str] | None:
        """The words of ``question`` for each slot; None if it differs in other words."""
        words = words_of(question)
        gaps = [rf"(?P<g{at}>\S+(?: \S+){{0,6}}?)" for at in range(len(self.order))]
        texts = [" ".join(part) for part in self.parts]
        pattern = re.escape(texts[0])
        for gap, text in zip(gaps, texts[1:], strict=True):
            pattern += f"{' ' if pattern else ''}{gap}{' ' if text else ''}{re.escape(text)}"
        found = re.fullmatch(pattern, " ".join(words))
        if found is None:
            return None
        stated = [""] * len(self.slots)
        for at, slot in enumerate(self.order):
            if stated[slot] and stated[slot] != found[f"g{at}"]:
                return None
            stated[slot] = found[f"g{at}"]
        return stated


def template_of(question: str, sql: str) -> Template | None:
    """The template of an accepted pair; None if the question states none of the literals."""
    words = words_of(question)
    slots: list[Slot] = []
    places: list[tuple[int, int, int]] = []
    for slot, text in _literals(sql):
        spelled = words_of(text)
        if slot.is_number and text.isdigit() and int(text) in _WORDS.values():
            spelled = _number_in(words, text)
        at = _find(words, spelled)
        taken = any(at < stop and start < at + len(spelled) for start, stop, _ in places)
        if spelled and at >= 0 and not taken:
            places.append((at, at + len(spelled), len(slots)))
            slots.append(slot)
    if not slots:
        return None
    parts, begin = [], 0
    places.sort()
    for start, stop, _ in places:
        parts.append(words[begin:start])
        begin = stop
    order = tuple(slot for _, _, slot in places)
    return Template(question, sql, tuple(slots), order, (*parts, words[begin:]))


def _literals(sql: str) -> Iterator[tuple[Slot, str]]:
    columns = _columns_of(sql)
    for found in _LITERAL.finditer(sql):
        if found[1] is None:
            yield Slot(*found.span(), columns.get(found[0], ""), is_number=True), found[0]
        else:
            text = found[1].replace("''", "'")
            bare = text.strip("%")
            if bare:
                pattern = text.replace(bare, "{}", 1)
                yield Slot(*found.span(), columns.get(text, ""), False, pattern), bare


def _columns_of(sql: str) -> dict[str, str]:
    """The column that each literal is compared with, by the literal's text."""
    tree = tree_of(sql)
    found: dict[str, str] = {}
    for literal in tree.find_all(exp.Literal) if tree is not None else ():
        parent = literal.find_ancestor(exp.Binary, exp.In, exp.Between)
        column = parent.find(exp.Column) if parent is not None else None
        found.setdefault(literal.this, column.name if column is not None else "")
    return found


def _find(words: tuple[str, ...], part: tuple[str, ...]) -> int:
    starts = range(len(words) - len(part) + 1)
    return next((at for at in starts if words[at : at + len(part)] == part), -1)


def _number_in(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """A number as the question writes it, in digits or as a word."""
    spelled = next((word for word in words if str(_WORDS.get(word, word)) == text), text)
    return (spelled,)


@dataclass(slots=True)
class Templates:
    """The accepted pairs of a session."""

    pairs: dict[str, str] = field(default_factory=dict)
    """The query of each accepted question, the latest last."""
    kept: list[Template] = field(default_factory=list)
    """The pairs whose question states literals of the query."""

    def accept(self, question: str, sql: str) -> None:
        """Keep a pair; a later one with the same words replaces it."""
        self.pairs.pop(question, None)
        self.pairs[question] = sql
        template = template_of(question, sql)
        if template is not None:
            same = [t for t in self.kept if (t.parts, t.order) != (template.parts, template.order)]
            self.kept = [*same, template]

    def filled(self, question: str, catalog: Catalog) -> Filled | None:
        """The query of the latest template that fits ``question``; None if none does."""
        for template in reversed(self.kept):
            stated = template.stated(question)
            if stated is not None:
                choices = [
                    _choices(slot, text, question, catalog)
                    for slot, text in zip(template.slots, stated, strict=True)
                ]
                if all(choices):
                    return Filled(template, tuple(choices))
        return None


@dataclass(frozen=True, slots=True)
class Filled:
    """A template with the literals that may stand in each slot, one where the question states it
    clearly."""

    template: Template
    choices: tuple[tuple[str, ...], ...]

    @property
    def sql(self) -> str | None:
        """The query; None if a slot has several choices."""
        if any(len(choice) > 1 for choice in self.choices):
            return None
        return self._written([choice[0] for choice in self.choices])

    @property
    def pattern(self) -> str:
        """A regular expression of the possible queries: only literals are left to write."""
        escaped = [f"({'|'.join(map(re.escape, choice))})" for choice in self.choices]
        return self._written(escaped, re.escape)

    def _written(self, literals: list[str], write: Callable[[str], str] = str) -> str:
        sql, written, at = self.template.sql, "", 0
        for slot, literal in zip(self.template.slots, literals, strict=True):
            written += write(sql[at : slot.start]) + literal
            at = slot.stop
        return written + write(sql[at:])


def _choices(slot: Slot, stated: str, question: str, catalog: Catalog) -> tuple[str, ...]:
    """The literals that words of a question may mean in a slot; none if they fit no literal."""
    if slot.is_number:
        number = str(_WORDS.get(stated, stated)).replace(" ", ".")
        return (number,) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", number) else ()
    written = quoted(slot.pattern.replace("{}", _as_written(stated, question)))
    known = [
        column
        for table in catalog.tables
        for column in table.columns
        if column.name.lower() == slot.column.lower() and column.values
    ]
    short = len(stated.split()) <= _SHORT
    if not known or slot.pattern != "{}":
        return (written,) if short else ()
    values = list(dict.fromkeys(value for column in known for value in column.values))
    same = [value for value in values if _means(stated, value)]
    if same:
        return tuple(map(quoted, same))
    if not short:
        return ()
    near = get_close_matches(stated, [value.lower() for value in values], n=_NEAR, cutoff=0.6)
    return (*(quoted(value) for value in values if value.lower() in near), written)


def _means(stated: str, value: str) -> bool:
    """Whether all that is stated is the value, or its initials."""
    words = words_of(value)
    return " ".join(words) == stated or (
        len(words) > 1 and "".join(word[0] for word in words) == stated
    )


def _as_written(stated: str, question: str) -> str:
    """Words of a question in its own letter case."""
    found = re.search(r"[\W_]+".join(map(re.escape, stated.split())), question, re.IGNORECASE)
    return found[0] if found else stated
