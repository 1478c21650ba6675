"""The page of ``blendfusion ui`` as a person uses it: real clicks and keys in Chromium."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from chromium import browser
from clicks import Person
from page_checks import page_faults

import blendfusion as bf
from blendfusion.apps.cli.ui import private_page
from blendfusion.apps.ui.server import PageServer
from blendfusion.apps.ui.workspace import Workspace

pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium is installed")

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"


class Slow:
    """Answers as fast as the test lets it."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, call: Any) -> Any:
        while not self.go_on.is_set():
            time.sleep(0.01)
        text = str(call.values[0])
        return {True: 0.9, False: 0.1} if "late" in text else {True: 0.2, False: 0.8}


@pytest.fixture(scope="module")
def answer() -> Slow:
    return Slow()


@pytest.fixture(scope="module")
def server(answer: Slow) -> Iterator[PageServer]:
    model = bf.ScriptedModel(answer, batch_size=4)
    options: Any = {
        "show_values": "on",
        "read_only": True,
        "prices": bf.Price(prompt=5, completion=5),
    }
    with bf.connect(model, cache=None, **options) as session:
        texts = [f"late parcel {i}" if i % 2 else f"fine {i}" for i in range(120)]
        session.from_pydict({"id": list(range(120)), "text": texts}, name="reviews")
        session.from_pydict({"Name": [HOSTILE]}, name="hostile")
        work = Workspace(session, confirm_above=100)
        with PageServer(work) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            yield server
            answer.go_on.set()
            work.close()
            server.shutdown()
            thread.join(10)


@pytest.fixture
def person(server: PageServer) -> Iterator[Person]:
    with Person(server.url) as person:
        person.sees("#tables", "reviews")
        person.waits("document.activeElement?.id === 'sql'")
        yield person
        # The browser notes the reply to a query that is wrong.
        assert [c for c in person.complaints if "status of 400" not in c] == []


def write(person: Person, sql: str) -> None:
    person.click("#sql")
    person.press("a", ctrl=True)
    person.of("document.querySelector('#sql').select()")
    person.type(sql)


def test_from_a_table_to_an_answer(person: Person, answer: Slow, tmp_path: Path) -> None:
    write(person, "SELECT te")
    person.sees("#choices", "text")
    person.press("Tab")
    person.type(" FROM rev")
    person.press("Tab")
    person.type(" WHERE llm_fil")
    person.press("Tab")
    person.type("'Is it a complaint?', text) AND id < 60")
    person.press("Escape")
    assert person.of("document.querySelector('#sql').value") == (
        "SELECT text FROM reviews WHERE llm_filter('Is it a complaint?', text) AND id < 60"
    )
    person.click("#plan")
    person.sees("#plan-text", "expected: 60 values")
    person.sees("#status", "Expected: 60 values")

    answer.go_on.clear()
    person.click("#run")
    person.sees("#status", "0 of 60 values")
    person.waits(
        "!document.querySelector('#stop').hidden && document.querySelector('#run').disabled"
    )
    answer.go_on.set()
    person.sees("#status", "30 rows")
    person.sees("#status", "60 values asked")
    person.sees("#status", "cost 0.0")
    person.sees("#rows", "late parcel 59")
    person.click("#tab-answers")
    person.sees("#answers", "90 %")
    person.click("#answers .pager button:last-of-type")
    person.sees("#answers", "51–60 of 60")
    person.press("ArrowRight")  # the focus went with the table: no tab changes
    person.click("#tab-plans")
    person.sees("#plan-text", "60 values asked (60 expected)")
    person.sees("#history", "30 rows · 60 values asked")
    person.sees("#spent", "60 values")
    person.picture(tmp_path / "wide.png")
    assert (tmp_path / "wide.png").stat().st_size > 10_000


def test_stop_and_confirm_by_keyboard(person: Person, answer: Slow) -> None:
    answer.go_on.clear()
    write(person, "SELECT count(*) FROM reviews WHERE llm_filter('Is it late?', text)")
    person.press("Enter", ctrl=True)
    person.sees("#confirm", "expected to ask 120 values, cost ")
    person.press("Enter")  # the focus is on the button
    person.sees("#status", "running")
    person.press("Escape")
    person.sees("#status", "stopped")
    answer.go_on.set()
    person.sees("#history", "stopped")
    person.waits("document.querySelector('#stop').hidden")


def test_errors_show_their_place(person: Person) -> None:
    write(person, "SELECT txt FROM reviews")
    person.press("Enter", ctrl=True)
    person.sees("#error", "unknown column 'txt'")
    person.sees("#error", "Did you mean 'text'?")
    assert person.of("getSelection().toString() || document.querySelector('#sql').value.slice("
                     "document.querySelector('#sql').selectionStart, document.querySelector('#sql').selectionEnd)"
                     ) == "txt"  # fmt: skip
    assert person.of("document.querySelector('#rows').classList.contains('stale')")
    write(person, "SELECT count(*) FROM reviews")
    person.press("Enter", ctrl=True)
    person.waits("!document.querySelector('#rows').classList.contains('stale')")
    write(person, "DROP TABLE reviews")
    person.press("Enter", ctrl=True)
    person.sees("#error", "read-only: DROP")  # before anything is offered
    assert person.of("document.querySelector('#confirm').hidden")
    person.sees("#history", "failed")


def test_text_of_the_data_stays_text(person: Person) -> None:
    write(person, 'SELECT "Name", llm_bool(\'Late?\', "Name") AS late FROM hostile')
    person.press("Enter", ctrl=True)
    person.sees("#rows", HOSTILE)
    person.click("#tab-answers")
    person.sees("#answers", HOSTILE)
    assert person.of("document.title") == "BlendFusion"
    assert person.of("document.querySelectorAll('img, #rows b, #answers b').length") == 0


def test_a_narrow_screen_needs_no_sideways_scrolling(server: PageServer, tmp_path: Path) -> None:
    with Person(server.url, 360, 740) as person:
        person.waits("document.activeElement?.id === 'sql'")
        write(
            person,
            "SELECT id, text, 'a longer text that has to be wrapped somewhere' AS more FROM reviews",
        )
        person.press("Escape")
        person.click("#run")
        person.sees("#status", "120 rows")
        person.sees("#rows", "1–50 of 120")  # they move what stands below them
        assert person.of("document.documentElement.scrollWidth <= 360")
        box = person.of("document.querySelector('#run').getBoundingClientRect().right")
        assert box <= 360
        person.click("#history-box summary")
        person.sees("#history", "120 rows")
        write(person, "SELECT id FROM reviews WHERE llm_filter('Is it late?', text) AND id < 9")
        person.press("Escape")
        person.click("#run")
        person.sees("#status", "values asked")
        person.click("#tab-answers")
        person.sees("#answers", "late parcel 1")
        last = "document.querySelector('#answers tbody td:last-child')"
        assert person.of(f"{last}.getBoundingClientRect().height") < 40, "words stay whole"
        answer = "document.querySelector('#answers tbody td:nth-child(3)')"
        assert person.of(f"{answer}.getBoundingClientRect().right") <= 360, "the answer is seen"
        assert person.of("document.documentElement.scrollWidth <= 360")
        person.picture(tmp_path / "narrow.png")
        assert person.complaints == []


def test_the_browser_opens_a_private_file_that_leads_to_the_page(server: PageServer) -> None:
    page = private_page(server, server.url)
    file = Path(unquote(urlsplit(page).path))
    assert server.token not in page, "a command line is everybody's to read"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with Person(page) as person:
        person.sees("#tables", "reviews")
        assert person.complaints == []


@pytest.mark.parametrize("name", ["a(b", "(a+)+$", "c[d"])
def test_a_table_may_have_any_name(tmp_path: Path, name: str) -> None:
    with bf.connect(bf.ScriptedModel(lambda _: True), cache=None) as session:
        session.from_pydict({"other": [1], "one": [1]}, name=name)
        session.from_pydict({"text": ["x"]}, name="reviews")
        work = Workspace(session)
        with PageServer(work) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            with Person(server.url) as person:
                person.sees("#tables", "reviews")
                person.waits("document.activeElement?.id === 'sql'")
                write(person, f'SELECT * FROM "{name}" WHERE {"a" * 40} AND oth')
                person.sees("#choices", "other")
                assert person.complaints == []
            server.shutdown()
            thread.join(10)


def test_texts_keep_in_tabs_and_after_a_reload(person: Person) -> None:
    write(person, "SELECT 1 AS first_text")
    person.press("Escape")
    person.click("#text-new")
    write(person, "SELECT 2 AS second_text")
    person.press("Escape")
    person.click("#text-0")
    assert person.of("document.querySelector('#sql').value") == "SELECT 1 AS first_text"
    person.reload()
    person.waits("document.querySelector('#sql')?.value === 'SELECT 1 AS first_text'")
    person.click("#text-1")
    assert person.of("document.querySelector('#sql').value") == "SELECT 2 AS second_text"
    person.click("#text-close")
    assert person.of("document.querySelectorAll('#texts [role=tab]').length") == 1


def test_a_selection_and_several_statements(person: Person) -> None:
    write(person, "SELECT 11 AS one; SELECT ';' AS two;\nSELECT nope FROM reviews")
    person.press("Escape")
    person.of("document.querySelector('#sql').setSelectionRange(0, 16)")
    person.press("Enter", ctrl=True)
    person.sees("#rows", "one")
    person.of("document.querySelector('#sql').setSelectionRange(0, 0)")
    person.press("Enter", ctrl=True)
    person.sees("#rows", "two")
    person.sees("#error", "unknown column 'nope'")
    assert person.of("(e => e.value.slice(e.selectionStart, e.selectionEnd))"
                     "(document.querySelector('#sql'))") == "nope"  # fmt: skip
    person.sees("#history", "failed")


def test_rows_are_sorted_filtered_summed_up_and_saved(person: Person) -> None:
    write(person, "SELECT id, text FROM reviews")
    person.press("Escape")
    person.press("Enter", ctrl=True)
    person.sees("#rows", "1–50 of 120")
    person.click("#rows th:first-child .sort")
    person.waits("document.querySelector('#rows th').ariaSort === 'ascending'")
    person.click("#rows th:first-child .sort")
    person.waits("document.querySelector('#rows tbody td').textContent === '119'")
    assert person.of("document.querySelector('#rows th').ariaSort") == "descending"
    person.click("#words")
    person.type("parcel 7")
    person.sees("#rows", "1–6 of 6")
    person.click("#sum")
    person.sees("#summary", "6 values")
    person.of(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }"
    )
    for style in ("csv", "parquet", "xlsx"):
        person.click(f"[data-file={style}]")
        person.sees("#told", f"rows.{style} is saved")
    assert person.of("window.saved") == ["rows.csv", "rows.parquet", "rows.xlsx"]
    person.of("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    person.click("#copy")
    person.sees("#told", "in the clipboard")
    assert person.of("window.copied").splitlines()[:2] == ["id\ttext", "79\tlate parcel 79"]


def test_a_cell_tells_where_it_comes_from_and_is_corrected(person: Person) -> None:
    write(person, "SELECT text, llm_bool('Is it late?', text) AS late FROM reviews WHERE id < 3")
    person.press("Escape")
    person.press("Enter", ctrl=True)
    person.sees("#status", "3 rows")
    person.click("#rows tbody tr:nth-child(2) td:last-child button")
    person.sees("#why", "Is it late?")
    person.sees("#why", "late parcel 1")
    person.sees("#why", "90 %")
    person.click("#right-0")
    person.type("no")
    person.click("#why form button")
    person.sees("#why", "1 label in the table corrections")
    person.sees("#tables", "corrections")
    write(person, "SELECT text, answer, label FROM corrections")
    person.press("Escape")
    person.press("Enter", ctrl=True)
    person.sees("#rows thead", "label")
    assert person.of("[...document.querySelectorAll('#rows tbody td')].map((c) => c.textContent)") == [
        "late parcel 1", "true", "no",
    ]  # fmt: skip


def see_rows_and_answers(person: Person) -> None:
    """Run a query with a call, and open the explanation of a cell and the summary."""
    write(person, "SELECT text, llm_bool('Is it late?', text) AS late FROM reviews WHERE id < 3")
    person.press("Escape")
    person.press("Enter", ctrl=True)
    person.sees("#status", "3 rows")
    person.click("#rows tbody tr:nth-child(2) td:last-child button")
    person.sees("#why", "Is it late?")
    person.click("#sum")
    person.sees("#summary", "values")


def test_an_audit_finds_nothing(person: Person) -> None:
    """Headings, names, contrast in both schemes, targets, width: empty, with rows, with answers."""
    assert page_faults(person) == {}
    person.resize(1280, 860)
    see_rows_and_answers(person)
    assert page_faults(person) == {}
    person.resize(1280, 860)
    person.click("#tab-answers")
    person.sees("#answers", "late parcel 1")
    assert page_faults(person) == {}


def test_every_control_has_a_name_and_every_list_its_parts(person: Person) -> None:
    """What axe-core asks of names, roles and identifiers, in the state with rows and answers."""
    see_rows_and_answers(person)
    assert (
        person.of("""[...document.querySelectorAll('button, input, select, textarea, a[href]')]
        .filter((one) => one.checkVisibility() && !one.textContent.trim() && !one.ariaLabel
            && !(one.labels && one.labels.length)).map((one) => one.outerHTML)""")
        == []
    )
    assert (
        person.of("""[...document.querySelectorAll('[role=tablist]')]
        .flatMap((list) => [...list.children]).filter((one) => one.getAttribute('role') !== 'tab').length""")
        == 0
    )
    assert (
        person.of("""[...document.querySelectorAll('[aria-controls]')]
        .filter((one) => !document.getElementById(one.getAttribute('aria-controls'))).length""")
        == 0
    )
    assert (
        person.of("""[...document.querySelectorAll('[id]')].map((one) => one.id)
        .filter((id, place, all) => all.indexOf(id) !== place)""")
        == []
    )
    assert person.of("document.querySelectorAll('th:empty, textarea[role]').length") == 0
