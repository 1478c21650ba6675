"""Services can be taken out: the core imports none, and works where a folder is missing."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from itertools import combinations, permutations
from math import comb
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


def package_without(folders: Collection[str], place: Path) -> None:
    """A package ``blendfusion`` in ``place`` that links to all files but those of ``folders``."""
    package = place / "blendfusion"
    package.mkdir()
    for layer in ("planner", "udfs", "models", "native", "examples"):
        link_without(folders, layer, package / layer)
    link_without(folders, "engine", package)


def link_without(folders: Collection[str], folder: str, target: Path) -> None:
    """Links to the entries of a folder; folders around what is left out are made."""
    target.mkdir(exist_ok=True)
    for entry in (ROOT / folder).iterdir():
        name = f"{folder}/{entry.name}"
        if any(left_out.startswith(f"{name}/") for left_out in folders):
            link_without(folders, name, target / entry.name)
        elif name not in folders and entry.name != "__pycache__":
            (target / entry.name).symlink_to(entry)


def spread(values: Sequence[str]) -> list[list[str]]:
    """Few lists, such that for any two values one list has the first and not the second.

    A value is in half of the lists, and no two values are in the same ones.
    """
    count = next(count for count in range(2, 99) if comb(count, count // 2) >= len(values))
    places = combinations(range(count), count // 2)
    lists: list[list[str]] = [[] for _ in range(count)]
    for value, among in zip(values, places, strict=False):
        for place in among:
            lists[place].append(value)
    return lists


def test_any_two_values_are_told_apart_by_a_list() -> None:
    for number in range(1, 80):
        values = [str(value) for value in range(number)]
        lists = spread(values)
        for one, other in permutations(values, 2):
            assert any(one in among and other not in among for among in lists)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Half of the services are left out at once; nightly, each of them alone, too.

    What fails without one service fails without others, too, and each service is there without each
    other one, which it may miss.
    """
    args = metafunc.config.invocation_params.args
    is_nightly = any(word.startswith("--cases") for word in args)
    in_plans = [folder for folder in FOLDERS if folder not in NOT_IN_PLANS]
    for name, folders in (("left_out", FOLDERS), ("left_out_of_plans", in_plans)):
        if name in metafunc.fixturenames:
            alone = [[folder] for folder in folders] if is_nightly else []
            metafunc.parametrize(name, [*spread(folders), *alone], ids=lambda part: part[0])


CHECK = """
import importlib, pathlib, sys
import blendfusion as bf
from blendfusion.models.registry.load import BACK_ENDS
from blendfusion.services import METHODS

place, missing, *core = sys.argv[1:]
missing = missing.split(",")
assert pathlib.Path(bf.__file__).is_relative_to(place), bf.__file__
assert all(getattr(bf, name) is not None for name in bf.__all__)
for module in core:
    importlib.import_module(module)
session = bf.connect(bf.ScriptedModel(lambda call: "good" in call.values[0]), cache=None)
session.from_pydict({"id": [1, 2], "x": ["good", "bad"]}, name="t")
frame = session.sql("SELECT id FROM t WHERE llm_filter('Is it good?', x)")
assert frame.to_pylist() == [{"id": 1}]
assert "llm_filter" in frame.explain_text()
assert session.sql("SHOW FUNCTIONS").to_pylist()

def refused(kind, service, attempt):
    try:
        attempt()
    except kind as error:
        assert f"{service}, which is not installed" in str(error), error
    else:
        raise AssertionError(service)

for module in missing:
    if module.startswith("services."):
        owner = module.rpartition(".")[2]
        for name in METHODS.get(owner, "").split():
            for thing in (session, frame):
                refused(AttributeError, f"services/{owner}", lambda: getattr(thing, name))
if "services.estimates" in missing:
    assert "expected" not in frame.explain_text()
    guarded = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, confirm_above=1)
    guarded.from_pydict({"x": ["a", "b"]}, name="t")
    for act in (frame.estimate, guarded.sql("SELECT llm_filter('q', x) FROM t").to_pylist):
        refused(bf.OptionError, "services/estimates", act)
grouped = session.sql(
    "SELECT id FROM t GROUP BY id HAVING count(*) FILTER (WHERE llm_filter('Is it good?', x)) > 0"
)
assert grouped.to_pylist() == [{"id": 1}]
assert ("decided" in grouped.explain_text()) is ("services.decided_groups" not in missing)
if "services.approximate" in missing:
    session.sql("SET blendfusion.approximate = 0.02")
    sampled = session.sql("SELECT count(*) FROM t WHERE llm_filter('Is it good?', x)")
    refused(bf.BlendFusionError, "services/approximate", sampled.collect)
if "services.updates" in missing:
    for change in ("DELETE FROM t WHERE id = 1", "UPDATE t SET id = 3 WHERE id = 1"):
        refused(bf.QueryError, "services/updates", lambda: session.sql(change))
if "services.external_tables" in missing:
    made = "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'e.csv'"
    refused(bf.QueryError, "services/external_tables", lambda: session.sql(made))
if "services.pages" in missing:
    assert frame.trace._repr_html_() is None
    refused(bf.OptionError, "services/pages", frame.trace.to_html)
if "models.services.joint_prompts" in missing and "openai" in BACK_ENDS:
    address = "openai:m@http://127.0.0.1:1/v1"
    refused(bf.OptionError, "joint_prompts", lambda: bf.connect(address, rows_per_prompt=4))
try:
    from blendfusion.apps.cli.main import main
except ModuleNotFoundError:
    assert "apps.cli" in missing
else:
    assert main(["query", "SELECT 1 AS one", "--cache", "off"]) == 0
"""


def test_the_core_works_without_services(left_out: list[str], tmp_path: Path) -> None:
    package_without(left_out, tmp_path)
    missing = [folder.removeprefix("engine/").replace("/", ".") for folder in left_out]
    core = [f"blendfusion.{module}".rstrip(".") for module in CORE if module not in SOCKETS]
    command = [sys.executable, "-c", CHECK, str(tmp_path), ",".join(missing), *core]
    done = run(tmp_path, command, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "apps.cli" in missing or "one" in done.stdout


CORE_TESTS = (
    *(
        "tests/engine/datafusion/substrait/test_round_trip.py",
        "tests/udfs/declare/test_bind.py",
        "tests/engine/test_frame.py",
    ),
    *("tests/engine/run/execution/test_early_stop.py", "tests/engine/test_errors.py"),
)
PLANS = "tests/planner/test_golden_plans.py::test_plans_look_like_their_page"
NOT_IN_PLANS = frozenset(
    [
        *("udfs/services/columns", "engine/services/estimates"),
        *("engine/services/decided_groups", "models/services/prompts"),
    ]
)
"""The services whose functions the pages of plans ask, or whose numbers they show, and those that
these need."""


@pytest.mark.long
def test_the_tests_of_the_core_pass_without_services(left_out: list[str], tmp_path: Path) -> None:
    check_without(left_out, CORE_TESTS, tmp_path)


@pytest.mark.long
def test_plans_look_alike_without_services(left_out_of_plans: list[str], tmp_path: Path) -> None:
    check_without(left_out_of_plans, [PLANS], tmp_path)


def check_without(folders: Collection[str], tests: Collection[str], place: Path) -> None:
    package_without(folders, place)
    marks = "not long and not slow and not local"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", marks, "-p", "no:cacheprovider"]
    done = run(place, [*command, *tests], ROOT)
    assert done.returncode == 0, done.stdout[-3000:]


def run(place: Path, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The end of a process for which ``place`` has the package."""
    environment = {**os.environ, "PYTHONPATH": str(place), "BLENDFUSION_PROGRESS": "off"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
