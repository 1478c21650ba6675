"""Sessions with and without a cluster over the same files, for tests that compare them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cluster_scripts
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.services.cluster.cluster import Cluster
from blendfusion.services.cluster.local import LocalWorkers


@contextmanager
def shared_clusters() -> Iterator[Callable[[int], Cluster]]:
    """Clusters of so many workers that tests share: processes start once."""
    made: dict[int, Cluster] = {}

    def of(size: int) -> Cluster:
        if size not in made:
            made[size] = Cluster(f"local:{size}", LocalWorkers(size))
        return made[size]

    yield of
    for cluster in made.values():
        cluster.close()


def files(folder: Path, number: int, rows: int, *, skew: float = 0.0, seed: int = 0) -> Path:
    """Parquet files of unequal lengths; ``skew`` is the share of rows with one value."""
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(1, rows), number - 1))
    values = [
        None if i % 41 == 0 else "usual" if rng.random() < skew else f"v{rng.randrange(60)}"
        for i in range(rows)
    ]
    table = pa.table({"id": [*range(rows)], "k": [i % 9 for i in range(rows)], "x": values})
    target = folder / f"{number} {rows} {skew} {seed}"
    target.mkdir()
    for place, (start, stop) in enumerate(zip([0, *cuts], [*cuts, rows], strict=True)):
        pq.write_table(table.slice(start, stop - start), target / f"part-{place:03}.parquet")
    return target


def distinct(folder: Path) -> int:
    """The values in these files."""
    return len(pq.read_table(folder)["x"].unique().drop_null())


def session(
    folder: Path,
    cluster: Cluster | None,
    script: Callable[[Any], object] = cluster_scripts.hashed,
    **options: Any,
) -> bf.Session:
    model = bf.ScriptedModel(script, fingerprint="hashed", batch_size=options.pop("batch_size", 8))
    made = bf.connect(model, cache=options.pop("cache", None), progress="off", **options)
    if cluster is not None:
        made.cluster = cluster
        made.models._pooled = made.pool_model
        made._store = made.models._store = cluster.share(made._store)
        made.models.reload()
    made.register_parquet("t", str(folder))
    made.from_pydict({"k": [1, 2, 3, 3, 7], "w": ["a", "b", "c", "d", "e"]}, name="u")
    return made


def values_of(trace: Any) -> Counter[tuple[str, str]]:
    calls = trace.calls.filter(pa.compute.invert(trace.calls["cached"]))
    return Counter(
        (f"{row['ingredient']} {row['question']}", str(row["values"])) for row in calls.to_pylist()
    )


@contextmanager
def stages_there() -> Iterator[list[str]]:
    """The tables of the stages that clusters run from now on, one entry for each stage."""
    found: list[str] = []
    rows = Cluster._rows

    def counted(cluster: Cluster, fragments: Any, *args: Any) -> Any:
        found.append(str(len(fragments)))
        return rows(cluster, fragments, *args)

    Cluster._rows = counted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Cluster._rows = rows  # type: ignore[method-assign]
