"""Draws docstrings and sentences by a seed, for a reader to judge.

Run with ``python benchmarks/draw_sentences.py --seed 7``: 40 docstrings of public names, then 40
sentences of docs/, README and messages of errors, each with its place. Code, tables and headings
are left out.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from module_imports import FILES, ROOT

NUMBER = 40
_CODE = re.compile(r"^```.*?^```$|^\|.*?$|^#.*?$|^<.*?$", re.MULTILINE | re.DOTALL)
_LIST = re.compile(r"^\s*([-*]|\d+\.)\s+", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")
_MESSAGE = re.compile(r"(Error|Failed|NotFound|Confirmed|Exceeded|Warning)$")


def docstrings() -> Iterator[tuple[str, str]]:
    """(place, text) of the docstrings of public names."""
    for module, file in FILES.items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                text = ast.get_docstring(node)
                if text and not node.name.startswith("_"):
                    yield f"{module}:{node.lineno} {node.name}", " ".join(text.split())


def sentences() -> Iterator[tuple[str, str]]:
    """(place, text) of the sentences of pages."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        prose = _LIST.sub("\n", _CODE.sub("\n", page.read_text("utf-8")))
        for paragraph in re.split(r"\n\s*\n", prose):
            for sentence in _END.split(" ".join(paragraph.split())):
                if sentence.count(" ") > 3:
                    yield page.name, sentence


def messages() -> Iterator[tuple[str, str]]:
    """(place, text) of the messages and hints of errors and warnings."""
    for module, file in FILES.items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name)) if _MESSAGE.search(name):
                    for part in (*node.args[:1], *(k.value for k in node.keywords)):
                        text = _text_of(part)
                        if text.count(" ") > 2:
                            yield f"{module}:{node.lineno} {name}", text


def _text_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_text_of, values))
        case ast.FormattedValue():
            return "…"
        case _:
            return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20261127)
    dice = random.Random(parser.parse_args().seed)
    for found in (docstrings(), [*sentences(), *messages()]):
        for place, text in dice.sample(sorted(found), NUMBER):
            print(f"{place}\n    {text}")
        print()


if __name__ == "__main__":
    main()
