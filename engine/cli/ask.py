"""``blendfusion ask``: drafts a query for a question, shows it, and runs it on wish."""

from __future__ import annotations

import argparse

from blendfusion.cli.results import FORMATS, write
from blendfusion.cli.sessions import add_session, budget_of, session_of


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
    parser.add_argument("--format", choices=FORMATS, default="table", help="of the rows")


def _ask(arguments: argparse.Namespace) -> int:
    with session_of(arguments) as session:
        budget = budget_of(arguments)
        if arguments.layer is not None:
            session.register_layer(arguments.layer)
        if arguments.answers:
            print(session.answer(arguments.words, candidates=arguments.candidates, budget=budget))
            return 0
        draft = session.ask(arguments.words, candidates=arguments.candidates, budget=budget)
        hidden = session.options.show_values == "off"
        print(draft if hidden else f"{draft.sql}\n\n{draft.notes}")
        if arguments.runs:
            rows = draft.run()
            print()
            write(rows, arguments.format, None, full_cells=arguments.full_cells)
            print(draft.searched)
    return 0
