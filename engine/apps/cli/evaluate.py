"""``blendfusion evaluate``: measures calls against a column of labels, or runs a file of checks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import blendfusion as bf
from blendfusion.apps.cli.results import check_output, format_for, write
from blendfusion.apps.cli.sessions import add_session, budget_of, session_of
from blendfusion.errors import QueryError
from blendfusion.files.reading import register_spec
from blendfusion.services.evaluate.checks import read_checks
from blendfusion.services.evaluate.evaluation import Comparison, Evaluation

EXIT_BELOW = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``evaluate``."""
    parser.set_defaults(run=_evaluate)
    parser.add_argument(
        "calls",
        nargs="*",
        metavar="CALL",
        help="the SQL of a call, such as \"llm_filter('Is it a complaint?', text)\"; several are "
        "compared side by side",
    )
    parser.add_argument("--label", metavar="COLUMN", help="the column of the right answers")
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="SPEC",
        help="a further model that gets the same calls; may be repeated",
    )
    parser.add_argument(
        "--within",
        type=float,
        default=0.0,
        metavar="DISTANCE",
        help="how far a number may be from its label (default: 0)",
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="FILE",
        help="a TOML or JSON file of calls and the limits of their figures; the exit status is 1 "
        "if a figure is beyond its limit",
    )
    parser.add_argument(
        "--wrong",
        type=Path,
        metavar="FILE",
        help="write the rows that are wrong (of the best call)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the figures")
    add_session(parser)


def _evaluate(arguments: argparse.Namespace) -> int:
    for file in (arguments.output, arguments.wrong):
        check_output(format_for(file), file)
    if arguments.check is not None:
        if arguments.calls or arguments.label or arguments.compare:
            raise QueryError("--check takes its calls, labels and models from the file")
        return _check(arguments)
    if not arguments.calls or arguments.label is None or len(arguments.table) != 1:
        raise QueryError(
            "an evaluation needs a call, --label COLUMN and one --table",
            hint="blendfusion evaluate \"llm_filter('Is it a complaint?', text)\" --table "
            "reviews.csv --label complaint",
        )
    spec = arguments.table.pop()
    with session_of(arguments) as session:
        table = register_spec(session, spec)
        models = _models(session, arguments)
        comparison = session.evaluate(
            table,
            arguments.calls,
            arguments.label,
            models=models,
            within=arguments.within,
            budget=budget_of(arguments, session),
        )
        print(comparison[0] if len(comparison) == 1 else comparison)
        _write(comparison, arguments)
    return 0


def _models(session: bf.Session, arguments: argparse.Namespace) -> list[str]:
    """The names of the compared models: the session's, and those of ``--compare``."""
    if not arguments.compare:
        return []
    for spec in arguments.compare:
        session.register_model(spec, spec)
    return [session.model.name, *arguments.compare]


def _check(arguments: argparse.Namespace) -> int:
    failures = []
    with session_of(arguments) as session:
        for check in read_checks(arguments.check):
            file = arguments.check.parent / check.table
            table = register_spec(session, str(file)) if file.exists() else check.table
            evaluation, beyond = check.run(session, table)
            if not beyond:
                print(
                    f"{check.name}: ok ({_limits_text(evaluation, [*check.at_least, *check.at_most])})"
                )
            failures += beyond
            _write(Comparison([evaluation]), arguments)
    for line in failures:
        print(line, file=sys.stderr)
    return EXIT_BELOW if failures else 0


def _limits_text(evaluation: Evaluation, names: list[str]) -> str:
    return ", ".join(f"{name} {evaluation.figures[name].value:.3f}" for name in names)


def _write(comparison: Comparison, arguments: argparse.Namespace) -> None:
    if arguments.output is not None:
        write(comparison.to_arrow_table(), format_for(arguments.output), arguments.output)
    if arguments.wrong is not None:
        wrong = comparison.best.wrong.to_arrow_table()
        write(wrong, format_for(arguments.wrong), arguments.wrong)
