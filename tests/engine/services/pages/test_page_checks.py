"""An audit of pages in Chromium: what it finds, and that reports have nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import browser
from clicks import Person
from page_checks import page_faults

import blendfusion as bf

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium is installed")

FAULTY = """<!doctype html><html><body style="background: white">
<h1>A</h1><h3>Too deep</h3><p style="color: #999">Pale</p><p style="width: 900px">Wide</p>
<button style="width: 9px; height: 9px; padding: 0"></button><a href="#" style="display: inline-block">b</a>
<input><img src="data:,"></body></html>"""


def audit(page: Path, scheme: str = "light") -> dict[str, list[str]]:
    with Person(page.as_uri(), scheme=scheme) as person:
        person.waits("document.readyState === 'complete'")
        return page_faults(person, (scheme,))


def test_the_audit_finds_faults(tmp_path: Path) -> None:
    page = tmp_path / "faulty.html"
    page.write_text(FAULTY, "utf-8")
    found = audit(page)
    assert [*found] == ["1280 light", "390 light"]
    for faults in found.values():
        text = "\n".join(faults)
        for fault in ("no title", "no language", "no viewport", "no text: img", "no name: button"):
            assert fault in text
        for fault in ("h1 is followed by h3", "no name: input", "9×9 beside a b", "contrast 2.85"):
            assert fault in text
    assert "pixels wide of 390" not in "\n".join(found["1280 light"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_has_no_fault(tmp_path: Path, scheme: str) -> None:
    model = bf.ScriptedModel(lambda call: {True: 0.9, False: 0.1})
    session = bf.connect(model, cache=None)
    session.from_pydict({"text": ["late again", "in time", None]}, "mails")
    frame = session.sql("SELECT text, llm_filter('Is it late?', text) AS late FROM mails")
    assert frame.count() == 3
    page = tmp_path / "trace.html"
    frame.to_pylist()
    frame.trace.to_html(page)
    assert audit(page, scheme) == {}
