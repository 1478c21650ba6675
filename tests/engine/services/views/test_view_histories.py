"""Materialised views over random histories of their tables: the bytes of a refreshed view are those
of a full run, and what it asks is what is new."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from view_kinds import BOUNDED, KINDS, Shop, script
from word_groups import ByWord

import blendfusion as bf
from blendfusion.services.replay.digests import table_digest
from blendfusion.services.views import kept_rows
from blendfusion.services.views.folder import ViewFolder
from blendfusion.services.views.kept_names import KeptNames, with_group_names
from blendfusion.services.views.kept_rows import KeptRows

Asked = tuple[Any, Any]
STEPS = 4


class Cut(bf.BlendFusionError):
    """The end of a model in the middle of a refresh."""


class Model(bf.ScriptedModel):
    """Answers as ``script``; ``left``: so many answers until it ends with an exception."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.asked: list[Asked] = []
        super().__init__(self._answer, fingerprint="by digests", batch_size=4)

    def _answer(self, request: bf.Request) -> object:
        if self.left == 0:
            raise Cut("cut")
        self.left = None if self.left is None else self.left - 1
        self.asked.append((request.task.in_full, request.values))
        return script(request)


def every_question(shop: Shop, query: str, folder: Path) -> set[Asked]:
    """The questions of a query about all its rows."""
    return full_run(shop, query, folder, planner=False)[1]


def full_run(
    shop: Shop, query: str, folder: Path, *, planner: bool = True
) -> tuple[pa.Table, set[Asked]]:
    """The rows of a query without stored answers, and what it asks: with the groups and entities
    that a view in ``folder`` keeps."""
    model, options = Model(), {"embedder": ByWord(), "progress": "off", "planner": planner}
    with bf.connect(model, cache=None, **options) as session:
        fill(shop, session, query, folder / "full.index")
        named = with_group_names("v", query)
        KeptNames(session, folder / "v", named).load()
        rows = session.sql(named).to_arrow_table()
    return rows, set(model.asked)


def opened(folder: Path, model: Model, shop: Shop, query: str) -> bf.Session:
    views = str(folder)
    session = bf.connect(model, cache=None, embedder=ByWord(), progress="off", views_folder=views)
    fill(shop, session, query, folder / "own.index")
    return session


def fill(shop: Shop, session: bf.Session, query: str, index: Path) -> None:
    """Make the tables those of a session, and the index that a query searches."""
    shop.fill(session)
    if "llm_search" in query:
        pytest.importorskip("lance")
        session.index("notes", "reviews", columns="text", path=index, vectors=False)


def rows_of(session: bf.Session) -> pa.Table:
    return pa.table(session.sql("SELECT * FROM v").to_arrow_table())


def check_history(kind: str, seed: int, folder: Path) -> None:
    """One history of a view of a kind."""
    rng, query = random.Random(f"{kind} {seed}"), KINDS[kind]
    shop, model = Shop(rng), Model()
    session = opened(folder, model, shop, query)
    in_lance = crc32(f"{kind} {seed}".encode()) % 4 == 0 and find_spec("lance") is not None
    clause = "WITH (format = 'lance') " if in_lance else ""
    statement = f"CREATE MATERIALIZED VIEW v {clause}AS {query}"
    seen: set[Asked] = set()
    served, version = None, 0
    for step in range(STEPS):
        what = shop.change() if step else "create"
        at = f"{kind}, seed {seed}, step {step}: {what}"
        if rng.random() < 0.4:  # another process
            session.close()
            session = opened(folder, model, shop, query)
        else:
            fill(shop, session, query, folder / "own.index")
        expected, possible = full_run(shop, query, folder)
        is_cut = rng.random() < 0.4 and cut(session, statement, model, rng)
        if is_cut and served is not None:
            assert table_digest(rows_of(session)) == served, f"{at}: half a version is served"
        statement = "REFRESH v" if "v" in session.materialized_views else statement
        session.sql(statement)
        statement = "REFRESH v"
        asked = [*model.asked]
        model.asked.clear()
        assert len(asked) == len(set(asked)), f"{at}: a value was asked twice"
        assert not seen & {*asked}, f"{at}: an answer was forgotten"
        if kind in BOUNDED:
            assert {*asked} <= possible or {*asked} <= every_question(shop, query, folder), at
        else:
            assert {*asked} == possible - seen, at
        seen |= {*asked}
        view = session.materialized_views["v"]
        kept = ViewFolder(folder, "v").rows_of(view)
        assert kept.suffix == (".lance" if in_lance else ".parquet")
        assert in_lance or kept.read_bytes() == parquet(expected), at
        digest = table_digest(rows_of(session))
        assert digest == view.digest == table_digest(expected), at
        version += digest != served
        assert view.version == version, at
        served = digest
        again = session.sql("REFRESH v").to_pylist()[0]
        assert (again["asked"], again["rewritten"]) == (0, False), at
        assert model.asked == [], at
    session.close()


POINTS = (
    (ViewFolder, "write_rows"),
    (ViewFolder, "serve"),
    (KeptRows, "save"),
    (KeptNames, "save"),
)
"""The steps of a refresh behind its query, and beside it."""


def cut(session: bf.Session, statement: str, model: Model, rng: random.Random) -> bool:
    """Whether a statement was cut off and changed nothing: behind some answers, before a step or
    behind it."""
    view = session.materialized_views.get("v")
    (owner, name), is_behind = rng.choice(POINTS), rng.random() < 0.5
    step = getattr(owner, name)

    def ended(*arguments: Any, **options: Any) -> None:
        if is_behind:
            step(*arguments, **options)
        raise Cut("cut")

    with pytest.MonkeyPatch.context() as patch:
        if is_step := rng.random() < 0.5:
            patch.setattr(owner, name, ended)
        else:
            model.left = rng.randint(0, 3)
        try:
            session.sql(statement)
        except Cut:
            is_same = session.materialized_views.get("v") == view
            assert is_same or is_step
            return is_same
        finally:
            model.left = None
    return False


def parquet(rows: pa.Table) -> bytes:
    """The file of rows."""
    file = io.BytesIO()
    pq.write_table(rows.replace_schema_metadata(None).combine_chunks(), file)
    return file.getvalue()


def histories(first: int, cases: int) -> Iterator[tuple[str, int]]:
    """Kinds and seeds, one history for each kind first."""
    return islice(((kind, seed) for seed in count() for kind in KINDS), first, first + cases)


PARTS, FIRST = 4, int(os.environ.get("HISTORIES_FROM", "0"))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")
def test_random_histories(
    part: int, given_cases: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default one history of each kind; ``--cases 1000`` runs 1,000, and ``HISTORIES_FROM=1000``
    others. Of three seeds, two divide the rows of a table into pieces of one or a few rows."""
    number = len(KINDS) if given_cases is None else given_cases
    for n, (kind, seed) in enumerate(histories(FIRST, number)):
        if n % PARTS == part:
            if seed % 3 < 2:
                monkeypatch.setattr(kept_rows, "_LEAST", 1)
                monkeypatch.setattr(kept_rows, "_BITS", seed % 3 + 1)
            check_history(kind, seed, tmp_path / f"{n}")
            monkeypatch.undo()
