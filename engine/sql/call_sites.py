"""Finds the calls in the text of a query.

Works on tokens, not on a syntax tree, so that whatever DataFusion understands stays understood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import ArgumentError, QueryError
from blendfusion.udfs.declare.arguments import (
    Argument,
    Constant,
    Literal,
    Option,
    Query,
    Value,
)
from blendfusion.udfs.declare.call import CONFIDENCE, ERROR, VALUE
from blendfusion.udfs.declare.ingredient import Ingredient

NO_COLUMN = "context"
"""What a question that is put alone is about, by name."""
_OPEN = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]", TokenType.L_BRACE: "}"}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


def nesting(token: Token) -> int:
    """By how much the depth of brackets changes at a token: 1, -1 or 0."""
    return (token.token_type in _OPEN) - (token.token_type in _CLOSE)


@dataclass(slots=True)
class Site:
    """One call in a query's text: what is called, with what, and where it stands."""

    ingredient: Ingredient
    start: int
    end: int
    """Offsets in the text: of the first character, and one past the last."""
    text: str
    arguments: list[Argument] = field(default_factory=list)
    named: dict[str, Option] = field(default_factory=dict)
    values: list[tuple[int, int]] = field(default_factory=list)
    """Offsets of the value arguments, in order."""
    queries: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Offsets of the subqueries among ``named``, without their parentheses."""
    order: tuple[int, int] | None = None
    """Offsets of the ORDER BY inside the parentheses of an aggregate."""
    clauses: tuple[int, int] | None = None
    """Offsets of what belongs to an aggregate behind its parentheses: FILTER (…), OVER (…)."""
    part: tuple[Sequence[str], int] | None = None
    """The fields of the result that are taken, as in ``.value``, and the offset of their end."""
    aliased: bool = False
    """The call is a whole select item with a name of the user's."""
    literals: list[tuple[int, int]] = field(default_factory=list)
    """Offsets of the literal arguments without a name, in order."""

    @property
    def kept(self) -> bool:
        """The result is a struct of the value and what is kept beside it."""
        return "keep" in (self.named.get("on_error"), self.named.get("confidence"))

    @property
    def struct(self) -> bool:
        """The result has fields."""
        return self.kept or self.ingredient.has_fields

    @property
    def stop(self) -> int:
        """One past the last character of the call with its clauses, and the field taken of it."""
        return self.part[1] if self.part else self.call_stop

    @property
    def call_stop(self) -> int:
        """One past the last character of the call with its clauses."""
        return self.clauses[1] if self.clauses else self.end


def find_sites(
    sql: str, tokens: Sequence[Token], ingredients: Mapping[str, Ingredient]
) -> list[Site]:
    """The calls in ``sql``, in the order of their first characters; nested ones too, but not those
    in subqueries that give options, which are queries of their own.

    Raises ArgumentError for arguments that cannot be read.
    """
    sites: list[Site] = []
    for i, ingredient in _called(sql, tokens, ingredients):
        start = tokens[i].start
        if not any(a <= start < b for site in sites for a, b in site.queries.values()):
            with naming_place(start, _end_of_call(tokens, i)):
                sites.append(_site(sql, tokens, i, ingredient))
    return sites


@contextmanager
def naming_place(start: int, end: int) -> Iterator[None]:
    """What is wrong with a query inside the block is wrong between these offsets of its text."""
    try:
        yield
    except QueryError as problem:
        problem.span = problem.span or (start, end)
        raise


def _end_of_call(tokens: Sequence[Token], at: int) -> int:
    """One past the call whose name stands at ``at``; past the name if it is not closed."""
    close = closing(tokens, at + 1)
    return int(tokens[at if close is None else close].end) + 1


def call_spans(
    sql: str, tokens: Sequence[Token], ingredients: Mapping[str, Ingredient]
) -> list[tuple[int, int]]:
    """Offsets of the arguments of every call, which are not read."""
    found = []
    for i, _ in _called(sql, tokens, ingredients):
        close = closing(tokens, i + 1)
        if close is not None:
            found.append((tokens[i].start, tokens[close].end + 1))
    return found


def _called(
    sql: str, tokens: Sequence[Token], ingredients: Mapping[str, Ingredient]
) -> Iterator[tuple[int, Ingredient]]:
    """The positions of the names that are called, with what they name."""
    for i, token in enumerate(tokens[:-1]):
        named = ingredients.get(token.text.lower())
        called = tokens[i + 1].token_type == TokenType.L_PAREN
        qualified = i > 0 and tokens[i - 1].token_type == TokenType.DOT
        if token.token_type == TokenType.IDENTIFIER:
            named = ingredients.get(token.text)
        elif token.token_type == TokenType.STRING:
            named = None
        if named is not None and called and not qualified:
            yield i, named


def _site(sql: str, tokens: Sequence[Token], at: int, ingredient: Ingredient) -> Site:
    close = closing(tokens, at + 1)
    if close is None:
        line = tokens[at].line
        raise QueryError(
            f"{ingredient.name} on line {line}: the parenthesis is not closed",
            hint=f"Write {ingredient.signature}.",
        )
    start, end = tokens[at].start, tokens[close].end + 1
    site = Site(ingredient, start, end, " ".join(sql[start:end].split()))
    inside = tokens[at + 2 : close]
    order = _top_level(inside, TokenType.ORDER_BY)
    if order is not None:
        site.order = (inside[order].start, end - 1)
        inside = inside[:order]
    parts = arguments_of(inside)
    trailing = _trailing(parts, ingredient)
    for i, part in enumerate(parts):
        if i in trailing and _is_query(part):
            _query(sql, trailing[i], part, site)
        else:
            _argument(sql, part, site)
    if not site.values:
        _literal_value(site, len(trailing))
    last = close
    if ingredient.kind.aggregate:
        _check_distinct(sql, site)
        last = _behind_clauses(tokens, close)
        if last != close:
            site.clauses = (tokens[close + 1].start, tokens[last].end + 1)
        site.text = " ".join(sql[start : site.stop].split())
    fields = _fields_behind(tokens, last + 1, site)
    if fields:
        last += 2 * len(fields)
        site.part = fields, tokens[last].end + 1
    following = tokens[last + 1].token_type if last + 1 < len(tokens) else None
    site.aliased = following in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
    return site


def _fields_behind(tokens: Sequence[Token], at: int, site: Site) -> list[str]:
    """The fields that ``.value``, ``.confidence``, ``.error`` and names of a struct's fields take
    from a call that ends before ``at``, which DataFusion does not take there."""
    fields = site.ingredient.has_fields
    names: list[str] = []
    while at + 1 < len(tokens) and tokens[at].token_type == TokenType.DOT:
        name = tokens[at + 1].text
        known = name in (VALUE, CONFIDENCE, ERROR) if site.kept and not names else fields
        if not known:
            break
        names.append(name)
        at += 2
    return names


def _check_distinct(sql: str, site: Site) -> None:
    distinct = any(sql[a:b].split()[0].upper() == "DISTINCT" for a, b in site.values)
    if distinct and len(site.values) > 1:
        raise ArgumentError(
            f"{site.ingredient.name}: DISTINCT of several values",
            hint="Take the distinct rows in a subquery, and ask about those.",
        )


def _behind_clauses(tokens: Sequence[Token], close: int) -> int:
    """The position of the last token of FILTER (…) and OVER (…) or OVER name, which may follow the
    parenthesis at ``close``; ``close`` if none does."""
    at = close
    for word in ("FILTER", "OVER"):
        if at + 2 < len(tokens) and tokens[at + 1].text.upper() == word:
            opened = tokens[at + 2].token_type == TokenType.L_PAREN
            end = closing(tokens, at + 2) if opened else at + 2
            at = at if end is None else end
    return at


def _top_level(tokens: Sequence[Token], kind: TokenType) -> int | None:
    """The position of the first token of a kind that stands in no bracket."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0 and token.token_type == kind:
            return i
    return None


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """The position of the bracket that closes the one at position ``at``; None if none does."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += nesting(tokens[i])
        if depth == 0:
            return i
    return None


def arguments_of(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The arguments: tokens between commas that stand in no bracket."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += nesting(token)
        if depth == 0 and token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return [p for p in parts if p] if parts != [[]] else []


def _argument(sql: str, tokens: Sequence[Token], site: Site) -> None:
    if _is_named(tokens):
        name = tokens[0].text.lower()
        if name in site.named:
            raise ArgumentError(
                f"{site.ingredient.name}: '{name}' is given twice", hint="Give it once."
            )
        if _is_query(tokens[2:]):
            _query(sql, name, tokens[2:], site)
            return
        found = literal_of(tokens[2:])
        if found is None:
            raise ArgumentError(
                f"{site.ingredient.name}: {name} => {_text(sql, tokens[2:])} is not a literal",
                hint="Options are literals: 'text', 3, TRUE, ['a', 'b']. For the values of a column "
                "write options => (SELECT column FROM table).",
            )
        site.named[name] = found.value
        return
    literal = literal_of(tokens)
    if literal is not None and not site.ingredient.kind.takes_literal(len(site.arguments)):
        site.arguments.append(literal)
        site.literals.append((tokens[0].start, tokens[-1].end + 1))
        return
    if len(tokens) == 1 and sql[tokens[0].start] == "$":
        name = tokens[0].text[1:]
        raise ArgumentError(
            f"{site.ingredient.name}: the parameter ${name} has no value",
            hint=f"Pass it: session.sql(query, param_values={{{name!r}: …}}).",
        )
    site.arguments.append(Value(_name(tokens)))
    site.values.append((tokens[0].start, tokens[-1].end + 1))


def _literal_value(site: Site, trailing: int) -> None:
    """A call without columns: its value is the one literal that is no parameter; without any, the
    question is put alone."""
    ingredient = site.ingredient
    leading = sum(p.name not in site.named for p in ingredient.leading)
    special = ingredient.kind.has_body or not ingredient.kind.asks_model
    pair = len(ingredient.value_names) > 1
    if special or pair or len(site.arguments) != len(site.literals):
        return
    more = len(site.arguments) - leading - trailing
    if more == 1:
        literal = site.arguments[leading]
        if isinstance(literal, Constant) and not isinstance(literal.value, list | dict):
            site.arguments[leading] = Value()
            site.values.append(site.literals[leading])
    elif more == 0 and leading and not trailing and not ingredient.kind.images:
        question = site.arguments[0]
        if isinstance(question, Constant) and "{" not in str(question.value):
            site.arguments.append(Value(NO_COLUMN))


def _trailing(parts: Sequence[Sequence[Token]], ingredient: Ingredient) -> dict[int, str]:
    """The parameters behind the values by the places of their arguments, which may have options
    after them; those that are given by name have none."""
    named = {part[0].text.lower() for part in parts if _is_named(part)}
    names = [p.name for p in ingredient.trailing if p.name not in named]
    places = [i for i, part in enumerate(parts) if not _is_named(part)]
    last = places[len(places) - len(names) :]
    return dict(zip(last, names, strict=False))


def _is_named(tokens: Sequence[Token]) -> bool:
    return len(tokens) > 1 and tokens[1].token_type == TokenType.FARROW


def _is_query(tokens: Sequence[Token]) -> bool:
    """The tokens are a subquery in parentheses."""
    return (
        len(tokens) > 2
        and tokens[0].token_type == TokenType.L_PAREN
        and tokens[1].token_type in (TokenType.SELECT, TokenType.WITH, TokenType.VALUES)
        and closing(tokens, 0) == len(tokens) - 1
    )


def _query(sql: str, name: str, tokens: Sequence[Token], site: Site) -> None:
    if name in site.named:
        raise ArgumentError(
            f"{site.ingredient.name}: '{name}' is given twice", hint="Give it once."
        )
    start, end = tokens[1].start, tokens[-1].start
    site.named[name] = Query(sql[start:end].strip())
    site.queries[name] = (start, end)


def _text(sql: str, tokens: Sequence[Token]) -> str:
    return sql[tokens[0].start : tokens[-1].end + 1] if tokens else "nothing"


def _name(tokens: Sequence[Token]) -> str:
    """The column's name if the tokens are a column, else ''."""
    names = [t for t in tokens if t.token_type != TokenType.DISTINCT]
    dotted = all(t.token_type == TokenType.DOT for t in names[1::2]) and len(names) % 2 == 1
    plain = not any(map(nesting, names))
    if not (dotted and plain):
        return ""
    name = names[-1]
    return str(name.text if name.token_type == TokenType.IDENTIFIER else name.text.lower())


def literal_of(tokens: Sequence[Token]) -> Constant | None:
    """The literal that all tokens together are; None if they are anything else."""
    return _Literals(tokens).whole()


class _Literals:
    """Reads a literal from tokens: text, number, TRUE, FALSE, NULL, ``['a', 'b']``, ``('a', 'b')``,
    ``{'a': 'b'}``."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def whole(self) -> Constant | None:
        """The literal that all tokens are; None if they are anything else."""
        try:
            value = self._value()
        except (_NoLiteralError, IndexError):
            return None
        return Constant(value) if self.at == len(self.tokens) else None

    def _value(self) -> Literal:
        token = self._next()
        kind = token.token_type
        if kind == TokenType.STRING:
            return token.text
        if kind == TokenType.NUMBER:
            return _number(token.text)
        if kind == TokenType.DASH and self.tokens[self.at].token_type == TokenType.NUMBER:
            return -_number(self._next().text)
        if kind in (TokenType.TRUE, TokenType.FALSE):
            return kind == TokenType.TRUE
        if kind == TokenType.NULL:
            return None
        if kind == TokenType.ARRAY or token.text.lower() in ("make_array", "array"):
            token = self._next()
            kind = token.token_type
        if kind == TokenType.MAP:
            token = self._next()
            kind = token.token_type
        if kind == TokenType.L_BRACE:
            return self._map()
        if kind in (TokenType.L_BRACKET, TokenType.L_PAREN):
            return self._list(_OPEN[kind])
        raise _NoLiteralError

    def _list(self, close: str) -> Literal:
        values: list[Literal] = []
        while self.tokens[self.at].text != close:
            values.append(self._value())
            if self.tokens[self.at].token_type == TokenType.COMMA:
                self.at += 1
            elif self.tokens[self.at].text != close:
                raise _NoLiteralError
        self.at += 1
        return values

    def _map(self) -> Literal:
        found: dict[str, Literal] = {}
        while self.tokens[self.at].token_type != TokenType.R_BRACE:
            key, colon = self._next(), self._next()
            if key.token_type != TokenType.STRING or colon.token_type != TokenType.COLON:
                raise _NoLiteralError
            if key.text in found:  # which of the two is meant?
                raise _NoLiteralError
            found[key.text] = self._value()
            if self.tokens[self.at].token_type == TokenType.COMMA:
                self.at += 1
            elif self.tokens[self.at].token_type != TokenType.R_BRACE:
                raise _NoLiteralError
        self.at += 1
        return found

    def _next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]


class _NoLiteralError(Exception):
    pass


def _number(text: str) -> int | float:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:  # sqlglot reads 1e3. as one
        raise _NoLiteralError from None
