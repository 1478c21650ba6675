"""Draws the pictures of the README: the shell as its journey shows it, and the trace of a run."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import blendfusion as bf

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
_SHELL = ROOT / "tests" / "golden" / "journeys" / "shell.txt"
_COLUMN, _LINE, _EDGE = 7.85, 19, 18
_COLOURS = (
    (r"^(blendfusion>|        \.\.\.>)", "p"),
    (r"^(error|Hint):.*", "e"),
    (r"^(asked|Total|rows in|Expected).*|\d+ rows?$", "m"),
    (r"^\s*(ask|filter|compute|scan|sort|from|Stage \d+)\b", "k"),
)
_STYLE = (
    "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}"
    ".p{fill:#7fb3ff}.e{fill:#ff9a8b}.m{fill:#8b98ab}.k{fill:#a6da95}"
)


def drawn(title: str, lines: list[str]) -> str:
    """A picture of lines on a terminal, as SVG without fonts or links."""
    width = round(max(map(len, [*lines, title])) * _COLUMN + 2 * _EDGE)
    height = (len(lines) + 1) * _LINE + 2 * _EDGE
    dots = "".join(
        f'<circle cx="{_EDGE + 16 * n}" cy="19" r="5" fill="{colour}"/>'
        for n, colour in enumerate(("#ff6159", "#ffbd2e", "#28c941"))
    )
    rows = "\n".join(
        f'<text x="{_EDGE}" y="{_EDGE + _LINE * (n + 1) + 14}">{_coloured(line)}</text>'
        for n, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" rx="9" fill="#1b2230"/>{dots}'
        f'<text x="{width / 2:.0f}" y="23" text-anchor="middle" class="m">{escape(title)}</text>\n{rows}\n</svg>\n'
    )


def _coloured(line: str) -> str:
    for pattern, name in _COLOURS:
        if found := re.search(pattern, line):
            start, end = found.span()
            inside = f'<tspan class="{name}">{escape(line[start:end])}</tspan>'
            return escape(line[:start]) + inside + escape(line[end:])
    return escape(line)


def shell() -> str:
    """The shell: what an analyst types and sees, by the page of his journey."""
    steps = _SHELL.read_text("utf-8").split("\ntype: ")[1:]
    wanted = [step.partition("\n")[2] for step in steps]
    shown = [wanted[n] for n in (0, 1, 4, 5, 6)]
    text = "\n".join(part.rstrip().removesuffix("blendfusion>").rstrip() for part in shown)
    steady = text.replace(" · N s", "")
    return drawn("blendfusion --table reviews.csv", [*steady.splitlines(), "blendfusion>"])


def trace() -> str:
    """The trace of a run over reviews, with a function in place of a model."""

    def answer(call: bf.types.Request) -> bool:
        return any(word in (call.values[0] or "") for word in ("broke", "cracked", "tore"))

    session = bf.connect(bf.ScriptedModel(answer), cache=None)
    session.register_file(str(ROOT / "examples" / "reviews.csv"), "reviews")
    session.register_file(str(ROOT / "examples" / "products.csv"), "products")
    frame = session.sql(
        "SELECT p.name, r.text FROM reviews r JOIN products p ON r.product_id = p.product_id "
        "WHERE r.stars <= 2 AND p.category = 'bags' AND llm_filter('Did something break?', r.text)"
    )
    text = frame.explain_text(analyze=True)
    steady = re.sub(r", \d+\.\d+ s\b", "", text)
    return drawn("EXPLAIN ANALYZE", _folded(steady.splitlines()))


def _folded(lines: list[str], width: int = 104) -> list[str]:
    folded: list[str] = []
    for line in lines:
        while len(line) > width:
            place = line.rfind(" ", 0, width)
            folded.append(line[:place])
            line = " " * (len(line) - len(line.lstrip()) + 4) + line[place + 1 :]
        folded.append(line)
    return folded


PICTURES = {"shell.svg": shell, "trace.svg": trace}
