"""How many values do SemBench's movie queries ask, with a model that knows every answer?

    python benchmarks/bench_sembench.py [--data FOLDER]

"naive" asks for every row, or pair of rows, that the cheap predicates leave. "bound" is the number
of distinct texts, in file order, whose labels give the result. "asked" is what a session asks that
knows nothing yet, "in turn" what one session asks that keeps the answers of the queries above.
Results are compared with the gold SQL's; the model sees no label."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from public_sets import datasets
from scripts import tuples, unordered
from sembench import MovieQuery, Movies


def is_gold(movies: Movies, query: MovieQuery, found: list[tuple[object, ...]]) -> bool:
    gold = tuples(movies.expected(query))
    return set(found) <= set(gold) if query.is_any else unordered(found) == unordered(gold)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=datasets(),
        help="the folder with the sets (default: BLENDFUSION_DATA, else ../shared/data)",
    )
    data = parser.parse_args().data
    if data is None:
        parser.error("--data is missing: where the data sets are")
    cold, warm = Movies(data), Movies(data)
    print(f"{'query':14} {'naive':>6} {'bound':>6} {'asked':>6} {'in turn':>8}  result")
    totals = [0, 0, 0, 0]
    for query in cold.queries():
        if query.name == "Q5 by labels":
            print(f"{'all':14} {totals[0]:6,} {totals[1]:6,} {totals[2]:6,} {totals[3]:8,}")
        cold.session.clear_cache()
        result, asked = cold.asked(query)
        in_turn = warm.asked(query)[1]
        verdict = "gold" if is_gold(cold, query, tuples(result)) else "WRONG"
        counts = (query.naive, query.bound, asked, in_turn)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(
            f"{query.name:14} {query.naive:6,} {query.bound:6,} {asked:6,} {in_turn:8,}  {verdict}"
        )


if __name__ == "__main__":
    main()
