"""Compares a refresh of a view after 1 % new rows with its full run: CPU without the model's,
values asked, memory. A process of its own makes, refreshes and makes the view again; each makes and
refreshes a view of one row first, so that no imports are counted.

python benchmarks/bench_refresh.py 1_000_000
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.types import Answer, Task

_TOPIC = "llm_classify(text, ['size', 'colour', 'price'])"
QUERIES = {
    "filter": "SELECT id, text FROM t WHERE llm_filter('Is it good?', text)",
    "column": f"SELECT id, {_TOPIC} AS topic FROM t",
    "groups": f"SELECT {_TOPIC} AS topic, count(*) AS n FROM t GROUP BY 1 ORDER BY 1",
    "join": f"SELECT t.id, p.maker, {_TOPIC} AS topic FROM t JOIN p ON t.id % 1000 = p.product",
    "sum": "SELECT id % 1000 AS product, sum(llm_int('How many days?', text)) AS days "
    "FROM t GROUP BY 1 ORDER BY 1",
    "distinct": f"SELECT DISTINCT {_TOPIC} AS topic FROM t ORDER BY 1",
    "order": "SELECT id, llm_int('How many days?', text) AS days FROM t ORDER BY 2 DESC, 1 LIMIT 100",
    "order of good": "SELECT id, text FROM t WHERE llm_filter('Is it good?', text) ORDER BY id DESC LIMIT 100",
    "first good": "SELECT id, text FROM t WHERE llm_filter('Is it good?', text) ORDER BY id LIMIT 100",
}
_FILES = 20


class Free(bf.ScriptedModel):
    """A model whose CPU is measured, to be subtracted."""

    seconds = 0.0

    def answer(self, task: Task, values: Sequence[tuple[str | None, ...]]) -> list[Answer]:
        """The answers: digests of the values."""
        start = time.process_time()
        given = super().answer(task, values)
        self.seconds += time.process_time() - start
        return given


def main() -> None:
    """Print a line for each query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--kinds", nargs="*", default=[*QUERIES])
    parser.add_argument("--layout", choices=("append", "rewrite"), default="append")
    given = parser.parse_args()
    print("| query | full run, CPU s | refresh | ratio | asked | MiB full | MiB refresh | equal |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in given.kinds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            first, memory = _apart(folder, kind, "CREATE MATERIALIZED VIEW v AS ", given)[1:3]
            asked, new, room, rows = _apart(folder, kind, "REFRESH v", given)
            full = _apart(folder, kind, "CREATE MATERIALIZED VIEW again AS ", given)[3]
        print(
            f"| {kind} | {first:.2f} | {new:.2f} | {new / first:.3f} | {asked:,} | "
            f"{memory:,} | {room:,} | {rows == full} |",
            flush=True,
        )


def _apart(
    folder: Path, kind: str, statement: str, given: argparse.Namespace
) -> tuple[int, float, int, str]:
    """Values asked, seconds of CPU, MiB and a digest of the rows of a statement."""
    _write(folder / "t", given.rows, given.layout, more=statement.startswith("REFRESH"))
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_run, (folder, kind, statement))


def _run(folder: Path, kind: str, statement: str) -> tuple[int, float, int, str]:
    def script(call: bf.Request) -> Value:
        number, kind = crc32(str(call.values[0]).encode()), call.constraint.kind
        if kind == "integer":
            return number % 10_000
        return number % 2 == 0 if kind == "boolean" else call.constraint.options[number % 3]

    model = Free(script, fingerprint="crc32", batch_size=16_384)
    views = str(folder / "views")
    query = QUERIES[kind] if statement.endswith(" AS ") else ""
    _import_all(query or QUERIES[kind])
    with bf.connect(model, cache=None, progress="off", views_folder=views) as session:
        session.register_parquet("t", str(folder / "t"))
        _add_products(session)
        start = time.process_time()
        report = session.sql(f"{statement}{query}").to_pylist()[0]
        spent = time.process_time() - start - model.seconds
    room = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    file = Path(views, report["view"], f"rows-{report['version']}.parquet")
    return report["asked"], spent, room, sha256(file.read_bytes()).hexdigest()


def _import_all(query: str) -> None:
    """Make and refresh a view of one row."""

    def script(call: bf.Request) -> Value:
        return (call.constraint.options or (1 if call.constraint.kind == "integer" else True,))[0]

    model = bf.ScriptedModel(script, fingerprint="1")
    with tempfile.TemporaryDirectory() as views:
        folder = Path(views)
        for rows, statement in ((1, f"CREATE MATERIALIZED VIEW v AS {query}"), (2, "REFRESH v")):
            _write_part(folder / "t.parquet", range(rows))
            with bf.connect(model, cache=None, progress="off", views_folder=views) as session:
                session.register_parquet("t", str(folder / "t.parquet"))
                _add_products(session)
                session.sql(statement)


def _add_products(session: bf.Session) -> None:
    numbers = list(range(1_000))
    session.from_pydict({"product": numbers, "maker": [f"M{n % 7}" for n in numbers]}, name="p")


def _write(place: Path, rows: int, layout: str, *, more: bool) -> None:
    """Write the files of the table: all of them, or 1 % of new rows as a file or among the rows
    of one."""
    place.mkdir(exist_ok=True)
    step = rows // _FILES
    if more and layout == "append":
        _write_part(place / "new.parquet", range(rows, rows + rows // 100))
    elif more:
        middle = rows // 2
        new = [*range(middle + step // 3), *range(rows, rows + rows // 100)]
        _write_part(place / "all.parquet", [*new, *range(middle + step // 3, rows)])
    elif layout == "rewrite":
        if not (place / "all.parquet").exists():
            _write_part(place / "all.parquet", range(rows))
    elif not (place / "part-00.parquet").exists():
        for number in range(_FILES):
            _write_part(
                place / f"part-{number:02}.parquet", range(number * step, (number + 1) * step)
            )


def _write_part(file: Path, numbers: Sequence[int]) -> None:
    texts = [
        f"Review {n} of a thing that somebody bought, and what they say of it." for n in numbers
    ]
    pq.write_table(pa.table({"id": pa.array(numbers, pa.int64()), "text": texts}), file)


if __name__ == "__main__":
    main()
