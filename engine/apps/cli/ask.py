"""``blendfusion ask``: drafts a query for a question, shows it, and runs it on wish."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from blendfusion.apps.cli.results import FORMATS, format_for, named_format, write
from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.errors import OptionError
from blendfusion.run.observe.progress import count_noun

if TYPE_CHECKING:
    from blendfusion.services.ask.draft import Draft

_ROWS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ask``."""
    parser.set_defaults(run=_ask)
    parser.add_argument("words", metavar="QUESTION")
    add_session(parser)
    parser.add_argument(
        "--candidates", type=int, default=1, metavar="N", help="drafts to choose among (default: 1)"
    )
    parser.add_argument(
        "--layer", metavar="FILE", help="a semantic layer: names, synonyms, keys and metrics (TOML)"
    )
    parser.add_argument(
        "--answer", action="store_true", dest="answers", help="run it, and print a short answer"
    )
    parser.add_argument("--run", action="store_true", dest="runs", help="run the query, too")
    parser.add_argument(
        "--rows",
        type=int,
        default=_ROWS,
        metavar="N",
        help=f"with --run, the rows to compute at most (default: {_ROWS}; 0: all)",
    )
    parser.add_argument("--format", type=named_format, choices=FORMATS, help="of the rows")


def _run(draft: Draft, arguments: argparse.Namespace) -> None:
    """Write the first rows of a draft, and say whether there are more."""
    most = arguments.rows
    if most:
        draft = replace(draft, frame=draft.frame.limit(most + 1))
    rows = draft.run()
    more = 0 < most < len(rows)
    style = arguments.format or format_for(None)
    shown = rows[:most] if more else rows
    write(shown, style, None, full_cells=arguments.full_cells, most_rows=most)
    if more:
        note = f"The query gives more than these {count_noun(most, 'row')}: --rows 0 writes all."
        print(note, file=sys.stderr)
    print(draft.searched)


def _ask(arguments: argparse.Namespace) -> int:
    if arguments.rows < 0:
        raise OptionError(f"--rows {arguments.rows} is not possible", hint="0 writes all rows.")
    with session_of(arguments) as session:
        budget = budget_of(arguments, session)
        if arguments.layer is not None:
            session.register_layer(arguments.layer)
        if arguments.answers:
            print(session.answer(arguments.words, candidates=arguments.candidates, budget=budget))
            return 0
        draft = session.ask(arguments.words, candidates=arguments.candidates, budget=budget)
        hidden = session.options.show_values == "off"
        print(draft if hidden else f"{draft.sql}\n\n{draft.notes}")
        if arguments.runs:
            print()
            _run(draft, arguments)
    return 0
