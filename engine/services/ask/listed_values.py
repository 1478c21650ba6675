"""Finds a comparison with one item of values that are lists: ``genre = 'Horror'``, where a stored
value is ``Horror, Comedy``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.where import compared_texts, parse, tables
from blendfusion.udfs.declare.arguments import sql_string

_NUMBER = re.compile(r"[\d.,:/ -]*")


@dataclass(frozen=True, slots=True)
class ListItem:
    """A value of a query that the column has only as an item of lists."""

    item: str
    column: str
    """``table.column``."""
    lists: tuple[str, ...]
    """The values of the column that have the item beside others."""

    @property
    def fact(self) -> str:
        """A sentence on what the column has, and on a predicate that finds it.

        >>> ListItem("Horror", "movies.genre", ("Horror, Comedy",)).fact
        "1 value of movies.genre is a list with 'Horror', such as 'Horror, Comedy': genre ILIKE
        '%Horror%' finds it." """
        one = len(self.lists) == 1
        _, _, name = self.column.rpartition(".")
        return (
            f"{len(self.lists)} value{'' if one else 's'} of {self.column} "
            f"{'is a list' if one else 'are lists'} with {sql_string(self.item)}, such as "
            f"{sql_string(self.lists[0])}: {name} ILIKE {sql_string(f'%{self.item}%')} finds "
            f"{'it' if one else 'them'}."
        )


def find_list_item(sql: str, catalog: Catalog) -> ListItem | None:
    """The first text that ``sql`` compares, by ``=`` or IN, with a column of which other values are
    lists with it, separated by commas, semicolons or bars; None if there is none."""
    tree = parse(sql)
    if tree is None:
        return None
    read = {name.lower() for name in tables(tree)}
    columns = [
        (f"{table.name}.{column.name}", column)
        for table in catalog.tables
        if table.name.lower() in read
        for column in table.columns
    ]
    for name, item in compared_texts(tree):
        if _NUMBER.fullmatch(item) or "%" in item or "_" in item:
            continue
        item_of = re.compile(
            rf"(?:^|[,;|\[{{])\s*['\"]?{re.escape(item)}['\"]?\s*(?:[,;|\]}}]|$)", re.IGNORECASE
        )
        for place, column in columns:
            if column.name.lower() != name.lower():
                continue
            whole = item.casefold()
            found = (v for v in column.values if v.casefold() != whole and item_of.search(v))
            if lists := tuple(sorted(found)):
                return ListItem(item, place, lists)
    return None
