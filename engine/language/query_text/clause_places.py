"""Finds the clause, the call, the name or the literal that a message of DataFusion's is about,
where it says no position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.tokenizer import QUOTED, identifier

_Places: TypeAlias = "Iterator[tuple[int, int]]"
_Finder: TypeAlias = "Callable[[Reader, re.Match[str]], _Places]"

_CLAUSES = {
    *("WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH"),
    *("UNION", "EXCEPT", "INTERSECT"),
}
_LONGEST = 1000
"""Characters of a message that are searched: behind them it only has a long value."""
_SETS = ("UNION", "EXCEPT", "INTERSECT")


def clause_place(message: str, tree: Reader) -> tuple[int, int] | None:
    """The tokens that ``message`` is about, from the first place that it may mean to the last; None
    for a message that is not known here."""
    start = message[:_LONGEST]
    for pattern, find in _FINDERS:
        match = re.search(pattern, start)
        places = [] if match is None else sorted(find(tree, match))
        if places:
            return places[0][0], max(stop for _, stop in places)
    return None


def statement_place(tree: Reader) -> tuple[int, int] | None:
    """The whole statement."""
    stop = len(tree.tokens)
    while stop and tree.kind(stop - 1) == TokenType.SEMICOLON:
        stop -= 1
    return (0, stop) if stop else None


# --- what a message may mean ---------------------------------------------------------------------


def _clause(*words: str) -> _Finder:
    """The clauses that begin with one of these words."""

    def find(tree: Reader, _: re.Match[str]) -> _Places:
        for at, word in enumerate(tree.words):
            if word in words:
                stop = at + 1
                while stop < len(tree.tokens) and tree.words[stop] not in _CLAUSES:
                    if stop in tree.open or tree.kind(stop) == TokenType.SEMICOLON:
                        break
                    stop = tree.close.get(stop, stop) + 1
                yield at, stop

    return find


def _behind(*words: str) -> _Finder:
    """One of these words and the operand behind it."""

    def find(tree: Reader, _: re.Match[str]) -> _Places:
        for at, word in enumerate(tree.words[:-1]):
            if word in words:
                yield at, tree.operand_after(at + 1)

    return find


def _between(*words: str) -> _Finder:
    """One of these operators with its operands."""

    def find(tree: Reader, _: re.Match[str]) -> _Places:
        for at, word in enumerate(tree.words[:-1]):
            if at and word in words:
                negated = tree.word(at - 1) == "NOT"
                yield tree.operand_before(at - negated), tree.operand_after(at + 1)

    return find


def _word(*words: str) -> _Finder:
    def find(tree: Reader, _: re.Match[str]) -> _Places:
        yield from ((at, at + 1) for at, word in enumerate(tree.words) if word in words)

    return find


def _quoted_word(tree: Reader, found: re.Match[str]) -> _Places:
    """The word or the operator that the message names."""
    yield from ((at, at + 1) for at, t in enumerate(tree.tokens) if t.text.upper() == found[1])


def _find_name(nth: int = 0) -> _Finder:
    """The ``nth`` token with the name that the message quotes, or the text."""

    def find(tree: Reader, found: re.Match[str]) -> _Places:
        name = found[1].split(".")[-1]
        places = [
            at
            for at, token in enumerate(tree.tokens)
            if name.lower() in (token.text.lower(), identifier(token).lower())
            or (token.token_type in QUOTED and token.text.endswith(found[1]))
        ]
        if places:
            at = places[nth if nth < len(places) else 0]
            yield at, at + 1

    return find


def _setting(tree: Reader, found: re.Match[str]) -> _Places:
    """The name that SET or SHOW has, which may have dots."""
    if tree.word(0) in ("SET", "RESET", "SHOW"):
        yield 1, tree.operand_after(1)


def _find_calls(name: str = "") -> _Finder:
    """The calls of a function, of the one that the message names where ``name`` is empty."""

    def find(tree: Reader, found: re.Match[str]) -> _Places:
        wanted = (name or found[1]).lower()
        for at, token in enumerate(tree.tokens):
            if token.text.lower() == wanted and tree.opens(at + 1):
                yield at, tree.close[at + 1] + 1

    return find


def _array(tree: Reader, _: re.Match[str]) -> _Places:
    """A list in brackets, or a subscript."""
    for at in range(len(tree.tokens)):
        if tree.kind(at) == TokenType.L_BRACKET and at in tree.close:
            yield at, tree.close[at] + 1


def _nested_calls(tree: Reader, found: re.Match[str]) -> _Places:
    """A call inside another call of aggregates."""
    calls = list(_find_calls()(tree, found))
    inner = [(a, b) for a, b in calls if any(x < a and b < y + 1 for x, y in calls)]
    yield from inner or calls


def _number_behind(word: str) -> _Finder:
    """The number that the message names, behind a word."""

    def find(tree: Reader, found: re.Match[str]) -> _Places:
        for start, stop in _clause(word)(tree, found):
            yield from (
                (at, at + 1) for at in range(start, stop) if tree.tokens[at].text == found[1]
            )

    return find


def _wide_subqueries(tree: Reader, _: re.Match[str]) -> _Places:
    """The subqueries of several columns."""
    for start, stop, select, query in tree.selects:
        if start and len(tree.items(select)) > 1 and tree.close.get(query.start - 1) == query.end:
            yield start, stop


def _row(tree: Reader, found: re.Match[str]) -> _Places:
    """A row of VALUES, by its number."""
    for at in range(len(tree.tokens)):
        if tree.word(at) == "VALUES":
            rows, start = [], at + 1
            while tree.opens(start):
                rows.append((start, tree.close[start] + 1))
                start = tree.close[start] + 2
            yield from rows[int(found[1]) : int(found[1]) + 1]


def _listed_names(tree: Reader, found: re.Match[str]) -> _Places:
    """Finds lists of names behind an alias, by their number of names."""
    for at in range(1, len(tree.tokens)):
        if tree.opens(at) and tree.is_name(at - 1):
            parts = tree.parts(at + 1, tree.close[at])
            behind = tree.word(at - 2) == "AS" or tree.word(tree.close[at] + 1) == "AS"
            if behind and len(parts) == int(found[1]) and all(b - a == 1 for a, b in parts):
                yield at, tree.close[at] + 1


def _select_lists(tree: Reader, _: re.Match[str]) -> _Places:
    for _start, _end, select, _query in tree.selects:
        yield select.items


def _equal_items(tree: Reader, found: re.Match[str]) -> _Places:
    """The items of a select list from the first to one that is written like it."""
    for _start, _end, select, _query in tree.selects:
        seen: dict[str, tuple[int, int]] = {}
        for start, stop in tree.items(select):
            first = seen.setdefault(tree.source_text(start, stop).lower(), (start, stop))
            if first[0] != start:
                yield first
                yield start, stop


def _cases(tree: Reader, _: re.Match[str]) -> _Places:
    opened: list[int] = []
    for at, word in enumerate(tree.words):
        if word == "CASE":
            opened.append(at)
        elif word == "END" and opened:
            yield opened.pop(), at + 1


def _windows_in_where(tree: Reader, found: re.Match[str]) -> _Places:
    where = list(_clause("WHERE", "HAVING", "GROUP")(tree, found))
    for at in range(1, len(tree.tokens)):
        if tree.word(at) == "OVER" and any(a < at < b for a, b in where):
            yield tree.operand_before(at), tree.operand_after(at + 1)


def _frames(tree: Reader, _: re.Match[str]) -> _Places:
    """The frames of windows: ROWS, RANGE or GROUPS to the parenthesis."""
    for at, word in enumerate(tree.words):
        if word in ("ROWS", "RANGE", "GROUPS") and tree.word(at + 1) == "BETWEEN":
            stop = at + 1
            while stop < len(tree.tokens) and stop not in tree.open:
                stop += 1
            yield at, stop


def _duplicate(tree: Reader, found: re.Match[str]) -> _Places:
    """The last place in which a name is given once more, behind no dot."""
    name = found[1].split(".")[0]
    places = [
        at
        for at, token in enumerate(tree.tokens)
        if identifier(token) == name and TokenType.DOT not in (tree.kind(at - 1), tree.kind(at + 1))
    ]
    if places:
        yield places[-1], places[-1] + 1


def _casts(tree: Reader, _: re.Match[str]) -> _Places:
    """The casts: ``CAST(…)``, and ``::type`` with its operand."""
    for at in range(len(tree.tokens)):
        if tree.word(at) in ("CAST", "TRY_CAST") and tree.opens(at + 1):
            yield at, tree.close[at + 1] + 1
        elif tree.kind(at) == TokenType.DCOLON:
            yield tree.operand_before(at), tree.type_end(at + 1)


_CAST_BEFORE = ("DATE", "TIME", "TIMESTAMP", "INTERVAL")
_COMPARED = {"=", "<", ">", "<=", ">=", "<>", "!=", "::"}


def _literals(tree: Reader, found: re.Match[str]) -> _Places:
    """The texts that are cast, or compared, and are not of the type that the message names."""
    fits = _FITS.get(found.groupdict().get("type") or "", re.compile(r"(?!)"))
    for at, token in enumerate(tree.tokens):
        if token.token_type != TokenType.STRING or fits.fullmatch(token.text):
            continue
        typed = tree.word(at - 1) in _CAST_BEFORE
        cast = tree.word(at - 2) in ("CAST", "TRY_CAST") and tree.opens(at - 1)
        beside = {tree.tokens[i].text for i in (at - 1, at + 1) if 0 <= i < len(tree.tokens)}
        if typed or cast or beside & _COMPARED:
            yield at - typed, at + 1


_FITS = {
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64"), re.compile(r"\s*[+-]?\d+\s*")),
    **dict.fromkeys(("Float32", "Float64"), re.compile(r"\s*[+-]?\d+(\.\d*)?(e[+-]?\d+)?\s*")),
    "Date32": re.compile(r"\d{4}-\d\d-\d\d.*"),
}
"""The texts that are of a type of numbers or dates, more or less."""


def _explain(tree: Reader, found: re.Match[str]) -> _Places:
    at = next((i for i, word in enumerate(tree.words) if word == "FORMAT"), None)
    if at is not None and at + 1 < len(tree.tokens):
        yield (at + 1, at + 2) if found[0].startswith("Invalid") else (at, at + 2)


def _first_word(tree: Reader, _: re.Match[str]) -> _Places:
    whole = statement_place(tree)
    if whole is not None:
        yield whole[0], whole[0] + 1


def _node(tree: Reader, found: re.Match[str]) -> _Places:
    """The word of a form that DataFusion does not plan, as it names it: Pivot, Collate."""
    yield from _word(found[1].upper())(tree, found)


_FINDERS: tuple[tuple[str, _Finder], ...] = (
    (r"Cannot cast string .* to value of (?P<type>\w+)", _literals),
    (r"Error parsing|Invalid input syntax for type|Unable to cast to Date32", _literals),
    (r"Unsupported CAST from", _casts),
    (r"Unsupported SQL type (\w+)|Unsupported type '(\w+)'", lambda t, m: _of_type(t, m)),
    (r"Invalid explain format|EXPLAIN (?:ANALYZE|VERBOSE) with FORMAT", _explain),
    (r"Inconsistent data length .* in row (\d+)", _row),
    (r"Inconsistent data type .* at row (\d+)", _row),
    (r"Column count doesn't match insert", _select_lists),
    (r"duplicate (?:un)?qualified field name \"?([\w.]+)", _duplicate),
    (r"WITH query name \"(\w+)\" specified more than once", _find_name(1)),
    (r"unique expression names", _equal_items),
    (r"unique expression names", _select_lists),
    (r"column '([^']+)' is declared twice", _find_name(1)),
    (r"window function is in WHERE, GROUP BY or HAVING", _windows_in_where),
    (r"cannot be nested: '(\w+)\(", _nested_calls),
    (r"not allowed in the WHERE", _clause("WHERE")),
    (r"Order by column out of bounds, specified: (\d+)", _number_behind("ORDER")),
    (r"Cannot find column with position (\d+)", _number_behind("GROUP")),
    (r"LIMIT must be|Expected LIMIT", _behind("LIMIT", "FETCH")),
    (r"OFFSET must be|Expected OFFSET", _behind("OFFSET")),
    (r"queries have different number|inputs for Union", _word(*_SETS)),
    (r"Too many columns! The subquery", _wide_subqueries),
    (r"non-boolean predicate|a condition is needed", _clause("WHERE", "HAVING", "QUALIFY")),
    (r"Unary operator 'NOT'", _behind("NOT")),
    (r"Unary operator '-'", lambda t, m: _signs(t, m)),
    (r"HAVING clause references", _clause("HAVING")),
    (r"only (\d+) names given as column alias", _listed_names),
    (r"Substring without for/from", _find_calls("substr")),
    (r"Failed to coerce then", _cases),
    (r"(?:Function '|function:? ')make_array'", _array),
    (r"array_element does not take", _array),
    (r"Function '(\w+)' user-defined coercion failed", _find_calls()),
    (r"in LIKE expression", _between("LIKE", "ILIKE")),
    (r"compatible types to compare", _between("IN")),
    (r"in BETWEEN expression", _between("BETWEEN")),
    (r"SELECT \* with no tables", lambda t, m: _stars(t, m)),
    (r"Invalid qualifier (\w+)", _find_name()),
    (r"The window (\w+) is not defined", _find_name()),
    (r"Invalid window frame", _frames),
    (r"DISTINCT ON expressions", _word("DISTINCT")),
    (r"For SELECT DISTINCT, ORDER BY", _clause("ORDER")),
    (r"table function '(\w+)' not found", _find_calls()),
    (r"no index '([^']+)'", _find_name()),
    (r"^'([^']+)' is no table", _find_name()),
    (
        r"(?:Table|View|Schema) (?:'(?P<name>\w+)'|\S+) (?:doesn't|already) exist",
        lambda t, m: _dropped_name(t),
    ),
    (r"file format with ext (\w+)", _find_name()),
    (r"^Unable to .* for (\w+)", _find_name()),
    (r"No files found at", _behind("LOCATION")),
    (r"is not a variable|config namespace|Error setting config", _setting),
    (r"Prepared statement '(\w+)'", _find_name()),
    (r"Field (\w+) not found in struct", _find_name()),
    (r"Cannot access field", lambda t, m: _fields(t)),
    (r"unnest\(\)", _find_calls("unnest")),
    (r"(\w+) function requires", _find_calls()),
    (r"Argument #\d+ must be", _find_calls("generate_series")),
    (r"Percentile value", _find_calls("percentile_cont")),
    (r"grouping function", _find_calls("grouping")),
    (r"ast node (?:in sqltorel: )?(\w+)", _node),
    (r"^there is no (\S+)", _quoted_word),
    (r"Unsupported SQL statement", _first_word),
)
"""The messages that are known, in the order in which they are tried, and where each may point."""


def _of_type(tree: Reader, found: re.Match[str]) -> _Places:
    name = (found[1] or found[2]).lower()
    yield from ((at, at + 1) for at, t in enumerate(tree.tokens) if t.text.lower() == name)


def _signs(tree: Reader, _: re.Match[str]) -> _Places:
    for at in range(len(tree.tokens) - 1):
        if tree.kind(at) == TokenType.DASH:
            yield at, tree.operand_after(at)


def _stars(tree: Reader, _: re.Match[str]) -> _Places:
    yield from ((at, at + 1) for at in range(len(tree.tokens)) if tree.kind(at) == TokenType.STAR)


_OBJECTS = ("TABLE", "VIEW", "SCHEMA", "DATABASE", "FUNCTION")


def _dropped_name(tree: Reader) -> _Places:
    """The name behind CREATE TABLE, DROP VIEW, …"""
    for at, word in enumerate(tree.words):
        if word in _OBJECTS:
            while tree.word(at + 1) in ("IF", "NOT", "EXISTS"):
                at += 1
            if at + 1 < len(tree.tokens):
                yield at + 1, at + 2
            return


def _fields(tree: Reader) -> _Places:
    """Names with a name before them: columns of relations, and fields."""
    for at in range(1, len(tree.tokens) - 1):
        if tree.kind(at) == TokenType.DOT and tree.is_name(at - 1):
            yield at - 1, at + 2
