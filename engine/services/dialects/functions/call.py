"""One call of another system's function, and the tables that say what such a call is here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Pieces, Weaver
from blendfusion.language.query_text.source_map import Piece
from blendfusion.services.dialects.functions.types import Types

Span: TypeAlias = tuple[int, int]
Written: TypeAlias = "Iterable[Piece | str]"
MANY = "…"
"""The last parameter of a function that takes any number of them."""


@dataclass(frozen=True)
class FunctionCall:
    """One call: its name stands at ``at``, its arguments between the parentheses."""

    weaver: Weaver
    types: Types
    system: System
    at: int
    stop: int
    arguments: tuple[Span, ...]

    @property
    def reader(self) -> Reader:
        return self.weaver.reader

    @property
    def name(self) -> str:
        return self.reader.word(self.at)

    def value(self, place: int) -> Pieces:
        """An argument as an expression of our SQL."""
        return self.weaver.weave(*self.arguments[place])

    def sql(self, place: int) -> str:
        """An argument in our SQL, as a text."""
        return self.weaver.text(*self.arguments[place])

    def words(self, place: int) -> str:
        """An argument as it is written, in upper case and without quotes: the unit of a date."""
        start, stop = self.arguments[place]
        if stop == start + 1:
            return self.reader.tokens[start].text.upper()
        return self.reader.one_line(start, stop).upper()

    def literal(self, place: int) -> str | None:
        """The text of an argument that is a text literal; None for any other argument."""
        start, stop = self.arguments[place]
        alone = stop == start + 1 and self.reader.kind(start) == TokenType.STRING
        return self.reader.tokens[start].text if alone else None

    def text(self, place: int, what: str) -> str:
        """The text of an argument that is a text literal. Raises QueryError for any other."""
        found = self.literal(place)
        if found is None:
            raise self.refusal(f"{what} must be a literal text here", at=self.arguments[place][0])
        return found

    def number(self, place: int) -> int | None:
        """An argument that is a whole number, with a sign or without; None for another one."""
        text = self.reader.one_line(*self.arguments[place]).replace(" ", "")
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else None

    def type(self, place: int) -> pa.DataType | None:
        """The type of an argument; None if it is not known."""
        return self.types.of(*self.arguments[place])

    def fill(self, template: str, **places: int) -> Iterator[Piece | str]:
        """``template`` with arguments in the places of their names in braces."""
        for i, piece in enumerate(re.split(r"\{(\w+)\}", template)):
            if i % 2:
                yield from self.value(places[piece] if piece in places else int(piece))
            else:
                yield piece

    def refusal(
        self, problem: str, hint: str | None = None, *, at: int | None = None
    ) -> QueryError:
        """The error of this call."""
        return self.reader.refusal(self.at if at is None else at, f"{self.name}: {problem}", hint)


Write: TypeAlias = "Callable[[FunctionCall], Written]"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a function is called, and what it is here: our SQL with the parameters in braces, or what
    writes it."""

    signature: str
    write: str | Write

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        listed = self.signature.partition("(")[2].rstrip(")")
        return tuple(part.strip() for part in listed.split(",") if part.strip())

    def takes(self, count: int) -> bool:
        """It is a call with this number of arguments."""
        many = MANY in self.parameters
        return count >= len(self.parameters) - 1 if many else count == len(self.parameters)

    def write_call(self, call: FunctionCall) -> Written:
        """The call in our SQL."""
        if not isinstance(self.write, str):
            return self.write(call)
        places = {name: i for i, name in enumerate(self.parameters)}
        return call.fill(self.write, **places)


Table: TypeAlias = "Mapping[str, str | Write]"


@dataclass(frozen=True)
class System:
    """Another system, by what replaces its functions and operators here.

    ``table``: the replacements, by signatures. ``same``: functions that mean the same in both.
    ``refused``: functions without a replacement, each with a remedy. ``casts``: its types, by
    ours."""

    title: str
    table: Table
    same: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    casts: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    """EXTRACT: each part of a date or time as our SQL of ``{0}``."""
    rounds: bool = False
    """A cast of a fraction to a whole number rounds; ours leaves the fraction out."""
    rounds_to_even: bool = False
    """Such a cast of a DOUBLE rounds a half to the even number."""
    shortens: bool = False
    """A cast to VARCHAR(n) leaves out what is longer."""
    moment: str = ""
    """The format of a time as a text; ours has a T in the middle."""
    exact_division: bool = False
    """``1 / 2`` is a half."""
    null_of_zero: bool = False
    """A division by zero is NULL; otherwise it is an error."""
    nulls_lowest: bool = False
    """NULL is the lowest value of an order; ours has it as the highest."""
    truth_is_number: bool = False
    """``condition = 1`` is possible."""
    first_index: int = 1
    """The place of the first item of an array."""
    date_difference: str = ""
    """The hint for ``date - date``, which is no number of days there."""
    dates_are_numbers: bool = False
    """``date + 1`` is a sum of whole numbers."""
    unnests_by_name: bool = False
    """``FROM UNNEST(list) AS item`` names the items, and ``x IN UNNEST(list)`` is possible."""
    slices: bool = False
    """``text[0:5]`` are the first five characters of a text."""
    quoted_texts: bool = False
    """A name in double quotes that is none is a text."""
    paths: bool = False
    """``column:field`` reads a field."""
    matches: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Operators of patterns: each as our operator, and the pattern with ``{0}`` in its place, or
    the name of what converts a literal."""
    like: str = "LIKE"
    any_case: bool = False
    """A comparison with a text does not regard letter case."""
    bars_join: bool = True
    """``||`` joins texts; otherwise it is OR."""
    caret_is_power: bool = False
    """``^`` is a power; ours is the exclusive OR of bits."""
    leaves: Callable[[FunctionCall], bool] = lambda call: False
    """Calls of functions of the table that mean the same here."""
    strict: bool = True
    """Functions of ours that are no function of the system are refused."""

    @cached_property
    def spellings(self) -> Mapping[str, list[Spelling]]:
        """The functions of the table by their names."""
        found: dict[str, list[Spelling]] = {}
        for signature, write in self.table.items():
            spelling = Spelling(signature, write)
            found.setdefault(spelling.name, []).append(spelling)
        return found
