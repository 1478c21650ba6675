"""Prose and names, as far as they can be checked: widths, links, words."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from participles import participles

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
MARKDOWN_WIDTH = 120


def prose(text: str) -> list[str]:
    """The lines of a page outside of fences, tables and headings."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in text.splitlines() if not line.startswith(("|", "#", "    "))]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "benchmarks" / "README.md", *PAGES], ids=str)
def test_every_anchor_that_a_page_links_to_is_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
        linked = (page.parent / target) if target else page
        assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_every_benchmark_stands_in_their_table() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(bench_\w+\.py)`", text, re.MULTILINE))
    assert listed == {file.name for file in (ROOT / "benchmarks").glob("bench_*.py")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_is_wrapped_at_one_width(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    long = [line for line in prose(text) if len(line) > MARKDOWN_WIDTH]
    assert long == []


def test_the_documentation_has_at_most_45_000_words() -> None:
    """Tables that the code has, and measurements, lie elsewhere: in the site and in benchmarks/."""
    assert sum(len(page.read_text("utf-8").split()) for page in DOCS) <= 45_000


PACKAGES = ["engine", "planner", "udfs", "models", "native"]
CODE = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
CODE_WIDTH = 100


def named(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def docs_of(tree: ast.AST) -> Iterator[ast.Constant]:
    """The docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield text


def prose_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of docstrings and comments, without examples and drawings."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for doc in docs_of(ast.parse(text)):
        example = False
        for number in range(doc.lineno, (doc.end_lineno or doc.lineno) + 1):
            line = lines[number - 1].strip()
            example = line.startswith(">>>") or (example and bool(line))
            if not example and not line.startswith(("├", "└", "|", "blendfusion ")):
                yield number, lines[number - 1]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
            yield token.start[0], token.line.rstrip("\n")


@pytest.mark.parametrize("file", CODE, ids=named)
def test_docstrings_and_comments_have_the_width_of_the_code(file: Path) -> None:
    long = [number for number, line in prose_lines(file) if len(line) > CODE_WIDTH]
    assert long == []


PRIVATE_WORDS = frozenset(["said", "told", "asked", "put", "anew", "dear", "lost"])
PUBLIC = {
    "engine/services/independence/check.py": {"asked"},
    "engine/services/server/flight.py": {"do_put"},
}
"""Words of the public API, and of pyarrow's, all the same."""


def introduced(tree: ast.AST) -> Iterator[str]:
    """The names that a module defines: variables, parameters, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name


@pytest.mark.parametrize("file", CODE, ids=named)
def test_every_page_that_a_text_of_the_code_names_is_there(file: Path) -> None:
    """Errors, hints and docstrings name pages of docs/ and benchmarks/, and headings of them."""
    for text in re.findall(
        r"(?<![\w/])((?:docs|benchmarks)/\w+\.md(?:#[\w-]+)?)", file.read_text("utf-8")
    ):
        page, _, anchor = text.partition("#")
        assert not anchor or anchor in anchors((ROOT / page).read_text("utf-8")), text
        assert (ROOT / page).exists(), text


@pytest.mark.parametrize("file", CODE, ids=named)
def test_names_are_not_of_a_private_vocabulary(file: Path) -> None:
    names = set(introduced(ast.parse(file.read_text(encoding="utf-8")))) - PUBLIC.get(
        named(file), set()
    )
    assert [name for name in names if PRIVATE_WORDS & set(name.lower().split("_"))] == []


NO_SUBJECT = ("Of ", "That ", "Those ", "The same ", "What ", "Who ", "Is told ", "Meanwhile ")


@pytest.mark.parametrize("file", CODE, ids=named)
def test_docstrings_begin_with_a_subject_or_a_verb(file: Path) -> None:
    docs = docs_of(ast.parse(file.read_text(encoding="utf-8")))
    assert [doc.value for doc in docs if str(doc.value).strip().startswith(NO_SUBJECT)] == []


NO_PARTICIPLES = set(
    "decoding during embedding indexing labelling matching nesting packing pairing pruning quoting ranking "
    "meaning reading recording sampling scoring testing".split()
)
"""Words in -ing that are no participles."""


def test_no_module_is_named_by_a_participle() -> None:
    last = {file: file.stem.split("_")[-1] for file in CODE if file.stem != "unsupported"}
    participles = {
        file.stem
        for file, word in last.items()
        if word.endswith("ed") or (word.endswith("ing") and word not in NO_PARTICIPLES)
    }
    assert participles <= {"llm_embed", "need"}
    assert not {"known", "asker", "meter", "told", "said", "kept", "held"} & set(last.values())


def test_few_names_are_bare_participles() -> None:
    assert len(list(participles())) <= 4


def test_the_glossary_defines_the_nouns_that_pages_use() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    nouns = re.findall(r"\*\*(\w+)\*\*", glossary)
    assert len(nouns) >= 15
    others = "".join(page.read_text("utf-8") for page in PAGES if page.name != "glossary.md")
    assert [noun for noun in nouns if not re.search(rf"\b{noun}", others, re.IGNORECASE)] == []
