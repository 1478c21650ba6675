"""The generated pages of the site: every function, option of a call and public name has its place."""

from __future__ import annotations

import importlib.util
import itertools
import re
import subprocess
import sys
import unicodedata
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chromium import browser
from clicks import Person
from page_checks import page_faults

import blendfusion as bf
from blendfusion.services.dialects.decisions.systems import DECISIONS
from blendfusion.services.dialects.dispatch import WAREHOUSES
from blendfusion.services.dialects.functions.systems import SYSTEMS
from blendfusion.services.dialects.warehouses.calls import Warehouse
from blendfusion.session import INTERNAL
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions.declarations import INGREDIENTS

ROOT = Path(__file__).parents[1]


def module(name: str) -> Any:
    """A module of the folder ``site``."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


PAGES: dict[str, str] = dict(module("pages").pages())
PICTURES = module("pictures")


@pytest.mark.parametrize("ingredient", INGREDIENTS, ids=lambda i: i.name)
def test_a_function_has_a_page_with_its_options(ingredient: Ingredient) -> None:
    page = PAGES[f"functions/{ingredient.name}.md"]
    assert ingredient.signature in page
    for option in ingredient.options:
        assert f"| `{option.name}` |" in page
    assert f"({ingredient.name}.md)" in PAGES["functions/index.md"]


@pytest.fixture(scope="module")
def session() -> bf.Session:
    """A session over the tables of the examples of functions."""
    made = bf.connect(bf.ScriptedModel(lambda call: "a"), cache=None)
    for name in ("reviews", "products", "tickets"):
        made.register_file(ROOT / "examples" / f"{name}.csv")
    made.from_arrow(pa.table({"photo": pa.array([b""])}), "photos")
    made.from_arrow(pa.table({"recording": pa.array([b""])}), "calls")
    return made


@pytest.mark.parametrize("ingredient", INGREDIENTS, ids=lambda i: i.name)
def test_a_function_has_an_example_that_is_planned(
    ingredient: Ingredient, session: bf.Session
) -> None:
    assert f"{ingredient.name}(" in ingredient.example
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = session.sql(ingredient.example).explain_text()
    assert "ask " in asked or "embed" in asked
    shown = " ".join(PAGES[f"functions/{ingredient.name}.md"].split())
    assert ingredient.example in shown


def test_a_link_names_the_page_that_it_leads_to() -> None:
    shown = module("pages").on_page_markdown(
        "See [docs/install.md](install.md) and [search.md](search.md#a)."
    )
    assert shown == "See [Installing](install.md) and [Search](search.md#a)."


def test_the_tables_of_options_and_fields_come_from_the_code() -> None:
    hooks = module("pages")
    found = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        names = re.findall(r"^<!-- table: (.+) -->$", text, re.MULTILINE)
        shown = hooks.on_page_markdown(text)
        assert all(hooks.TABLES[name]() in shown for name in names)
        assert "<!-- table" not in shown
        found += names
    assert sorted(found) == sorted(hooks.TABLES)
    assert f"| `read_only` | `{False}` |" in hooks.TABLES["options"]()
    assert "| `confidence` | The minimum probability" in hooks.TABLES["options of calls"]()


def slug(heading: str) -> str:
    """The anchor that the site gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def headings() -> set[str]:
    """``page.md#anchor`` of every heading below the title of a page of docs/."""
    hooks = module("pages")
    found = set()
    for page in (ROOT / "docs").glob("*.md"):
        text = hooks.on_page_markdown(page.read_text("utf-8"))
        text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        found |= {f"{page.name}#{slug(h)}" for h in re.findall(r"^##+ (.+)$", text, re.MULTILINE)}
    return found


def test_a_heading_that_was_there_leads_somewhere(update_golden: bool) -> None:
    """``site/headings.txt`` has all headings that there ever were, ``site/moved.txt`` the places of
    those that are gone."""
    listed = ROOT / "site" / "headings.txt"
    now, moved = headings(), module("pages").moved()
    former = {*listed.read_text("utf-8").split()}
    if update_golden:
        listed.write_text("".join(f"{name}\n" for name in sorted(former | now)), "utf-8")
    assert now <= former or update_golden, "pytest tests/test_site.py --update-golden"
    known = {*now, *moved}
    lost = {name for name in former if not {name, name.partition("#")[0] + "#*"} & known}
    assert lost == set(), "site/moved.txt says where the text of a heading is now"
    assert not {*moved} & now
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert {place for place in moved.values() if place not in pages | now} == set()


def test_readers_of_screens_hear_names_and_no_empty_heads() -> None:
    hooks = module("pages")
    head = '<th></th><th style="text-align: right;"></th><th>a</th>'
    assert hooks.on_page_content(head) == "<td></td><td></td><th>a</th>"
    assert 'aria-label="Search' in hooks.on_post_page('<div role="dialog">')


@pytest.mark.parametrize("warehouse", [*WAREHOUSES, *DECISIONS], ids=lambda w: w.name)
def test_a_warehouse_has_a_page_of_its_declarations(warehouse: Warehouse) -> None:
    page = PAGES[f"dialects/{warehouse.name}.md"]
    for function in warehouse.functions:
        assert f"| `{function.signature}` | `{function.becomes}` |" in page
    for name in warehouse.refused:
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("dialect", SYSTEMS)
def test_a_dialect_has_a_page_of_its_functions(dialect: str) -> None:
    page = PAGES[f"dialects/{dialect}.md"]
    for listed in SYSTEMS[dialect].spellings.values():
        for spelling in listed:
            assert f"| `{spelling.signature}` |" in page
    for name in (*SYSTEMS[dialect].refused, *SYSTEMS[dialect].casts):
        assert f"| `{name}` |" in page


def test_every_public_name_is_in_the_reference() -> None:
    functions = {ingredient.name for ingredient in INGREDIENTS}
    text = "".join(page for path, page in PAGES.items() if path.startswith("api"))
    missing = [n for n in bf.__all__ if n not in functions and f"## bf.{n}\n" not in text]
    assert missing == []
    methods = PAGES["api/Session.md"]
    assert "### Session.register_file" in methods
    assert "Session.ingredient_names" not in methods
    own, inherited = methods.split("## From DataFusion")
    assert "`add_physical_optimizer_rule`" in inherited
    assert "Session.add_physical_optimizer_rule" not in own
    for name in ("sql", "attach", "index", "evaluate", "from_pandas", "register_lance"):
        assert f"### Session.{name}\n" in own
    assert {"sql", "register_file", "model_names"} <= set(dir(bf.connect(None)))
    assert not INTERNAL & set(dir(bf.connect(None)))


def test_no_generated_page_is_endless() -> None:
    """A screen has some 42 lines of 100 characters."""

    def lines(text: str) -> int:
        return sum(1 + len(line) // 100 for line in text.splitlines() if line)

    assert {path: lines(text) // 42 for path, text in PAGES.items() if lines(text) > 15 * 42} == {}


@pytest.mark.parametrize("name", sorted(PICTURES.PICTURES))
def test_a_picture_shows_what_the_code_prints(name: str, update_golden: bool) -> None:
    file = PICTURES.FOLDER / name
    drawn = PICTURES.PICTURES[name]()
    if update_golden:
        file.write_text(drawn, "utf-8")
    assert file.read_text("utf-8") == drawn
    assert len(drawn) < 10_000
    assert re.findall(r"(?:https?:|url\(|@import)[^\"]*", drawn) == ["http://www.w3.org/2000/svg"]
    assert f"docs/pictures/{name}" in (ROOT / "README.md").read_text("utf-8")


AUDITED = ("index.html", "tutorial.html", "functions/llm_filter.html", "api/Session.html")


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "llm_filter" in (tmp_path / "functions" / "llm_filter.html").read_text("utf-8")
    start = (tmp_path / "index.html").read_text("utf-8")
    assert "site.css" in start
    assert f"BlendFusion {version('blendfusion')}</title>" in start
    assert re.findall(r"<(?:script|link|img)[^>]*https?:[^>]*", start) == []
    if browser() is None:
        return
    for page, scheme in itertools.product(AUDITED, ("light", "dark")):
        with Person((tmp_path / page).as_uri(), scheme=scheme) as person:
            person.waits("document.readyState === 'complete'")
            assert page_faults(person, (scheme,)) == {}, page
    with Person((tmp_path / "guide.html").as_uri() + "#guarantees", 1300, 800) as person:
        person.waits("location.pathname.endsWith('/semantics.html')")
    function = (tmp_path / "functions" / "llm_filter.html").as_uri()
    with Person(function, 420, 860) as person:
        name = "document.querySelector('td:first-child code')"
        person.waits(f"document.readyState === 'complete' && {name}")
        height = person.of(f"{name}.getBoundingClientRect().height")
        assert height < 24, "the name of an option stays whole"
    with Person(function, 1300, 800) as person:  # from the disk, without a server
        field = "document.querySelector('.md-search__input')"
        person.waits(f"document.readyState === 'complete' && {field}.offsetWidth")
        person.of(
            f"{field}.focus(), {field}.value = 'lancedb', {field}.dispatchEvent(new Event('input'))"
        )
        person.waits(
            "document.querySelector('.md-search-result').innerText.includes('A LanceDB database')"
        )
