"""Accepted queries as templates: a question with other literals only is not drafted anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from blendfusion.language.query_text.sqlglot_tree import tree_of
from blendfusion.services.ask.links import STOP_WORDS, words_of
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.tokens import tokens
from blendfusion.udfs.declare.arguments import sql_string

_LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.'\"])[0-9]+(?:\.[0-9]+)?(?![\w.'\"])")
_SHORT = 3
"""Words of the longest literal of a column without known values: more are another question."""
_LONGEST = 7
"""Tokens of the longest literal."""
_NEAR = 5
"""Values with another spelling that a model chooses among."""
_OTHER_MEANING = STOP_WORDS | frozenset(
    "anybody anyone anything anywhere besides either else ever everybody everyone everything everywhere "
    "except excluding instead less never no nobody none nothing nowhere only other others outside "
    "over somewhere under".split()
)
"""Words beside a value that make another predicate of it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A literal of a query that its question states, at one place or more. ``column``: the column
    that it is compared with, without qualifiers; '' if unknown."""

    places: tuple[tuple[int, int], ...]
    column: str
    is_number: bool
    pattern: str = "{}"
    """The text of the literal, with ``{}`` for what the question states: ``%{}%``."""


@dataclass(frozen=True, slots=True)
class Template:
    """An accepted question with its query. ``parts`` are the keys of the question's tokens between
    the slots, in their order."""

    question: str
    sql: str
    slots: tuple[Slot, ...]
    order: tuple[int, ...]
    """The slot of each gap between ``parts``."""
    parts: tuple[tuple[str, ...], ...]

    def stated_texts(self, question: str) -> list[str] | None:
        """The text that ``question`` states for each slot, in its own words, or a number as SQL
        writes it; None if it differs in other words, or a number has several meanings."""
        own = tokens(question)
        gaps = [self._gap(at) for at in range(len(self.order))]
        texts = [" ".join(part) for part in self.parts]
        pattern = re.escape(texts[0])
        for gap, text in zip(gaps, texts[1:], strict=True):
            pattern += f"{' ' if pattern else ''}{gap}{' ' if text else ''}{re.escape(text)}"
        keys = " ".join(token.key for token in own)
        found = re.fullmatch(pattern, keys)
        if found is None:
            return None
        stated = [""] * len(self.slots)
        for at, slot in enumerate(self.order):
            first = keys.count(" ", 0, found.start(f"g{at}"))
            last = first + found[f"g{at}"].count(" ")
            number = own[first].number if self.slots[slot].is_number else None
            text = question[own[first].start : own[last].stop]
            text = text if number is None else number.literal or ""
            if stated[slot] not in ("", text):
                return None
            stated[slot] = text
        return stated

    def _gap(self, at: int) -> str:
        number = self.slots[self.order[at]].is_number
        return rf"(?P<g{at}>#\S+)" if number else rf"(?P<g{at}>\S+(?: \S+){{0,{_LONGEST - 1}}}?)"


def template_of(question: str, sql: str) -> Template | None:
    """The template of an accepted pair. None if the question states none of the literals, or if
    other values would leave the query with literals of the old ones: one text in two columns, or a
    column that is compared with another literal, too, which may follow from the stated one."""
    own = tokens(question)
    literals = _merge(_literals(sql))
    slots: list[Slot] = []
    texts: set[str] = set()
    spans: list[tuple[int, int, int]] = []
    left: list[tuple[Slot, str]] = []
    for slot, text in literals:
        spelled = tuple(token.key for token in tokens(text))
        at = _find(tuple(token.key for token in own), spelled)
        taken = any(at < stop and start < at + len(spelled) for start, stop, _ in spans)
        if not spelled or at < 0 or taken:
            left.append((slot, text))
            continue
        spans.append((at, at + len(spelled), len(slots)))
        slots.append(slot)
        texts.add(text)
    columns = {slot.column for slot in slots if slot.column}
    if not slots or any(slot.column in columns or text in texts for slot, text in left):
        return None
    parts, begin = [], 0
    spans.sort()
    for start, stop, _ in spans:
        parts.append(tuple(token.key for token in own[begin:start]))
        begin = stop
    order = tuple(slot for _, _, slot in spans)
    parts.append(tuple(token.key for token in own[begin:]))
    return Template(question, sql, tuple(slots), order, tuple(parts))


def _merge(literals: Iterable[tuple[Slot, str]]) -> list[tuple[Slot, str]]:
    """Equal literals of one column as one slot of several places."""
    places: dict[tuple[Slot, str], list[tuple[int, int]]] = {}
    for slot, text in literals:
        places.setdefault((replace(slot, places=()), text), []).extend(slot.places)
    return [(replace(slot, places=tuple(own)), text) for (slot, text), own in places.items()]


def _literals(sql: str) -> Iterator[tuple[Slot, str]]:
    """The literals of a query, in order; a literal that several columns are compared with has a
    slot for each of them."""
    columns = _columns_of(sql)
    for found in _LITERAL.finditer(sql):
        text = found[0] if found[1] is None else found[1].replace("''", "'")
        bare = text if found[1] is None else text.strip("%")
        pattern = text.replace(bare, "{}", 1) if bare else text
        for column in sorted(columns.get(text, {""})) if bare else ():
            yield Slot((found.span(),), column, found[1] is None, pattern), bare


def _columns_of(sql: str) -> dict[str, set[str]]:
    """The columns that each literal is compared with, by the literal's text; '' for none."""
    tree = tree_of(sql)
    found: dict[str, set[str]] = {}
    for literal in tree.find_all(exp.Literal) if tree is not None else ():
        parent = literal.find_ancestor(exp.Binary, exp.In, exp.Between)
        column = parent.find(exp.Column) if parent is not None else None
        found.setdefault(literal.this, set()).add(column.name if column is not None else "")
    return found


def _find(words: tuple[str, ...], part: tuple[str, ...]) -> int:
    starts = range(len(words) - len(part) + 1)
    return next((at for at in starts if words[at : at + len(part)] == part), -1)


@dataclass(slots=True)
class Templates:
    """The accepted pairs of a session."""

    pairs: dict[str, str] = field(default_factory=dict)
    """The query of each accepted question, the latest last."""
    kept: list[Template] = field(default_factory=list)
    """The pairs whose question states literals of the query."""

    def accept(self, question: str, sql: str) -> None:
        """Keep a question with its query, in place of an earlier one in the same words."""
        self.pairs.pop(question, None)
        self.pairs[question] = sql
        template = template_of(question, sql)
        if template is not None:
            same = [t for t in self.kept if (t.parts, t.order) != (template.parts, template.order)]
            self.kept = [*same, template]

    def fill(self, question: str, catalog: Catalog) -> FilledTemplate | None:
        """The query of the latest template that fits ``question``; None if none does."""
        for template in reversed(self.kept):
            stated = template.stated_texts(question)
            if stated is not None:
                choices = [
                    _choices(slot, text, catalog)
                    for slot, text in zip(template.slots, stated, strict=True)
                ]
                if all(choice.stored or choice.near for choice in choices):
                    return FilledTemplate(template, tuple(choices))
        return None


@dataclass(frozen=True, slots=True)
class Choice:
    """The literals that may stand in a slot. ``stored``: those that the question means; if there is
    none, ``near``: values with another spelling, and ``as_stated``, which a model writes if it
    means none of them."""

    stored: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    as_stated: str = ""


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A template with what may stand in each slot."""

    template: Template
    choices: tuple[Choice, ...]

    @property
    def sql(self) -> str | None:
        """The query; None if a slot has several choices."""
        if any(len(choice.stored) != 1 for choice in self.choices):
            return None
        return self._write([choice.stored[0] for choice in self.choices])

    @property
    def pattern(self) -> str:
        """A regular expression of the queries that a model may write: only literals are left."""
        return self._pattern([(*c.stored, *c.near, c.as_stated) for c in self.choices])

    def holds(self, sql: str) -> bool:
        """Whether the literals that a model chose are stored values."""
        stored = self._pattern([choice.stored or choice.near for choice in self.choices])
        return re.fullmatch(stored, sql) is not None

    def _pattern(self, choices: Iterable[tuple[str, ...]]) -> str:
        escaped = [f"({'|'.join(map(re.escape, filter(None, each)))})" for each in choices]
        return self._write(escaped, re.escape)

    def _write(self, literals: list[str], write: Callable[[str], str] = str) -> str:
        sql, written, at = self.template.sql, "", 0
        slots = zip(self.template.slots, literals, strict=True)
        places = sorted((*place, literal) for slot, literal in slots for place in slot.places)
        for start, stop, literal in places:
            written += write(sql[at:start]) + literal
            at = stop
        return written + write(sql[at:])


def _choices(slot: Slot, stated: str, catalog: Catalog) -> Choice:
    """The literals that words of a question may mean in a slot; none if they fit none. A column
    with known values takes these alone."""
    if slot.is_number:
        return Choice((stated,) if stated else ())
    known = [
        column
        for table in catalog.tables
        for column in table.columns
        if column.name.lower() == slot.column.lower() and column.values
    ]
    if not known or slot.pattern != "{}":
        literal = sql_string(slot.pattern.replace("{}", stated))
        return Choice((literal,) if _is_name(stated) else ())
    values = list(dict.fromkeys(value for column in known for value in column.values))
    same = [value for value in values if _means(stated, value)]
    if same:
        return Choice(tuple(map(sql_string, same)))
    if not _is_name(stated):
        return Choice()
    folded = [value.lower() for value in values]
    near = get_close_matches(stated.lower(), folded, n=_NEAR, cutoff=0.6)
    close = tuple(sql_string(value) for value in values if value.lower() in near)
    return Choice(near=close, as_stated=sql_string(stated))


def _is_name(stated: str) -> bool:
    """Whether a text may be a value: it is short, and no word of it makes another predicate."""
    words = [token.key for token in tokens(stated)]
    short = len(stated.split()) <= _SHORT
    return short and not _OTHER_MEANING.intersection(words) and not set(stated) & {"%", "_"}


def _means(stated: str, value: str) -> bool:
    """Whether all that is stated is the value, or its initials."""
    words = words_of(value)
    folded = " ".join(stated.casefold().split())
    if " ".join(value.casefold().split()) == folded:
        return True
    keys = [[token.key for token in tokens(text)] for text in (stated, value)]
    return keys[0] == keys[1] or (
        len(words) > 1 and "".join(word[0] for word in words) == folded.replace(".", "")
    )
