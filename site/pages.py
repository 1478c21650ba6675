"""Pages of the site that come from the code: the README, a page per function and per warehouse's
dialect, the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import blendfusion as bf
from blendfusion.dialects.dispatch import WAREHOUSES
from blendfusion.dialects.warehouses.calls import Warehouse
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions import INGREDIENTS

_WIDTH = 88
ROOT = Path(__file__).parents[1]
_ABOVE = re.compile(r"\[([^\]]+)\]\(\.\./(?!#)[^)\s]*\)")

_ELSEWHERE = re.compile(r"\[([^\]]+)\]\((?:LICENSE|C[A-Z]+\.md|benchmarks/[^)]*|examples/[^)]*)\)")
"""Links of the README to what the site does not have."""


STYLE = """\
/* Names of functions and options stay whole. */
.md-typeset td:first-child code { white-space: nowrap; }
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages and their style."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "site.css", content=STYLE))
    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to files of the repository that the site does not have become their text."""
    return _ABOVE.sub(r"\1", markdown)


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of each generated page."""
    readme = (ROOT / "README.md").read_text("utf-8").replace("](docs/", "](")
    yield "index.md", _ELSEWHERE.sub(r"\1", readme)
    rows = "".join(f"| [`{i.name}`]({i.name}.md) | {_cell(i.summary)} |\n" for i in INGREDIENTS)
    yield "functions/index.md", f"# Functions\n\n| function | question |\n|---|---|\n{rows}"
    for ingredient in INGREDIENTS:
        yield f"functions/{ingredient.name}.md", _function(ingredient)
    for warehouse in WAREHOUSES:
        yield f"dialects/{warehouse.name}.md", _warehouse(warehouse)
    yield "api.md", _api()


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
        f"{table if options else ''}\n## In Python\n\n{_member(f'bf.{ingredient.name}', python)}"
    )


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


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _api() -> str:
    """Every public name that is no function of SQL, with its methods."""
    functions = {ingredient.name for ingredient in INGREDIENTS}
    parts = ["# Python\n\n`import blendfusion as bf`\n"]
    for name in sorted(set(bf.__all__) - functions, key=str.lower):
        value = getattr(bf, name)
        parts.append(f"## bf.{name}\n\n{_member(f'bf.{name}', value)}")
        if not inspect.isclass(value) or issubclass(value, BaseException):
            continue
        for member, method in sorted(vars(value).items()):
            if not member.startswith("_") and inspect.isfunction(method):
                parts.append(f"### {name}.{member}\n\n{_member(f'{name}.{member}', method)}")
    return "\n".join(parts)


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
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)


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
