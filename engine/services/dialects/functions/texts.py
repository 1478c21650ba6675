"""Texts: what joins them, cuts them and fills them in."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.arrow_types import is_bytes
from blendfusion.services.dialects.functions.call import FunctionCall, Write, Written
from blendfusion.udfs.declare.arguments import sql_string


def _names(call: FunctionCall, first: int = 0) -> list[str]:
    return [f"{{{i}}}" for i in range(first, len(call.arguments))]


def _is_literal(call: FunctionCall, place: int) -> bool:
    start, stop = call.arguments[place]
    kinds = (TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)
    return stop == start + 1 and call.reader.kind(start) in kinds


def as_given(function: str) -> Write:
    """Our function of all arguments."""
    return lambda call: call.fill(f"{function}({', '.join(_names(call))})")


def as_text(call: FunctionCall) -> Written:
    """A value as a text; a time as the system writes times."""
    kind, moment = call.type(0), call.system.moment
    if moment and kind is not None and pa.types.is_timestamp(kind):
        return call.fill(f"to_char({{0}}, {sql_string(moment)})")
    return call.fill("CAST({0} AS VARCHAR)")


def with_names(call: FunctionCall) -> Written:
    """``STRUCT(1 AS a, b)``: fields by their aliases, or the names of columns."""
    reader, fields = call.reader, []
    for start, stop in call.arguments:
        named = reader.word(stop - 2) == "AS" and stop - start > 2
        if not named and reader.column_end(start) != stop:
            raise call.refusal("each field needs a name", "Write STRUCT(value AS name).", at=start)
        name = reader.name(stop - 1)
        value = "".join(p.text for p in call.weaver.weave(start, stop - 2 * named))
        fields.append(f"{sql_string(name)}, {value}")
    return [f"named_struct({', '.join(fields)})"]


def null_if_any(function: str) -> Write:
    """The function of all arguments, NULL if one of them is: ours leaves NULL out."""

    def write(call: FunctionCall) -> Written:
        names = _names(call)
        tested = [
            f"{{{i}}} IS NOT NULL" for i in range(len(call.arguments)) if not _is_literal(call, i)
        ]
        sql = f"{function}({', '.join(names)})"
        if len(names) == 1:
            sql = names[0]
        return call.fill(f"CASE WHEN {' AND '.join(tested)} THEN {sql} END" if tested else sql)

    return write


def join(call: FunctionCall) -> Written:
    """CONCAT, NULL if one of the texts is; of lists, one list."""
    names = _names(call)
    if len(names) == 1:
        return call.fill(f"CAST({names[0]} AS VARCHAR)")
    texts = any(call.literal(i) is not None for i in range(len(names)))
    if not texts:
        kinds = [call.type(i) for i in range(len(names))]
        lists = any(k is not None and pa.types.is_list(k) for k in kinds)
        names = names if lists else [f"CAST({name} AS VARCHAR)" for name in names]
    return call.fill(f"({' || '.join(names)})")


def cut(*, zero: str, early: str) -> Write:
    """SUBSTR, whose negative start counts from the end.

    ``zero``: what the start 0 is, ``first`` the first character or ``none`` nothing. ``early``:
    what a start before the first character gives: ``none`` nothing, ``first`` the text from its
    first character on, ``clipped`` what of the length lies within the text."""

    def write(call: FunctionCall) -> Written:
        sized = len(call.arguments) > 2
        number = call.number(1)
        behind = ", greatest({2}, 0)" if sized else ""
        length = call.number(2) if sized else None
        if length is not None:
            behind = f", {max(length, 0)}"
        plain = f"substr({{0}}, {{1}}{behind})"
        if number is not None and number > 0:
            return call.fill(plain)
        at_zero = "''" if zero == "none" else f"substr({{0}}, 1{behind})"
        start = "length({0}) + {1} + 1"
        ended = {
            "none": f"CASE WHEN {start} < 1 THEN '' ELSE substr({{0}}, {start}{behind}) END",
            "first": f"substr({{0}}, greatest({start}, 1){behind})",
            "clipped": f"substr({{0}}, {start}{behind})",
        }[early]
        if number is not None:
            null = f"CASE WHEN {{0}} IS NOT NULL THEN {at_zero} END"
            return call.fill((null if zero == "none" else at_zero) if number == 0 else ended)
        return call.fill(
            f"CASE WHEN {{1}} > 0 THEN {plain} WHEN {{1}} = 0 THEN {at_zero} "
            f"WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {ended} END"
        )

    return write


def side(function: str) -> Write:
    """LEFT and RIGHT: a negative length is none."""

    def write(call: FunctionCall) -> Written:
        number = call.number(1)
        if number is not None and number >= 0:
            return call.fill(f"{function}({{0}}, {{1}})")
        if number is not None:
            return call.fill(f"{function}({{0}}, 0)")
        return call.fill(f"CASE WHEN {{1}} < 0 THEN '' ELSE {function}({{0}}, {{1}}) END")

    return write


def length(*, of_text: str = "length") -> Write:
    """The length of a text in characters, or as ``of_text`` says; of bytes in bytes."""

    def write(call: FunctionCall) -> Written:
        kind = call.type(0)
        bytes_ = kind is not None and is_bytes(kind)
        return call.fill(f"{'octet_length' if bytes_ else of_text}({{0}})")

    return write


_PLACES = re.compile(
    r"%(?P<flags>[-0+ ,#']*)(?P<width>\d*)(?:\.(?P<digits>\d+))?(?P<kind>[a-zA-Z%])"
)


def print_format(*, null: str, texts: str = "s") -> Write:
    """``FORMAT('%s is %d', a, b)``: the format, a literal, with the values in their places.

    ``null`` is the text of NULL, ``texts`` the letters of places for any value."""

    def write(call: FunctionCall) -> Written:
        pattern = call.text(0, "the format")
        pieces: list[str] = []
        place, at = 1, 0
        for found in _PLACES.finditer(pattern):
            if found.start() > at:
                pieces.append(sql_string(pattern[at : found.start()]))
            at = found.end()
            if found["kind"] == "%":
                pieces.append("'%'")
                continue
            if place >= len(call.arguments):
                raise call.refusal(f"the format has no value for '{found[0]}'")
            pieces.append(_print_value(call, found, place, texts, null))
            place += 1
        if place < len(call.arguments):
            raise call.refusal("the format has fewer places than there are values")
        if "%" in _PLACES.sub("", pattern):
            raise call.refusal(
                "'%' in the format is followed by no letter", "Write %% for a percent."
            )
        if at < len(pattern) or not pieces:
            pieces.append(sql_string(pattern[at:]))
        return call.fill(pieces[0] if len(pieces) == 1 else f"({' || '.join(pieces)})")

    return write


def _print_value(
    call: FunctionCall, found: re.Match[str], place: int, texts: str, null: str
) -> str:
    kind, width = found["kind"], int(found["width"] or 0)
    value = f"{{{place}}}"
    number = call.type(place)
    fraction = number is not None and (pa.types.is_floating(number) or pa.types.is_decimal(number))
    digits = found["digits"]
    if kind in texts and digits is None:
        if fraction:
            hint = "Write '%.2f', or CAST the number to an integer."
            raise call.refusal(f"'{found[0]}' of a fraction has no equal here", hint)
        if number is not None and pa.types.is_timestamp(number):
            raise call.refusal(f"'{found[0]}' of a time has no equal here", "Write its pattern.")
        text = f"CAST({value} AS VARCHAR)"
    elif kind in "di" and not fraction and digits is None:
        text = f"CAST(CAST({value} AS BIGINT) AS VARCHAR)"
    elif kind == "f":
        text = f"CAST(CAST({value} AS DECIMAL(38, {digits or 6})) AS VARCHAR)"
    else:
        raise call.refusal(f"'{found[0]}' in the format has no equal here")
    flags = set(found["flags"])
    if flags - {"-", "0"} or (flags and not width):
        raise call.refusal(f"'{found[0]}' in the format has no equal here")
    if width:
        text = _pad(text, value, width, flags)
    return f"coalesce({text}, {sql_string(null)})"


def _pad(text: str, value: str, width: int, flags: set[str]) -> str:
    """A text that is filled up to a width; a longer one stays."""
    if "-" in flags:
        return f"rpad({text}, greatest(length({text}), {width}))"
    if "0" not in flags:
        return f"lpad({text}, greatest(length({text}), {width}))"
    bare = f"replace({text}, '-', '')"
    return (
        f"CASE WHEN {value} < 0 THEN '-' || lpad({bare}, greatest(length({bare}), {width - 1}), '0') "
        f"ELSE lpad({text}, greatest(length({text}), {width}), '0') END"
    )


def trim(
    where: str, *, blanks: str | None = None, characters: bool = True, first: bool = False
) -> Write:
    """TRIM, LTRIM and RTRIM: ``where`` is BOTH, LEADING or TRAILING.

    ``blanks``: the class of characters that one without a second argument leaves out; None: blanks.
    ``characters``: the second argument is a set of characters, not a text. ``first``: the
    characters stand first."""
    names = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    ends = {"BOTH": r"^{0}+|{0}+$", "LEADING": r"^{0}+", "TRAILING": r"{0}+$"}

    def write(call: FunctionCall) -> Written:
        reader, place, text = call.reader, where, 0
        start, stop = call.arguments[0]
        if reader.word(start) in names:
            place, start = reader.word(start), start + 1
        behind = next(
            (
                i
                for i in range(start, stop)
                if reader.word(i) == "FROM" and not reader.depth(start, i)
            ),
            None,
        )
        given: tuple[int, int] | None = None
        if behind is not None:
            given = (start, behind) if behind > start else None
            start = behind + 1
        elif len(call.arguments) > 1:
            text, other = (1, 0) if first else (0, 1)
            start, stop = call.arguments[text]
            given = call.arguments[other]
        value = "".join(p.text for p in call.weaver.weave(start, stop))
        if given is None:
            if blanks is None:
                return [f"{names[place]}(", value, ")"]
            return [f"regexp_replace({value}, {sql_string(ends[place].format(blanks))}, '', 'g')"]
        if not characters and not (
            given[1] == given[0] + 1
            and reader.kind(given[0]) == TokenType.STRING
            and len(reader.tokens[given[0]].text) == 1
        ):
            raise call.refusal(
                "what is left out must be one literal character here",
                "regexp_replace(text, '^(?:ab)+|(?:ab)+$', '', 'g') leaves out a text.",
            )
        chars = "".join(p.text for p in call.weaver.weave(*given))
        return [f"{names[place]}({value}, {chars})"]

    return write


def found_at(*, text: int, part: int) -> Write:
    """The place of a text in another one; ``POSITION(part IN text)``, too."""

    def write(call: FunctionCall) -> Written:
        reader = call.reader
        start, stop = call.arguments[0]
        if len(call.arguments) == 1:
            inside = next(
                (
                    i
                    for i in range(start, stop)
                    if reader.word(i) == "IN" and not reader.depth(start, i)
                ),
                None,
            )
            if inside is None:
                raise call.refusal("it takes two texts", "Write POSITION(part IN text).")
            parts = [(start, inside), (inside + 1, stop)]
            a, b = ("".join(p.text for p in call.weaver.weave(*x)) for x in parts)
            return [f"strpos({b}, {a})"]
        return call.fill(f"strpos({{{text}}}, {{{part}}})")

    return write


def found_behind(*, text: int, part: int) -> Write:
    """The place of a text in another one, not before a place: the third argument."""

    def write(call: FunctionCall) -> Written:
        number = call.number(2)
        if number is None or number < 1:
            raise call.refusal("the place to begin at must be a literal, 1 or more, here")
        rest = f"strpos(substr({{{text}}}, {number}), {{{part}}})"
        return call.fill(f"CASE WHEN {rest} > 0 THEN {rest} + {number - 1} ELSE {rest} END")

    return write


def split_by_pattern(call: FunctionCall) -> Written:
    """Databricks' SPLIT, whose separator is a pattern."""
    text = call.text(1, "the separator")
    plain = re.sub(r"\\([^A-Za-z0-9])", r"\1", text)
    if re.search(r"[\\^$.|?*+()\[\]{}]", re.sub(r"\\[^A-Za-z0-9]", "", text)) or not plain:
        raise call.refusal("a pattern that separates has no equal here", "Write a plain text.")
    return _split(call, sql_string(plain))


def split(call: FunctionCall) -> Written:
    """A text as a list of its parts: of an empty text, one empty part."""
    if len(call.arguments) > 1 and call.literal(1) == "":
        raise call.refusal("an empty separator has no equal here", "string_to_array(text, NULL).")
    return _split(call, "{1}" if len(call.arguments) > 1 else "','")


def _split(call: FunctionCall, separator: str) -> Written:
    return call.fill(
        f"CASE WHEN {{0}} = '' THEN make_array('') ELSE string_to_array({{0}}, {separator}) END"
    )


def part_of(call: FunctionCall) -> Written:
    """SPLIT_PART, whose place 0 is 1."""
    return call.fill(
        "split_part({0}, {1}, 1)" if call.number(2) == 0 else "split_part({0}, {1}, {2})"
    )


def choose(*, null_is_value: bool) -> Write:
    """``DECODE(x, a, b, …, otherwise)``: b where x is a."""

    def write(call: FunctionCall) -> Written:
        rest = list(range(1, len(call.arguments)))
        equal = "IS NOT DISTINCT FROM" if null_is_value else "="
        pairs = [
            f"WHEN {{0}} {equal} {{{rest[i]}}} THEN {{{rest[i + 1]}}}"
            for i in range(0, len(rest) - 1, 2)
        ]
        if not pairs:
            raise call.refusal("it takes a value, what it may be, and a result")
        last = f" ELSE {{{rest[-1]}}}" if len(rest) % 2 else ""
        return call.fill(f"CASE {' '.join(pairs)}{last} END")

    return write


def field_place(call: FunctionCall) -> Written:
    """``FIELD(x, a, b, …)``: which of the others the first is, from 1 on; 0 for none."""
    places = " ".join(f"WHEN {{0}} = {{{i}}} THEN {i}" for i in range(1, len(call.arguments)))
    return call.fill(f"CASE {places} ELSE 0 END")


def by_place(call: FunctionCall) -> Written:
    """``ELT(n, a, b, …)``: the n-th of the others."""
    places = " ".join(f"WHEN {i} THEN {{{i}}}" for i in range(1, len(call.arguments)))
    return call.fill(f"CASE {{0}} {places} END")
