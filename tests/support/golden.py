"""Pages of cases: ``# title``, the input, ``----``, what comes out; completed by
--update-golden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    given: str
    expected: str

    def text(self) -> str:
        return f"# {self.title}\n{self.given}\n----\n{self.expected}\n"


def pages(folder: str) -> list[Path]:
    """The pages of a folder below tests/golden."""
    return sorted((FOLDER / folder).glob("*.txt"))


def cases(page: Path) -> list[Case]:
    """The cases of a page, in order."""
    found = []
    for part in ("\n" + page.read_text("utf-8")).split("\n# ")[1:]:
        title, _, rest = part.partition("\n")
        given, _, expected = rest.partition("\n----")
        found.append(Case(title.strip(), given.strip(), expected.strip("\n")))
    return found


def check(
    page: Path, comes_out: Callable[[str], str], *, update: bool, first: bool = False
) -> None:
    """Compare every case of ``page`` with what comes out of its input, or write it down. ``first``:
    the first difference is enough."""
    wanted = cases(page)
    for case in wanted if first else ():
        _compare([case], [Case(case.title, case.given, _trimmed(comes_out(case.given)))])
    if first:
        return
    got = [Case(c.title, c.given, _trimmed(comes_out(c.given))) for c in wanted]
    if update:
        page.write_text("\n".join(case.text() for case in got), "utf-8")
        return
    _compare(wanted, got)


def _compare(wanted: list[Case], got: list[Case]) -> None:
    lines = ["\n".join(case.text() for case in each).splitlines() for each in (wanted, got)]
    difference = "\n".join(unified_diff(*lines, "the page", "what comes out", lineterm="", n=1))
    assert not difference, difference


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
