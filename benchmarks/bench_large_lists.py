"""What do long lists in a query cost over DataFusion's own?

    python benchmarks/bench_large_lists.py [--rounds 3] [--only in|labels]

Two tables. ``IN`` lists of 100 to 50,000 literals: the CPU time of a session, with the list beside a
call and around one, against DataFusion's for the list beside a column. And 1,000 to 100,000 labels
of llm_classify, in SQL and in Python, against DataFusion's for a list of as many literals. The model
costs nothing, and asks one value."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import process_time

import pyarrow as pa
from datafusion import SessionContext, col

import blendfusion as bf

LITERALS = (100, 800, 3_000, 50_000)
LABELS = (1_000, 10_000, 100_000)
COLUMNS = ("plain", "beside", "ratio", "around", "ratio")


def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: "v1"), cache=None, progress="off")
    made.from_pydict({"x": ["v1"]}, name="t")
    return made


def plain() -> SessionContext:
    context = SessionContext()
    context.from_arrow(pa.table({"x": ["v1"]}), name="t")
    return context


def literals(count: int) -> str:
    return ", ".join(f"'v{i}'" for i in range(count))


def milliseconds(run: Callable[[str], object], rounds: int) -> float:
    """The median of the CPU time, after a first run that does not count. ``run`` is given a comment
    that makes each text another one."""
    taken = []
    for number in range(rounds + 1):
        start = process_time()
        run(f"/* {number} */")
        taken.append((process_time() - start) * 1e3)
    return statistics.median(taken[1:])


def collected(context: SessionContext, query: str) -> Callable[[str], object]:
    return lambda comment: context.sql(f"{query} {comment}").collect()


def in_lists(rounds: int) -> None:
    ours, theirs = session(), plain()
    print("IN lists, milliseconds of CPU: beside a call, and around one")
    print(f"{'literals':>10}" + "".join(f"{name:>10}" for name in COLUMNS))
    for count in LITERALS:
        listed = f"IN ({literals(count)})"
        own = milliseconds(collected(theirs, f"SELECT x FROM t WHERE x {listed}"), rounds)
        shown = ""
        for condition in (f"x {listed} AND llm_map('q', x) = 'v1'", f"llm_map('q', x) {listed}"):
            taken = milliseconds(collected(ours, f"SELECT x FROM t WHERE {condition}"), rounds)
            shown += f"{taken:10.1f}{taken / own:10.1f}"
        print(f"{count:10,}{own:10.1f}{shown}", flush=True)


def labels(rounds: int) -> None:
    ours, theirs = session(), plain()
    print("labels of llm_classify, milliseconds of CPU: in SQL, and in Python")
    print(
        f"{'labels':>10}" + "".join(f"{name:>10}" for name in ("plain", "sql", "ratio", "python"))
    )
    for count in LABELS:
        listed = literals(count)
        own = milliseconds(collected(theirs, f"SELECT x FROM t WHERE x IN ({listed})"), rounds)
        query = f"SELECT llm_classify(x, [{listed}]) FROM t"
        in_sql = milliseconds(collected(ours, query), rounds)
        names = [f"v{i}" for i in range(count)]

        def in_python(_: str, names: list[str] = names) -> object:
            return ours.table("t").select(bf.llm_classify(col("x"), names)).collect()

        python = milliseconds(in_python, rounds)
        print(f"{count:10,}{own:10.1f}{in_sql:10.1f}{in_sql / own:10.1f}{python:10.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["in", "labels"])
    arguments = parser.parse_args()
    if arguments.only != "labels":
        in_lists(arguments.rounds)
    if arguments.only != "in":
        labels(arguments.rounds)


if __name__ == "__main__":
    main()
