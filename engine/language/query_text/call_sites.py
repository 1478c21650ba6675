"""Finds the calls in the text of a query.

Works on tokens, not on a syntax tree, so that whatever DataFusion understands stays understood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import ArgumentError, QueryError
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.udfs.declare.arguments import (
    Argument,
    Constant,
    Literal,
    Option,
    OwnValues,
    Query,
    Value,
)
from blendfusion.udfs.declare.call import (
    CONFIDENCE,
    END,
    ERROR,
    EVIDENCE,
    REASON,
    START,
    VALUE,
)
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import OPTIONS

_Named = TypeVar("_Named")
Span: TypeAlias = tuple[int, int]
"""The position of a first token, and one past that of the last."""
NO_COLUMN = "context"
"""The name of the value of a question without values."""
_KEPT_FIELDS = (VALUE, CONFIDENCE, ERROR, EVIDENCE, START, END, REASON)
_CLAUSES = ("FILTER", "OVER")
_CLOSES = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]"}


@dataclass(slots=True)
class Site:
    """One call in a query's text: its function, its arguments, and its place."""

    ingredient: Ingredient
    start: int
    end: int
    """The positions of its name, and one past its parenthesis."""
    text: str
    arguments: list[Argument] = field(default_factory=list)
    named: dict[str, Option] = field(default_factory=dict)
    values: list[Span] = field(default_factory=list)
    """The value arguments, in order."""
    queries: dict[str, Span] = field(default_factory=dict)
    """The subqueries among ``named``, without their parentheses."""
    order: Span | None = None
    """The ORDER BY inside the parentheses of an aggregate."""
    clauses: Span | None = None
    """The clauses behind the parentheses of an aggregate: FILTER (…), OVER (…)."""
    part: tuple[Sequence[str], int] | None = None
    """The fields of the result that are taken, as in ``.value``, and their end."""
    aliased: bool = False
    """The call is a whole select item with a name of the user's."""
    literals: list[Span] = field(default_factory=list)
    """The literal arguments without a name, in order."""
    literal_value: str = ""
    """The text that is asked about in place of a column."""

    @property
    def keeps_struct(self) -> bool:
        """The result is a struct of the value and its confidence, evidence or error."""
        spans = self.named.get("evidence") is True and not self.ingredient.has_fields
        with_value = spans or self.named.get("reasons") is True
        return with_value or "keep" in (self.named.get("on_error"), self.named.get("confidence"))

    @property
    def gives_map(self) -> bool:
        """The result is a map of answers and their probabilities."""
        return self.named.get("confidence") == "all"

    @property
    def struct(self) -> bool:
        """The result has fields."""
        return self.keeps_struct or self.ingredient.has_fields

    @property
    def stop(self) -> int:
        """One past the call with its clauses, and the field taken of it."""
        return self.part[1] if self.part else self.call_stop

    @property
    def call_stop(self) -> int:
        """One past the call with its clauses."""
        return self.clauses[1] if self.clauses else self.end


def find_sites(tree: TokenTree, ingredients: Mapping[str, Ingredient]) -> list[Site]:
    """The calls in a text, in the order of their first characters; nested ones too, but not those
    in subqueries that give options, which are queries of their own.

    Raises ArgumentError for arguments that cannot be read.
    """
    sites: list[Site] = []
    for at, ingredient in _call_names(tree, ingredients):
        if not any(a <= at < b for site in sites for a, b in site.queries.values()):
            with naming_place(tree, at, tree.close.get(at + 1, at) + 1):
                sites.append(_site(tree, at, ingredient))
    return sites


def only_site(tree: TokenTree, ingredients: Mapping[str, Ingredient]) -> Site | None:
    """The call that a text is; None if it is anything else. Raises ArgumentError."""
    sites = find_sites(tree, ingredients)
    whole = len(sites) == 1 and (sites[0].start, sites[0].stop) == (0, len(tree.tokens))
    return sites[0] if whole else None


@contextmanager
def naming_place(tree: TokenTree, start: int, end: int) -> Iterator[None]:
    """Gives errors of queries inside the block the place of these tokens in the text."""
    try:
        yield
    except QueryError as problem:
        problem.span = problem.span or tree.span(start, end)
        raise


def call_spans(tree: TokenTree, names: Collection[str]) -> list[Span]:
    """The calls of every function of these names; their arguments are not read."""
    called = _call_names(tree, dict.fromkeys(names))
    return [(at, tree.close[at + 1] + 1) for at, _ in called if at + 1 in tree.close]


def _call_names(tree: TokenTree, named: Mapping[str, _Named]) -> Iterator[tuple[int, _Named]]:
    """The positions of the names that are called, with their entries in ``named``."""
    for at, token in enumerate(tree.tokens[:-1]):
        kind = token.token_type
        name = token.text if kind == TokenType.IDENTIFIER else token.text.lower()
        called = tree.kind(at + 1) == TokenType.L_PAREN and kind != TokenType.STRING
        if name in named and called and tree.kind(at - 1) != TokenType.DOT:
            yield at, named[name]


def _site(tree: TokenTree, at: int, ingredient: Ingredient) -> Site:
    close = tree.close.get(at + 1)
    if close is None:
        raise QueryError(
            f"{ingredient.name} on line {tree.tokens[at].line}: the parenthesis is not closed",
            hint=f"Write {ingredient.signature}.",
        )
    site = Site(ingredient, at, close + 1, tree.one_line(at, close + 1))
    stop = close
    order = tree.first(at + 2, close, TokenType.ORDER_BY)
    if order is not None:
        site.order, stop = (order, close), order
    parts = [(a, b) for a, b in tree.parts(at + 2, stop) if a < b]
    trailing = _trailing(tree, parts, ingredient)
    for i, part in enumerate(parts):
        if i in trailing and tree.is_query(*part):
            _query(tree, trailing[i], part, site)
        else:
            _argument(tree, part, site)
    if not site.values:
        _literal_value(tree, site, len(trailing))
    if ingredient.kind.aggregate:
        _check_distinct(tree, site)
        behind = _behind_clauses(tree, close + 1)
        if behind != site.end:
            site.clauses = (site.end, behind)
        site.text = tree.one_line(at, site.stop)
    elif tree.word(site.end) in _CLAUSES and (
        tree.opens(site.end + 1) or tree.kind(site.end + 1) == TokenType.VAR
    ):
        raise ArgumentError(
            f"{ingredient.name}: {tree.word(site.end)} belongs to aggregates; "
            f"{ingredient.name} answers row by row",
            hint="Write CASE WHEN condition THEN call END, or a WHERE.",
        )
    fields = _fields_behind(tree, site)
    if fields:
        site.part = fields, site.call_stop + 2 * len(fields)
    following = tree.kind(site.stop)
    site.aliased = following in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
    return site


def _fields_behind(tree: TokenTree, site: Site) -> list[str]:
    """The fields that ``.value``, ``.confidence``, ``.error`` and names of a struct's fields take
    from a call, which DataFusion does not take there."""
    fields = site.ingredient.has_fields
    names: list[str] = []
    at = site.call_stop
    while at + 1 < len(tree.tokens) and tree.kind(at) == TokenType.DOT:
        name = tree.tokens[at + 1].text
        known = name in _KEPT_FIELDS if site.keeps_struct and not names else fields
        if not known:
            break
        names.append(name)
        at += 2
    return names


def _check_distinct(tree: TokenTree, site: Site) -> None:
    distinct = any(tree.word(a) == "DISTINCT" for a, _ in site.values)
    if distinct and len(site.values) > 1:
        raise ArgumentError(
            f"{site.ingredient.name}: DISTINCT of several values",
            hint="Take the distinct rows in a subquery, and ask about those.",
        )


def _behind_clauses(tree: TokenTree, at: int) -> int:
    """One past FILTER (…) and OVER (…) or OVER name, which may stand at ``at``."""
    for word in _CLAUSES:
        if tree.word(at) == word and at + 1 < len(tree.tokens):
            at = tree.close.get(at + 1, at + 1) + 1
    return at


def _argument(tree: TokenTree, part: Span, site: Site) -> None:
    start, stop = part
    tokens = tree.tokens[start:stop]
    if _is_named(tree, part):
        name, given = tokens[0].text.lower(), (start + 2, stop)
        _check_once(name, site)
        if tree.is_query(*given):
            _query(tree, name, given, site)
            return
        found = literal_of(tokens[2:])
        if found is None and name in OPTIONS.names and tree.word(given[0]) == "ARRAY_AGG":
            site.named[name] = OwnValues(_own_values(tree, given, site))
            return
        if found is None:
            raise ArgumentError(
                f"{site.ingredient.name}: {name} => {tree.source_text(*given) or 'nothing'} "
                "is not a literal",
                hint="Options are literals: 'text', 3, TRUE, ['a', 'b']. For the values of a column "
                "write options => (SELECT column FROM table).",
            )
        site.named[name] = found.value
        return
    literal = literal_of(tokens)
    leading = sum(p.name not in site.named for p in site.ingredient.leading)
    while literal is not None and tokens[0].token_type == TokenType.L_PAREN:
        inner = literal.value[0] if isinstance(literal.value, list) else None
        # ('a') may be a list of one; the parentheses of (['a']) and of a question are no list.
        is_list = len(site.arguments) >= leading and not isinstance(inner, list | dict)
        if is_list or tree.bare(start, stop) == (start, stop):
            break
        start, stop = start + 1, stop - 1
        tokens, literal = tree.tokens[start:stop], literal_of(tree.tokens[start:stop])
    if literal is not None and not site.ingredient.kind.takes_literal(len(site.arguments)):
        site.arguments.append(literal)
        site.literals.append((start, stop))
        return
    if len(tokens) == 1 and tree.text[tokens[0].start] == "$":
        _parameter(tree, part, site)
        return
    if tree.kind(stop - 1) == TokenType.STAR:
        problem = ArgumentError(
            f"{site.ingredient.name}: * is not a value", hint="Write the names of the columns."
        )
        problem.span = tree.span(start, stop)
        raise problem
    part = tree.bare(*part)
    site.arguments.append(Value(_name(tree, part)))
    site.values.append(part)


def _own_values(tree: TokenTree, given: Span, site: Site) -> str:
    """``array_agg(x)`` as it is written, of the one value of the call, which precedes it."""
    start, stop = given
    inside = start + 2, stop - 1
    if tree.word(inside[0]) == "DISTINCT":
        inside = inside[0] + 1, inside[1]
    values = [tree.source_text(*span).lower() for span in site.values]
    own = tree.opens(start + 1) and tree.close[start + 1] == stop - 1
    if not own or values != [tree.source_text(*inside).lower()]:
        raise ArgumentError(
            f"{site.ingredient.name}: options => {tree.source_text(*given)} are no values of the call",
            hint="Options are the values that the call is about: "
            "llm_qa('Which is worst?', x, options => array_agg(x)).",
        )
    return f"array_agg({tree.source_text(*inside)})"


def _parameter(tree: TokenTree, part: Span, site: Site) -> None:
    """A parameter that has no value yet: one of PREPARE, which EXECUTE gives as a value."""
    ingredient, name = site.ingredient, tree.tokens[part[0]].text[1:]
    question = len(site.arguments) < sum(p.name not in site.named for p in ingredient.leading)
    prepared = tree.word(0) == "PREPARE"
    if question or not prepared:
        hint = f"Pass it: session.sql(query, param_values={{{name!r}: …}})."
        if prepared:
            hint = "A prepared question is a literal; parameters are values to ask about."
        raise ArgumentError(f"{ingredient.name}: the parameter ${name} has no value", hint=hint)
    site.arguments.append(Value())
    site.values.append(part)


def _literal_value(tree: TokenTree, site: Site, trailing: int) -> None:
    """A call without columns: its value is the one literal that is no parameter; without any, the
    question is asked alone."""
    ingredient = site.ingredient
    leading = sum(p.name not in site.named for p in ingredient.leading)
    special = ingredient.kind.has_body or not ingredient.kind.asks_model
    pair = len(ingredient.value_names) > 1
    if special or pair or len(site.arguments) != len(site.literals):
        return
    more = len(site.arguments) - leading - trailing
    if more == 1:
        place = tree.bare(*site.literals[leading])
        literal = literal_of(tree.tokens[slice(*place)])
        if isinstance(literal, Constant) and not isinstance(literal.value, list | dict):
            site.arguments[leading] = Value()
            site.literal_value = str(literal.value)
            site.values.append(place)
    elif more == 0 and leading and not trailing and not ingredient.kind.images:
        question = site.arguments[0]
        if isinstance(question, Constant) and "{" not in str(question.value):
            site.arguments.append(Value(NO_COLUMN))


def _trailing(tree: TokenTree, parts: Sequence[Span], ingredient: Ingredient) -> dict[int, str]:
    """The parameters behind the values by the places of their arguments, which may have options
    after them; those that are given by name have none."""
    named = {tree.tokens[part[0]].text.lower() for part in parts if _is_named(tree, part)}
    names = [p.name for p in ingredient.trailing if p.name not in named]
    places = [i for i, part in enumerate(parts) if not _is_named(tree, part)]
    last = places[len(places) - len(names) :]
    return dict(zip(last, names, strict=False))


def _is_named(tree: TokenTree, part: Span) -> bool:
    return part[1] - part[0] > 1 and tree.kind(part[0] + 1) == TokenType.FARROW


def _query(tree: TokenTree, name: str, part: Span, site: Site) -> None:
    _check_once(name, site)
    inside = part[0] + 1, part[1] - 1
    text = tree.text[tree.tokens[inside[0]].start : tree.tokens[inside[1]].start]
    site.named[name] = Query(text.strip())
    site.queries[name] = inside


def _check_once(name: str, site: Site) -> None:
    if name in site.named:
        raise ArgumentError(
            f"{site.ingredient.name}: '{name}' is given twice", hint="Give it once."
        )


def _name(tree: TokenTree, part: Span) -> str:
    """The column's name if the tokens are a column, else ''."""
    start, stop = part
    start += tree.kind(start) == TokenType.DISTINCT
    dotted = all(tree.kind(at) == TokenType.DOT for at in range(start + 1, stop, 2))
    plain = dotted and (stop - start) % 2 and stop - 1 not in tree.open
    return tree.name(stop - 1) if plain else ""


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
            return self._list(_CLOSES[kind])
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
