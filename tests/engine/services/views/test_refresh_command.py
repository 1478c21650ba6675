"""``blendfusion refresh``: lines and exit statuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback import closed_port

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.models.protocol import event_fields as f

connect = bf.connect


class Shop:
    """A folder with a table and two views, of which one reads the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fill("good a", "bad")
        self.run("query", "CREATE MATERIALIZED VIEW a_best AS SELECT 0 AS id")
        self.run(
            "query",
            "CREATE MATERIALIZED VIEW z_good AS SELECT id FROM t WHERE llm_filter('Is it good?', text)",
        )
        self.run(
            "query",
            "CREATE OR REPLACE MATERIALIZED VIEW a_best AS SELECT max(id) AS id FROM z_good",
        )

    def fill(self, *texts: str) -> None:
        rows = {"id": list(range(len(texts))), "text": list(texts)}
        pq.write_table(pa.table(rows), self.folder / "t.parquet")

    def answer(self, call: bf.Request) -> object:
        return "good" in str(call.values[0])

    def run(self, command: str, *arguments: str) -> int:
        own = [
            "--table",
            f"{self.folder}/t.parquet",
            "--option",
            f"views_folder={self.folder}/views",
        ]
        return main([command, *arguments, "--cache", "off", *own])


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made: list[Shop] = []

    def connect_scripted(model: Any = None, **options: Any) -> bf.Session:
        return connect(
            bf.ScriptedModel(lambda call: made[0].answer(call), fingerprint="good"), **options
        )

    monkeypatch.setattr(bf, "connect", connect_scripted)
    shop = Shop.__new__(Shop)
    made.append(shop)
    shop.__init__(tmp_path)  # type: ignore[misc]
    return shop


def test_all_views_in_their_order(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert shop.run("refresh", "--all") == 0
    assert capsys.readouterr().out == (
        "z_good: 1 row, version 1, nothing changed · 0 values asked\n"
        "a_best: 1 row, version 2, nothing changed · 0 values asked\n"
    )
    shop.fill("good a", "bad", "good b")
    assert shop.run("refresh", "--all", "--explain") == 0
    assert "expected: 1 value of 3 rows" in capsys.readouterr().out
    assert shop.run("refresh", "--all") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "z_good: 2 rows, version 2, the table t changed · asked 1 value in 1 call, 2 more"
    )
    assert second.startswith("a_best: 1 row, version 3, the table z_good changed · ")


def test_pages_of_the_views_that_ran(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path / "new" / "pages"
    assert shop.run("refresh", "--all", "--trace", str(pages)) == 0
    assert not pages.exists()  # none ran
    shop.fill("good a", "bad", "good b")
    assert shop.run("refresh", "--all", "--trace", str(pages)) == 0
    assert sorted(page.name for page in pages.iterdir()) == ["a_best.html", "z_good.html"]
    page = (pages / "z_good.html").read_text()
    assert "<html" in page
    assert "Is it good?" in page
    shop.fill("good a")
    capsys.readouterr()
    assert shop.run("refresh", "--all", "--trace", str(shop.folder / "t.parquet")) == 3
    assert "Hint: Name a folder." in capsys.readouterr().err


def test_a_refresh_is_a_query_of_opentelemetry(shop: Shop) -> None:
    pytest.importorskip("opentelemetry")
    from telemetry import watched

    shop.fill("good a", "bad", "good b")
    with watched() as seen:
        assert shop.run("refresh", "--all") == 0
    queries = [span for span in seen.spans if span.name == "blendfusion.query"]
    assert [span.attributes[f.VALUES] for span in queries if span.attributes.get(f.VALUES)] == [1]
    assert all(span.attributes[f.OUTCOME] == "done" for span in queries)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "refresh takes names of views, or --all"),
        (["--all", "z_good"], 2, "refresh takes names of views, or --all"),
        (["z_good", "nix"], 2, "no materialised view 'nix'"),
    ],
)
def test_wrong_arguments_refresh_nothing(
    arguments: list[str], status: int, message: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fill("good z")
    assert shop.run("refresh", *arguments) == status
    out, err = capsys.readouterr()
    assert message in err
    assert "version" not in out


def test_causes_of_failure_have_their_status(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fill("good c", "bad d", "good e")
    assert shop.run("refresh", "--all", "--budget", "values=1") == 5
    assert "z_good: not refreshed" in capsys.readouterr().err
    pq.write_table(pa.table({"id": [1]}), shop.folder / "t.parquet")
    assert shop.run("refresh", "--all") == 3
    out, err = capsys.readouterr()
    assert "unknown column 'text'" in err
    assert out.startswith("a_best: 1 row, version 2, nothing changed")


def test_a_check_that_fails_has_its_status(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = "SELECT * FROM (VALUES ('good x', true), ('fine y', true)) AS c"
    question, good = tmp_path / "good.toml", "llm_filter('Is it good?', text)"
    bf.StoredQuestion("good", good, 3, owner="ann", checks=checks).save(question)
    view = "CREATE MATERIALIZED VIEW checked AS SELECT id FROM t WHERE llm_ask('good', text)"
    asks = ("--question", str(question))
    assert shop.run("query", view, *asks) != 0
    assert "fails its checks" in capsys.readouterr().err
    bf.StoredQuestion("good", good, 3, checks=checks.replace(", ('fine y', true)", "")).save(
        question
    )
    assert shop.run("query", view, *asks) == 0
    bf.StoredQuestion("good", good, 4, owner="ann", checks=checks).save(question)
    capsys.readouterr()
    assert shop.run("refresh", "--all", *asks) == 6
    out, err = capsys.readouterr()
    assert "the stored question good, version 4 of ann fails its checks: of 2 labelled" in err
    assert len(out.splitlines()) == 2  # the other views


def test_a_server_that_is_gone_has_its_status_and_leaves_the_old_version(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.fill("good a", "bad", "good b")
    scripted = bf.connect
    server = f"openai:m@http://127.0.0.1:{closed_port()}/v1"
    with monkeypatch.context() as patch:
        patch.setattr(
            bf, "connect", lambda model=None, **options: connect(server, retries=0, **options)
        )
        capsys.readouterr()
        assert shop.run("refresh", "--all") == 4
        assert "z_good: not refreshed" in capsys.readouterr().err
        assert shop.run("query", "SELECT count(*) AS n FROM z_good", "--format", "csv") == 0
        assert capsys.readouterr().out.splitlines()[-1] == "1"
    assert bf.connect is scripted
    assert shop.run("refresh", "--all") == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("z_good: 2 rows, version 2")
