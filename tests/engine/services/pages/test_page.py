"""``trace.to_html``: all that it should say, harmless and bounded whatever the data, in a real
browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium import browser, opened
from scripts import Counted, spoken

import blendfusion as bf

HOSTILE = [
    "</script><script>console.error('ran')</script>",
    "<img src=x onerror=\"console.error('ran')\">",
    "\"><svg onload=console.error('ran')>",
    "' onmouseover='console.error(1)",
    "<!-- </style> ]]> &amp; &lt;b&gt;",
    "right \u202e to left \u2066 and \x1b[2J \x00 control",
    "lone \ud800 surrogate".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "x" * 100_000,
]
in_a_browser = pytest.mark.skipif(
    browser() is None, reason="needs Chromium (chromium or google-chrome on the PATH)"
)


class Reader(HTMLParser):
    """The text of a page, its elements, and whether they are closed in order."""

    VOID = frozenset({"meta", "br"})
    INLINE = frozenset({"span", "code", "bdi", "b"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += f"{'' if self.open[-1] in self.INLINE else '|'}{data}"


def read(page: str) -> Reader:
    found = Reader(page)
    assert found.open == []
    return found


@pytest.fixture
def frame() -> bf.Frame:
    def script(call: bf.Request) -> object:
        return None if call.values[0] == "bad" else spoken(call)

    db = Counted(script, max_tokens=99).add(
        "t", {"x": ["good tea", "good coffee", "bad", "tea", None, "tea"], "n": [1, 2, 3, 4, 5, 6]}
    )
    return db.session.sql(
        "SELECT x, llm_int('length', x) AS letters FROM t "
        "WHERE llm_filter('holds e', x) AND llm_filter('starts with good', x)"
    )


def test_the_page_tells_of_a_run(frame: bf.Frame, tmp_path: Path) -> None:
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    page = frame.trace.to_html()
    assert frame.trace.to_html(tmp_path / "trace.html") is None
    assert (tmp_path / "trace.html").read_text("utf-8") == page
    found = read(page)
    run = frame.trace.run
    assert run is not None
    for said in (
        f"Query {run.id}",
        "done in ",
        "scripted",
        "Values asked9|in 3 calls",
        "FROM t WHERE llm_filter('holds e', x)",
        "Stage 1 → result| · 5 rows in, 2 out, 1 chunk",
        "compute| llm_int('length', t.x)",
        "ask llm_int('length', t.x) → integer",
        "written 1st, tried 2nd · 20% dropped",
        "tokens a row · rank 0.",
        "scan t [x]",
        "1 request without a valid answer, by kind of reason",
        "no answerbad|1",
        "How often which answer came",
        "llm_filter| starts with good",
        "call_extraction",
        "max_tokens99|128",
    ):
        assert said in found.text, said
    assert found.tags.count("h1") == 1
    assert found.tags.count("caption") == found.tags.count("table") > 5


def test_it_needs_nothing_from_anywhere(frame: bf.Frame) -> None:
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    page = frame.trace.to_html()
    found = read(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert not {"src", "onclick", "onload"} & {name for name, _ in found.attributes}
    assert {v for k, v in found.attributes if k == "href" and v is not None} <= {
        f"#{v}" for k, v in found.attributes if k == "id"
    }
    assert not re.search(r"url\(|@import|https?://", page)


def test_an_empty_trace_says_so() -> None:
    found = read(bf.Trace().to_html())
    assert "Nothing has run" in found.text
    assert "Values asked0" in found.text


def test_a_run_on_the_plain_path_shows_its_calls() -> None:
    db = Counted(spoken, planner=False).add("t", {"x": ["one", "two"]})
    frame = db.session.sql("SELECT x FROM t WHERE llm_filter('holds w', x)")
    frame.collect()
    found = read(frame.trace.to_html())
    assert "Not staged: the option planner is off." in found.text
    assert "ask llm_filter: holds w|2|0|0|" in found.text


def test_a_failed_run_shows_how_far_it_came() -> None:
    def script(call: bf.Request) -> bool:
        if call.values[0] == "b":
            raise ZeroDivisionError("<secret>")
        return True

    db = Counted(script).add("t", {"x": ["a", "b"]})
    frame = db.session.sql("SELECT x FROM t WHERE llm_filter('q', x)")
    with pytest.raises(ZeroDivisionError):
        frame.collect()
    found = read(frame.trace.to_html())
    assert ": ZeroDivisionError" in found.text
    assert "Values asked1" in found.text


def hostile() -> bf.Frame:
    def script(call: bf.Request) -> object:
        text = call.values[0] or ""
        return None if "img" in text else f"answer: {text}"

    db = Counted(script).add("t", {"x": HOSTILE})
    marked = "<b onclick=\"x\">'quoted'</b></script>"
    question = marked.replace("'", "''")
    return db.session.sql(f"SELECT llm_map('{question}', x) AS \"</td><script>\" FROM t")


def test_hostile_data_stays_text() -> None:
    frame = hostile()
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    page = frame.trace.to_html()
    found = read(page)
    assert not {"script", "img", "svg"} & set(found.tags)
    assert not any(name.startswith("on") for name, _ in found.attributes)
    assert "</script><script>console.error('ran')</script>" in found.text
    assert "right \\u202e to left \\u2066 and \\x1b[2J \\x00 control" in found.text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", page)
    assert "(99,600 characters more)" in found.text


def test_values_are_shown_as_the_session_says(frame: bf.Frame) -> None:
    data = {"x": ["ann@example.com", "tea"]}
    for options, there in (
        ({"show_values": "off"}, False),
        ({"redact": lambda text: text.replace("ann@", "…@")}, False),
        ({}, True),
    ):
        db = Counted(lambda call: call.values[0], **options).add("t", data)  # type: ignore[arg-type]
        frame = db.session.sql("SELECT llm_map('who', x) FROM t")
        frame.collect()
        page = frame.trace.to_html()
        assert ("ann@example.com" in page) is there
        assert "llm_map" in page


@pytest.mark.long
def test_many_values_make_no_large_page() -> None:
    db = Counted(lambda call: f"an answer of its own: {call.values[0]}")
    db.add("t", {"x": [f"value {i} " + "and much more " * 20 for i in range(100_000)]})
    frame = db.session.sql("SELECT llm_map('what', x) FROM t")
    frame.collect()
    page = frame.trace.to_html()
    assert frame.trace.usage.values == 100_000
    assert len(page) < 100_000
    assert "100,000 requests" in read(page).text


def test_many_stages_and_questions_make_no_large_page() -> None:
    db = Counted(spoken).add("t", {"x": ["one", "two"]})
    columns = ", ".join(
        f"llm_int('length', x, examples => [['a', '{i}']]) AS c{i}" for i in range(80)
    )
    frame = db.session.sql(f"SELECT {columns} FROM t")
    frame.collect()
    assert "And 30 more questions." in read(frame.trace.to_html()).text


@in_a_browser
def test_a_browser_shows_the_page_without_complaint(frame: bf.Frame, tmp_path: Path) -> None:
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    frame.trace.to_html(tmp_path / "trace.html")
    shown = opened(tmp_path / "trace.html")
    assert shown.console == []
    for said in ("Stage 1 → result", "tried 1st", "llm_filter('holds e', t.x)", "good tea"):
        assert said in shown.dom


@in_a_browser
def test_a_browser_runs_nothing_of_the_data(tmp_path: Path) -> None:
    frame = hostile()
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    frame.trace.to_html(tmp_path / "trace.html")
    shown = opened(tmp_path / "trace.html")
    assert shown.console == []
    assert "<script" not in shown.dom
    assert "&lt;script&gt;console.error" in shown.dom


@in_a_browser
def test_the_browser_of_these_tests_sees_what_it_looks_for(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<!doctype html><p>x<script>console.error('ran')</script>", encoding="utf-8")
    assert "ran" in "".join(opened(page).console)


def test_several_models_are_told_apart() -> None:
    first = bf.ScriptedModel(lambda call: None if call.values[0] == "b" else 1, name="small")
    second = bf.ScriptedModel(lambda call: 2, name="large")
    with bf.connect([first, second], cache=None, progress="off") as session:
        session.from_pydict({"x": ["a", "b"]}, name="t")
        frame = session.sql("SELECT llm_int('q', x) FROM t")
        assert sorted(frame.to_pydict().popitem()[1]) == [1, 2]
    found = read(frame.trace.to_html())
    assert "By model|Model|Values|Failed|Prompt tokens|Answer tokens|small|2|1|" in found.text
    assert "|large|1|0|" in found.text


def _sure(call: bf.Request) -> dict[bool, float]:
    """Of the odd ones right and sure; of the others not sure."""
    number = int(str(call.values[0]))
    return {True: 0.99, False: 0.01} if number % 2 else {True: 0.55, False: 0.45}


def test_what_a_small_model_decides_stands_beside_its_call() -> None:
    large = bf.ScriptedModel(lambda call: int(str(call.values[0])) % 2 == 1, name="large")
    with bf.connect(bf.ScriptedModel(_sure, name="own"), cache=None) as session:
        session.register_model("small", bf.ScriptedModel(_sure, name="small"))
        session.register_model("large", large)
        session.from_pydict({"x": [str(i) for i in range(400)]}, name="t")
        call = "llm_filter('Odd?', x, model => ['small', 'large'], accuracy => 0.9)"
        frame = session.sql(f"SELECT {call} AS f FROM t")
        frame.collect()
    (outcome,) = frame.trace.cascades.values()
    page = read(frame.trace.to_html())
    assert outcome.decided > 100
    assert f"cascade: {outcome}" in page.text
    assert "· small, large ·" in page.text
    assert page.text.count("4,096 tokens") == 2
    assert outcome.why.startswith("with a probability of at least")
    assert f"|{outcome.why}" in page.text


def test_what_is_withheld_and_how_matches_were_found_stand_beside_their_calls() -> None:
    db = Counted(_sure).add("t", {"x": [str(i) for i in range(10)]})
    unsure = db.session.sql("SELECT llm_filter('Odd?', x, confidence => 0.9) AS f FROM t")
    unsure.collect()
    assert "5 withheld: less probable than wanted" in read(unsure.trace.to_html()).text

    def labelled(call: bf.Request) -> object:
        return "a" if call.constraint.kind == "choice" else True

    joined = Counted(labelled).add("t", {"x": ["1", "2"]}).add("u", {"y": ["3", "4"]})
    query = "SELECT x, y FROM t JOIN u ON llm_join(x, y, how => 'near', labels => ['a', 'b'])"
    frame = joined.session.sql(query)
    frame.collect()
    assert "matches: 1 of 1 pairs of labels decide by 4 sampled" in read(frame.trace.to_html()).text


def test_a_trace_keeps_so_many_requests_and_all_errors() -> None:
    def script(call: bf.Request) -> int | None:
        return None if call.values[0] in ("v0", "v299") else 1

    db = Counted(script, trace_calls=100).add("t", {"x": [f"v{i}" for i in range(300)]})
    frame = db.session.sql("SELECT llm_int('q', x) FROM t")
    with pytest.warns(bf.AnswerWarning):
        frame.collect()
    trace = frame.trace
    assert trace.usage.values == 300
    assert trace.by_model["scripted"].values == 300
    kept = [int(values[0][1:]) for values in trace.calls["values"].to_pylist()]
    assert kept == [*range(0, 300, 4), 299]
    assert trace.left_out == 300 - 75
    assert trace.errors["values"].to_pylist() == [["v0"], ["v299"]]
    found = read(trace.to_html())
    assert "225 more requests are in the totals and the errors alone" in found.text
    assert "Values asked300|" in found.text
