"""Hides values in messages of DataFusion, Arrow and Python functions, quoted and unquoted.

Where values are withheld, what is known to be none is shown: planning speaks of names and types,
and of the query's own literals; of anything else words of the messages, types, names behind a word
such as "column", and bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from blendfusion.redaction import WITHHELD, Redaction, printable

_PLANNING = re.compile(
    r"(DataFusion error: |Exception: )*(Error during planning|No table named|Schema error|SQL error|"
    r"This feature is not implemented|Invalid or Unsupported Configuration|Resources exhausted|"
    r"Error setting config|Optimizer rule|type_coercion|Internal error: Physical input schema)"
)
"""How messages begin that are about the query, not about its data."""
_TOKEN = re.compile(
    r"""(?P<quoted>(?<![\w'"])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w))"""
    r"|(?P<type>\b(?:Boolean|U?Int\d+|Float\d+|Decimal\d+|Date\d+|Time\d+|Timestamp|Duration|Interval|(?:Large)?Utf8|"
    r"Utf8View|(?:Large|FixedSize)?(?:Binary|List)|BinaryView|Struct|Map|Dictionary|Null|[iuf](?:8|16|32|64|128))\b"
    r"(?:\((?:[\w, ]|\([\w, ]*\))*\))?)"
    r"|(?P<number>[-+]?(?<![\w.])\d(?:[\d_.,]*\d)?(?:[eE][-+]?\d+)?(?!\w))"
    r"|(?P<word>[^\s,;:=<>()\[\]{}]*[^\s.,;:=<>()\[\]{}!?])"
)
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
_WORDS = frozenset(
    """
        a able about accept accepted access allocate allocation allow allowed allows already also an
        and any are argument arguments arithmetic array arrays arrow as at average avro
        backreferences be because been before between bits boolean bound bounds bracket buffer but
        by byte bytes call can't cannot cast casting caused character characters child chunk class
        closed coerce column columns comparison compile compiled compression compute config
        configuration consider constant contains continue conversion convert converted converting
        corrupt could count create csv data datafusion dataset date decimal decode decodeerror
        decoding decrease decreasing deserialize determine dictionary did different digit dimension
        directory disk divide division do does doesn't double duplicate duration each element
        elements empty encode encoding encountered end enough entry enum eof error error: escape
        evaluate exceed exceeded exceeds exception execute execution exist exists expected
        expression external failed failure feature field fields file files filter first fit float
        for format found from function functions generate get given got granularity greater group
        happened has have header histogram if implemented in incompatible incorrect increase
        increasing index infinite inner input inserting instead int integer internal interval into
        invalid io is it its join json key keys keyword-only kind large larger least length less
        level limit line list literal long longer look-around lookup map match matches max maximum
        memory min minimum minus mismatch missing module month more most must name named names nan
        nanoseconds need needed needs negative no non non-empty non-null not nothing null nulls
        number numbers object of offset on one only open operand operation operator option or order
        other out outer overflow overflowed overflowing page panic panicked parameter parenthesis
        parquet parse parser parsing partition partitions pattern per plan planner plus point
        position positional positive possible power precision prepared previous produce provided
        query raised range read reading record recursion regex regular repeat repeated repetition
        request requested require required requires resource resources result return returned
        returns row rows rule same scalar scale schema second seconds separator sequence set should
        signature signed since size smaller sort statement step store stream string strings struct
        subquery substring such sum support supported supports symbol syntax table take takes task
        than that the there time timestamp timezone to too total trailing tried type types unable
        unary unclosed unexpected unicode union unit unknown unnest unsigned unsupported until up
        use used using usize utf-8 valid value values variant view was were where which while width
        window with without write writing wrong year yet zero zone
        """.split()
)
_REPORT = re.compile(
    r"\.*\nThis issue was likely caused by a bug in DataFusion's code\. Please help us to resolve this by "
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
    text = str(problem.args[0] if isinstance(problem, KeyError) and problem.args else problem)
    return _RULE.sub("", _REPORT.sub("", text))


def is_planning(text: str) -> bool:
    """A message that is about the query, not about its data."""
    return _PLANNING.match(text) is not None


def _part(text: str, redaction: Redaction, own: frozenset[str], hidden: set[str]) -> str:
    if is_planning(text) or _CAUSE.fullmatch(text):
        return _without(text, redaction, hidden)
    shown: list[str] = []
    place, before, last = 0, "", False

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
            before = ""
        if token in own or _known(found, before):
            emit(between, token, known=True)
        elif redaction.shows:
            emit(between, _replaced(found, redaction), known=True)
        else:
            emit(between, WITHHELD, known=False)
        if token.lower() not in ("is", "of"):
            before = token.lower()
    return "".join((*shown, text[place:]))


def _known(found: re.Match[str], before: str) -> bool:
    """A token is no value of the data."""
    token = found[0]
    if found["type"]:
        return True
    if found["number"]:
        return before in _BOUND
    if found["quoted"]:
        return before in _NAMED or token[1:2] == "$"
    return token.lower() in _WORDS or not any(map(str.isalnum, token))


def _replaced(found: re.Match[str], redaction: Redaction) -> str:
    token = found[0]
    return redaction.quoted(token[1:-1]) if found["quoted"] else redaction.passed(token)


def _without(text: str, redaction: Redaction, hidden: set[str]) -> str:
    """``text`` without values that stand in it as they are."""
    show: Callable[[str], str] = redaction.passed
    for value in sorted(hidden, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", lambda found: show(found[0]), text)
    return text
