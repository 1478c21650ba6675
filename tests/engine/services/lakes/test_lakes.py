"""Tables of Delta Lake, Iceberg and Hudi: their Parquet files are never read as they lie there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.apps.cli.main import main

LOGS = {
    "Delta Lake": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00000-a.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}
REMEDIES = {"Delta Lake": "deltalake.DeltaTable", "Iceberg": "pyiceberg", "Hudi": "hudi"}
PLACES = {
    "folder": "house/tickets",
    "with slash": "house/tickets/",
    "file": "house/tickets/p.parquet",
    "pattern": "house/tickets/*.parquet",
    "partition": "house/tickets/day=1",
    "file in partition": "house/tickets/day=1/p.parquet",
    "parent": "house",
    "pattern from above": "house/*/*.parquet",
    "pattern from far above": "**/*.parquet",
}


def lake(kind: str, root: Path) -> None:
    """Write a table of a kind, beside a folder of plain files."""
    table = root / "house/tickets"
    for file in ("tickets/p.parquet", "tickets/day=1/p.parquet", "plain/p.parquet"):
        place = root / "house" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), place)
    log = table / LOGS[kind]
    log.parent.mkdir()
    log.write_text("{}")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bf.Session:
    monkeypatch.chdir(tmp_path)
    return bf.connect(None, cache=None, read_files="local")


def doors(session: bf.Session, path: str) -> dict[str, Callable[[], object]]:
    return {
        "register_file": lambda: session.register_file(path, "t"),
        "from": lambda: session.sql(f"SELECT * FROM '{path}'"),
        "register_parquet": lambda: session.register_parquet("t", path),
        "register_listing_table": lambda: session.register_listing_table("t", path),
        "read_parquet": lambda: session.read_parquet(path),
        "external": lambda: session.sql(
            f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{path}'"
        ),
        "external of many": lambda: session.sql(
            f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION ('house/plain/p.parquet', '{path}')"
        ),
    }


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("place", PLACES)
def test_every_door_refuses_them_by_name(
    kind: str, place: str, session: bf.Session, tmp_path: Path
) -> None:
    lake(kind, tmp_path)
    for path in (
        PLACES[place],
        str(tmp_path / PLACES[place]),
        f"file://{tmp_path}/{PLACES[place]}",
    ):
        for name, door in doors(session, path).items():
            if (name, path) == ("from", "house"):
                continue  # that is the name of a table
            with pytest.raises(
                bf.QueryError, match=f"tickets' is a table of {kind}, whose"
            ) as raised:
                door()
            assert REMEDIES[kind] in str(raised.value.hint), name
    assert session.catalog().schema().names() == set()


@pytest.mark.parametrize("kind", LOGS)
def test_the_command_and_datasets_refuse_them(
    kind: str, session: bf.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake(kind, tmp_path)
    assert main(["query", "SELECT * FROM t", "--table", "t=house/tickets/*.parquet"]) == 2
    assert f"is a table of {kind}" in capsys.readouterr().err
    with pytest.raises(bf.QueryError, match=f"is a table of {kind}"):
        session.register_dataset("t", pyarrow.dataset.dataset("house/tickets/p.parquet"))


@pytest.mark.parametrize("kind", LOGS)
def test_links_into_them_are_refused(kind: str, session: bf.Session, tmp_path: Path) -> None:
    lake(kind, tmp_path)
    Path("link").symlink_to(tmp_path / "house/tickets/day=1")
    with pytest.raises(bf.QueryError, match=f"is a table of {kind}"):
        session.register_file("link", "t")


@pytest.mark.parametrize("kind", LOGS)
def test_a_context_that_reads_paths_refuses_them(kind: str, tmp_path: Path) -> None:
    lake(kind, tmp_path)
    session = bf.connect(None, cache=None, ctx=SessionContext().enable_url_table())
    with pytest.raises(bf.QueryError, match=f"is a table of {kind}"):
        session.sql(f"SELECT * FROM '{tmp_path}/house/tickets/p.parquet'")
    assert session.sql(f"SELECT * FROM '{tmp_path}/house/plain/p.parquet'").count() == 1


def test_other_folders_are_read(session: bf.Session, tmp_path: Path) -> None:
    lake("Delta Lake", tmp_path)
    (tmp_path / "house/plain/metadata").mkdir()
    (tmp_path / "house/plain/metadata/notes.json").write_text("{}")
    for number, door in enumerate(
        ("house/plain", "house/plain/*.parquet", "house/plain/p.parquet")
    ):
        assert session.register_file(door, f"t{number}").count() == 1
    assert (
        session.register_file("house/tickets/_delta_log/00000000000000000000.json", "log").count()
        == 1
    )
