"""What the start of a program imports: counted, for a time would depend on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "datafusion",
    "pyarrow",
    "numpy",
    "pandas",
    "polars",
    "llama_cpp",
    "sqlglot",
    "aiohttp",
    "yarl",
    "msgspec",
    "tenacity",
    "rich",
}


def imported(code: str) -> set[str]:
    """The modules that ``code`` imports in a process of its own, beyond those of Python itself."""
    end = "import sys\nprint('\\n', *sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", f"{code}\n{end}"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    names = run.stderr.split()
    return {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}


def of_command(*argv: str) -> str:
    return f"from blendfusion.apps.cli.main import main\ntry: main({list(argv)})\nexcept SystemExit: pass"


@pytest.mark.parametrize(
    "code",
    ["import blendfusion", of_command("--help"), of_command("--version"), of_command("nonsense")],
    ids=["import", "--help", "--version", "no command"],
)
def test_the_start_imports_a_dozen_modules(code: str) -> None:
    found = imported(code)
    assert not {name.partition(".")[0] for name in found} & HEAVY
    assert len({name for name in found if name.startswith("blendfusion")}) <= 13


def test_a_command_imports_no_other_command() -> None:
    found = imported(of_command("cache", "stats", "--help"))
    commands = {name for name in found if name.startswith("blendfusion.apps.cli.")}
    assert commands == {
        f"blendfusion.apps.cli.{name}" for name in ("main", "termination", "cache", "jsonl")
    }


def test_every_name_is_there_after_a_bare_import() -> None:
    code = (
        "import blendfusion as bf, sys\n"
        "before = set(sys.modules)\n"
        "assert bf.connect.__name__ == 'connect' and bf.llm_filter and bf.types.Request\n"
        "assert {*dir(bf)} == {*bf.__all__} and all(hasattr(bf, name) for name in dir(bf))\n"
        "import blendfusion.entry_points\n"
        "from blendfusion import *\n"
        "assert connect is bf.connect\n"
        "try: bf.conect\n"
        "except AttributeError as error: assert error.name == 'conect' and error.obj is bf\n"
        "else: raise AssertionError"
    )
    assert "datafusion" in imported(code)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_can_ask_even_if_their_library_is_imported_later(library: str) -> None:
    code = (
        f"import blendfusion, {library}, importlib.resources\n"
        f"assert {library}.DataFrame({{'a': [1]}}).llm.map\n"
        f"assert importlib.resources.files({library}).is_dir()"
    )
    assert library in imported(code)


def test_no_public_name_is_the_name_of_a_folder_or_module() -> None:
    code = (
        "import blendfusion as bf, pkgutil\n"
        "import blendfusion.language.query_text.tokenizer as tokenizer\n"
        "assert tokenizer.__name__ == 'blendfusion.language.query_text.tokenizer'\n"
        "modules = {module.name for module in pkgutil.iter_modules(bf.__path__)}\n"
        "assert {*bf.__all__} & modules == {'dbapi'}\n"  # the name is that of its module
    )
    assert "blendfusion.language.query_text" in imported(code)
