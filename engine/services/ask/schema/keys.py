"""Finds the keys between tables that nobody declared: by names, uniqueness and containment.

A key is a column that is unique in its table and named as an identifier; a reference is a column of
another table whose values the key contains. The names must say so: they are equal, or the reference
is named after the key's table. A reference named otherwise is found only if one key alone can be
meant, and its values fit by more than chance (inclusion dependencies: Rostin et al., A Machine
Learning Approach to Foreign Key Discovery, WebDB 2009).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_types import is_text

_CONTAINED = 0.9
"""Share of the values of a reference that occur in the key."""
_DENSE = 0.5
"""Integer keys that fill more than this share of their range contain others by chance."""
_SHORTEST = 3
"""Letters of the name of a table, for a reference to be named after it."""
_SAMPLE = 20
"""Values of a reference that are looked up in all keys: a key that holds ``_CONTAINED`` of all
values holds half of these, but for one in a million."""
_LONG = 256
"""Bytes; texts of a longer mean are no identifiers."""
_IDENTIFIER = re.compile(r"_?(id|uid|uuid|code|key|no|nr|num|number)$")


@dataclass(frozen=True, slots=True)
class Key:
    """Columns whose equal values join two tables."""

    left: str
    """The reference, as ``table.column``."""
    right: str
    """The key."""

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(slots=True, eq=False)
class _Field:
    """A column, and what its name and values say."""

    table: str
    name: str
    values: pa.ChunkedArray
    first: bool
    """It is the first column of its table."""
    folded: str = ""
    """The name in lower case, without what all names of the table begin with."""
    distinct: pa.Array = field(init=False)
    _bounds: tuple[object, object] | None = None

    def __post_init__(self) -> None:
        distinct = self.values.unique().drop_null()
        if pa.types.is_dictionary(distinct.type):
            distinct = distinct.cast(distinct.type.value_type).unique().drop_null()
        wide = pa.int64() if pa.types.is_integer(distinct.type) else pa.string()
        self.distinct = distinct if distinct.type == pa.uint64() else distinct.cast(wide)

    @property
    def place(self) -> str:
        return f"{self.table}.{self.name}"

    @property
    def base(self) -> str:
        """The name without its word for an identifier; '' for a name such as ``id``."""
        return _IDENTIFIER.sub("", self.folded)

    @property
    def names(self) -> list[str]:
        """The forms of the name that are more than a word for an identifier."""
        forms = dict.fromkeys((self.name.lower(), self.folded))
        return [form for form in forms if _IDENTIFIER.sub("", form)]

    @property
    def is_key(self) -> bool:
        named = self.base != self.folded
        return named and 0 < len(self.distinct) == len(self.values)

    @property
    def bounds(self) -> tuple[object, object]:
        if self._bounds is None:
            found = pc.min_max(self.distinct).as_py()
            self._bounds = (found["min"], found["max"])
        return self._bounds

    @property
    def is_sparse(self) -> bool:
        """Another column's values are hardly contained by chance."""
        if not pa.types.is_integer(self.distinct.type):
            return True
        low, high = self.bounds
        return len(self.distinct) < _DENSE * (int(str(high)) - int(str(low)) + 1)

    def refers_to(self, key: _Field) -> bool:
        """Whether the key contains the values of this column."""
        if key.table == self.table or key.distinct.type != self.distinct.type:
            return False
        (low, high), (least, most) = self.bounds, key.bounds
        if low > most or high < least:  # type: ignore[operator]  # of one type
            return False
        known = pc.sum(pc.is_in(self.distinct, value_set=key.distinct)).as_py() or 0
        return bool(known >= _CONTAINED * len(self.distinct))


def keys_between(tables: Mapping[str, pa.Table]) -> Iterable[Key]:
    """The references of each table to keys of the others, at most one for a column."""
    fields = [one for name, table in tables.items() for one in _fields(name, table)]
    keys = _Keys([one for one in fields if one.is_key])
    keys.sample([one for one in fields if keys.key_named_by(one) is None])
    pairs: set[frozenset[str]] = set()
    for one in fields:
        key = keys.of(one)
        if key is None:
            continue
        pair = frozenset((one.place, key.place))
        if pair not in pairs:
            pairs.add(pair)
            yield Key(one.place, key.place)


def _fields(name: str, table: pa.Table) -> Iterable[_Field]:
    folded = [column.lower() for column in table.column_names]
    first, line, _ = folded[0].partition("_") if len(folded) > 1 else ("", "", "")
    shared = first + line if line and all(c.startswith(first + line) for c in folded) else ""
    for place, column in enumerate(table.schema):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (is_text(kind) or pa.types.is_integer(kind)):
            continue
        values = table.column(place)
        has_bytes = is_text(kind) and not pa.types.is_string_view(kind)  # views do not tell them
        if has_bytes and values.nbytes > _LONG * table.num_rows:
            continue
        found = _Field(name, column.name, values, place == 0, folded[place].removeprefix(shared))
        if len(found.distinct):
            yield found


class _Keys:
    """The keys of all tables, by their names and by the names of their tables."""

    def __init__(self, keys: Sequence[_Field]) -> None:
        self._all = keys
        self._by_name: dict[str, list[_Field]] = {}
        self._by_table: dict[str, list[_Field]] = {}
        self._found: dict[_Field, _Field | None] = {}
        self._sampled: dict[_Field, list[_Field]] = {}
        """The keys that hold half of a sample of a column."""
        for key in sorted(keys, key=_precedence, reverse=True):
            for name in key.names:
                self._by_name.setdefault(name, []).append(key)
            for form in _forms(key.table):
                self._by_table.setdefault(form, []).append(key)

    def of(self, column: _Field) -> _Field | None:
        """The key that a column refers to; None if none, or if which one is not certain."""
        named = self.key_named_by(column)
        if named is not None:
            return named
        possible = (key for key in self._sampled.get(column, ()) if column.refers_to(key))
        first, second = next(possible, None), next(possible, None)
        return first if second is None else None

    def key_named_by(self, column: _Field) -> _Field | None:
        """The best key of those that a column is named like and refers to."""
        if column not in self._found:
            keys = (key for key in self._named_like(column) if column.refers_to(key))
            self._found[column] = next(keys, None)
        return self._found[column]

    def _named_like(self, column: _Field) -> Iterable[_Field]:
        """The keys that a column is named like, the best first."""
        for name in column.names:
            yield from self._by_name.get(name, ())
        for start in range(len(column.base) - _SHORTEST + 1):
            yield from self._by_table.get(column.base[start:], ())

    def sample(self, columns: Iterable[_Field]) -> None:
        """Look samples of ``columns`` up in all keys that values alone may lead to. Each column in
        each key would take minutes for hundreds of tables."""
        references = [c for c in columns if c.base not in ("", c.folded)]
        for kind in {column.distinct.type for column in references}:
            keys = [key for key in self._all if key.distinct.type == kind and key.is_sparse]
            if keys:
                self._look_up([c for c in references if c.distinct.type == kind], keys)

    def _look_up(self, columns: Sequence[_Field], keys: Sequence[_Field]) -> None:
        samples = [column.distinct.take(_spread(len(column.distinct))) for column in columns]
        whole = pa.concat_arrays(samples)
        wanted = whole.unique()
        held = pa.chunked_array([key.distinct for key in keys])
        codes = pc.index_in(held, value_set=wanted).combine_chunks().fill_null(-1).to_numpy()
        owners = np.repeat(np.arange(len(keys)), [len(key.distinct) for key in keys])
        order = np.argsort(codes, kind="stable")
        codes, owners = codes[order], owners[order]
        starts = np.searchsorted(codes, np.arange(len(wanted) + 1))
        places = pc.index_in(whole, value_set=wanted).to_numpy()
        ends = np.cumsum([len(sample) for sample in samples])
        for column, own in zip(columns, np.split(places, ends[:-1]), strict=True):
            holders = np.concatenate([owners[starts[at] : starts[at + 1]] for at in own])
            counts = np.bincount(holders, minlength=len(keys))
            likely = np.flatnonzero(2 * counts >= len(own)).tolist()
            self._sampled[column] = [keys[at] for at in likely]


def _spread(count: int) -> pa.Array:
    """The places of a sample of ``count`` values, over all of them."""
    return pa.array(np.unique(np.linspace(0, count - 1, _SAMPLE).astype(np.int64)))


def _precedence(key: _Field) -> tuple[bool, bool]:
    """The order of several keys: the one that names the rows of its table comes first, which has no
    other name than an identifier's, or the table's; then the first column."""
    return not key.base or any(key.base.endswith(form) for form in _forms(key.table)), key.first


def _forms(table: str) -> set[str]:
    """The words by which a column may name a table: its name and the last word of it, also in the
    singular.

    >>> sorted(_forms("car_makers"))
    ['car_maker', 'car_makers', 'maker', 'makers']
    >>> sorted(_forms("countries"))
    ['countri', 'countrie', 'countries', 'country']
    """
    name = table.lower()
    found = set()
    for word in (name, name.rpartition("_")[2]):
        found |= {word, word.removesuffix("s"), word.removesuffix("es")}
        if word.endswith("ies"):
            found.add(f"{word[:-3]}y")
    return {form for form in found if len(form) >= _SHORTEST}
