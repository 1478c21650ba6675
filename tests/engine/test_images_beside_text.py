"""Images and texts in one question, in llm_vqa and in the functions of rows."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from loopback import Body, Reply, serving

import blendfusion as bf

RED = b"\x89PNG\r\n\x1a\n" + b"\xffred\x00"
BLUE = b"\xff\xd8\xff\xe0" + b"blue"
INLINE = f"data:image/png;base64,{base64.b64encode(RED).decode()}"
WEB = "https://example.org/a.png"


def shown(body: Body) -> tuple[object, ...]:
    """The texts of a request, and the images by their colours, in their order."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return (content,)
    found = []
    for part in content:
        if part["type"] == "text":
            found.append(part["text"])
            continue
        url = part["image_url"]["url"]
        data = base64.b64decode(url.partition(",")[2]) if url.startswith("data:") else url
        found.append({RED: "RED", BLUE: "BLUE"}.get(data, data))
    return tuple(found)


def fits(body: Body) -> Reply:
    """Whether the text beside an image names its colour."""
    parts = shown(body)
    colour = "red" if "RED" in parts else "blue" if "BLUE" in parts else "none"
    fit = any(colour in str(part) for part in parts[1:] if str(part).islower())
    answer = "Yes" if fit else "No"
    if "response_format" in body:
        return Reply(json.dumps({"answer": answer, "value": answer}))
    return Reply(answer)


def connected(url: str, **options: object) -> bf.Session:
    session = bf.connect(f"openai:tiny@{url}", progress="off", cache=None, **options)
    session.from_arrow(
        pa.table({"id": [0, 1, 2, 3], "descr": ["a red bag", "a red bag", "blue", "red"]}), name="d"
    )
    photos = pa.array([RED, BLUE, BLUE, None], pa.binary())
    session.from_arrow(pa.table({"id": [0, 1, 2, 3], "photo": photos}), name="p")
    return session


@pytest.mark.parametrize(
    ("value", "times"),
    [
        ("descr", 1),
        ("d.descr", 1),
        ('p."photo"', 2),
        ("photo", 2),
        ("llm_text('z', descr)", 1),
        ("upper(descr)", 2),  # what an expression is, DataFusion tells
        ("coalesce(photo, photo)", 3),
    ],
)
def test_columns_that_say_what_they_are_need_no_trial(
    value: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []
    original = SessionContext.sql

    def counting(self: SessionContext, text: str, *args: Any, **kwargs: Any) -> Any:
        planned.append(text)
        return original(self, text, *args, **kwargs)

    session = connected("http://127.0.0.1:1/v1")
    monkeypatch.setattr(SessionContext, "sql", counting)
    frame = session.sql(f"SELECT llm_filter('q', {value}) AS yes FROM {JOINED}")
    (call,) = (call for call in frame.prepared.calls if "'q'" in call.text)
    assert (call.in_bytes, len(planned)) == ((0,) if "photo" in value else (), times)


JOINED = "d JOIN p ON d.id = p.id"


@pytest.mark.parametrize("function", ["llm_vqa", "llm_filter"])
def test_a_text_and_an_image_of_a_join_are_one_question(function: str) -> None:
    with serving(fits) as server:
        session = connected(server.url)
        question = "Does {descr} fit the image?"
        query = f"SELECT d.id FROM {JOINED} WHERE {function}('{question}', descr, photo) ORDER BY 1"
        assert session.sql(query).to_pydict() == {"id": [0, 2]}
        asked = sorted(map(shown, server.bodies), key=str)
        of_images = [parts for parts in asked if len(parts) > 1]
        assert of_images == [
            (f"Question: {text}\nValues:", f"descr: {descr}", "photo:", image)
            for text in ["Does the descr fit the image?"]
            for descr, image in [("a red bag", "BLUE"), ("a red bag", "RED"), ("blue", "BLUE")]
        ]
        # llm_vqa does not ask about a row without an image; a question about values does.
        assert len(asked) == (3 if function == "llm_vqa" else 4)


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_texts_that_look_like_images_stay_texts(planner: bool) -> None:
    texts = [
        "no image, sorry",
        "image/png, 3 bytes, 075e6668d8cc3b334f9940078d84810f",
        "/etc/passwd",
    ]
    with serving(lambda body: Reply("ok")) as server:
        session = connected(server.url, planner=planner)
        table = pa.table({"t": texts, "photo": pa.array([RED] * 3, pa.binary())})
        session.from_arrow(table, name="h")
        rows = session.sql("SELECT llm_vqa('q', t, photo) AS a FROM h").to_pydict()
        assert rows == {"a": ["ok"] * 3}
        assert sorted(str(shown(body)[1]).split(":", 1)[1].strip() for body in server.bodies) == [
            *sorted(texts)
        ]


def test_a_line_in_a_text_cannot_pass_for_another_value() -> None:
    with serving(lambda body: Reply("ok")) as server:
        session = connected(server.url)
        table = pa.table({"t": ["a\nphoto: b"], "photo": pa.array([RED], pa.binary())})
        session.from_arrow(table, name="h")
        session.sql("SELECT llm_vqa('q', t, photo) AS a FROM h").collect()
        assert shown(server.bodies[0])[1] == "t: a\n  photo: b"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("llm_map('Which colour?', photo)", "Yes"),
        ("llm_bool('Is it red?', photo)", True),
        ("llm_classify(photo, ['Yes', 'No'])", "Yes"),
        ("llm_text('Which?', photo, descr)", "Yes"),
        ("llm_extract(photo, 'answer TEXT')", {"answer": "Yes"}),
        ("llm_classify(descr, photo, ['Yes', 'No'])", "Yes"),
        ("llm_classify(descr, photo, labels => ['Yes', 'No'])", "Yes"),
        ("llm_extract(descr, photo, 'answer TEXT')", {"answer": "Yes"}),
    ],
)
@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view(), pa.string()], ids=str)
def test_functions_of_rows_see_images(call: str, expected: object, kind: pa.DataType) -> None:
    def yes(body: Body) -> Reply:
        assert "RED" in shown(body)
        return Reply(json.dumps({"answer": "Yes"}) if "response_format" in body else "Yes")

    with serving(yes) as server:
        session = connected(server.url)
        photo = pa.array([INLINE if kind == pa.string() else RED], kind)
        session.from_arrow(pa.table({"photo": photo, "descr": ["a"]}), name="h")
        assert session.sql(f"SELECT {call} AS a FROM h").to_pydict() == {"a": [expected]}


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary_view(), pa.string()], ids=str)
def test_a_score_is_of_the_image(kind: pa.DataType) -> None:
    def redness(body: Body) -> Reply:
        return Reply("9" if "RED" in shown(body) else "2")

    with serving(redness) as server:
        session = connected(server.url)
        images = [INLINE, "a blue one"] if kind == pa.string() else [RED, BLUE]
        session.from_arrow(pa.table({"id": [1, 2], "photo": pa.array(images, kind)}), name="h")
        query = "SELECT id, llm_score('How red?', photo) AS a FROM h ORDER BY a DESC LIMIT 1"
        assert session.sql(query).to_pylist() == [{"id": 1, "a": 9.0}]
        frame = session.table("h").sort(bf.llm_score("How red?", "photo").sort(ascending=False))
        assert frame.limit(1).select("id").to_pylist() == [{"id": 1}]


def test_data_frames_see_them_too() -> None:
    with serving(fits) as server:
        session = connected(server.url)
        table = pa.table({"descr": ["red", "red"], "photo": pa.array([RED, BLUE], pa.binary())})
        frame = session.from_arrow(table, name="h")
        kept = frame.filter(bf.llm_filter("Does it fit?", "descr", "photo"))
        assert kept.to_pydict() == {"descr": ["red"], "photo": [RED]}


PAIRED = "Options: Yes, No\nValues:"


@pytest.mark.parametrize("how", ["sql", "python"])
def test_a_label_is_of_a_text_and_an_image_together(how: str) -> None:
    """Of each pair of distinct values once; rows of a text alone are asked about the text."""
    with serving(fits) as server:
        session = connected(server.url)
        if how == "sql":
            rows = session.sql(
                f"SELECT d.id, llm_classify(descr, photo, ['Yes', 'No'], question => 'Does it fit?') AS fit "
                f"FROM {JOINED} ORDER BY 1"
            ).to_pylist()
        else:
            both = session.sql(f"SELECT d.id, descr, photo FROM {JOINED}")
            fit = bf.llm_classify(["descr", "photo"], ["Yes", "No"], question="Does it fit?")
            rows = both.select("id", fit.alias("fit")).sort("id").to_pylist()
        assert rows == [{"id": n, "fit": fit} for n, fit in enumerate(["Yes", "No", "Yes", "No"])]
        asked = sorted(map(shown, server.bodies), key=str)
        assert [parts for parts in asked if len(parts) > 1] == [
            (f"Question: Does it fit?\n{PAIRED}", f"descr: {descr}", "photo:", image)
            for descr, image in [("a red bag", "BLUE"), ("a red bag", "RED"), ("blue", "BLUE")]
        ]


def test_fields_are_of_a_text_and_an_image_together() -> None:
    def read(body: Body) -> Reply:
        *beside, image = shown(body)[1:]
        probing = image == "photo:"  # how it constrains, which takes no image
        assert [*beside, image][:2] == ["descr: a red bag", "photo:"]
        assert probing or (len(beside), image) == (2, "RED")
        return Reply(json.dumps({"colour": "red", "thing": "bag"}))

    with serving(read) as server:
        session = connected(server.url)
        frame = session.sql(f"SELECT descr, photo FROM {JOINED} WHERE d.id = 0")
        schema = "colour TEXT, thing IN ('bag', 'shoe')"
        found = frame.select(bf.llm_extract(["descr", "photo"], schema).alias("x"))
        assert found.to_pylist() == [{"x": {"colour": "red", "thing": "bag"}}]


@pytest.mark.parametrize(
    "call",
    [
        "llm_similarity(descr, photo)",
        "llm_redact(photo)",
    ],
)
def test_functions_that_read_texts_alone_say_what_sees_images(call: str) -> None:
    with serving(fits) as server:
        session = connected(server.url)
        with pytest.raises(bf.QueryError, match="BINARY is no text in UTF-8") as caught:
            session.sql(f"SELECT {call} AS a FROM {JOINED}").to_pylist()
        hint = str(caught.value.hint)
        assert "llm_filter('Do both show the same?', a, b)" in hint
        assert "SELECT llm_map('What does it show?', photo)" in hint
        assert not [body for body in server.bodies if "messages" in body]


def test_answers_about_images_are_values_of_functions_that_read_texts() -> None:
    def colour(body: Body) -> Reply:
        parts = shown(body)
        return Reply("red" if "RED" in parts else "blue" if "BLUE" in parts else "No")

    with serving(colour) as server:
        session = connected(server.url)
        query = """
            SELECT llm_same(caption) AS e, count(*) AS n
            FROM (SELECT llm_map('What does it show?', photo) AS caption FROM p WHERE id < 3)
            GROUP BY 1 ORDER BY 1"""
        assert session.sql(query).to_pylist() == [{"e": "blue", "n": 2}, {"e": "red", "n": 1}]


def test_rows_of_texts_alone_are_asked_as_ever_and_urls_in_texts_are_texts() -> None:
    with serving(lambda body: Reply("ok")) as server:
        session = connected(server.url)
        session.from_arrow(pa.table({"x": ["a", INLINE, WEB]}), name="h")
        assert session.sql("SELECT llm_map('q', x) AS a FROM h").to_pydict() == {"a": ["ok"] * 3}
        kinds = sorted(len(shown(body)) for body in server.bodies)
        assert kinds == [1, 1, 2]
        assert not any(WEB in shown(body) for body in server.bodies)


def test_bytes_that_are_neither_image_nor_text_fail_alone() -> None:
    with serving(lambda body: Reply("ok")) as server:
        session = connected(server.url)
        table = pa.table({"x": pa.array([b"\xff\x00\x01", b"plain", RED], pa.binary())})
        session.from_arrow(table, name="h")
        with pytest.warns(bf.AnswerWarning, match="neither the bytes of a PNG"):
            rows = session.sql("SELECT llm_map('q', x) AS a FROM h").to_pydict()
        assert rows == {"a": [None, "ok", "ok"]}


def test_a_model_of_texts_says_so() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: str(call.values[0])[:9]), cache=None)
    session.from_arrow(pa.table({"x": pa.array([RED], pa.binary())}), name="h")
    assert session.sql("SELECT llm_map('q', x) AS a FROM h").to_pydict() == {"a": ["image/png"]}


def test_llmmap_of_blendsql_takes_a_column_of_texts_beside_one_of_images() -> None:
    with serving(fits) as server:
        session = connected(server.url)
        query = (
            "SELECT d.id FROM d JOIN p ON d.id = p.id "
            "WHERE {{LLMMap('Does the text fit the image?', d.descr, p.photo)}} = TRUE ORDER BY 1"
        )
        rows = session.sql(query, dialect="blendsql").to_pydict()
        assert rows == {"id": [0, 2]}
        assert sum(len(shown(body)) == 4 for body in server.bodies) == 3


def test_the_estimate_counts_pairs_of_texts_and_images() -> None:
    with serving(fits) as server:
        session = connected(server.url)
        for function in ("llm_vqa", "llm_map"):
            frame = session.sql(f"SELECT {function}('q', descr, photo) AS a FROM {JOINED}")
            assert frame.estimate().total.values == (3 if function == "llm_vqa" else 4)
            assert frame.estimate().total.prompt_tokens > 3 * 765
        assert not [body for body in server.bodies if "messages" in body]


COUNTED = [
    "llm_filter('Red?', photo)",
    "llm_bool('Red?', photo)",
    "llm_map('Red?', photo, options => ['Yes', 'No'])",
    "llm_text('Which?', photo)",
    "llm_score('How red?', photo, low => 1, high => 5)",
    "llm_vqa('Which?', photo)",
    "llm_vqa('Red?', photo, returns => 'boolean')",
    "llm_filter('Does {} show {}?', photo, words)",
    "llm_filter('Red?', coalesce(words, 'none'))",
]


@pytest.mark.parametrize("call", COUNTED)
def test_what_was_asked_about_images_is_counted_everywhere(call: str) -> None:
    """Evaluations and EXPLAIN ANALYZE say what the trace says."""

    def some(body: Body) -> Reply:
        score = '"3"' if "scale" in str(body["messages"]) else '"Yes"'
        return Reply(f'{{"answer": {score}}}' if "response_format" in body else "Yes")

    with serving(some) as server:
        session = bf.connect(f"openai:tiny@{server.url}", progress="off", cache=None)
        table = {"photo": [RED, BLUE, RED, None], "words": ["a", "b", "a", "c"], "gold": ["?"] * 4}
        session.from_pydict(table, name="t")
        frame = session.sql(f"SELECT CAST({call} AS VARCHAR) AS answer, gold FROM t")
        found, usage = frame.evaluate("answer", "gold"), frame.trace.usage
        assert (usage.calls, usage.values) == (len(server.bodies), found.usage.values)
        assert usage.values >= 2
        assert found.usage.prompt_tokens == usage.prompt_tokens > 0
    with serving(some) as server:
        session = bf.connect(f"openai:tiny@{server.url}", progress="off", cache=None)
        session.from_pydict(table, name="t")
        lines = session.sql(f"EXPLAIN ANALYZE SELECT {call} AS answer FROM t").to_pydict()["plan"]
    asked, total = (next(x for x in lines if word in x) for word in ("    ask ", "Total: "))
    assert f"{usage.values} values asked" in asked
    assert f"{usage.values} values asked" in total


def test_the_cost_of_images_is_known_from_earlier_runs() -> None:
    """A predicate over images is placed by what images took."""
    with serving(lambda body: Reply('{"answer": "Yes"}')) as server:
        session = connected(server.url)
        frame = session.sql("SELECT id FROM p WHERE llm_filter('Red?', photo)")
        frame.collect()
        (call,) = frame.prepared.calls
        seen = session.ledger.usage_of(call.task)
    assert seen is not None
    assert seen.values == frame.trace.usage.values == 2
