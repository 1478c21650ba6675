"""The columns that folders called ``name=value`` give to the files in them, as Hive and Spark write
them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

_NAMED = re.compile(r"(?P<name>\w[\w %.-]*)=(?P<value>.*)", re.DOTALL)
_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")
"""A whole number whose text is found again from it: ``01`` is a text."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"*<>\[\\\]^`{|}~]""")
"""Characters that object stores escape: DataFusion lists such a folder, and does not find it by its
value."""
NULL_NAME = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Partition:
    """A folder called ``name=value``."""

    name: str
    value: str | None
    """Without its escapes; None for NULL."""
    written: str
    """The value as the name of the folder has it."""

    @property
    def is_plain(self) -> bool:
        """Whether DataFusion reads the value as it is meant, and finds it: it knows neither escapes
        nor NULL."""
        return self.value == self.written and self.is_found

    @property
    def is_found(self) -> bool:
        """Whether DataFusion finds the folder of a value: ``k = 'a[1]'`` gives no row there."""
        return not _ESCAPED.search(self.written)


def partition_of(folder: str) -> Partition | None:
    """The partition of a folder by its name; None for another folder.

    >>> partition_of("month=01"), partition_of("month")
    (Partition(name='month', value='01', written='01'), None)
    """
    found = _NAMED.fullmatch(folder)
    if found is None:
        return None
    value = None if found["value"] == NULL_NAME else unquote(found["value"])
    return Partition(unquote(found["name"]), value, found["value"])


def type_of_values(values: Iterable[str | None]) -> pa.DataType:
    """The type of a partition column: whole numbers, dates, or text.

    >>> type_of_values(["1", "12"]), type_of_values(["01", "12"])
    (DataType(int64), DataType(string))
    """
    known = [value for value in values if value is not None]
    if known and all(map(_NUMBER.fullmatch, known)):
        return pa.int64()
    if known and all(map(_is_date, known)):
        return pa.date32()
    return pa.string()


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def types_of(partitions: Iterable[Sequence[Partition]]) -> dict[str, pa.DataType]:
    """The partition columns of a table, in order, by the partitions of each of its files."""
    values: dict[str, set[str | None]] = {}
    for of_file in partitions:
        for partition in of_file:
            values.setdefault(partition.name, set()).add(partition.value)
    return {name: type_of_values(found) for name, found in values.items()}
