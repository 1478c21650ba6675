"""The first ten minutes of five people, run as they would: what they see stands in golden pages.

Each page is a transcript, written anew by ``--update-golden``. A server on the loopback answers.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Body, Loopback, Reply, said, serving
from transcript import Place, Run, Screen, replayed

import blendfusion as bf

PAGES = Path(__file__).parents[1] / "golden" / "journeys"
EXAMPLES = Path(__file__).parents[2] / "examples"

REVIEWS = """\
id,product,stars,text
1,lamp,1,It flickers after 3 days and nobody answers my mails
2,lamp,5,Lovely light for the desk
3,bag,2,The strap broke on day 10
4,bag,5,I take it everywhere
5,tent,1,Arrived 12 days late and torn
6,tent,4,
"""

STEADY = [
    (r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:PORT"),
    (r"\d+(\.\d+)? m?s\b", "N s"),
    (r"seconds=\d+\.\d+", "seconds=N"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME"),
    (re.escape(f"{bf.__name__} ") + r"\d+\.\d+\.\d+", "blendfusion VERSION"),
]


def answer(body: Body) -> Reply:
    """Finds complaints by their words, and the first number of a text."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]["answer"]
    text = said(body).rpartition("Text: ")[2]
    number = re.search(r"\d+", text)
    bad = any(word in text for word in ("flickers", "broke", "late"))
    if schema.get("enum") == ["Yes", "No"]:
        return Reply(json.dumps({"answer": "Yes" if bad else "No"}))
    if "enum" in schema:
        return Reply(json.dumps({"answer": schema["enum"][len(text) % len(schema["enum"])]}))
    return Reply(json.dumps({"answer": int(number[0]) if number else None}))


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(answer) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, server: Loopback) -> Place:
    (tmp_path / "reviews.csv").write_text(REVIEWS, "utf-8")
    for script in PAGES.glob("*.py"):
        shutil.copy(script, tmp_path)
    cache = tmp_path / "answers.sqlite"
    variables = {
        "BLENDFUSION_MODEL": f"openai:tiny@{server.url}",
        "BLENDFUSION_CACHE": str(cache),
        "OPENAI_BASE_URL": server.url,
    }
    return Place(tmp_path, variables)


def check(name: str, run: Run, place: Place, *, update: bool, prompt: str = "$ ") -> None:
    page = PAGES / f"{name}.txt"
    steady = [(re.escape(str(place.folder)), "DIR"), *STEADY]
    found = replayed(page, prompt, run, steady)
    if update:
        page.write_text(found, "utf-8")
    assert found == page.read_text("utf-8")


@pytest.mark.parametrize(
    "name", [pytest.param("analyst", marks=pytest.mark.long), "datafusion", "maintainer"]
)
def test_commands(name: str, place: Place, update_golden: bool) -> None:
    check(name, place.run, place, update=update_golden)


@pytest.mark.long
def test_an_operator_with_a_server_of_his_own(
    place: Place, server: Loopback, update_golden: bool
) -> None:
    def run(command: str) -> str:
        if command in ("stop", "start"):
            server.script = answer if command == "start" else (lambda body: Reply(status=503))
            return ""
        return place.run(command)

    check("operator", run, place, update=update_golden)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, which draws the screen, is absent")
def test_an_analyst_in_the_shell(place: Place, update_golden: bool) -> None:
    screen = Screen(place, "blendfusion --table reviews.csv")
    first = [screen.settled("leaves", "blendfusion>")]

    def run(typed: str) -> str:
        if typed == "start":
            return first.pop()
        screen.keys("C-l")
        parts = [part for part in re.split(r"(<[\w-]+>)", typed) if part]
        for part in parts:
            if part.startswith("<"):
                before = screen.settled("", "")
                screen.keys(part[1:-1])
                screen.changed(before)
            else:
                screen.type(part)
        screen.keys("Enter")
        last = [part for part in parts if not part.startswith("<")][-1]
        return screen.settled(last, "blendfusion>", "...>")

    try:
        check("shell", run, place, update=update_golden, prompt="type: ")
        screen.type("\\q")
        screen.keys("Enter")
    finally:
        screen.close()


def test_a_notebook_user(place: Place, update_golden: bool) -> None:
    """A notebook's cells, one behind the other, in a kernel."""
    nbformat = pytest.importorskip("nbformat", reason="the extra dev has nbclient")
    nbclient = pytest.importorskip("nbclient", reason="the extra dev has nbclient")
    pytest.importorskip("ipykernel", reason="the extra dev has ipykernel")
    page = PAGES / "notebook.txt"
    cells = [part.split("\n----\n")[0] for part in page.read_text("utf-8").split("# cell\n")[1:]]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    client = nbclient.NotebookClient(notebook, timeout=60, allow_errors=True)
    client.execute(cwd=str(place.folder), env=place.environment)
    shown = "".join(f"# cell\n{c.source}\n----\n{_shown(c.outputs)}\n" for c in notebook.cells)
    for pattern, text in STEADY:
        shown = re.sub(pattern, text, shown)
    shown = re.sub(r"^[\d,]+ values? · N s\n", "", shown, flags=re.MULTILINE)  # of a slow machine
    if update_golden:
        page.write_text(shown, "utf-8")
    assert shown == page.read_text("utf-8")


def _shown(outputs: list[dict[str, object]]) -> str:
    """What stands below a cell, as text."""
    lines = []
    for output in outputs:
        data = output.get("data", {})
        assert isinstance(data, dict)
        traceback = output.get("traceback", [])
        assert isinstance(traceback, list)
        lines += [str(output.get("text", "")), str(data.get("text/plain", "")), *traceback]
    return "\n".join(line.rstrip() for part in lines for line in part.splitlines() if line.strip())
