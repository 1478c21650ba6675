"""Documents that tests read: DOCX, HTML and Markdown with known content."""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = (
    f'<w:styles xmlns:w="{SPACE}"><w:style w:styleId="Kop1"><w:name w:val="heading 1"/></w:style>'
    "</w:styles>"
)
HTML = """<!doctype html><html><head><title>Mill</title><style>p {}</style></head><body>
<nav>Home</nav><header>Acme</header><h1>The mill &amp; more</h1><p>It grinds<br>every
  day.<script>alert(1)</script></p><ul><li>wheat<li>rye</ul><ol><li>one</li><li>two</li></ol>
<table><tr><th>grain<th>price<tr><td>rye<td><p>2</p></table><pre>a
  b</pre><footer>1999</footer></body></html>"""
HTML_BLOCKS = [
    ("title", "Mill"),
    ("aside", "Home"),
    ("header", "Acme"),
    ("title", "The mill & more"),
    ("paragraph", "It grinds\nevery day."),
    ("list", "• wheat\n• rye\n1. one\n2. two"),
    ("table", "grain | price\nrye | 2"),
    ("code", "a\n  b"),
    ("footer", "1999"),
]
MARKDOWN = """---
author: A
---
# The *mill*

It grinds
every `day`.

- wheat
- rye
  1. old

| grain | price |
|---|---|
| rye | 2 |

```
a
```
"""
MARKDOWN_BLOCKS = [
    ("title", "The mill"),
    ("paragraph", "It grinds every day."),
    ("list", "• wheat\n• rye\n  1. old"),
    ("table", "grain | price\nrye | 2"),
    ("code", "a"),
]
DOCX_BLOCKS = [
    ("header", "Acme"),
    ("title", "The mill"),
    ("paragraph", "It grinds every day."),
    ("list", "• wheat\n• rye"),
    ("table", "grain | price\nrye | 2"),
    ("footer", "1999"),
]


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of WordprocessingML."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def write_docx(path: Path, body: str | None = None, **parts: str) -> None:
    """A DOCX file of a body in WordprocessingML; ``parts`` are other parts of the archive."""
    if body is None:
        cells = ["".join(f"<w:tc>{paragraph(c)}</w:tc>" for c in row) for row in _ROWS]
        deleted = "<w:p><w:del><w:r><w:t>gone</w:t></w:r></w:del></w:p>"
        table = "".join(f"<w:tr>{row}</w:tr>" for row in cells)
        items = paragraph("wheat", "ListParagraph") + paragraph("rye", "ListParagraph")
        title = paragraph("The mill", "Kop1") + paragraph("It grinds every day.") + deleted
        body = f"{title}{items}<w:tbl>{table}</w:tbl>"
        parts = {
            "styles": STYLES,
            "header1": f'<w:hdr xmlns:w="{SPACE}">{paragraph("Acme")}</w:hdr>',
            "footer1": f'<w:ftr xmlns:w="{SPACE}">{paragraph("1999")}</w:ftr>',
            **parts,
        }
    document = f'<w:document xmlns:w="{SPACE}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"document": document, **parts}.items():
            archive.writestr(f"word/{name}.xml", content)


_ROWS = [["grain", "price"], ["rye", "2"]]
