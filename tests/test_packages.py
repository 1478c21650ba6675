"""Packages form a line: each imports only those before it, at run time and for types alike.

No module below ``Frame`` and ``Session`` names them: ``run.engine`` and ``run.hooks`` declare what
they are for such modules, and name records of packages behind them, under TYPE_CHECKING.
"""

from __future__ import annotations

import ast

import pytest
from module_imports import FILES, ROOT, imports

PAGE = ROOT / "CONTRIBUTING.md"
ABOVE, BELOW = "<!-- packages, from tests/test_packages.py -->\n", "<!-- to here -->\n"

ORDER = """
    types redaction native
    errors
    budget options models.constraints
    models.protocol run.observe
    models.guarantees models.prompts models.stores models.vectors
    models.scores models.wrappers
    models models.services models.services.shared_stores models.stores.store_names
    models.registry models.embedders
    models.services.prompts models.services.verbalizer models.services.weights models.services.http
    models.services.joint_prompts
    models.services.batch models.services.decisions models.services.llama models.services.outlines
    models.services.encoder_heads models.services.speech models.services.tuning
    udfs.text udfs.declare
    udfs udfs.services
    udfs.ask udfs.services.columns udfs.services.comparisons udfs.services.texts udfs.functions udfs.evaluate udfs.joins udfs.register
    planner.ir planner.run_switches
    planner.explain planner.stages planner.needs planner.rules planner
    places services
    datafusion.arrow_types datafusion.substrait files.united_types
    datafusion
    language language.query_text
    language.doubts
    files
    run.engine run.hooks
    language.opaque
    run run.execution
    run.reports
    run.frame_run
    prepare.result_names prepare.verbs
    services.frame_methods
    frame
    prepare.frame_sources
    prepare
    services.session_methods
    session
    entry_points
    services.dialects.common services.dialects.functions
    services.dialects.mysql services.dialects.blendsql services.dialects.warehouses
    services.dialects.decisions
    services.dialects.suql services.dialects
    services.decided_groups services.external_tables services.scans services.spreadsheets services.subqueries services.short_forms services.letter_case services.updates
    services.documents services.search services.sources services.lakes services.meanings services.usage services.cluster services.estimates
    services.pages services.replay services.views services.independence services.decide
    services.plain_functions services.approximate services.evaluate services.dbapi services.mcp services.server
    services.ask.schema services.ask.grammar services.ask
    apps
    apps.notebooks
    services.names
    dbapi
    public_names
    blendfusion
    apps.ui
    apps.cli
    __main__
"""
"""From the bottom to the top. Single modules of engine/ stand for themselves; ``blendfusion`` is
``engine/__init__.py``. A package may import what stands before it, also in its own line."""

PLACES = {name: place for place, name in enumerate(ORDER.split())}
DECLARATIONS = ("run.engine", "run.hooks")
SOCKETS = ("services.session_methods", "services.frame_methods")
"""The modules that join the methods of all services: by name for type checkers, at run time as they
are found."""


def package_of(module: str) -> str:
    """The package of a module, or the module itself where it stands in engine/ or is a package."""
    if module in PLACES:
        return module
    return module.rpartition(".")[0] or ("blendfusion" if module in ("", "__main__") else module)


def backward(module: str, text: str) -> list[str]:
    """The imports of a module that do not go to a package before its own."""
    own, found = package_of(module), []
    for target, line, types_only in imports(ast.parse(text)):
        other = package_of(target)
        if other == own or PLACES[other] < PLACES[own]:
            continue
        if not (types_only and own in (*DECLARATIONS, *SOCKETS)):
            found.append(f"{module}:{line}: {own} imports {other}, which stands behind it in ORDER")
    return found


def test_every_package_has_a_place() -> None:
    assert {package_of(module) for module in FILES} == {*PLACES}


@pytest.mark.parametrize("module", FILES)
def test_packages_import_those_before_them(module: str) -> None:
    assert backward(module, FILES[module].read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("module", "text", "wrong"),
    [
        ("models.services.http.model", "from blendfusion.models.services.llama import model", True),
        (
            "models.services.llama.model",
            "from blendfusion.models.services.http import model",
            False,
        ),
        (
            "language.query_text.nulls_last",
            "def f():\n    from blendfusion.session import Session",
            True,
        ),
        (
            "language.query_text.nulls_last",
            "if TYPE_CHECKING:\n    from blendfusion.prepare import query",
            True,
        ),
        (
            "language.query_text.nulls_last",
            "if TYPE_CHECKING:\n    from blendfusion.session import Session",
            True,
        ),
        (
            "run.hooks",
            "if TYPE_CHECKING:\n    from blendfusion.run.reports.trace import Trace",
            False,
        ),
    ],
)
def test_this_test_sees_what_it_looks_for(module: str, text: str, wrong: bool) -> None:
    assert bool(backward(module, text)) == wrong


def table() -> str:
    """The packages from the top to the bottom, each with the first sentence of its docstring."""
    rows = []
    for name in reversed(PLACES):
        file = FILES["" if name == "blendfusion" else name]
        documented = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        first = " ".join(documented.split("\n\n")[0].split())
        folder = file.parent if file.name == "__init__.py" else file
        path = folder.relative_to(ROOT).as_posix()
        rows.append(f"| [`{path}`]({path}) | {first.replace('|', chr(92) + '|')} |\n")
    return f"\n| package | responsibility |\n|---|---|\n{''.join(rows)}\n"


def test_the_architecture_page_lists_the_packages(update_golden: bool) -> None:
    head, rest = PAGE.read_text("utf-8").split(ABOVE)
    old, tail = rest.split(BELOW)
    if update_golden:
        PAGE.write_text(f"{head}{ABOVE}{table()}{BELOW}{tail}", "utf-8")
    else:
        assert old == table(), "pytest tests/test_packages.py --update-golden"
