"""Pages of the site that come from the code: the README, a page per function and per warehouse's
dialect, the Python API."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import blendfusion as bf
from blendfusion.apps.cli.function_table import call_option_table
from blendfusion.apps.cli.option_table import option_table
from blendfusion.models.protocol.event_fields import FIELDS, LOGGERS, METRICS
from blendfusion.services.dialects.decisions.systems import DECISIONS
from blendfusion.services.dialects.dispatch import WAREHOUSES
from blendfusion.services.dialects.functions.call import System
from blendfusion.services.dialects.functions.systems import SYSTEMS
from blendfusion.services.dialects.warehouses.calls import Warehouse
from blendfusion.session import INTERNAL
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions.declarations import INGREDIENTS

_WIDTH = 88
_INTERNAL = {bf.Session: INTERNAL, bf.Frame: frozenset(["answered", "prepare", "running"])}
_LARGE = ("Session", "Frame")
_API = {
    "api.md": "Python: `import blendfusion as bf`",
    "api/models.md": "Models, embedders and stores of answers",
    "api/others.md": "Other classes and functions",
    "api/errors.md": "Errors and warnings",
}
_TASKS = {
    "session": "Queries, tables and models",
    "frame": "Results and plans",
    "prepare": "Tables from Python",
    "cluster": "Files as tables",
    "lakes": "Files as tables",
    "scans": "Files as tables",
    "documents": "Files as tables",
    "sources": "Databases",
    "search": "Search",
    "ask": "Questions in plain words",
    "evaluate": "Measured answers",
    "independence": "Measured answers",
    "approximate": "Error bars",
    "views": "Materialised views",
    "replay": "Recorded runs",
    "dialects": "Dialects",
    "usage": "Usage",
}
"""The task of methods, by the module or service that defines them."""
_FIRST = ("connect", "Session", "Frame", "Options", "Budget", "Price", "Estimate", "Trace")
"""The names that most programs use stand first in the reference, the others by the alphabet."""
ROOT = Path(__file__).parents[1]
_ABOVE = re.compile(r"\[([^\]]+)\]\(\.\./(?!#)[^)\s]*\)")

_PAGE = re.compile(r"\[(?:docs/)?(\w+\.md)\]\((\w+\.md[^)]*)\)")
_ELSEWHERE = re.compile(
    r"\[([^\]]+)\]\((?:LICENSE|[A-Z_]+\.md[^)]*|benchmarks/[^)]*|examples/[^)]*)\)"
)
"""Links of the README to what the site does not have."""


STYLE = """\
/* Names of functions and options stay whole. */
.md-typeset td:first-child code { white-space: nowrap; }
/* Lines of code, 100 characters or so, have room on a wide screen. */
.md-grid { max-width: 76rem; }
.md-typeset pre > code { font-size: 0.8em; }
/* Links are told by more than colour, and small texts have contrast. */
.md-typeset p a, .md-typeset li a, .md-typeset td a { text-decoration: underline; }
.md-typeset .headerlink { text-decoration: none; }
.md-copyright, .md-copyright a { color: #ffffffcc !important; }
.highlight .ow { color: inherit !important; }
.md-nav .md-nav__title:not([for="__drawer"]) { color: var(--md-default-fg-color) !important; }
[data-md-color-scheme="slate"] { --md-code-hl-number-color: #f0928a; --md-code-hl-constant-color: #b0a2f0; }
/* On a phone, the columns of a table share the screen. */
@media (max-width: 44em) {
  .md-typeset table:not([class]) { font-size: 0.6rem; }
  .md-typeset table:not([class]) :is(th, td) { min-width: 0; padding: 0.5em; }
  .md-typeset td:not(:first-child), .md-typeset td:not(:first-child) code {
    white-space: normal; overflow-wrap: anywhere; word-break: normal;
  }
}
"""


NAMES = "names.js"
NAMES_SCRIPT = """\
// Names for what the theme adds while a page is read: buttons of code, lists of the search.
const name = () => {
  document.querySelectorAll("nav.md-code__nav").forEach((one, at) => one.ariaLabel = `Code ${at + 1}`)
  document.querySelectorAll("nav.md-search__options").forEach(one => one.ariaLabel = "Options of the search")
  document.querySelectorAll("pre > code").forEach(one => one.tabIndex = 0)
}
name()
new MutationObserver(name).observe(document.body, { childList: true, subtree: true })
"""
MOVED = "moved.js"
MOVED_SCRIPT = """\
// Leads from a heading that moved to where it is now.
const lead = () => {
  const page = location.pathname.split("/").pop()
  const place = moved[page + location.hash] ?? moved[page + "#*"]
  if (place) location.replace(place)
}
lead()
addEventListener("hashchange", lead)
"""
WORKER = "iframe-worker.js"
WORKER_SCRIPT = """\
// A worker that runs in a frame: browsers start no other one for pages from a disk. The theme would
// load one from elsewhere.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise(done => {
        const script = frame.contentDocument.createElement("script")
        script.onload = done
        script.src = url
        frame.contentDocument.body.append(script)
      })
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
"""


def on_config(config: Any) -> Any:
    """The title names the version that the site describes; the navigation lists all functions."""
    config["site_name"] += f" {version('blendfusion')}"
    (reference,) = (part["Reference"] for part in config["nav"] if "Reference" in part)
    names = [f"functions/{ingredient.name}.md" for ingredient in INGREDIENTS]
    reference[0] = {"Functions by name": ["functions/index.md", *names]}
    pages = ["api.md", *(f"api/{name}.md" for name in _LARGE), *list(_API)[1:]]
    reference[reference.index({"Python": "api.md"})] = {"Python": pages}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages and their style."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "site.css", content=STYLE))
    files.append(File.generated(config, WORKER, content=WORKER_SCRIPT))
    files.append(File.generated(config, NAMES, content=NAMES_SCRIPT))
    places = {
        old.replace(".md", ".html"): new.replace(".md", ".html") for old, new in moved().items()
    }
    script = f"const moved = {json.dumps(places, indent=2)}\n{MOVED_SCRIPT}"
    files.append(File.generated(config, MOVED, content=script))
    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files


def moved() -> dict[str, str]:
    """Former headings of pages of docs/, ``guide.md#search``, and where their text is now."""
    lines = (ROOT / "site" / "moved.txt").read_text("utf-8").splitlines()
    return dict(line.split() for line in lines)


def _fields(head: str, meanings: Mapping[str, str]) -> Callable[[], str]:
    """The table of names and their meanings."""
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in meanings.items())
    return lambda: f"| {head} | meaning |\n|---|---|\n{rows}"


TABLES = {
    "options": option_table,
    "options of calls": call_option_table,
    "fields": _fields("field", FIELDS),
    "loggers": _fields("logger", {f"blendfusion.{name}": text for name, text in LOGGERS.items()}),
    "metrics": _fields("metric", METRICS),
}
"""Tables of pages of docs/ that the site makes of the code. The files say where the code is."""
_TABLE = re.compile(r"^<!-- table: (.+?) -->\n.*?^<!-- to here -->\n", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Tables that the code has come from it. Links to files of the repository that the site does not have become their text, and names of
    files the titles of their pages."""
    whole = _TABLE.sub(lambda found: TABLES[found[1]](), markdown)
    return _PAGE.sub(_titled, _ABOVE.sub(r"\1", whole))


def on_page_content(html: str, **_: Any) -> str:
    """An empty head of a column is a plain cell: readers of screens would name it."""
    return re.sub(r"<th(?: style=[^>]*)?></th>", "<td></td>", html)


def on_post_page(output: str, **_: Any) -> str:
    """The theme's search has a name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search the site"')


def _titled(link: re.Match[str]) -> str:
    """A link to a page of docs/ by its title."""
    first = (ROOT / "docs" / link[1]).read_text("utf-8").partition("\n")[0]
    return f"[{first.removeprefix('# ')}]({link[2]})"


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of each generated page: the README is the overview."""
    readme = (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    yield "overview.md", _ELSEWHERE.sub(r"\1", readme)
    rows = "".join(f"| [`{i.name}`]({i.name}.md) | {_cell(i.summary)} |\n" for i in INGREDIENTS)
    yield "functions/index.md", f"# Functions\n\n| function | question |\n|---|---|\n{rows}"
    for ingredient in INGREDIENTS:
        yield f"functions/{ingredient.name}.md", _function(ingredient)
    for warehouse in (*WAREHOUSES, *DECISIONS):
        yield f"dialects/{warehouse.name}.md", _warehouse(warehouse) + _functions(warehouse.system)
    for dialect in sorted({*SYSTEMS} - {warehouse.name for warehouse in WAREHOUSES}):
        head = f"# {SYSTEMS[dialect].title}\n\nThe SQL of `dialect='{dialect}'`.\n"
        yield f"dialects/{dialect}.md", head + _functions(SYSTEMS[dialect])
    yield from _api()


def _function(ingredient: Ingredient) -> str:
    """One function: what it answers, its options, and its form in Python."""
    options = "".join(
        f"| `{o.name}` | {_cell(o.doc)} | {_code(o.example)} |\n" for o in ingredient.options
    )
    table = f"## Options\n\n| option | meaning | examples |\n|---|---|---|\n{options}"
    python = getattr(bf, ingredient.name)
    return (
        f"# {ingredient.name}\n\n```sql\n{ingredient.signature}\n```\n\n"
        f"Question: {_cell(ingredient.summary)}. Result: {_cell(ingredient.result)}.\n\n"
        f"```sql\n{_lines(ingredient.example)}\n```\n\n"
        f"{table if options else ''}\n## In Python\n\n{_member(f'bf.{ingredient.name}', python)}"
    )


def _lines(query: str) -> str:
    """A query with its clauses on lines of their own."""
    return re.sub(r" (?=(?:FROM|WHERE|GROUP BY|ORDER BY|JOIN) (?![^()]*\)))", "\n", query)


def _warehouse(warehouse: Warehouse) -> str:
    """One dialect: what each function becomes, what may be read from its result, what has no effect
    and what has no translation."""
    called = "".join(
        f"| `{f.signature}` | `{f.becomes}` | {_names('.'.join(p) for p in f.fields)} "
        f"| {_names(sorted(f.ignored))} |\n"
        for f in warehouse.functions
    )
    refused = "".join(f"| `{name}` | {_cell(hint)} |\n" for name, hint in warehouse.refused.items())
    return (
        f"# {warehouse.title}\n\n"
        f"`session.sql(query, dialect='{warehouse.name}')` translates these functions; the "
        "[dialects' page](../dialects.md#snowflake-bigquery-and-databricks) says what differs.\n\n"
        "| function | BlendFusion | fields that may be read | no effect |\n|---|---|---|---|\n"
        f"{called}\n## Without a translation\n\n| function | instead |\n|---|---|\n{refused}"
    )


def _functions(system: System) -> str:
    """The functions and types of a system: what each is here, which are the same, and which have no
    translation."""
    spelled = ((s, s.write) for listed in system.spellings.values() for s in listed)
    rows = "".join(
        f"| `{s.signature}` | {_code_cell(write) if isinstance(write, str) else 'by its arguments'} |\n"
        for s, write in spelled
    )
    same = _names(sorted(name.upper() for name in system.same))
    refused = "".join(f"| `{name}` | {_cell(hint)} |\n" for name, hint in system.refused.items())
    casts = "".join(f"| `{theirs}` | `{ours}` |\n" for theirs, ours in system.casts.items())
    types = f"\n## Types\n\n| type | BlendFusion |\n|---|---|\n{casts}" if casts else ""
    alike = f"\nThese mean the same: {same}.\n" if same else ""
    return (
        f"\n## Other functions\n\n| function | BlendFusion |\n|---|---|\n{rows}{alike}{types}"
        f"\n## Other functions without a translation\n\n| function | instead |\n|---|---|\n{refused}"
    )


def _code_cell(code: str) -> str:
    return f"`{code.replace('|', chr(92) + '|')}`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _api() -> Iterator[tuple[str, str]]:
    """Every public name that is no function of SQL: the first ones on one page, the others by what
    they are. The classes of ``_LARGE`` have a page for their methods."""
    functions = {ingredient.name for ingredient in INGREDIENTS}
    parts = {page: [f"# {title}\n"] for page, title in _API.items()}
    others = sorted(set(bf.__all__) - functions - set(_FIRST), key=str.lower)
    for name in (*_FIRST, *others):
        value = getattr(bf, name)
        page = parts[_page(name, value)]
        page.append(f"## bf.{name}\n\n{_member(f'bf.{name}', value)}")
        if name in _LARGE:
            page.append(f"[The methods of {name}](api/{name}.md), by task.\n")
            yield f"api/{name}.md", _methods_by_task(name, value)
        elif inspect.isclass(value) and not issubclass(value, BaseException):
            page.extend(_member_part(name, *found) for found in _methods(value))
    for path, text in parts.items():
        yield path, "\n".join(text)


def _page(name: str, value: object) -> str:
    """The page of a public name."""
    if name in _FIRST:
        return "api.md"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "api/errors.md"
    is_model = str(getattr(value, "__module__", "")).startswith("blendfusion.models")
    return "api/models.md" if is_model else "api/others.md"


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class by the alphabet."""
    for member, method in sorted(vars(value).items()):
        is_public = not member.startswith("_") and member not in _INTERNAL.get(value, ())
        if is_public and inspect.isfunction(method):
            yield member, method


def _member_part(name: str, member: str, method: object) -> str:
    return f"### {name}.{member}\n\n{_member(f'{name}.{member}', method)}"


def _methods_by_task(name: str, value: type) -> str:
    """The methods of a class, BlendFusion's own by task, and behind them those of DataFusion."""
    tasks: dict[str, list[str]] = {task: [] for task in dict.fromkeys(_TASKS.values())}
    inherited = []
    for member, method in _methods(value):
        module = method.__module__.removeprefix("blendfusion.")
        if module.startswith("datafusion."):
            inherited.append(member)
        else:
            task = _TASKS[module.removeprefix("services.").partition(".")[0]]
            tasks[task].append(_member_part(name, member, method))
    own = "".join(f"## {task}\n\n{''.join(found)}" for task, found in tasks.items() if found)
    return (
        f"# {name}\n\n{own}## From DataFusion\n\n"
        f"DataFusion documents these methods: {_names(inherited)}.\n"
    )


def _member(name: str, value: object) -> str:
    """The signature and the docstring of a name."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        signature = ""
    else:
        whole = _plain(f"{name}{found}")
        if len(whole) > _WIDTH:
            behind = _plain(str(found.replace(parameters=()))).removeprefix("()")
            whole = f"{name}(\n{_parameters(found)}){behind}"
        signature = f"```python\n{whole}\n```\n\n"
    text = (inspect.getdoc(value) or "").replace("``", "`")
    return f"{signature}{_fenced(text)}\n"


def _parameters(signature: inspect.Signature) -> str:
    """A parameter a line; a star where those by name alone begin."""
    lines, starred = [], False
    for parameter in signature.parameters.values():
        starred = starred or parameter.kind == parameter.VAR_POSITIONAL
        if parameter.kind == parameter.KEYWORD_ONLY and not starred:
            lines.append("*")
            starred = True
        lines.append(_plain(str(parameter)))
    return "".join(f"    {line},\n" for line in lines)


def _plain(signature: str) -> str:
    """Annotations without the quotes that ``from __future__`` gives them."""
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    return plain.replace("= <factory>", "= …")


def _fenced(text: str) -> str:
    """Examples and indented blocks as code."""
    parts = []
    for part in text.split("\n\n"):
        is_code = part.startswith((">>>", "    "))
        parts.append(f"```python\n{part}\n```" if is_code else part)
    return "\n\n".join(parts)


def _code(example: str) -> str:
    return ", ".join(f"`{text.strip()}`" for text in example.split(";") if text).replace("|", "\\|")


def _cell(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")
