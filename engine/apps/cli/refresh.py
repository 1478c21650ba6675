"""``blendfusion refresh``: brings materialised views up to date, for cron and other schedulers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import blendfusion as bf
from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.errors import BlendFusionError, BudgetExceeded, ModelError, QueryError
from blendfusion.redaction import printable
from blendfusion.run.observe.progress import count_noun, spending_line
from blendfusion.services.views.folder import escape
from blendfusion.services.views.question_checks import CheckFailed
from blendfusion.services.views.views import Refresh, inner_first

OF_QUERY, OF_MODEL, OF_BUDGET, OF_CHECK = 3, 4, 5, 6
"""The exit statuses of views that could not be refreshed, by cause; of several, the highest."""


def add_arguments(refresh: argparse.ArgumentParser) -> None:
    """Add the arguments of ``refresh``."""
    refresh.set_defaults(run=_refresh)
    refresh.add_argument("views", nargs="*", metavar="VIEW", help="the views to refresh, in order")
    refresh.add_argument(
        "--all",
        action="store_true",
        help="refresh all views of the folder, those that others read first",
    )
    refresh.add_argument(
        "--views-folder",
        metavar="FOLDER",
        help="the folder of the views (default: blendfusion_views in the current folder)",
    )
    refresh.add_argument(
        "--explain",
        action="store_true",
        help="show what changed, and what each refresh would ask; ask nothing",
    )
    refresh.add_argument(
        "--trace",
        type=Path,
        metavar="FOLDER",
        help="write the trace of each view that ran to a page VIEW.html there",
    )
    add_session(refresh)


def _refresh(arguments: argparse.Namespace) -> int:
    if bool(arguments.views) == arguments.all:
        raise QueryError("refresh takes names of views, or --all", hint="blendfusion refresh --all")
    if arguments.views_folder is not None:
        arguments.option.append(f"views_folder={arguments.views_folder}")
    with session_of(arguments) as session:
        session.budget = budget_of(arguments)
        names = inner_first(session.materialized_views) if arguments.all else arguments.views
        for name in names:
            session.kept_views.find(name)  # before one of them is refreshed
        if arguments.explain:
            return _explain(session, names)
        pages = arguments.trace
        return max((_refresh_one(session, name, pages) for name in names), default=0)


def _explain(session: bf.Session, names: Sequence[str]) -> int:
    for name in names:
        print("\n".join(session.kept_views.explain(name)))
    return 0


def _refresh_one(session: bf.Session, name: str, pages: Path | None) -> int:
    """Refresh a view, with a line of what it asked and spent, and a page of its trace in the folder
    ``pages``; the exit status."""
    try:
        done = session.refresh_view(name)
        if pages is not None and done.trace is not None:
            _write_page(done, pages)
    except BlendFusionError as problem:
        print(f"{printable(name)}: not refreshed", file=sys.stderr)
        problem.print()
        return _status(problem)
    print(_line(done))
    return 0


def _write_page(done: Refresh, folder: Path) -> None:
    assert done.trace is not None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        done.trace.to_html(folder / f"{escape(done.view.name)}.html")
    except OSError as problem:
        raise QueryError(
            f"--trace {folder}: {problem.strerror or problem}", hint="Name a folder."
        ) from problem


def _status(problem: BlendFusionError) -> int:
    if isinstance(problem, BudgetExceeded):
        return OF_BUDGET
    if isinstance(problem, CheckFailed):
        return OF_CHECK
    return OF_MODEL if isinstance(problem, ModelError) else OF_QUERY


def _line(done: Refresh) -> str:
    view, trace = done.view, done.trace
    rows = f"{count_noun(view.rows, 'row')}, version {view.version}"
    if trace is None:
        number = count_noun(done.checked, "value")
        return printable(f"{view.name}: {rows}, {done.why} · {number} asked")
    spent = spending_line(trace.usage, trace.cost, "")
    new = "" if done.is_rewritten else ", the same rows"
    again = f", {count_noun(done.again, 'kept answer')} asked again" if done.again else ""
    again += f", {count_noun(done.checked, 'labelled value')} asked" if done.checked else ""
    return printable(f"{view.name}: {rows}{new}, {done.why} · {spent}{again}")
