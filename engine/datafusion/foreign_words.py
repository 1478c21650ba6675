"""Hides values in messages of DataFusion, Arrow and Python functions, quoted and unquoted.

Where values are withheld, what is known to be none is shown: planning speaks of names and types,
and of the query's own literals; of anything else words of the messages, types, names behind a word
such as "column", and bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

from datafusion import SessionContext

from blendfusion.datafusion.message_words import WORDS
from blendfusion.redaction import WITHHELD, Redaction, printable

_PLANNING = re.compile(
    r"(DataFusion error: |Exception: )*(Error during planning|No table named|Schema error|SQL error|"
    r"This feature is not implemented|Invalid or Unsupported Configuration|Resources exhausted|"
    r"Error setting config|Optimizer rule|type_coercion|Internal error: Physical input schema)"
)
"""How messages begin that are about the query, not about its data."""
_TOKEN = re.compile(
    # A quotation, in which a quote may stand before a letter; an open one ends with the text.
    r"""(?P<quoted>(?<![\w'"\\])(?:'[^'\\]*+(?:(?:\\(?:.|\Z)|'(?=\w))[^'\\]*+)*(?:'|\Z)"""
    r"""|"[^"\\]*+(?:(?:\\(?:.|\Z)|"(?=\w))[^"\\]*+)*(?:"|\Z)))"""
    r"|(?P<code>`(?:Option|Result)::\w+\(\)`|`(?:None|Some|Err|Ok)`)"
    r"|(?P<type>\b(?:Boolean|U?Int\d+|Float\d+|Decimal\d+|Date\d+|Time\d+|Timestamp|Duration|Interval|(?:Large)?Utf8|"
    r"Utf8View|(?:Large|FixedSize)?(?:Binary|List)|BinaryView|Struct|Map|Dictionary|Null|[iuf](?:8|16|32|64|128))"
    r"(?:Array|Type)?\b(?:\([\w, ]*+(?:\([\w, ]*+\)[\w, ]*+)*\))?)"
    r"|(?P<number>[-+]?(?<![\w.])\d(?:[\w.,]*\w)?)"
    r"|(?P<word>[^\s.,;:=<>()\[\]{}!?](?:[^\s,;:=<>()\[\]{}]*[^\s.,;:=<>()\[\]{}!?])?)",
    re.DOTALL,
)
"""The parts of a message. No start is tried twice over a long text: a long value takes linear
time."""
_NAMED = frozenset(
    """
        column columns field fields table function config option variable key type statement
        """.split()
)
"""A quotation behind one of these is a name."""
_BOUND = frozenset(
    """
        max maximum min minimum precision scale most least limit line column row index offset
        position length idx between version width size batch partition
        """.split()
)
"""A number behind one of these, and "is" or "of" perhaps, is a bound or a place."""
_GIVEN = frozenset("requested invalid got given negative array".split())
"""Behind one of these, a length or an index is a value."""
_CONSTANT = re.compile(r"(?:cannot be|can't be|must be|requires) $|\($")
"""A digit behind one of these is part of a message: "it cannot be 0", "(0-indexed)"."""
_REST = ("found", "value")
"""Behind one of these and a colon, the rest of the line is a value."""
_PIECES = re.compile(r"[^a-z'\d]+")
_REPORT = re.compile(
    r"(?<!\.)\.*+\nThis issue was likely caused by a bug in DataFusion's code\. Please help us to resolve this by "
    r"filing a bug report in our issue tracker: \S+"
)
_RULE = re.compile(
    r"^(?:DataFusion error: )?(?:\w+|Optimizer rule '\w+' failed|Invalid \(non-executable\) plan after \w+)"
    r"\ncaused by\n"
)
_CAUSE = re.compile(r"(\ncaused by\n)")
_MEASURED = re.compile(
    r"(, filter=|predicate=|required_guarantees=)\[?(?!\[?\]).*?(?=, metrics=\[|, required_guarantees=)",
    re.DOTALL,
)
"""The filters that a join or a sort derived from its rows, as EXPLAIN ANALYZE prints them."""


def foreign(text: str, redaction: Redaction, *, query: str = "", hidden: Iterable[str] = ()) -> str:
    """``text`` as ``redaction`` lets it be shown. ``query``: the text that was planned, if nothing
    has run yet; its own literals are no secret. ``hidden``: values that were given beside it, and
    stand in messages as they are.

    >>> foreign("Cast error: Cannot cast string 'Ann' to value of Int32 type", Redaction("off"))
    'Cast error: Cannot cast string … to value of Int32 type'
    >>> foreign("4711.0 is too large to store in a Decimal128 of precision 3. Max is 99.9", Redaction("off"))
    '… is too large to store in a Decimal128 of precision 3. Max is 99.9'
    """
    if redaction.shows_all:
        return printable(text)
    parts = _CAUSE.split(text)
    own = frozenset(found[0] for found in _TOKEN.finditer(query)) - set(hidden)
    return printable("".join(_part(part, redaction, own, set(hidden)) for part in parts))


def without_filters(plan: str) -> str:
    """The text of EXPLAIN ANALYZE without values of the rows that were read: DataFusion writes out
    what its joins and sorts let through."""
    return _MEASURED.sub(rf"\1{WITHHELD}", plan)


def text_of(problem: BaseException) -> str:
    """The words of an exception, without the rule of DataFusion's optimizer that met it, and
    without the request to report it to DataFusion. A KeyError puts quotes around them.

    >>> text_of(Exception("DataFusion error: type_coercion\\ncaused by\\nSchema error: no"))
    'Schema error: no'
    """
    try:
        text = str(problem.args[0] if isinstance(problem, KeyError) and problem.args else problem)
    except Exception:  # an exception of somebody's own, which cannot be written
        text = type(problem).__name__
    return _RULE.sub("", _REPORT.sub("", text))


def is_planning(text: str) -> bool:
    """A message that is about the query, not about its data."""
    return _PLANNING.match(text) is not None


def _part(text: str, redaction: Redaction, own: frozenset[str], hidden: set[str]) -> str:
    if is_planning(text) or _CAUSE.fullmatch(text):
        return _without(text, redaction, hidden)
    shown: list[str] = []
    place, before, last, rest = 0, ("", ""), False, False

    def emit(between: str, token: str, known: bool) -> None:
        nonlocal last
        if known or not last or between.strip():
            shown.append(between)
            shown.append(token)
        last = not known

    for found in _TOKEN.finditer(text):
        between, token = text[place : found.start()], found[0]
        place = found.end()
        if "\n" in between:
            before, rest = ("", ""), False
        rest = rest or (":" in between and before[-1] in _REST)
        if token in own or (not rest and _is_known(found, before)) or found["type"]:
            emit(between, token, known=True)
        elif redaction.shows:
            emit(between, _replace(found, redaction), known=True)
        else:
            emit(between, WITHHELD, known=False)
        if token.lower() not in ("is", "of"):
            before = before[-1], token.lower()
    return "".join((*shown, text[place:]))


def _is_known(found: re.Match[str], before: tuple[str, str]) -> bool:
    """A token is no value of the data. ``before``: the two tokens before it."""
    token = found[0]
    if found["code"]:
        return True
    if found["number"]:
        bound = before[1] in _BOUND and before[0] not in _GIVEN
        start = found.start()
        constant = len(token) == 1 and _CONSTANT.search(found.string, max(0, start - 12), start)
        return bool((bound and not re.search(r"[^\d.,+-]", token)) or constant)
    if found["quoted"]:
        return before[1] in _NAMED or token[1:2] == "$"
    word = token.lower().strip("`")
    return word in WORDS or word in _functions() or all(map(_is_word, _PIECES.split(word)))


def _is_word(piece: str) -> bool:
    return not piece or piece in WORDS


@cache
def _functions() -> frozenset[str]:
    """The names of DataFusion's functions."""
    context = SessionContext()
    return frozenset((*context.udfs(), *context.udafs(), *context.udwfs()))


def _replace(found: re.Match[str], redaction: Redaction) -> str:
    token = found[0]
    return redaction.quote(token[1:-1]) if found["quoted"] else redaction.pass_on(token)


def _without(text: str, redaction: Redaction, hidden: set[str]) -> str:
    """``text`` without values that stand in it as they are."""
    show: Callable[[str], str] = redaction.pass_on
    for value in sorted(hidden, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", lambda found: show(found[0]), text)
    return text
