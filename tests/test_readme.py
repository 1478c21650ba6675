"""The sessions in README.md are real: run again, they print what it shows.

``--update-golden`` writes what came out into README.md.
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

from blendfusion.cli import main
from blendfusion.models.packaged import packaged_weights

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

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
    """``text`` without what differs from run to run: seconds."""
    return re.sub(r"(?<=seconds=)\d+\.\d\d|\b\d+\.\d\d(?= s\b)", "0.00", text)


def check(
    language: str, prompt: str, goes_on: Callable[[str, str], bool], run: Run, *, update: bool
) -> None:
    """Carry out every block of a language, in order, and compare (or write) what it prints."""
    text = README.read_text(encoding="utf-8")
    shown = blocks(text, language)
    assert shown, f"README.md has no {language} block"
    for block in shown:
        new = completed(block, prompt, goes_on, run)
        if update and steady(new) != steady(block):
            text = text.replace(f"```{language}\n{block}```", f"```{language}\n{new}```")
        elif not update:
            assert steady(new) == steady(block)
    if update:
        README.write_text(text, encoding="utf-8")


def test_python_sessions_print_what_the_readme_shows(update_golden: bool) -> None:
    names: dict[str, Any] = {"__name__": "__readme__"}

    def run(given: str) -> str:
        source = "\n".join(line[4:] for line in given.split("\n"))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile(source + "\n", "README.md", "single", dont_inherit=True), names)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        return out.getvalue()

    check("python", ">>> ", lambda line, after: after.startswith("..."), run, update=update_golden)


@pytest.mark.local
@pytest.mark.skipif(
    packaged_weights() is None or importlib.util.find_spec("llama_cpp") is None,
    reason="the packaged model is not installed",
)
def test_commands_print_what_the_readme_shows(
    update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("BLENDFUSION_MODEL", raising=False)

    def run(given: str) -> str:
        command, *arguments = shlex.split(given.removeprefix("$ ").replace("\\\n", " "))
        assert command == "blendfusion"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(arguments) == 0
        return out.getvalue()

    check("console", "$ ", lambda line, after: line.endswith("\\"), run, update=update_golden)
