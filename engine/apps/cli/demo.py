"""``blendfusion demo``: a few queries over the example tables, with their usage."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import blendfusion as bf
from blendfusion.apps.cli.results import write
from blendfusion.apps.cli.sessions import add_model
from blendfusion.errors import QueryError
from blendfusion.files.reading import register_spec
from blendfusion.run.observe.progress import spending_line

TABLES = ("reviews", "products", "tickets")


@dataclass(frozen=True, slots=True)
class Example:
    """One query of the demonstration; ``explain`` also shows its plan."""

    title: str
    sql: str
    explain: bool = False


EXAMPLES: tuple[Example, ...] = (
    Example(
        "A typed map: a number out of a sentence, ready for arithmetic",
        """
SELECT llm_int('How many days?', text) AS days, text
FROM reviews
WHERE text LIKE '% days%'
ORDER BY days""",
    ),
    Example(
        "A filter: the model sees the 50 mails among 103 tickets. 7 want money back; SmolLM2 picks 12 mails, 5 of "
        "the 7 among them. The plan says how often it is right about other questions",
        """
SELECT ticket_id, body
FROM tickets
WHERE channel = 'email'
  AND llm_filter('Does the customer want their money back?', body)
ORDER BY ticket_id""",
        explain=True,
    ),
    Example(
        "A ranking by one plain idea, which small models do well: 44 of the 136 reviews have one or two stars. Of "
        "SmolLM2's first ten, six do, and all ten name a defect",
        """
SELECT llm_score('How negative is this review?', text) AS negative, stars, text
FROM reviews
ORDER BY negative DESC
LIMIT 10""",
    ),
    Example(
        "A GROUP BY over a classification, with a worked example for each label",
        """
SELECT llm_classify(body, ['delivery', 'payment', 'account', 'product'],
                    examples => [['My parcel has not arrived', 'delivery'],
                                 ['I was charged twice', 'payment'],
                                 ['I cannot log in', 'account'],
                                 ['The lamp flickers', 'product']]) AS topic,
       count(*) AS tickets
FROM tickets
WHERE channel = 'chat'
GROUP BY topic
ORDER BY tickets DESC, topic""",
    ),
    Example(
        "A question about all rows of a group: one prompt a group",
        """
SELECT p.category, count(*) AS reviews, llm_qa('What do the customers like?', r.text) AS liked
FROM reviews r JOIN products p ON r.product_id = p.product_id
WHERE r.stars = 5 AND p.category IN ('bags', 'lighting')
GROUP BY p.category
ORDER BY p.category""",
    ),
)


def add_arguments(demo: argparse.ArgumentParser) -> None:
    """Add the arguments of ``demo``."""
    demo.set_defaults(run=_demo)
    add_model(demo)
    demo.add_argument(
        "--examples",
        type=Path,
        metavar="DIR",
        help="a folder of other tables reviews.csv, products.csv and tickets.csv",
    )


def _demo(arguments: argparse.Namespace) -> int:
    run(arguments.model, arguments.examples)
    return 0


def run(model: list[str] | None, folder: Path | None) -> None:
    """Print every example: its SQL, its rows, its usage. The tables are those of ``folder``, or of
    the package.

    Raises ``QueryError`` if ``folder`` lacks the example tables.
    """
    if folder is None:
        with as_file(files("blendfusion.examples")) as packaged:
            run(model, packaged)
        return
    missing = [name for name in TABLES if not (folder / f"{name}.csv").is_file()]
    if missing:
        raise QueryError(
            f"there is no {missing[0]}.csv in '{folder}'",
            hint="Leave out --examples DIR: the package has the tables of the demonstration.",
        )
    # Without earlier answers, so that each query shows its questions.
    with bf.connect(model=model, cache=None) as session:
        for name in TABLES:
            register_spec(session, f"{name}={folder / f'{name}.csv'}")
        info = session.model.info
        print(
            f"The model is {info.name}. A small one answers roughly: the point is what it is asked.\n"
        )
        for number, example in enumerate(EXAMPLES, 1):
            print(f"{number}. {example.title}\n{example.sql}\n")
            frame = session.sql(example.sql)
            if example.explain:
                print(f"The plan:\n{frame.explain_text(analyze=False)}\n")
            write(frame.to_arrow_table(), "table", None)
            print(f"{spending_line(frame.trace.usage)}\n")
            sys.stdout.flush()
