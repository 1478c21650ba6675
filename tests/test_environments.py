"""What people have: closed streams, folders that may not be entered, checkers of types."""

from __future__ import annotations

import base64
import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tomllib
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from lowest_versions import lowest_versions
from packaging.requirements import Requirement

import blendfusion as bf
from blendfusion.models.stores.sqlite_file import OwnConnection

ROOT = Path(__file__).parents[1]
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
"""An image of one red dot."""
SCRIPT = ROOT / "tests" / "support" / "user_script.py"


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, *arguments], capture_output=True, encoding="utf-8", cwd="/", **options
    )


def test_the_version_is_that_of_the_package() -> None:
    assert bf.__version__ == version("blendfusion")


def test_the_package_is_the_command() -> None:
    found = run("-m", "blendfusion", "--version")
    assert (found.returncode, found.stdout) == (0, f"blendfusion {bf.__version__}\n")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the stream")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_ends_no_query(closed: str) -> None:
    command = f'"{sys.executable}" -m blendfusion query "SELECT 1 AS n" {closed}'
    found = subprocess.run(command, shell=True, capture_output=True, encoding="utf-8", cwd="/")
    assert (found.returncode, found.stderr) == (0, "")


_ELSEWHERE = """
import os, sys, tempfile, warnings
import blendfusion as bf
from blendfusion.models.stores.sqlite import SqliteStore

def answers(cache):
    session = bf.connect(bf.ScriptedModel(lambda request: "a"), cache=cache)
    session.from_pydict({"x": ["b"]}, name="t")
    return session.sql("SELECT llm_text('q', x) AS a FROM t").to_pylist()

answers(os.path.join(tempfile.mkdtemp(), "a.sqlite"))  # imports what it needs
if os.geteuid() == 0:
    os.setuid(65534)
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    assert answers(sys.argv[1]) == [{"a": "a"}]
    SqliteStore(sys.argv[1]).clear("m")
print([(w.category.__name__, "Permission denied" in str(w.message)) for w in given])
"""


@pytest.mark.skipif(os.name != "posix", reason="folders have other rights there")
def test_a_home_that_may_not_be_entered_gives_a_warning() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        home = Path(folder, "home")
        (home / "cache").mkdir(parents=True)
        home.chmod(0)
        found = run("-c", _ELSEWHERE, str(home / "cache" / "a.sqlite"))
        home.chmod(0o700)
    assert (found.stdout, found.returncode) == ("[('CacheWarning', True)]\n", 0), found.stderr


def test_lower_bounds_are_those_that_were_tried() -> None:
    """What an older version of each lacks is seen at ``bf.connect``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = {r.name: r.specifier for r in map(Requirement, project["dependencies"])}
    refused = {
        "protobuf": ["5.28.3", "5.29.4", "6.30.2", "6.31.1"],
        "numpy": ["1.26.4"],  # which pyarrow refuses at import
        # Without sizes of views in dictionaries; 24 gives away views of a cast that end the process.
        "pyarrow": ["20.0.0", "23.0.1", "24.0.0"],
    }
    for name, versions in refused.items():
        assert [v for v in versions if bounds[name].contains(v)] == []
    assert all(bounds["protobuf"].contains(v) for v in ("5.29.5", "6.32.0", "7.34.0"))


def test_each_requirement_has_an_oldest_version() -> None:
    """`make nightly` runs the fast tests with these."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = dict(line.split("==") for line in lowest_versions())
    needs = [Requirement(line) for line in project["dependencies"]]
    assert [need.name for need in needs] == [*pins]
    assert all(need.specifier.contains(pins[need.name]) for need in needs)


_DROPPED = """
import gc, sqlite3, sys
import blendfusion as bf

sqlite3.connect(sys.argv[1] + "/a.db").execute("CREATE TABLE t (a)").connection.close()
for _ in range(2):
    session = bf.connect(bf.ScriptedModel(lambda request: "a"), cache=sys.argv[1] + "/answers.sqlite")
    session.attach("sqlite:///" + sys.argv[1] + "/a.db")
    session.from_pydict({"x": ["b"]}, name="t")
    session.sql("SELECT llm_text('q', x) AS a FROM t").collect()
    del session
    gc.collect()
"""


def test_sessions_that_nobody_closes_end_without_a_word(tmp_path: Path) -> None:
    """Python 3.13 and later warn of connections of SQLite that are left to the garbage collector."""
    found = run("-X", "dev", "-W", "error", "-c", _DROPPED, str(tmp_path))
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("threads", [0, 1])
def test_a_connection_that_is_dropped_is_closed(tmp_path: Path, threads: int) -> None:
    held = [
        sqlite3.connect(tmp_path / "a.db", factory=OwnConnection, check_same_thread=not threads)
    ]
    held[0].execute("BEGIN EXCLUSIVE")
    if threads:
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    held.clear()
    gc.collect()
    with closing(sqlite3.connect(tmp_path / "a.db", timeout=0)) as other:
        other.execute("BEGIN EXCLUSIVE")


def test_dictionaries_need_no_pandas() -> None:
    code = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

sys.meta_path.insert(0, Without())
import pyarrow as pa, blendfusion as bf
session = bf.connect(bf.ScriptedModel(lambda request: True), cache=None)
session.from_arrow(pa.table({"c": pa.array(["a", "b"]).dictionary_encode()}), name="t")
print(session.sql("SELECT c FROM t WHERE llm_filter('q', c)").to_pydict())
"""
    found = run("-c", code)
    assert found.stdout == "{'c': ['a', 'b']}\n", found.stderr


@pytest.mark.parametrize("missing", ["PIL", "rapidocr_onnxruntime"])
def test_text_in_images_names_its_extra(tmp_path: Path, missing: str) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / f"{missing}.py").write_text(f"raise ImportError({missing!r}, name={missing!r})")
    image = tmp_path / "a.png"
    image.write_bytes(DOT)
    code = (
        "import sys, blendfusion as bf; session = bf.connect(None, cache=None); "
        "print(session.read_documents(sys.argv[1], ocr=True).to_pylist()[0]['error'])"
    )
    path = os.pathsep.join(filter(None, [str(blocked), os.environ.get("PYTHONPATH")]))
    found = run("-c", code, str(image), env={**os.environ, "PYTHONPATH": path})
    if missing != "PIL" and "Pillow" in found.stdout:
        pytest.skip("Pillow is not installed")
    assert "pip install 'blendfusion[ocr]'" in found.stdout, found


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("benchmarks", [0, 1])
def test_types_are_checked_without_benchmarks(tmp_path: Path, benchmarks: int) -> None:
    """The archive of sources has none."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    for number in range(benchmarks):
        (tmp_path / "benchmarks" / f"bench_{number}.py").touch()
    said = subprocess.run(
        ["make", "-n", "-o", "install", "types"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    ).stdout
    checked = [line.split("--strict ")[1] for line in said.splitlines() if "mypy --strict" in line]
    assert checked == ["-p blendfusion", *["benchmarks/bench_0.py"] * benchmarks]


@pytest.mark.long
def test_a_users_script_has_the_types_that_it_states() -> None:
    settings = (
        "--strict",
        "--cache-dir",
        os.devnull,
        "--config-file",
        str(ROOT / "pyproject.toml"),
    )
    found = run("-m", "mypy", *settings, str(SCRIPT), timeout=500)
    assert found.stdout.splitlines()[-1:] == ["Success: no issues found in 1 source file"]


@pytest.mark.long
def test_editors_see_frames_after_every_verb(tmp_path: Path) -> None:
    pyright = shutil.which("pyright") or shutil.which("basedpyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    found = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "--level", "error", str(SCRIPT)],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert "0 errors" in found.stdout, found.stdout
