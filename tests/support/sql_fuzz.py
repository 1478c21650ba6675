"""Texts that may be SQL: queries with calls, sqlglot's rewritings of them, and what mutations leave
of both.

Every text follows from its number alone. Nothing here is endless on purpose: no recursion, no
series of numbers, which would need a limit of time that a session does not have."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import sqlglot
from random_choices import Choices
from random_queries import random_query
from sqlglot import exp
from sqlglot.errors import SqlglotError

TABLES: dict[str, dict[str, list[object]]] = {
    "p": {"id": [1, 2, 3], "x": ["a", "b", None], "y": ["p q", "", "{x}"], "n": [0.5, None, -1.0]},
    "q": {"id": [2, 3, 4], "name": ["P", "x", "Ö"], "tags": [["a"], [], None]},
}

QUERIES = (
    "SELECT id, x FROM p WHERE llm_filter('Is it so?', x) AND id > 1",
    "SELECT llm_map('How many?', x) + 1 AS m, count(*) FROM p GROUP BY 1 ORDER BY m DESC LIMIT 2",
    "SELECT llm_classify(x, ['a', 'b'], question => 'Which?') AS c FROM p WHERE y LIKE '%q'",
    "SELECT llm_map('Which?', x, options => (SELECT name FROM q WHERE id < 4)) FROM p",
    "SELECT llm_map('Which?', x, regex => '[A-Z]{2}', on_error => 'null') FROM p",
    "SELECT llm_map('Which?', x, returns => 'list[int]')[1] FROM p",
    "SELECT llm_list('What?', y) FROM p JOIN q USING (id)",
    "SELECT q.name, llm_qa('What?', p.x ORDER BY p.y) FILTER (WHERE p.id > 1) FROM p JOIN q ON p.id = q.id "
    "GROUP BY q.name HAVING llm_validate('Is it?', p.x)",
    "SELECT id FROM p WHERE EXISTS (SELECT 1 FROM q WHERE q.id = p.id AND llm_filter('{name}?', name))",
    "SELECT CASE WHEN llm_bool('Is it?', x) THEN llm_int('How many?', y) ELSE -1 END FROM p",
    "SELECT llm_extract(x, 'a INT, b IN (''u'', ''v'')').b, llm_extract(x, 'c TEXT COMMENT ''d''')['c'] FROM p",
    "SELECT id FROM p ORDER BY llm_score('How much?', x, low => -1, high => 3) DESC LIMIT 2",
    "SELECT llm_date('When?', x)::date < DATE '2024-01-31', CAST(llm_map('When?', x) AS TIMESTAMP) FROM p",
    "WITH c AS (SELECT x, llm_text('Who?', x) AS w FROM p) SELECT a.w FROM c a, c b WHERE a.x = b.x",
    "SELECT llm_filter('Is it late?', x, examples => [['Still waiting', 'true']]) FROM p",
    "SELECT x FROM p WHERE llm_map('Which?', x) IN ('CA', 'NY') UNION SELECT llm_summarize(name) FROM q",
    "SELECT id, sum(llm_float('How much?', x)) OVER (PARTITION BY y ORDER BY id) FROM p",
    "SELECT unnest(tags), llm_map('Which?', unnest(tags)) FROM q",
    "SELECT * FROM p WHERE (SELECT max(llm_int('q', name)) FROM q) > id OR x IS NULL",
    "SELECT DISTINCT ON (x) x, llm_map('a {} b {y}?', x, y) FROM p ORDER BY x, id",
    "EXPLAIN SELECT x FROM p WHERE llm_filter('Is it?', x)",
    "SET blendfusion.on_error = 'raise'",
    "CREATE VIEW v AS SELECT llm_map('q', x) AS m FROM p",
    "CREATE TABLE w AS SELECT id, llm_int('q', x) AS m FROM p",
    "INSERT INTO p SELECT id, name, name, 0.5 FROM q WHERE llm_filter('q', name)",
    "SELECT 1 / id, CAST(x AS INT), n / 0, id % 0, sqrt(n), substr(x, id), to_date(y) FROM p",
    "SELECT arrow_cast(x, 'Int8'), make_array(id, n)[2], struct(id, x), x || y, date_part('year', now()) FROM p",
    "SELECT regexp_replace(x, '(', ''), x ~ '[', x LIKE 'a\\', x SIMILAR TO '(' FROM p",
)

LITERALS = (
    "''", "'a'", "'{}'", "'{nosuch}'", "'%s%n'", "NULL", "TRUE", "0", "-1", "1e308", "9223372036854775808",
    "99999999999999999999999999999999999999999", "1.5", "[]", "['a']", "[['a', 'b']]", "[NULL]", "ARRAY[1, 'a']",
    "$name", "$1", "?", "*", "x.*", "()", "(1, 2)", "(SELECT 1)", "(SELECT x FROM p)", "{'a': 1}", "DEFAULT",
    "INTERVAL '1 day'", "DATE '2024-02-31'", "X'00FF'", "E'\\n'", "'\x00'", "'<|im_end|>'", "'\u202e'", "'🙂'",
    "r => 1", "options => ['a']", "options => []", "options => NULL", "options => (SELECT 1, 2)", "regex => '('",
    "regex => '(?=a)b'", "returns => 'set'", "returns => 'list[list[int]]'", "on_error => 'explode'",
    "examples => [1]", "question => 3", "llm_map('q', x)", "llm_qa('q', x)", "DISTINCT x", "x ORDER BY y",
)  # fmt: skip

_NAMES = (
    "p",
    "q",
    "x",
    "nosuch",
    '"x"',
    '"a b"',
    "`x`",
    "[x]",
    "ö",
    "p.x",
    "a.b.c.d",
    "llm_map",
    "llm_qa",
    "id",
)
_GLUE = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "`",
    "$$",
    "/*",
    "*/",
    "--",
    ";",
    ",",
    ".",
    "::",
    "=>",
    "\\",
    "\x00",
)
_WORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "NOT", "IN", "OVER ()", "FILTER (WHERE x)", "UNION ALL", "LATERAL",
          "AS", "CASE", "END", "NULL", "DISTINCT", "LIMIT 1", "OFFSET -1", "QUALIFY", "PIVOT", "VALUES", "LEFT JOIN",
          "EXPLAIN", "DROP TABLE", "BETWEEN", "IS", "WITHIN GROUP", "ANY", "EXCEPT", "INTO w", "GROUPING SETS (())")  # fmt: skip
_TOKEN = re.compile(r"\s+|\w+|'(?:[^']|'')*'|.", re.DOTALL)

Mutation = Callable[[random.Random, list[str]], None]


def fuzzed(number: int) -> str:
    """Text ``number``: a third as it is or as sqlglot rewrites it, the others mutated one to six
    times."""
    dice = random.Random(number)
    text = _random(dice) if dice.random() < 0.3 else dice.choice(QUERIES)
    if dice.random() < 0.5:
        text = _rewritten(dice, text)
    if dice.random() < 0.34:
        return text
    parts = _TOKEN.findall(text)
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 6))):
        if parts:
            dice.choice(_MUTATIONS)(dice, parts)
    return "".join(parts)


def _random(dice: random.Random) -> str:
    return random_query(Choices(dice.randrange)).bounded


def _rewritten(dice: random.Random, text: str) -> str:
    """``text`` with parts of its syntax tree exchanged, written in one of sqlglot's dialects."""
    try:
        tree = sqlglot.parse_one(text, read="postgres")
        for _ in range(dice.randint(0, 3)):
            nodes = [node for node in tree.walk() if node.parent is not None]
            if nodes:
                _exchange(dice, dice.choice(nodes), dice.choice(nodes))
        dialect = dice.choice(("postgres", "duckdb", "", "mysql", "bigquery", "snowflake", "tsql"))
        return tree.sql(dialect, pretty=dice.random() < 0.3, unsupported_level=None)
    except (SqlglotError, ValueError, TypeError, AttributeError, AssertionError, RecursionError):
        return text  # sqlglot's own limits are not what is tested


def _exchange(dice: random.Random, node: exp.Expression, other: exp.Expression) -> None:
    if dice.random() < 0.5:
        node.replace(
            sqlglot.parse_one(dice.choice(("NULL", "1", "'a'", "x", "(SELECT 1)", "x = 1")))
        )
    elif not any(node is above for above in _line(other)):
        node.replace(other.copy())


def _line(node: exp.Expression) -> list[exp.Expression]:
    line = [node]
    while line[-1].parent is not None:
        line.append(line[-1].parent)
    return line


def _delete(dice: random.Random, parts: list[str]) -> None:
    del parts[dice.randrange(len(parts))]


def _double(dice: random.Random, parts: list[str]) -> None:
    at = dice.randrange(len(parts))
    parts[at:at] = parts[at : at + dice.randint(1, 8)]


def _swap(dice: random.Random, parts: list[str]) -> None:
    a, b = dice.randrange(len(parts)), dice.randrange(len(parts))
    parts[a], parts[b] = parts[b], parts[a]


def _cut(dice: random.Random, parts: list[str]) -> None:
    del parts[dice.randrange(len(parts)) :]


def _insert(dice: random.Random, parts: list[str]) -> None:
    what = dice.choice((LITERALS, _NAMES, _GLUE, _WORDS))
    parts.insert(dice.randrange(len(parts) + 1), f" {dice.choice(what)} ")


def _change(dice: random.Random, parts: list[str]) -> None:
    """Another literal or name in the place of one."""
    places = [i for i, part in enumerate(parts) if part[0] in "'\"" or part.isalnum()]
    if places:
        at = dice.choice(places)
        parts[at] = dice.choice(LITERALS if parts[at][0] == "'" or dice.random() < 0.5 else _NAMES)


def _flip(dice: random.Random, parts: list[str]) -> None:
    """One bit of one byte, read as text again whatever comes of it."""
    at = dice.randrange(len(parts))
    data = bytearray(parts[at].encode("utf-8", "surrogatepass"))
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    parts[at] = data.decode("utf-8", dice.choice(("replace", "surrogateescape")))


def _nest(dice: random.Random, parts: list[str]) -> None:
    at = dice.randrange(len(parts))
    opened, closed = dice.choice(
        (("(", ")"), ("NOT (", ")"), ("[", "]"), ("- ", ""), ("llm_map('q', ", ")"))
    )
    deep = dice.choice((1, 3, 20, 60, 400))
    parts[at] = opened * deep + parts[at] + closed * (deep - (dice.random() < 0.1))


_MUTATIONS: tuple[Mutation, ...] = (
    _delete, _delete, _double, _swap, _insert, _insert, _change, _change, _flip, _cut, _nest,
)  # fmt: skip
