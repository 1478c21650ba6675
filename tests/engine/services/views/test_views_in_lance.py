"""Views whose rows are kept in Lance: served, read as they were, and whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.services.views import lance_rows
from blendfusion.services.views.folder import ViewFolder

lance = pytest.importorskip("lance")

QUERY = "SELECT id, llm_filter('Is it good?', text) AS good FROM t ORDER BY id"
CREATE = f"CREATE MATERIALIZED VIEW v WITH (format = 'lance') AS {QUERY}"


def opened(folder: Path, *ids: int) -> bf.Session:
    model = bf.ScriptedModel(lambda call: call.values[0].endswith("1"), fingerprint="ends")
    session = bf.connect(model, cache=None, progress="off", views_folder=str(folder))
    session.from_pydict({"id": [*ids], "text": [f"text {n}" for n in ids]}, name="t")
    return session


def served(session: bf.Session, source: str = "v") -> list[dict[str, Any]]:
    return session.sql(f"SELECT * FROM {source} ORDER BY id").to_pylist()


def expected(*ids: int) -> list[dict[str, Any]]:
    return [{"id": n, "good": n % 10 == 1} for n in ids]


def test_a_view_in_lance(tmp_path: Path) -> None:
    first = opened(tmp_path, 1, 2)
    first.sql(CREATE)
    assert served(first) == expected(1, 2)
    session = opened(tmp_path, 1, 2, 11)
    assert served(session) == expected(1, 2)
    [report] = session.sql("REFRESH v").to_pylist()
    assert (report["asked"], report["version"]) == (1, 2)
    assert served(session) == expected(1, 2, 11) == served(first)
    assert served(session, "v AS OF VERSION 1") == expected(1, 2)
    assert session.sql("REFRESH v").to_pylist()[0]["why"] == "nothing changed"
    places = sorted(file.name for file in (tmp_path / "v").glob("*rows*"))
    assert places == ["rows-1.lance", "rows-2.lance"]
    assert lance.dataset(str(tmp_path / "v" / "rows-2.lance")).count_rows() == 3


def test_the_form_may_change(tmp_path: Path) -> None:
    """The versions before are read as they lie."""
    for number, clause in enumerate(("", "WITH (format = 'lance') ", ""), 1):
        session = opened(tmp_path, *range(number))
        text = f"CREATE OR REPLACE MATERIALIZED VIEW v {clause}AS {QUERY}"
        assert session.sql(text).to_pylist()[0]["version"] == number
        for version in range(1, number + 1):
            assert served(session, f"v AS OF VERSION {version}") == expected(*range(version))


def test_only_ten_versions_stay(tmp_path: Path) -> None:
    opened(tmp_path, 1).sql(CREATE)
    for number in range(2, 14):
        opened(tmp_path, *range(1, number + 1)).sql("REFRESH v")
    assert len([*(tmp_path / "v").glob("rows-*.lance")]) == 10
    opened(tmp_path).sql("DROP MATERIALIZED VIEW v")
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize("way", ["gone", "empty", "cut", "without its manifest"])
def test_a_damaged_dataset_is_made_again(way: str, tmp_path: Path) -> None:
    opened(tmp_path, 1, 2).sql(CREATE)
    place = tmp_path / "v" / "rows-1.lance"
    name = "_versions" if way == "without its manifest" else "data"
    for file in (place / name).iterdir():
        content = file.read_bytes()
        file.unlink() if way in ("gone", "without its manifest") else None
        if way in ("empty", "cut"):
            file.write_bytes(content[: len(content) // 2 if way == "cut" else 0])
    session = opened(tmp_path, 1, 2)
    with pytest.raises(bf.QueryError, match="unknown table 'v'"):
        session.sql("SELECT * FROM v")
    [report] = session.sql("REFRESH v").to_pylist()
    assert (report["why"], report["version"]) == ("the file of its rows is damaged", 2)
    assert served(session) == expected(1, 2)


@pytest.mark.parametrize("step", ["write_dataset", "rename"])
def test_a_refresh_that_ends_while_it_writes(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old version is served, nothing is asked again, and no part stays."""
    opened(tmp_path, 1, 2).sql(CREATE)
    with monkeypatch.context() as patch:
        owner: Any = lance if step == "write_dataset" else Path
        patch.setattr(owner, step, lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            opened(tmp_path, 1, 2, 3).sql("REFRESH v")
    (tmp_path / "v" / ".rows-2.lance.0.part" / "data").mkdir(parents=True)  # of one that was killed
    session = opened(tmp_path, 1, 2, 3)
    assert served(session) == expected(1, 2)
    assert session.sql("REFRESH v").to_pylist()[0]["asked"] == 0
    assert served(session) == expected(1, 2, 3)
    assert not [*(tmp_path / "v").glob("*.part")]


def test_a_version_that_was_written_but_not_served(tmp_path: Path) -> None:
    opened(tmp_path, 1, 2).sql(CREATE)
    lance_rows.write(tmp_path / "v" / "rows-2.lance", pa.table({"other": [1]}))
    session = opened(tmp_path, 1, 2, 3)
    assert served(session) == expected(1, 2)
    session.sql("REFRESH v")
    assert served(session) == expected(1, 2, 3)
    view = session.materialized_views["v"]
    assert ViewFolder(tmp_path, "v").rows_of(view).name == "rows-2.lance"


@pytest.mark.parametrize(
    "clause",
    [
        "WITH (format = 'orc')",
        "WITH (format = lance)",
        "WITH (format = 'lance', format = 'lance')",
        "WITH (format = 'lance' grows = 't.id')",
        "WITH (other = 'lance')",
        "WITH ()",
    ],
)
def test_wrong_options(clause: str, tmp_path: Path) -> None:
    session = opened(tmp_path, 1)
    with pytest.raises(bf.QueryError, match=r"this is no option of a view|has no query"):
        session.sql(f"CREATE MATERIALIZED VIEW v {clause} AS {QUERY}")


def test_both_options(tmp_path: Path) -> None:
    text = CREATE.replace("(format", "(grows = 't.id', format")
    opened(tmp_path, 1, 2).sql(text)
    session = opened(tmp_path, 1, 2, 3)
    assert session.sql("REFRESH v").to_pylist()[0]["asked"] == 1
    assert served(session) == expected(1, 2, 3)
