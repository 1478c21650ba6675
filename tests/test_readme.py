"""The sessions in README.md and docs/ are real: run again, they print what is shown.

``--update-golden`` writes what came out into the page.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blendfusion.apps.cli.main import main
from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.udfs.register import user_functions as define

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

Run = Callable[[str], str]
"""Carries out one input of a session; what it printed."""


def blocks(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def completed(block: str, prompt: str, goes_on: Callable[[str, str], bool], run: Run) -> str:
    """``block`` with the output of every input written anew.

    An input begins with ``prompt``; ``goes_on(line, next)`` says whether it reaches the next line.
    """
    lines: list[str] = []
    given: list[str] = []
    reading = False

    def carry_out() -> None:
        if given:
            printed = run("\n".join(given)).splitlines()
            lines.extend([*given, *(line.rstrip() for line in printed)])

    for line in block.splitlines():
        if line.startswith(prompt):
            carry_out()
            given, reading = [line], True
        elif reading and goes_on(given[-1], line):
            given.append(line)
        else:
            reading = False
    carry_out()
    return "\n".join(lines) + "\n"


def steady(text: str) -> str:
    """``text`` without what differs from run to run: times."""
    return re.sub(r"(?<=seconds=)\d+\.\d\d|\b\d+\.\d+(?= m?s\b)", "0.0", text)


def check(
    page: Path,
    language: str,
    prompt: str,
    goes_on: Callable[[str, str], bool],
    run: Run,
    *,
    update: bool,
) -> None:
    """Carry out every block of a language, in order, and compare (or write) what it prints."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(text, language):
        assert prompt in block, "not a session: fence it as py or text"
        new = completed(block, prompt, goes_on, run)
        if update and steady(new) != steady(block):
            text = text.replace(f"```{language}\n{block}```", f"```{language}\n{new}```")
        elif not update:
            assert steady(new) == steady(block)
    if update:
        page.write_text(text, encoding="utf-8")


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page.read_text(encoding="utf-8"), language)]


def python_of(given: str) -> str:
    return "\n".join(line[4:] for line in given.split("\n")) + "\n"


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_sessions_print_what_is_shown(
    page: Path, update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An ingredient that a page defines is known to the process: other tests shall not meet it.
    monkeypatch.setattr(define, "_defined", dict(define._defined))
    names: dict[str, Any] = {"__name__": "__session__"}

    def run(given: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile(python_of(given), page.name, "single", dont_inherit=True), names)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        return out.getvalue()

    def goes_on(line: str, after: str) -> bool:
        return after.startswith("...")

    check(page, "python", ">>> ", goes_on, run, update=update_golden)


@pytest.mark.long
@pytest.mark.local
@pytest.mark.skipif(
    packaged_weights() is None or importlib.util.find_spec("llama_cpp") is None,
    reason="the packaged model is not installed",
)
@pytest.mark.usefixtures("no_model_in_memory")
@pytest.mark.parametrize("page", pages_with("console"), ids=lambda page: page.name)
def test_commands_print_what_is_shown(
    page: Path, update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("BLENDFUSION_MODEL", raising=False)

    def run(given: str) -> str:
        command, *arguments = shlex.split(given.removeprefix("$ ").replace("\\\n", " "))
        assert command == "blendfusion"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(arguments) == 0
        return out.getvalue()

    def goes_on(line: str, after: str) -> bool:
        return line.endswith("\\")

    check(page, "console", "$ ", goes_on, run, update=update_golden)


def test_every_link_within_the_repository_leads_somewhere() -> None:
    dead = []
    for page in [*ROOT.glob("*.md"), *PAGES]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.name}: {target}")
    assert dead == []
