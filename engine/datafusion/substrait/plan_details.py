"""Details of DataFusion's plans that their Substrait lacks: time zones, and of windows the bounds
of RANGE frames, frames of GROUPS, DISTINCT and IGNORE NULLS.

``read`` puts them back into the tree, and ``write`` writes zones as functions. DataFusion's reader
takes no such window: a projection with one is made by DataFusion itself, from its message here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Type as TypeMessage

from blendfusion.errors import PlanError
from blendfusion.planner.ir.messages import ZONED_LITERAL, serialize
from blendfusion.planner.ir.nodes import Node

_UTC = "UTC"
"""The zone that DataFusion reads where Substrait has none."""

_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}

_FRAME = "frame"

_GROUPS = "GROUPS "


@dataclass(frozen=True, slots=True)
class Frame:
    """A window's details that Substrait lacks. ``text``: its frame as SQL, '' for one that
    Substrait has. ``clauses``: DISTINCT, IGNORE NULLS. ``window``: DataFusion's message of the
    window, without arguments, partitions and order. ``arguments``: those that are literals, encoded
    by DataFusion; empty for others."""

    text: str
    clauses: Sequence[str]
    window: bytes
    arguments: tuple[bytes, ...]
    follows: tuple[bool | None, bool | None]
    """Whether each bound is FOLLOWING, or PRECEDING; None for one without a number."""


@dataclass(frozen=True, slots=True)
class PlanDetails:
    """Zones and frames in the order in which ``read`` meets casts, literals and windows outside of
    subqueries. ``zone``: that of all casts and literals with one."""

    zone: str | None = None
    zones: tuple[str, ...] = ()
    frames: tuple[Frame | None, ...] = ()


class Restorer:
    """Puts details back, one after the other."""

    def __init__(self, details: PlanDetails) -> None:
        self._zones = iter(details.zones)
        self._knows_zones = bool(details.zones or details.zone)
        if details.zone is not None:
            self._zones = repeat(details.zone)
        self._all_alike = details.zone is not None
        self._frames = iter(details.frames)
        self.subqueries = 0
        """The number of subqueries around the present expression."""

    def check_end(self) -> None:
        """Raise PlanError if details are left."""
        left = next(self._frames, None) or (None if self._all_alike else next(self._zones, None))
        if left is not None:
            raise PlanError("time zones or frames in places that Substrait does not tell apart")

    def zoned_cast(self, message: ExpressionMessage) -> None:
        """Give a cast without children its zone."""
        kind = message.cast.type
        if kind.WhichOneof("kind") == "precision_timestamp_tz":
            _set_zone(message, kind, self._next_zone())

    def zoned_literal(self, literal: Node, message: ExpressionMessage.Literal) -> Node:
        """A literal with its zone."""
        kind, name = message, message.WhichOneof("literal_type")
        precision = message.precision_timestamp_tz.precision
        if name == "null":
            name = message.null.WhichOneof("kind")
            precision = message.null.precision_timestamp_tz.precision
        if name != "precision_timestamp_tz":
            return literal
        zone = self._next_zone()
        if zone == _UTC:
            return literal
        kind = TypeMessage()
        kind.precision_timestamp_tz.precision = precision
        cast = ExpressionMessage()
        cast.cast.input.SetInParent()
        cast.cast.failure_behavior = ExpressionMessage.Cast.FAILURE_BEHAVIOR_THROW_EXCEPTION
        _set_zone(cast, kind, zone)
        return Node(ZONED_LITERAL, serialize(cast), (literal,))

    def restore_frame(self, name: str, window: ExpressionMessage.WindowFunction) -> str:
        """Give a window without children its frame. Returns the name of its function, with its
        clauses, so that no rule takes it for the function itself."""
        frame = None if self.subqueries else next(self._frames, None)
        if frame is None:
            return name
        for bound, follows in zip(
            (window.lower_bound, window.upper_bound), frame.follows, strict=True
        ):
            if follows is not None:  # for rules, which only ask whether there is a bound
                (bound.following if follows else bound.preceding).offset = 1
        if frame.text.startswith(_GROUPS):  # it has all rows that are equal in the order, or none
            window.bounds_type = ExpressionMessage.WindowFunction.BOUNDS_TYPE_RANGE
        option = window.options.add(name=_FRAME)
        option.preference.append(frame.text)
        option.preference.extend(part.hex() for part in (frame.window, *frame.arguments))
        return " ".join((name, *frame.clauses))

    def _next_zone(self) -> str:
        if not self._knows_zones:
            return _UTC
        zone = None if self.subqueries and not self._all_alike else next(self._zones, None)
        if zone is None:
            raise PlanError("time zones in places that Substrait does not tell apart")
        return zone


def _set_zone(message: ExpressionMessage, kind: TypeMessage, zone: str) -> None:
    if zone == _UTC:
        return
    unit = _UNITS.get(kind.precision_timestamp_tz.precision)
    if unit is None or '"' in zone:
        raise PlanError("a time zone that cannot be expressed in Substrait")
    text = f'Timestamp({unit}, "{zone}")'
    message.cast.type.Clear()
    message.cast.type.user_defined.type_parameters.add(string=text)


def bounded_frame(expr: Node) -> tuple[bytes, Sequence[bytes]] | None:
    """(the message of a window, its literal arguments) as in ``Frame``; None for a window that
    Substrait has."""
    if not expr.name.startswith("window:"):
        return None
    window = ExpressionMessage.FromString(expr.template).window_function
    if not window.options:
        return None
    _, message, *arguments = window.options[0].preference
    return bytes.fromhex(message), [bytes.fromhex(part) for part in arguments]
