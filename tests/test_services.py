"""Services can be taken out: the core imports none, and works where a folder is missing."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from datafusion import DataFrame
from module_imports import FILES, ROOT, imports

import blendfusion as bf
from blendfusion.prepare.frame_sources import FrameSources
from blendfusion.services import METHODS, services
from blendfusion.session import INTERNAL

FOLDERS = sorted(
    folder.relative_to(ROOT).as_posix()
    for place in ("engine/services", "engine/apps", "udfs/services", "models/services")
    for folder in (ROOT / place).iterdir()
    if (folder / "__init__.py").is_file()
)
SOCKETS = frozenset(["services.session_methods", "services.frame_methods", "services.names"])
"""The modules that name services for type checkers."""


def service_of(module: str) -> str | None:
    """The service of a module, such as ``services.ask`` or ``udfs.services.columns``; None for the
    core."""
    parts = module.split(".")
    for at, part in enumerate(parts[:2]):
        if part in ("services", "apps") and len(parts) > at + 1 and module not in SOCKETS:
            return ".".join(parts[: at + 2])
    return None


CORE = [module for module in FILES if service_of(module) is None]


@pytest.mark.parametrize("module", CORE)
def test_the_core_imports_no_service(module: str) -> None:
    tree = ast.parse(FILES[module].read_text("utf-8"))
    found = [
        (name, line)
        for name, line, types_only in imports(tree)
        if service_of(name) is not None and not (types_only and module in SOCKETS)
    ]
    assert module == "services.names" or found == []


@pytest.mark.parametrize("module", sorted({*FILES} - {*CORE}))
def test_a_service_imports_the_services_that_it_declares(module: str) -> None:
    own = service_of(module)
    assert own is not None
    used = {service_of(name) for name, _, _ in imports(ast.parse(FILES[module].read_text("utf-8")))}
    declared = services().get(f"blendfusion.{own}")
    needs = needs_of(own) if declared is None else declared.needs
    if not own.startswith("apps."):  # a command needs what it is about when it runs
        assert used - {None, own, *needs} == set()


def needs_of(own: str) -> list[str]:
    """The services that a service of models or functions declares as ``NEEDS``."""
    around, _, _ = own.rpartition(".")
    needs = getattr(import_module(f"blendfusion.{own}"), "NEEDS", ())
    return [f"{around}.{need}" for need in needs]


def test_the_list_of_methods_is_that_of_the_services() -> None:
    core = {*dir(FrameSources), *dir(DataFrame), *INTERNAL}
    for module, service in services().items():
        parts = [part.partition(":") for part in (service.session, service.frame) if part]
        kinds = [getattr(import_module(f"{module}.{file}"), name) for file, _, name in parts]
        added = {name for kind in kinds for name in dir(kind) if not name.startswith("_")} - core
        listed = METHODS.get(module.rpartition(".")[2], "").split()
        assert added == set(listed) - INTERNAL
        assert all(any(name in dir(kind) for kind in kinds) for name in listed)


def test_methods_of_services_keep_their_signatures() -> None:
    assert str(inspect.signature(bf.Session.search)).startswith("(self, name: 'str', query: 'str'")
    assert str(inspect.signature(bf.Frame.changes)).startswith("(self, manifest: 'Manifest')")
    assert (bf.Session.ask.__doc__ or "").startswith("A query for a question in plain words")


@pytest.mark.parametrize("face", [bf.Session, bf.Frame])
def test_no_service_shadows_a_private_name_of_another(face: type) -> None:
    own = [kind for kind in face.__mro__ if kind.__module__.startswith("blendfusion.services.")]
    names = [name for kind in own for name in vars(kind) if re.match(r"_[^_]", name)]
    assert sorted(names) == sorted({*names})


def package_without(folder: str, place: Path) -> None:
    """A package ``blendfusion`` in ``place`` that links to all files but those of ``folder``."""
    package = place / "blendfusion"
    package.mkdir()
    parts = {"engine": package} | {
        name: package / name for name in ("planner", "udfs", "models", "native", "examples")
    }
    layer, *below = folder.split("/")
    for name, target in parts.items():
        if name != layer and name != "engine":
            target.symlink_to(ROOT / name)
    source, target = ROOT / layer, parts[layer]
    for step in below:
        target.mkdir(exist_ok=True)
        for entry in source.iterdir():
            if entry.name not in (step, "__pycache__"):
                (target / entry.name).symlink_to(entry)
        source, target = source / step, target / step
    if layer != "engine":
        for entry in (ROOT / "engine").iterdir():
            if entry.name != "__pycache__":
                (package / entry.name).symlink_to(entry)


CHECK = """
import importlib, pathlib, sys
import blendfusion as bf
from blendfusion.prepare.frame_sources import FrameSources
from blendfusion.services import METHODS, services
from blendfusion.session import INTERNAL

assert pathlib.Path(bf.__file__).is_relative_to(sys.argv[1]), bf.__file__
assert all(getattr(bf, name) is not None for name in bf.__all__)
for module in sys.argv[3:]:
    importlib.import_module(module)
session = bf.connect(bf.ScriptedModel(lambda call: "good" in call.values[0]), cache=None)
session.from_pydict({"id": [1, 2], "x": ["good", "bad"]}, name="t")
frame = session.sql("SELECT id FROM t WHERE llm_filter('Is it good?', x)")
assert frame.to_pylist() == [{"id": 1}]
assert "llm_filter" in frame.explain_text()
assert session.sql("SHOW FUNCTIONS").to_pylist()
owner = sys.argv[2].rpartition(".")[2] if sys.argv[2].startswith("services.") else ""
for name in METHODS.get(owner, "").split():
    for thing in (session, frame):
        try:
            getattr(thing, name)
        except AttributeError as error:
            assert f"services/{owner}, which is not installed" in str(error), error
        else:
            raise AssertionError(name)
if owner == "approximate":
    session.sql("SET blendfusion.approximate = 0.02")
    try:
        session.sql("SELECT count(*) FROM t WHERE llm_filter('Is it good?', x)").collect()
    except bf.BlendFusionError as error:
        assert f"services/{owner}, which is not installed" in str(error), error
    else:
        raise AssertionError("it was a bare AttributeError")
if owner == "estimates":
    assert "expected" not in frame.explain_text()
    guarded = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, confirm_above=1)
    guarded.from_pydict({"x": ["a", "b"]}, name="t")
    for act in (frame.estimate, guarded.sql("SELECT llm_filter('q', x) FROM t").to_pylist):
        try:
            act()
        except bf.OptionError as error:
            assert "services/estimates, which is not installed" in str(error), error
        else:
            raise AssertionError("an estimate without its service")
if owner == "pages":
    assert frame.trace._repr_html_() is None
    try:
        frame.trace.to_html()
    except bf.OptionError as error:
        assert f"services/{owner}, which is not installed" in str(error), error
    else:
        raise AssertionError("a page without its service")
if sys.argv[2] == "models.services.joint_prompts":
    try:
        bf.connect("openai:m@http://127.0.0.1:1/v1", rows_per_prompt=4)
    except bf.OptionError as error:
        assert "joint_prompts, which is not installed" in str(error), error
    else:
        raise AssertionError("rows_per_prompt had no effect")
try:
    from blendfusion.apps.cli.main import main
except ModuleNotFoundError:
    assert sys.argv[2] == "apps.cli"
else:
    assert main(["query", "SELECT 1 AS one", "--cache", "off"]) == 0
"""


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_core_works_without_a_service(folder: str, tmp_path: Path) -> None:
    package_without(folder, tmp_path)
    missing = folder.removeprefix("engine/").replace("/", ".")
    core = [f"blendfusion.{module}".rstrip(".") for module in CORE if module not in SOCKETS]
    done = run(tmp_path, [sys.executable, "-c", CHECK, str(tmp_path), missing, *core], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert missing == "apps.cli" or "one" in done.stdout


CORE_TESTS = (
    *(
        "tests/engine/datafusion/substrait/test_round_trip.py",
        "tests/udfs/declare/test_bind.py",
        "tests/engine/test_frame.py",
    ),
    *("tests/engine/run/execution/test_early_stop.py", "tests/engine/test_errors.py"),
)
PLANS = "tests/planner/test_golden_plans.py::test_plans_look_like_their_page"
NOT_IN_PLANS = frozenset(["udfs/services/columns", "engine/services/estimates"])
"""The services whose functions the pages of plans ask, or whose numbers they show."""


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_tests_of_the_core_pass_without_a_service(folder: str, tmp_path: Path) -> None:
    package_without(folder, tmp_path)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "not long and not slow and not local",
    ]
    tests = CORE_TESTS if folder in NOT_IN_PLANS else (*CORE_TESTS, PLANS)
    done = run(tmp_path, [*command, "-p", "no:cacheprovider", *tests], ROOT)
    assert done.returncode == 0, done.stdout[-3000:]


def run(place: Path, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The end of a process for which ``place`` has the package."""
    environment = {**os.environ, "PYTHONPATH": str(place), "BLENDFUSION_PROGRESS": "off"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
