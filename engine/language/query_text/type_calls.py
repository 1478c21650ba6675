"""Replaces each call in SQL text by a typed function of its own.

DataFusion's Python functions have one exact signature each, and its SQL planner must know types;
so every call site becomes a function of its own before DataFusion sees the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlglot import exp

from blendfusion.errors import ArgumentError, QueryError
from blendfusion.language.query_text.call_sites import (
    Site,
    call_spans,
    find_sites,
    naming_place,
)
from blendfusion.language.query_text.comparisons import never_equal, until_decided
from blendfusion.language.query_text.doubtful_literals import name_for_value
from blendfusion.language.query_text.equal_calls import equal_calls, share_casts, share_constraints
from blendfusion.language.query_text.infer_constraints import Context, contexts
from blendfusion.language.query_text.nulls_last import nulls_last
from blendfusion.language.query_text.parameters import declared_types, fill_parameters
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.relations import SITE
from blendfusion.language.query_text.resolve_columns import Columns, References
from blendfusion.language.query_text.row_values import row_values
from blendfusion.language.query_text.source_map import Translation, identity, within
from blendfusion.language.query_text.sqlglot_tree import parse_statement, tree_of
from blendfusion.language.query_text.substitute_calls import in_text, in_tokens
from blendfusion.language.query_text.typed_query import TypedQuery
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Option, Query
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import CONFIDENCE, ERROR, VALUE, Call
from blendfusion.udfs.declare.call_registry import remember
from blendfusion.udfs.declare.cast_answers import casts_that_may_fail
from blendfusion.udfs.declare.ingredient import Ingredient


class _Places(NamedTuple):
    of: Mapping[str, Context]
    nulls_last: Sequence[int] = ()
    """The positions of each DESC by an answer that says nothing of NULLs."""
    unread: tuple[str, ...] = ()
    refers: References | None = None


def type_calls(
    sql: str,
    ingredients: Mapping[str, Ingredient],
    parameters: Mapping[str, str] | None = None,
    *,
    whole: bool = False,
    columns: Columns = lambda table: None,
) -> TypedQuery:
    """Settle arity and type of every call in ``sql``: see ``read_calls``."""
    return read_calls(sql, ingredients, parameters, whole=whole, columns=columns).type_calls()


def read_calls(
    sql: str,
    ingredients: Mapping[str, Ingredient],
    parameters: Mapping[str, str] | None = None,
    *,
    whole: bool = False,
    columns: Columns = lambda table: None,
) -> CallReading:
    """The calls in ``sql`` and their places; text outside of calls is not touched.

    ``parameters`` is SQL for ``$name``, by name: see ``parameters.spelled_parameters``. ``whole``:
    nothing else asks what these calls ask, so that an answer which is no more than compared may end
    where the comparison is decided. ``columns`` are those of the catalogue's tables. Raises
    ArgumentError or QueryError for a call that is wrong in itself."""
    tree = Reader(sql)
    if not any(t.text.lower() in ingredients for t in tree.tokens):
        return CallReading(identity(sql))
    known = identity(sql)
    if parameters:
        known = fill_parameters(tree, parameters, call_spans(tree, ingredients))
    if known.sql != sql:
        tree = Reader(known.sql)
    rows = row_values(tree)
    if rows is not None:
        known = known.then(rows)
        tree = Reader(known.sql)
    try:
        return _read(known, tree, ingredients, parameters or {}, columns, whole=whole)
    except QueryError as problem:
        raise within(problem, known) from None


def _read(
    known: Translation,
    tree: Reader,
    ingredients: Mapping[str, Ingredient],
    parameters: Mapping[str, str],
    columns: Columns,
    *,
    whole: bool,
) -> CallReading:
    sites = find_sites(tree, ingredients)
    names = [f"{SITE}{i}_" for i in range(len(sites))]
    places = _places(tree, names, sites, parameters, columns)
    for name, site in zip(names, sites, strict=True):
        with naming_place(tree, site.start, site.stop):
            _check_place(site, places.of[name].misplaced)
    contexts = [places.of[name] for name in names]
    groups = equal_calls(tree, sites, places.refers)
    inferred = share_constraints(groups, contexts)
    quoted = (name_for_value(tree, site, columns) for site in sites if site.literal_value)
    doubts = [problem for problem in quoted if problem]
    return CallReading(known, tree, sites, contexts, inferred, groups, places, doubts, whole)


@dataclass(frozen=True, slots=True)
class CallReading:
    """The calls in a text, parsed once. The types of some may become known later."""

    known: Translation
    """How the text with its parameters came from the user's."""
    tree: Reader | None = None
    """None for a text without calls."""
    sites: Sequence[Site] = ()
    contexts: Sequence[Context] = ()
    """The place of each call, as far as it tells the type of its answer."""
    inferred: Sequence[Constraint | None] = ()
    groups: Sequence[Sequence[int]] = ()
    """The numbers of the places of each call."""
    places: _Places = _Places({})  # noqa: RUF009
    doubts: Sequence[str] = ()
    whole: bool = False

    def type_calls(
        self,
        types: Mapping[int, Constraint] | None = None,
        in_bytes: Mapping[int, tuple[int, ...]] | None = None,
    ) -> TypedQuery:
        """The text with its calls as functions. ``types``: what is known of the answers of calls,
        by their numbers in the text; ``in_bytes``: their values that are bytes. Raises
        ArgumentError or QueryError for a call that is wrong in itself."""
        if self.tree is None:
            return TypedQuery(self.known)
        try:
            return self._type_calls(self.tree, types or {}, in_bytes or {})
        except QueryError as problem:
            raise within(problem, self.known) from None

    def _type_calls(
        self,
        tree: Reader,
        types: Mapping[int, Constraint],
        in_bytes: Mapping[int, tuple[int, ...]],
    ) -> TypedQuery:
        sites, contexts = self.sites, self.contexts
        calls = self._bind(tree, types, in_bytes)
        written: dict[str, tuple[str, ...]] = {}
        for call, site in zip(calls, sites, strict=True):
            ways = written.get(call.name, ())
            if site.text not in ways and not site.aliased:
                written[call.name] = (*ways, site.text)
        for call, site in zip(calls, sites, strict=True):
            written.setdefault(call.name, (site.text,))
        cast = {call.name for call, place in zip(calls, contexts, strict=True) if place.cast}
        beside: dict[str, tuple[int, ...]] = {}
        for i, call in enumerate(calls):
            if call.name in cast and i not in types:
                beside[call.name] = (*beside.get(call.name, ()), i)
        behind = dict.fromkeys(self.places.nulls_last, " NULLS LAST")
        text = in_text(tree, [*zip(sites, calls, strict=True)], behind)
        if self.known.sql != self.known.source:
            text = self.known.then(text)
        wrong = (never_equal(c, place.compared) for c, place in zip(calls, contexts, strict=True))
        doubts = tuple(dict.fromkeys(problem for problem in (*wrong, *self.doubts) if problem))
        return TypedQuery(
            text,
            tuple(dict.fromkeys(calls)),
            written,
            beside,
            self.places.unread,
            tuple(calls),
            tuple(tuple(tree.source_text(*span) for span in site.values) for site in sites),
            doubts,
        )

    def _bind(
        self,
        tree: Reader,
        types: Mapping[int, Constraint],
        in_bytes: Mapping[int, tuple[int, ...]],
    ) -> list[Call]:
        calls = []
        for i, (site, constraint) in enumerate(zip(self.sites, self.inferred, strict=True)):
            with naming_place(tree, site.start, site.stop):
                named = _standing_alone(tree, site)
                context, ordered = types.get(i, constraint), site.order is not None
                call = bind(
                    site.ingredient, site.arguments, named, context=context, ordered=ordered
                )
                casts = casts_that_may_fail(call, self.contexts[i].casts)
                given = in_bytes.get(i, ())
                if given or casts:
                    call = replace(call, in_bytes=given, casts=casts)
                calls.append(call)
        calls = share_casts(self.groups, calls)
        if self.whole:
            calls = until_decided(calls, [place.compared for place in self.contexts])
        return [remember(call) for call in calls]


def _places(
    tree: Reader,
    names: Sequence[str],
    sites: Sequence[Site],
    parameters: Mapping[str, str],
    columns: Columns,
) -> _Places:
    """The places of the calls of a query, for which functions of these names stand."""
    syntax, gaps = parse_statement(
        in_tokens(tree, sites, names)[tree.statement :], tree.text, names
    )
    if syntax is None:
        return _Places(dict.fromkeys(names, Context()), unread=(" ".join(tree.text.split()),))
    known = declared_types(tree) | dict(parameters)
    if known:
        syntax = _with_literals(syntax, known)
    refers = References(syntax, columns)
    named = list(zip(names, sites, strict=True))
    kept = {name for name, site in named if site.keeps_struct or site.gives_map}
    found = contexts(syntax, names, refers, kept)
    unread = tuple(" ".join(tree.text[start:end].split()) for start, end in gaps)
    behind: list[int] = []
    if "DESC" in tree.words:
        sorted_by = set(nulls_last(syntax, frozenset(names), refers))
        behind = [at for at, token in enumerate(tree.tokens) if token.end + 1 in sorted_by]
    return _Places(found, behind, unread, refers)


def _with_literals(tree: exp.Expr, parameters: Mapping[str, str]) -> exp.Expr:
    """The tree with its parameters as literals, or as NULLs of their types."""
    for column in list(tree.find_all(exp.Column)):
        spelled = parameters.get(column.name[1:]) if column.name.startswith("$") else None
        literal = None if spelled is None else tree_of(spelled)
        if literal is not None:
            column.replace(literal)
    return tree


_KEEP = {"confidence": CONFIDENCE, "on_error": ERROR}
"""Options that keep something beside the value, and the names of the fields."""


def _check_place(site: Site, needed: Constraint | None) -> None:
    """A struct of a value and its confidence, evidence or error cannot stand where an answer is
    needed."""
    if needed is None:
        return
    if site.gives_map:
        raise ArgumentError(
            f"{site.ingredient.name}: confidence => 'all' gives a map of answers and their "
            f"probabilities, where one answer is needed ({needed.kind})",
            hint="Take the probability of one answer out of it: "
            f"{site.ingredient.name}(…, confidence => 'all')['an answer'] > 0.5.",
        )
    kept = " and ".join(
        f"{option} => 'keep'" for option in _KEEP if site.named.get(option) == "keep"
    )
    reasons = site.named.get("reasons") is True
    kept = kept or ("reasons => true" if reasons else "evidence => true")
    also = ["reason"] if reasons else []
    fields = " and ".join([VALUE, *also, *(f for o, f in _KEEP.items() if f"{o} =>" in kept)])
    raise ArgumentError(
        f"{site.ingredient.name}: {kept} gives a struct of {fields}, where "
        f"the value alone is needed ({needed.kind})",
        hint=f"Take the value out of it: {site.ingredient.name}(…)['{VALUE}'].",
    )


def _standing_alone(tree: Reader, site: Site) -> dict[str, Option]:
    """The named arguments; a subquery among them brings the tables that it can see along."""
    named = dict(site.named)
    for name, (start, _) in site.queries.items():
        query = named[name]
        assert isinstance(query, Query)
        tables = tree.visible_tables(start)
        named[name] = Query(f"{tables}SELECT * FROM ({query.text}\n)") if tables else query
    return named
