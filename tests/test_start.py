"""Opening a session imports what it needs: no planner, no service's code and no library of one."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from module_imports import FILES

from blendfusion.language.query_text.text_rules import AFTER_ERRORS, CASTS, CHECKS, QUERIES, SOURCES
from blendfusion.public_names import MODULES

CONNECT = "import blendfusion as bf; bf.connect(bf.ScriptedModel(lambda call: True), cache=None)"
PLAIN = "; bf.connect(None, cache=None).sql('SELECT 1 AS one').to_pylist()"
LOADED = (
    "import datafusion, pyarrow, sys; before = {*sys.modules}; {}; print(*{*sys.modules} - before)"
)

AT_CONNECT = """
    apps apps.* budget datafusion datafusion.arrow_layouts datafusion.arrow_types datafusion.context
    datafusion.debug_logs datafusion.method_gate datafusion.process_guard datafusion.schema_metadata
    datafusion.unnamed_tables entry_points errors files files.foreign_tables models.* options
    planner planner.ir planner.ir.opaque_names prepare prepare.frame_sources prepare.verbs
    prepare.verbs.placement public_names redaction run run.engine run.hooks services
    services.ask.state services.dialects.suql services.dialects.suql.open_during
    services.session_methods services.views.registered_tables session types udfs
    udfs.ask udfs.ask.ledger udfs.ask.named_results udfs.register
    udfs.register.parse_money udfs.services
""".split()
"""What ``connect`` with a model object may import of the package; ``x.*`` stands for all below x.
Of services it imports the declarations and the methods of sessions."""
LIBRARIES = "from opentelemetry import trace"
"""The libraries that it may import, beside DataFusion and Arrow, with what these import."""


def imported(program: str) -> set[str]:
    """The modules that a program imports in addition to DataFusion and Arrow."""
    command = [sys.executable, "-c", LOADED.replace("{}", program, 1)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_connect_imports_no_planner_and_no_service() -> None:
    modules = {m.removeprefix("blendfusion.") for m in imported(CONNECT) if "blendfusion." in m}
    wide = tuple(name.removesuffix("*") for name in AT_CONNECT if name.endswith(".*"))
    own = {m for m in FILES if m.startswith("services.")}
    methods = {m for m in own if m.count(".") == 1 or m.endswith(".session")}
    found = {m for m in modules - {*AT_CONNECT, *methods, "models"} if not m.startswith(wide)}
    assert found == set()
    assert not {
        m
        for m in modules
        if m.startswith(("models.services.http.", "models.services.llama.", "apps.cli."))
    }


@pytest.mark.parametrize("program", [CONNECT, CONNECT + PLAIN])
def test_libraries_are_imported_where_they_are_used(program: str) -> None:
    packages = {module.partition(".")[0] for module in imported(program)}
    outside = packages - {*sys.stdlib_module_names} - {"blendfusion"}
    if program == CONNECT:
        allowed = {module.partition(".")[0] for module in imported(LIBRARIES)}
        assert outside <= {*allowed, "opentelemetry"}
    assert not outside & {"httpx", "llguidance", "prompt_toolkit", "llama_cpp", "lance"}


def test_a_query_imports_no_rule_whose_words_it_lacks_and_no_function() -> None:
    modules = imported(CONNECT + PLAIN)
    rules = {rule.module for rule in (*CHECKS, *SOURCES, *QUERIES, CASTS, *AFTER_ERRORS)}
    assert len(rules) == 20
    assert not modules & rules
    assert "blendfusion.language.query_text.type_calls" not in modules
    assert not {module for module in modules if module.startswith("blendfusion.udfs.functions.")}


COLLECTED = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 50_000, *(
    after["collections"] - was["collections"] for after, was in zip(gc.get_stats(), before))))
from blendfusion.apps.cli.main import main
before = gc.get_stats()
main(["query", "SELECT 1", "--cache", "off"])
"""


def test_a_short_command_looks_through_no_garbage_and_its_end_through_no_object() -> None:
    command = [sys.executable, "-c", COLLECTED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True 0 0 0"


def test_public_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(FILES["public_names"].read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module, name.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
        if name.name not in ("*", "python_functions")
    }
    assert seen == {(module, name) for module, names in MODULES.items() for name in names.split()}
