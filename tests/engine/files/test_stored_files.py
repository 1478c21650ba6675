"""Files that an earlier state of the package wrote: they are read, and no answer is asked for
again. A change that makes these tests fail needs a new version of the file's form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import blendfusion as bf

STORED = Path(__file__).parents[2] / "golden" / "stored"
QUERY = "SELECT id FROM reviews WHERE llm_filter('Did it break?', text) ORDER BY id"


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(lambda call: True, fingerprint="fixture")


def frame(session: bf.Session, folder: Path) -> bf.Frame:
    rows = folder / "reviews.csv"
    rows.write_text("id,text\n1,It broke\n2,Fine\n3,Broke again\n")
    session.register_file(str(rows), "reviews")
    return session.sql(QUERY)


def test_stored_answers_are_found(model: bf.ScriptedModel, tmp_path: Path) -> None:
    shutil.copy(STORED / "answers.sqlite", tmp_path)
    with bf.connect(model, cache=tmp_path / "answers.sqlite", progress="off") as session:
        assert frame(session, tmp_path).to_pylist() == [{"id": 1}, {"id": 3}]
    assert model.calls == []


def test_a_recorded_run_is_compared(model: bf.ScriptedModel, tmp_path: Path) -> None:
    manifest = bf.Manifest.load(STORED / "run.json")
    shutil.copy(STORED / "answers.sqlite", tmp_path)
    cache = tmp_path / "answers.sqlite"
    # The run was recorded when ``shots`` was True where nobody chose it.
    with bf.connect(model, cache=cache, progress="off", shots=True) as session:
        changes, rows = frame(session, tmp_path).changes(manifest)
    assert (rows.added, rows.removed, rows.changed) == ([], [], [])
    assert [change for change in changes if change.name != "python"] == []
