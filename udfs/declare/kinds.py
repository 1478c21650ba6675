"""The kinds of ingredients: the shape of the values that one question is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import pyarrow as pa

from blendfusion.types import Answer

TEXTS = pa.list_(pa.string())

Compute: TypeAlias = "Callable[..., pa.Array]"
"""A function of text columns (``Texts``) and an embedder: one array with a value per row."""

Body: TypeAlias = "Callable[..., pa.Array]"
"""A function of a ``UserModel``, one array per value column, and the literals by name: one array.
"""


Compare: TypeAlias = "Callable[..., list[Answer]]"
"""A function of a call, pairs of values and a dispatcher: one answer a pair, in order."""


@dataclass(frozen=True)
class Kind:
    """How a function reads its value columns. ``blendfusion.udfs.evaluate`` evaluates each kind."""

    aggregate: ClassVar[bool] = False
    """Whether the function is an aggregate in SQL: a value is the rows of a group."""
    many_texts: ClassVar[bool] = False
    """Whether one question is about any number of texts, those of a group or of a list."""
    asks_model: ClassVar[bool] = True
    has_body: ClassVar[bool] = False
    """Whether a function of Python asks the questions, which are unknown before it runs."""
    whole_column: ClassVar[bool] = False
    """Whether the answer for a value depends on all values of its column."""
    can_cascade: ClassVar[bool] = False
    """Whether a small model may decide for a large one."""
    images: ClassVar[bool] = False
    audio: ClassVar[bool] = False
    usual_models: ClassVar[tuple[str, ...]] = ()
    """The models for calls that name none; (): the session's."""
    doc: ClassVar[str] = ""
    """The paragraph of a docstring about values and NULL."""

    @property
    def version(self) -> int:
        """Tells two functions of one name in a process apart; 0: a function of this package."""
        return 0

    @property
    def takes_bytes(self) -> bool:
        """Whether a value may be bytes: an image or a recording."""
        return isinstance(
            self, RowQuestion | GroupQuestion | ListQuestion | PairMatch | PairComparison
        )

    @property
    def result(self) -> pa.DataType | None:
        """The type of results; None: that of the answers."""
        return None

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        """The Arrow types of ``n`` value columns."""
        return [pa.string()] * n

    def cast(self, place: int) -> pa.DataType | None:
        """The type to which the query casts the value at ``place``, from 0; None: DataFusion's
        coercion to ``value_types`` suffices. For an aggregate, the type of one row's value."""
        return None

    def takes_literal(self, place: int) -> bool:
        """Whether a literal at ``place`` of the arguments, from 0, is a value and no parameter."""
        return False

    def keeps_order(self, *, ordered: bool) -> bool:
        """Whether the order of texts matters; ``ordered``: the query has an ORDER BY for it."""
        return ordered


@dataclass(frozen=True)
class RowQuestion(Kind):
    """A question about the values of a row."""

    doc: ClassVar[
        str
    ] = """Values are columns (or names of columns): texts, or images for a model that sees them,
as BINARY or ``data:image/…``. A row whose values are all NULL or blank gives NULL without a call."""
    can_cascade: ClassVar[bool] = True


@dataclass(frozen=True)
class ImageQuestion(Kind):
    """A question about the images of a row: bytes, or texts that say where an image is."""

    doc: ClassVar[
        str
    ] = """Images are columns (or names of columns): BINARY, the bytes of a PNG, JPEG, GIF or
WebP, or TEXT, an http(s) URL, which the model's server fetches, or a data: URL. Beside another value,
any other TEXT is a text; alone, it has failed, see ``on_error``. A row whose images are all NULL or empty gives NULL without a call;
equal images are one question."""
    images: ClassVar[bool] = True

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        return [pa.binary()] * n

    def cast(self, place: int) -> pa.DataType | None:
        return pa.binary()  # A URL becomes bytes, too.


@dataclass(frozen=True)
class AudioQuestion(Kind):
    """The words of a recording: bytes."""

    doc: ClassVar[
        str
    ] = """A recording is a column (or its name): BINARY, the bytes of a WAV, FLAC or Ogg file of at
most an hour and 64 MB. What is none has failed, see ``on_error``. NULL and no bytes give NULL without
a call; equal recordings are transcribed once."""
    audio: ClassVar[bool] = True
    usual_models: ClassVar[tuple[str, ...]] = ("moonshine",)

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        return [pa.binary()] * n

    def cast(self, place: int) -> pa.DataType | None:
        return pa.binary()


@dataclass(frozen=True)
class GroupQuestion(Kind):
    """A question about all rows of a group."""

    doc: ClassVar[
        str
    ] = """NULL and blank rows are left out; a group without other rows gives NULL without a
call. Without ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A
context longer than the model's window is folded in several passes."""
    aggregate: ClassVar[bool] = True
    many_texts: ClassVar[bool] = True

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        return [TEXTS] * n

    def cast(self, place: int) -> pa.DataType | None:
        return pa.string()


@dataclass(frozen=True)
class ListQuestion(Kind):
    """A question about a list of texts, or about one text of any length."""

    doc: ClassVar[
        str
    ] = """Items keep their order; NULL and blank ones are left out, and a list without other
items gives NULL without a call. A list longer than the model's window is read in parts."""
    many_texts: ClassVar[bool] = True

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        return [TEXTS] * n

    def cast(self, place: int) -> pa.DataType | None:
        return TEXTS  # A text becomes a list of one.

    def keeps_order(self, *, ordered: bool) -> bool:
        return True


@dataclass(frozen=True)
class PairMatch(Kind):
    """Whether two values belong together."""


@dataclass(frozen=True)
class PairComparison(Kind):
    """A comparison of two values, which may be literals, by the operator between them."""

    compare: Compare

    def takes_literal(self, place: int) -> bool:
        return place != 1


@dataclass(frozen=True)
class Vectors(Kind):
    """A function of the vectors of texts, some of which may be literals."""

    doc: ClassVar[str] = """NULL and blank texts give NULL. No language model is asked."""
    asks_model: ClassVar[bool] = False
    compute: Compute
    type: pa.DataType

    @property
    def result(self) -> pa.DataType:
        return self.type

    def takes_literal(self, place: int) -> bool:
        return True


class Conflict(NamedTuple):
    """Two texts about which the model's answer is not what other answers imply."""

    value: str
    other: str
    answer: bool
    same: bool
    """Whether both have one entity in the result."""


class ColumnResults(NamedTuple):
    """The results of a function of a whole column, in the order of its values; a description of how
    they were found, one line each; and the answers that contradict others."""

    values: Sequence[object]
    summary: Sequence[str] = ()
    conflicts: Sequence[Conflict] = ()
    missed: int = 0
    """The number of values that were not compared with others that are as similar as those that
    were."""


ColumnBody: TypeAlias = "Callable[..., ColumnResults]"
"""A function of a ``UserModel``, the distinct values of a column in ascending order, none of them
blank, and the literals by name."""


@dataclass(frozen=True)
class ColumnQuestion(Kind):
    """Questions about all distinct values of a column together."""

    doc: ClassVar[
        str
    ] = """The column holds the values of the rows beside which the call stands, after the predicates
that need no model; results do not depend on the order of rows. NULL and blank values give NULL."""
    has_body: ClassVar[bool] = True
    whole_column: ClassVar[bool] = True
    body: ColumnBody
    type: pa.DataType
    takes_media: bool = False
    """Whether its values may be images and recordings."""
    ranks: str = ""
    """The parameter for the number of ranks that are wanted, which a LIMIT implies; '' if results
    are no ranks."""

    @property
    def takes_bytes(self) -> bool:
        return self.takes_media

    @property
    def result(self) -> pa.DataType:
        return self.type


@dataclass(frozen=True)
class UserBody(Kind):
    """The body of a function in Python, over the distinct rows of values."""

    has_body: ClassVar[bool] = True
    body: Body
    type: pa.DataType
    columns: tuple[pa.DataType, ...]
    """The types of the value columns; in an aggregate, those of one row's values."""
    serial: int = 0
    code: str = ""
    """The digest under which results are stored; '' for a function that is not deterministic."""

    @property
    def version(self) -> int:
        return self.serial

    @property
    def result(self) -> pa.DataType:
        return self.type

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        return [*self.columns, *[self.columns[-1]] * (n - len(self.columns))]


@dataclass(frozen=True)
class UserAggregate(UserBody):
    """A user's function over the groups of a query: each value is the list of a group's rows."""

    aggregate: ClassVar[bool] = True
    many_texts: ClassVar[bool] = True

    def value_types(self, n: int) -> Sequence[pa.DataType]:
        return [pa.list_(one) for one in super().value_types(n)]

    def cast(self, place: int) -> pa.DataType | None:
        return UserBody.value_types(self, place + 1)[place]
