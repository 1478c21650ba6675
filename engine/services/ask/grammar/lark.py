"""Writes the grammar of a catalogue's queries in Lark's form, as llguidance takes it.

Names and values are terminals: as rules, a hundred tables exceed the size of a parser's row. A
query's tables are known behind FROM only, so each scope has its own branch. The lexer looks one
byte ahead: no terminal may go on with a blank where another could begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blendfusion.services.ask.grammar import terminals as t
from blendfusion.services.ask.grammar.calls import Call, calls
from blendfusion.services.ask.grammar.scopes import Scope, Source, scopes
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table, split
from blendfusion.udfs.declare.ingredient import Ingredient

_MANY_COLUMNS = 300
"""Above, a FROM clause has one form of aliases, and GROUP BY gives columns by number only."""
MOST_GROUPED = 1_500
"""Columns of all scopes that GROUP BY may name."""
_CLASSES = {
    "num": ("INTEGER", "DOUBLE", "DECIMAL"),
    "text": ("TEXT",),
    "date": ("DATE", "TIMESTAMP"),
}
_MOST = {"columns": 15, "keys": 4, "terms": 8, "values": 30, "queries": 3}
"""Maximum lengths of lists: where a list may go on for ever, a small model repeats itself to the
end of its answer."""
_COMMA = f"{t.MAYBE},{t.MAYBE}"
_COMMON = {
    "COMMA": _COMMA,
    "OPEN": rf"\({t.MAYBE}",
    "CLOSE": rf"{t.MAYBE}\)",
    "STAR": r"\*",
    "SELECT": t.keyword("select") + t.BLANK,
    "DISTINCT": t.keyword("distinct") + t.BLANK,
    "WHERE": t.between("where"),
    "AND": f"{t.BLANK}{t.in_cases('and', 'or')}{t.BLANK}",
    "BETWEEN": t.between("between"),
    "TO": t.between("and"),
    "NOT": f"{t.in_cases('not')}{t.BLANK}",
    "GROUP_BY": t.between("group by"),
    "HAVING": t.between("having"),
    "ORDER_BY": t.between("order by"),
    "DIRECTION": f"{t.BLANK}{t.in_cases('asc', 'desc')}",
    "NULLS_LAST": t.BLANK + t.keyword("nulls last"),
    "FROM": t.between("from"),
    "JOIN": f"{t.BLANK}({t.in_cases('inner', 'left')}{t.BLANK})?{t.in_cases('join')}{t.BLANK}",
    "ON": t.between("on"),
    "EQUAL": f"{t.MAYBE}={t.MAYBE}",
    "LIMIT": f"{t.between('limit')}{t.WHOLE}",
    "SET": f"{t.BLANK}({t.in_cases('union')}({t.BLANK}{t.in_cases('all')})?|{t.in_cases('intersect', 'except')}){t.BLANK}",
    "COMPARED": f"{t.MAYBE}(=|<>|!=|<=|>=|<|>){t.MAYBE}",
    "EQUALS": f"{t.MAYBE}(=|<>|!=){t.MAYBE}",
    "IN": rf"{t.BLANK}({t.in_cases('not')}{t.BLANK})?{t.in_cases('in')}{t.MAYBE}\({t.MAYBE}",
    "LIKE": f"{t.BLANK}({t.in_cases('not')}{t.BLANK})?{t.in_cases('like', 'ilike')}{t.BLANK}{t.PATTERN}",
    "IS_NULL": f"{t.BLANK}{t.in_cases('is')}{t.BLANK}({t.in_cases('not')}{t.BLANK})?{t.in_cases('null')}",
    "SIGN": f"{t.MAYBE}[-+*]{t.MAYBE}",
    "NUMBER": t.NUMBER,
    "UNSIGNED": t.NUMBER.removeprefix("-?"),  # two dashes begin a comment
    "STRING": t.STRING,
    "LABEL": t.LABEL,
    "DATE": t.DATE,
    "COUNT_ALL": rf"{t.in_cases('count')}\({t.MAYBE}\*{t.MAYBE}\)",
    "COUNT": rf"{t.in_cases('count')}\({t.MAYBE}",
    "OF_NUMBERS": rf"{t.in_cases('avg', 'sum', 'min', 'max')}\({t.MAYBE}",
    "OF_OTHERS": rf"{t.in_cases('min', 'max')}\({t.MAYBE}",
    "ROUND": rf"{t.in_cases('round', 'abs')}\({t.MAYBE}",
    "LENGTH": rf"{t.in_cases('length')}\({t.MAYBE}",
    "LOWER": rf"{t.in_cases('lower', 'upper')}\({t.MAYBE}",
    "AS": t.between("as"),
    "ORDINAL": "1",
    "TWO": "2",
}
"""The terminals that do not depend on the catalogue."""


def _list(item: str, length: str, between: str = "COMMA") -> str:
    """One item or several, up to the maximum of the kind of list."""
    return f"{item} ({between} {item}){{0,{_MOST[length] - 1}}}"


_RULES = f"""
limit: LIMIT?
direction: (DIRECTION NULLS_LAST?)?
distinct: DISTINCT?
ranged: COMPARED NUMBER | BETWEEN NUMBER TO NUMBER | IN {_list("NUMBER", "values")} CLOSE
dated: COMPARED DATE | BETWEEN DATE TO DATE
worded: EQUALS STRING | IN {_list("STRING", "values")} CLOSE
by_number: ORDER_BY ORDINAL direction
NEVER: "\\u0000"
"""
"""The rules that do not depend on the catalogue."""


class _Writer:
    """Collects terminals and rules; equal terminals have one name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._terminals: dict[str, str] = {}
        self._rules: set[str] = set()

    def terminal(self, pattern: str) -> str:
        """The name of the terminal of a pattern; '' for none."""
        if not pattern:
            return ""
        known = self._terminals.get(pattern)
        if known is None:
            known = self._terminals[pattern] = f"X{len(self._terminals)}"
            self.lines.append(f"{known}: {t.regex(pattern)}")
        return known

    def rule(self, name: str, *branches: str) -> str:
        """Adds a rule of the branches that are not '', once; its name, or '' without any."""
        kept = [branch for branch in branches if branch]
        if not kept:
            return ""
        if name in self._rules:
            return name
        self._rules.add(name)
        self.lines.append(f"{name}: {' | '.join(kept)}")
        return name


def grammar_of(catalog: Catalog, functions: Iterable[Ingredient], question: str = "") -> str:
    """The grammar of queries; its start is the rule ``query``. A column is compared with its values
    if all of them are known, and with parts of the ``question``."""
    few = sum(len(table.columns) for table in catalog.tables) <= _MANY_COLUMNS
    writer = _Writer()
    phrases = writer.terminal(t.literals(_phrases(question)))
    grammar = _Grammar(writer, catalog, tuple(calls(functions)), phrases, few=few)
    selects = grammar.selects()
    head = [
        "query: select | united_text | united_num",
        f"select: {' | '.join(selects)}",
        *grammar.unions(),
    ]
    common = [f"{name}: {t.regex(pattern)}" for name, pattern in _COMMON.items()]
    return "\n".join([*head, *common, _RULES, *writer.lines]) + "\n"


def _phrases(question: str) -> list[str]:
    """The parts of a question that may be a literal, of up to five words."""
    words = question.replace("?", " ").replace("'", " ").replace('"', " ").split()
    parts = [" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, a + 6)]
    return list(dict.fromkeys(part.strip(".,;:!") for part in parts if part.strip(".,;:!")))


@dataclass(frozen=True, slots=True)
class View:
    """Columns of a source by the names that are clear in every FROM clause, or (``shared``) those
    that other tables have as well, without a qualifier."""

    source: Source
    shared: bool = False


class _Grammar:
    def __init__(
        self, writer: _Writer, catalog: Catalog, known: Sequence[Call], phrases: str, *, few: bool
    ) -> None:
        self._w = writer
        self._calls = known
        self._phrases = phrases
        self._few = few
        self._room = MOST_GROUPED if few else 0
        self._keys = catalog.keys
        self._tables = {table.name: table for table in catalog.tables}
        self._scopes = scopes(catalog, aliased=few)
        self._shared = _shared_names(catalog.tables)
        self._inner: dict[str, str] = {}
        self._known: dict[View, str] = {}
        self._alias = self._alias_terminal()
        self._places: dict[str, list[str]] = {"text": [], "num": []}

    def _several(self, item: str, length: str, between: str = "COMMA") -> str:
        """One item or several, in a small catalogue up to the maximum of the kind of list: each
        repetition takes a symbol of the grammar, and there is room for 65,000."""
        return _list(item, length, between) if self._few else f"{item} ({between} {item})*"

    def selects(self) -> list[str]:
        """The rule of each scope."""
        return [self._scope(i, scope) for i, scope in enumerate(self._scopes)]

    def unions(self) -> list[str]:
        """The rules of UNION, INTERSECT and EXCEPT over one column of a class."""
        rules = []
        for kind, places in self._places.items():
            one = " | ".join(places) or "NEVER"
            rules.append(f"united_{kind}: one_{kind} (SET one_{kind}){{1,{_MOST['queries'] - 1}}}")
            rules.append(f"one_{kind}: {one}")
        return rules

    # -- the columns of a scope ---------------------------------------------------------------

    def _columns(self, view: View, kind: str = "") -> str:
        """The terminal of a view's columns of a class, or of all; '' for none."""
        wanted = _CLASSES.get(kind)
        own = [c.name for c in view.source.table.columns if wanted is None or c.type in wanted]
        return self._w.terminal(self._names(view, own))

    def _names(self, view: View, own: Sequence[str]) -> str:
        """A pattern of columns: qualified, and bare where no other table has the name; of the view
        of a single table's other names, bare."""
        write = t.name if self._few else t.plain
        bare = [n for n in own if (n.lower() in self._shared) == view.shared]
        parts = (
            []
            if view.shared or not own
            else [f"{_qualifier(view.source)}\\.({'|'.join(map(write, own))})"]
        )
        return "|".join([*parts, *map(write, bare)])

    def _scope(self, i: int, scope: Scope) -> str:
        w = self._w
        views = [View(source) for source in scope.sources]
        if not scope.joins:
            views.append(View(scope.sources[0], shared=True))
        for kind in ("", *_CLASSES):
            w.rule(f"{kind or 'any'}_{i}", *(self._columns(view, kind) for view in views))
        has = {kind for kind in _CLASSES if any(self._columns(view, kind) for view in views)}
        number, text, day = (f"{kind}_{i}" if kind in has else "" for kind in _CLASSES)
        where = self._where(i, views, number, text, day)
        tail = w.rule(f"tail_{i}", f"{self._from(scope)} (WHERE {where})?")
        w.rule(
            f"value_{i}",
            f"any_{i}",
            number and f"{number} SIGN {number} | {number} SIGN UNSIGNED | ROUND {number} CLOSE",
            text and f"LENGTH {text} CLOSE | LOWER {text} CLOSE",
            *(self._call(call, text) for call in self._calls if text and not call.aggregate),
        )
        w.rule(f"item_{i}", f"value_{i} (AS {self._alias})?")
        w.rule(f"items_{i}", self._several(f"item_{i}", "columns"))
        w.rule(
            f"total_{i}",
            "COUNT_ALL",
            f"COUNT distinct any_{i} CLOSE",
            number and f"OF_NUMBERS {number} CLOSE | ROUND OF_NUMBERS {number} CLOSE CLOSE",
            text and f"OF_OTHERS {text} CLOSE",
            day and f"OF_OTHERS {day} CLOSE",
        )
        groups = [self._call(call, text) for call in self._calls if text and call.aggregate]
        w.rule(f"agg_{i}", f"total_{i} (AS {self._alias})?", *groups)
        w.rule(f"aggs_{i}", self._several(f"agg_{i}", "columns"))
        w.rule(f"order_{i}", f"ORDER_BY {self._several(f'key_{i}', 'keys')}")
        w.rule(f"key_{i}", f"value_{i} direction")
        for kind, column in (("text", text), ("num", number)):
            if column:
                self._places[kind].append(f"SELECT distinct {column} {tail}")
        plain = [
            f"SELECT (STAR | items_{i}) {tail} order_{i}? limit",
            f"SELECT DISTINCT items_{i} {tail} limit",
            f"SELECT aggs_{i} {tail}",
        ]
        return w.rule(f"s_{i}", *plain, *self._group(i, views, tail))

    def _alias_terminal(self) -> str:
        taken = {c.name.lower() for table in self._tables.values() for c in table.columns}
        words = "num number total cnt average highest lowest result".split()
        free = [w for w in words if not any(name.startswith(w) for name in taken)]
        return self._w.terminal(f"({'|'.join(free or ['zz'])})(_[a-z]{{2,12}}){{0,2}}")

    def _from(self, scope: Scope) -> str:
        first, *others = scope.sources
        written = f"FROM {self._table(first)}"
        for source, join in zip(others, scope.joins, strict=True):
            left = self._w.terminal(_place(scope.sources[join.left], join.left_column))
            right = self._w.terminal(_place(source, join.right_column))
            written += f" JOIN {self._table(source)} ON"
            written += f" ({left} EQUAL {right} | {right} EQUAL {left})"
        return written

    def _table(self, source: Source) -> str:
        """A table of FROM, with its alias."""
        name = self._w.terminal(t.name(source.table.name))
        if not source.alias:
            return name
        alias = f"{t.BLANK}({t.in_cases('as')}{t.BLANK})?{t.word(source.alias)}"
        return f"{name} {self._w.terminal(alias)}"

    # -- groups -------------------------------------------------------------------------------

    def _group(self, i: int, views: Sequence[View], tail: str) -> list[str]:
        """SELECT with GROUP BY: by numbers of columns, or by the columns themselves."""
        w = self._w
        w.rule(f"having_{i}", f"HAVING total_{i} COMPARED NUMBER")
        w.rule(f"by_{i}", f"ORDER_BY total_{i} direction")
        end = w.rule(f"end_{i}", f"having_{i}? (by_{i} | by_number)? limit")
        more = w.rule(f"more_{i}", f"(COMMA {self._several(f'agg_{i}', 'columns')})?")
        found = [
            f"SELECT any_{i} {more} {tail} GROUP_BY ORDINAL {end}",
            f"SELECT any_{i} COMMA any_{i} {more} {tail} GROUP_BY ORDINAL COMMA TWO {end}",
        ]
        columns = [
            c
            for view in views
            for column in view.source.table.columns
            if (c := w.terminal(self._names(view, [column.name])))
        ]
        if len(columns) > self._room:
            return found
        self._room -= len(columns)
        first, last = (
            w.rule(f"first_{i}", f"aggs_{i} COMMA"),
            w.rule(f"last_{i}", f"COMMA any_{i}"),
        )
        w.rule(f"also_{i}", f"any_{i} COMMA")
        for c in columns:
            by = f"{tail} GROUP_BY also_{i}? {c} {last}? {end}"
            found += [f"SELECT {c} {more} {by}", f"SELECT {first} {c} {by}"]
        return found

    # -- predicates ---------------------------------------------------------------------------

    def _where(self, i: int, views: Sequence[View], number: str, text: str, day: str) -> str:
        w = self._w
        w.rule(
            f"pred_{i}",
            f"any_{i} IS_NULL",
            number and f"{number} ranged | {number} COMPARED {number}",
            number and f"{number} COMPARED {self._scalar()}",
            text and f"{text} LIKE",
            day and f"{day} dated",
            *map(self._of_view, views),
            *(self._judge(call, text) for call in self._calls if text and not call.aggregate),
        )
        w.rule(f"term_{i}", f"pred_{i}", f"NOT pred_{i}", f"OPEN where_{i} CLOSE")
        return w.rule(f"where_{i}", self._several(f"term_{i}", "terms", "AND"))

    def _of_view(self, view: View) -> str:
        """The predicates on one column of a view: its values, and IN along keys."""
        if view not in self._known:
            name = f"on_{len(self._known)}"
            self._known[view] = self._w.rule(name, *self._literals(view), *self._key_in(view))
        return self._known[view]

    def _literals(self, view: View) -> Iterable[str]:
        """Equality of each text column with its values."""
        free: list[str] = []
        for column in view.source.table.columns:
            if column.type != "TEXT":
                continue
            value = self._value(column)
            if not value:
                free.append(column.name)
                continue
            place = self._w.terminal(self._names(view, [column.name]))
            if place:
                yield f"{place} {value}"
        place = self._w.terminal(self._names(view, free))
        if place:
            yield f"{place} worded"

    def _value(self, column: Column) -> str:
        """The rule that compares a column with its values; '' if they are not known."""
        known = self._w.terminal(t.literals(column.values)) if column.complete else ""
        if not known:
            return ""
        value = self._w.rule(f"v_{known.lower()}", known, self._phrases)
        return self._w.rule(
            f"is_{known.lower()}", f"EQUALS {value}", f"IN {self._several(value, 'values')} CLOSE"
        )

    def _key_in(self, view: View) -> Iterable[str]:
        """IN (SELECT …) along the keys of a table."""
        for key in self._keys:
            for own, other in ((key.left, key.right), (key.right, key.left)):
                (table, column), (inner, wanted) = split(own), split(other)
                place = self._w.terminal(self._names(view, [column]))
                if table == view.source.table.name and inner in self._tables and place:
                    yield f"{place} IN {self._select_of(inner, wanted)} CLOSE"

    def _select_of(self, table: str, column: str) -> str:
        """One column of a table."""
        view = View(Source(self._tables[table]))
        name = self._w.terminal(self._names(view, [column]))
        bare = self._w.terminal(self._names(View(view.source, shared=True), [column]))
        chosen = f"({name} | {bare})" if bare else name
        return f"SELECT {chosen} {self._rest(view.source)}"

    def _rest(self, source: Source) -> str:
        """FROM and WHERE of a subquery over one table; its predicates have no calls."""
        table = source.table.name
        if table not in self._inner:
            i = self._inner[table] = f"in_{len(self._inner)}"
            view = View(source)
            number, text = (self._columns(view, kind) for kind in ("num", "text"))
            self._w.rule(
                f"pred_{i}",
                f"{self._columns(view)} IS_NULL",
                number and f"{number} ranged",
                text and f"{text} LIKE",
                *self._literals(view),
                *self._literals(View(source, shared=True)),
            )
            self._w.rule(
                f"rest_{i}",
                f"FROM {self._table(source)} (WHERE {self._several(f'pred_{i}', 'terms', 'AND')})?",
            )
        return f"rest_{self._inner[table]}"

    def _scalar(self) -> str:
        """A subquery with one number."""
        if "" not in self._inner:
            self._inner[""] = "scalar"
            branches = []
            for table in self._tables.values():
                source = Source(table)
                number = self._columns(View(source), "num")
                if number:
                    rest = self._rest(source)
                    branches.append(f"OPEN SELECT OF_NUMBERS {number} CLOSE {rest} CLOSE")
            self._w.rule("scalar", *branches)
        return self._inner[""]

    # -- calls --------------------------------------------------------------------------------

    def _call(self, call: Call, text: str) -> str:
        return f"{self._w.terminal(call.before)} {text} {self._w.terminal(call.after)}"

    def _judge(self, call: Call, text: str) -> str:
        """A predicate on the answers of a call."""
        compared = {"boolean": "", "number": "COMPARED NUMBER", "text": "EQUALS LABEL"}
        if call.result not in compared:
            return ""
        return f"{self._call(call, text)} {compared[call.result]}"


def _place(source: Source, column: str) -> str:
    return f"{_qualifier(source)}\\.{t.name(column)}"


def _qualifier(source: Source) -> str:
    return t.word(source.alias) if source.alias else t.name(source.table.name)


def _shared_names(tables: Iterable[Table]) -> set[str]:
    """The names of columns, in lower case, that several tables have."""
    seen: set[str] = set()
    shared: set[str] = set()
    for table in tables:
        for name in {column.name.lower() for column in table.columns}:
            (shared if name in seen else seen).add(name)
    return shared
