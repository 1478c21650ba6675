"""A drafted query beside its question, as the rules see both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from blendfusion.services.ask.column_origins import Origins
from blendfusion.services.ask.links import Link, stem, stems_of_names, words_of
from blendfusion.services.ask.schema.catalog import Catalog

HasRows = Callable[[str], bool | None]
"""Whether a query has rows; None if it does not plan, or would ask a model."""
Doubt = tuple[str, str]
"""A problem, and a hint on how to mend it."""


@dataclass(slots=True)
class Case:
    """A question, the tree of the query, and what is known of the tables."""

    question: str
    tree: exp.Expr
    catalog: Catalog
    has_rows: HasRows
    links: tuple[Link, ...] = ()
    """The stored values that the question mentions."""
    words: tuple[str, ...] = field(init=False)
    """The words of the question in lower case."""
    stems: frozenset[str] = field(init=False)
    names: frozenset[str] = field(init=False)
    """The stems of the names of all tables and columns."""
    origins: Origins = field(init=False)

    def __post_init__(self) -> None:
        self.words = words_of(self.question)
        self.stems = frozenset(map(stem, self.words))
        self.names = frozenset(stems_of_names(self.catalog))
        self.origins = Origins(self.catalog)

    @property
    def beginnings(self) -> frozenset[str]:
        """The first four letters of each word: *hired* and *hiring* share them."""
        return frozenset(word[:4] for word in self.stems)

    @property
    def selects(self) -> list[exp.Select]:
        return list(self.tree.find_all(exp.Select))
