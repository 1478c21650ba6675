"""``FROM v AS OF MODEL 'name'`` and ``FROM v AS OF DATE '2026-11-01'``: views as they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError, close_matches
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.versioned_tables import with_parameters
from blendfusion.services.scans.lance_table import lance_table

if TYPE_CHECKING:
    from blendfusion.services.views.folder import View
    from blendfusion.services.views.session import ViewKeeping

_FORM = "FROM v AS OF MODEL 'name', AS OF DATE '2026-11-01', TIMESTAMP '…' or VERSION 3."


def with_versions(session: ViewKeeping, sql: str) -> tuple[str, dict[str, Any]]:
    """The text with parameters for the views that it reads as they were, padded to its length, and
    the frames of these. Raises QueryError for a version that a view does not have."""
    tree = TokenTree(sql)
    frames: dict[str, Any] = {}
    clauses = []
    for at in range(1, len(tree.tokens) - 3):
        if [tree.word(at), tree.word(at + 1)] != ["AS", "OF"] or tree.word(at + 2) not in _READ:
            continue
        name = f"view{len(frames)}"
        start = at - 1
        while tree.kind(start - 1) == TokenType.DOT:
            start -= 2
        frames[name] = _frame(session, tree, start, at)
        clauses.append((name, start, at - 1, at + 4))
    return with_parameters(tree, clauses), frames


def _frame(session: ViewKeeping, tree: TokenTree, start: int, at: int) -> Any:
    kind, literal = tree.word(at + 2), tree.tokens[at + 3]
    expected = TokenType.NUMBER if kind == "VERSION" else TokenType.STRING
    if not tree.is_name(at - 1) or literal.token_type != expected:
        raise tree.refusal(at + 3, "this is no version of a view", _FORM)
    view = session.kept_views.find(".".join(map(tree.name, range(start, at, 2))))
    try:
        fits = _READ[kind](literal.text)
    except ValueError:
        raise tree.refusal(at + 3, f"'{literal.text}' is no {kind.lower()}", _FORM) from None
    fitting = [one for one in view.history if fits(one)]
    place = session.kept_views.place(view.name)
    file = place.rows_of(view, fitting[-1]["version"]) if fitting else None
    if file is None or not file.exists():
        raise QueryError(
            f"the view {view.name} has no version of {kind.lower()} {literal.text}",
            hint=_versions_instead(view, kind, literal.text),
        )
    if file.suffix == ".lance":
        return session.read_table(lance_table(file))
    return session.as_frame(session.read_parquet(str(file)))


def _versions_instead(view: View, kind: str, text: str) -> str:
    """The versions or models that a view has instead."""
    names = sorted({name for one in view.history for name in one["models"]})
    if kind == "MODEL":
        return close_matches(text, names) or "Its query asks no model."
    shown = ", ".join(f"{one['version']} since {one['served']}" for one in view.history)
    return f"Its versions: {shown or 'none yet; a refresh keeps them'}."


def _of_model(text: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda one: text in one["models"] or text in one["models"].values()


def _of_version(text: str) -> Callable[[Mapping[str, Any]], bool]:
    number = int(text)
    return lambda one: bool(one["version"] == number)


def _of_day(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """A day counts as a whole: what was served at its end, UTC."""
    end = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    return lambda one: datetime.fromisoformat(one["served"]) < end


def _of_time(text: str) -> Callable[[Mapping[str, Any]], bool]:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return lambda one: datetime.fromisoformat(one["served"]) <= moment


_READ: Mapping[str, Callable[[str], Callable[[Mapping[str, Any]], bool]]] = {
    "MODEL": _of_model,
    "VERSION": _of_version,
    "DATE": _of_day,
    "TIMESTAMP": _of_time,
}
