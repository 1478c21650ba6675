"""``llm_vqa``: what a server gets of images, and what becomes of values that are none."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from loopback import Body, Reply, serving
from scripts import Counted

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.models.protocol.images import image_bytes, lend_within, name_of, type_of

RED = b"\x89PNG\r\n\x1a\n" + b"\xffred\x00"
BLUE = b"\xff\xd8\xff\xe0" + b"blue"
WEB = "https://example.org/a.png?size=2"


def data_url(image: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(image).decode()}"


def parts(body: Body) -> list[dict[str, Any]]:
    """The content of a request's last message."""
    content = body["messages"][-1]["content"]
    assert isinstance(content, list)
    return content


def images(body: Body) -> list[bytes | str]:
    """The images of a request: their bytes, or the URLs that the server shall fetch."""
    urls = [part["image_url"]["url"] for part in parts(body) if part["type"] == "image_url"]
    return [
        base64.b64decode(url.partition(",")[2]) if url.startswith("data:") else url for url in urls
    ]


def words(body: Body) -> list[str]:
    return [part["text"] for part in parts(body) if part["type"] == "text"]


def colours(body: Body) -> Reply:
    """What a model would see: a colour by the bytes, in whatever form it is wanted."""
    (image,) = images(body)
    colour = "red" if image == RED else "blue" if image == BLUE else "web"
    answer = colour
    if "yes or no" in body["messages"][0]["content"]:
        answer = "Yes" if colour == "red" else "No"
    if "whole number" in body["messages"][0]["content"]:
        answer = str(len(image))
    form = body.get("response_format", {})
    return Reply(json.dumps({"answer": answer}) if form.get("type") == "json_schema" else answer)


def session(url: str, column: object, **options: object) -> bf.Session:
    opened = bf.connect(f"openai:tiny@{url}", progress="off", **options)
    if not isinstance(column, pa.Array):
        column = pa.array(column)
    table = pa.table({"id": pa.array(range(len(column))), "photo": column})
    opened.from_arrow(table, name="t")
    return opened


ASK = "SELECT llm_vqa('Which colour?', photo) AS colour FROM t ORDER BY id"


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=["binary", "large", "view"]
)
def test_the_server_gets_the_bytes_of_each_distinct_image_once(kind: pa.DataType) -> None:
    column = pa.array([RED, None, BLUE, b"", RED], kind)
    with serving(colours) as server:
        opened = session(server.url, column)
        assert opened.sql(ASK).to_pydict() == {"colour": ["red", None, "blue", None, "red"]}
        assert sorted(map(images, server.bodies)) == [[RED], [BLUE]]
        assert {tuple(words(body)) for body in server.bodies} == {
            ("Question: Which colour?\nImage:",)
        }
        urls = [p["image_url"]["url"] for b in server.bodies for p in parts(b) if "image_url" in p]
        assert {url.partition(",")[0] for url in urls} == {
            "data:image/png;base64",
            "data:image/jpeg;base64",
        }
        opened.sql(ASK).collect()
        assert len(server.bodies) == 2


def test_the_place_of_a_call_says_what_its_answers_look_like() -> None:
    with serving(colours) as server:
        opened = session(server.url, [RED, BLUE])
        red = opened.sql("SELECT id FROM t WHERE llm_vqa('Is it red?', photo)")
        assert red.to_pydict() == {"id": [0]}
        long = opened.sql("SELECT id FROM t WHERE llm_vqa('How many bytes?', photo) > 10")
        assert long.to_pydict() == {"id": [0]}
        colour = "llm_vqa('Which?', photo, options => ['red', 'blue'])"
        assert opened.sql(f"SELECT {colour} AS c FROM t").to_pydict() == {"c": ["red", "blue"]}


def test_urls_are_left_to_the_server_and_data_urls_are_their_bytes() -> None:
    with serving(colours) as server:
        opened = session(server.url, [WEB, data_url(RED), data_url(BLUE, "text/plain"), None, " "])
        assert opened.sql(ASK).to_pydict() == {"colour": ["web", "red", "blue", None, None]}
        assert sorted(map(str, (images(body)[0] for body in server.bodies))) == sorted(
            map(str, (WEB, RED, BLUE))
        )
        # The same image, wherever it comes from, is the same question.
        opened.from_arrow(pa.table({"photo": pa.array([RED], pa.binary())}), name="u")
        again = opened.sql("SELECT llm_vqa('Which colour?', photo) AS colour FROM u")
        assert again.to_pydict() == {"colour": ["red"]}
        assert len(server.bodies) == 3


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_urls_are_not_sent_where_a_session_forbids_it(planner: bool) -> None:
    with serving(colours) as server:
        opened = session(server.url, [WEB, data_url(RED)], image_urls=False, planner=planner)
        with pytest.warns(bf.AnswerWarning, match="image_urls is off"):
            assert opened.sql(ASK).to_pydict() == {"colour": [None, "red"]}
        assert [images(body) for body in server.bodies] == [[RED]]


HOSTILE = [
    "file:///etc/passwd",
    "photos/a.png",
    "/etc/passwd",
    "ftp://example.org/a.png",
    "http://",
    "https://[",
    "https://example.org/a b",
    "data:image/png;base64,%%%",
    "data:image/svg+xml;base64," + base64.b64encode(b"<svg/>").decode(),
    "data:,hello",
    "javascript:alert(1)",
    "image/png, 11 bytes, 075e6668d8cc3b334f9940078d84810f",
    "https://example.org/" + "a" * 9000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:24])
def test_what_is_no_image_fails_alone_and_is_never_read_or_sent(text: str) -> None:
    with serving(colours) as server:
        opened = session(server.url, [text, data_url(RED)])
        kept = opened.sql(
            "SELECT llm_vqa('Which colour?', photo, on_error => 'keep') AS c FROM t ORDER BY id"
        ).to_pydict()["c"]
        assert kept[0]["value"] is None
        assert "neither the bytes of a PNG" in kept[0]["error"]
        assert kept[1] == {"value": "red", "error": None}
        assert [images(body) for body in server.bodies] == [[RED]]
        with pytest.warns(bf.AnswerWarning, match="no image"):
            assert opened.sql(ASK).to_pydict() == {"colour": [None, "red"]}
        raising = "SELECT llm_vqa('Which colour?', photo, on_error => 'raise') AS c FROM t"
        with pytest.raises(bf.AnswerError, match="no image"):
            opened.sql(raising).collect()


def test_several_images_are_asked_about_together_each_behind_its_name() -> None:
    def told(body: Body) -> Reply:
        return Reply("blue" if images(body) == [RED, BLUE] else "?")

    with serving(told) as server:
        opened = bf.connect(f"openai:tiny@{server.url}", progress="off")
        table = pa.table({"before": [RED, None], "after": [BLUE, BLUE]})
        opened.from_arrow(table, name="t")
        asked = opened.sql(
            "SELECT llm_vqa('What was {before}, if {} is now?', before, after) AS c FROM t"
        )
        assert asked.to_pydict() == {"c": ["blue", "?"]}
        both = next(body for body in server.bodies if len(images(body)) == 2)
        question = "Question: What was the before, if the after is now?\nImages:"
        assert words(both) == [question, "before:", "after:"]


def test_a_trace_and_an_error_hold_names_not_bytes() -> None:
    def refused(body: Body) -> Reply:
        if images(body) == [BLUE]:
            return Reply(status=400, error=f"bad image {data_url(BLUE, 'image/jpeg')}")
        return colours(body)

    big = RED + b"0" * 1_000_000
    with serving(refused) as server:
        opened = session(server.url, [RED, BLUE, big], show_values="on")
        frame = opened.sql(ASK)
        with pytest.warns(bf.AnswerWarning) as warned:
            assert frame.to_pydict() == {"colour": ["red", None, "web"]}
        page = frame.trace.to_html()
        said = str(warned[0].message) + page + str(frame.trace.calls.to_pylist())
        assert "image/png, 1,000,013 bytes" in said
        assert "base64," not in said
        assert len(page) < 200_000


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=400, error="tiny is not a multimodal model"),
        Reply(status=500, error="image input is not supported - hint: you may need the mmproj"),
        Reply(status=422, error="messages.0.content: Input should be a valid string"),
    ],
    ids=["vllm", "llama-server", "text only"],
)
def test_a_server_whose_model_takes_no_images_says_so_at_the_first_one(refusal: Reply) -> None:
    with serving(lambda body: refusal) as server:
        opened = session(server.url, [RED] + [BLUE + bytes([i]) for i in range(100)])
        with pytest.raises(bf.ModelFailed, match=r"tiny at .* takes no images") as raised:
            opened.sql(ASK).collect()
        assert "--mmproj" in str(raised.value)
        assert len(server.bodies) == 2


FORMS = [
    "response_format",
    "structured_outputs",
    "guided_choice",
    "regex",
    "grammar",
    "json_object",
    "json_schema",
    "none",
]
"""The forms of a constraint in the order in which a server is asked whether it heeds them."""


def form_of(body: Body) -> str:
    kind = body.get("response_format", {}).get("type")
    return "json_object" if kind == "json_object" else next((f for f in FORMS if f in body), "none")


@pytest.mark.parametrize("else_refused", [False, True], ids=["ignores", "refuses"])
@pytest.mark.parametrize("heeded", FORMS)
@pytest.mark.parametrize(
    "call", ["llm_filter('Red?', photo)", "llm_map('Red?', photo, options => ['Yes', 'No'])"]
)
def test_an_image_is_not_sent_to_find_out_how_a_server_constrains(
    heeded: str, else_refused: bool, call: str
) -> None:
    def some(body: Body) -> Reply:
        form = form_of(body)
        if form not in (heeded, "none"):
            said = f"{form}: no such field for structured output"
            return Reply(status=400, error=said) if else_refused else Reply("It is red!")
        wraps = form in ("response_format", "json_object", "json_schema")
        return Reply('{"answer": "Yes"}' if wraps else "Yes")

    with serving(some) as server:
        opened = session(server.url, [RED, BLUE, RED + b"more"], concurrency=1)
        answers = opened.sql(f"SELECT {call} AS a FROM t").to_pydict()["a"]
        forms = [form_of(body) for body in server.bodies]
        uploads = [form for form, body in zip(forms, server.bodies, strict=True) if images(body)]
    assert answers in ([True] * 3, ["Yes"] * 3)
    tried = FORMS[: FORMS.index(heeded)]
    assert uploads == [*tried[:1], heeded, heeded, heeded]
    assert [form for form in forms if form != heeded] == tried


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=400, error="tiny is not a multimodal model"),
        Reply(status=500, error="image input is not supported - hint: you may need the mmproj"),
    ],
    ids=["vllm", "llama-server"],
)
def test_images_that_are_refused_are_sent_once_whatever_the_form(refusal: Reply) -> None:
    def blind(body: Body) -> Reply:
        return refusal if images(body) else Reply('{"answer": "Yes"}')

    with serving(blind) as server:
        opened = session(server.url, [RED])
        with pytest.raises(bf.ModelFailed, match="takes no images"):
            opened.sql("SELECT llm_filter('Red?', photo) FROM t").collect()
        sizes = [len(images(body)[0]) for body in server.bodies if images(body)]
    assert sizes[0] == len(RED)
    assert len(sizes) == 2  # its own, and a plain one of ours
    assert len(server.bodies) == 3


def test_an_image_that_a_server_refuses_fails_alone_if_others_are_taken() -> None:
    def picky(body: Body) -> Reply:
        return Reply(status=400, error="broken") if images(body) == [BLUE] else Reply("white")

    with serving(picky) as server:
        opened = session(server.url, [BLUE], show_values="on")
        with pytest.warns(bf.AnswerWarning, match="broken"):
            assert opened.sql(ASK).to_pydict() == {"colour": [None]}
        assert len(images(server.bodies[-1])) == 1  # ours, which it took


def test_a_server_in_trouble_is_not_said_to_take_no_images() -> None:
    def troubled(body: Body) -> Reply:
        return Reply(status=400, error="broken") if images(body) == [BLUE] else Reply(status=500)

    with serving(troubled) as server:
        opened = session(server.url, [BLUE], retries=0, show_values="on")
        with pytest.warns(bf.AnswerWarning, match="broken"):
            assert opened.sql(ASK).to_pydict() == {"colour": [None]}


class TextOnly:
    """A model that says nothing of images."""

    def __init__(self) -> None:
        self.inner = bf.ScriptedModel(lambda call: "text")
        self.asked = 0

    batch_size = 8

    @property
    def info(self) -> bf.ModelInfo:
        return self.inner.info

    def count_tokens(self, text: str) -> int:
        return len(text)

    def answer(self, task: bf.Task, values: Any) -> list[bf.Answer]:
        self.asked += 1
        return self.inner.answer(task, values)

    def close(self) -> None:
        pass


def test_a_model_of_text_alone_is_not_asked() -> None:
    model = TextOnly()
    opened = bf.connect(model, progress="off")
    opened.from_arrow(pa.table({"id": [0], "photo": [RED]}), name="t")
    with pytest.raises(
        bf.QueryError, match="llm_vqa: scripted reads text only, no images"
    ) as raised:
        opened.sql(ASK).collect()
    assert "on a server with OpenAI's chat API" in str(raised.value)
    assert opened.sql(f"{ASK.replace('ORDER', 'WHERE photo IS NULL ORDER')}").to_pydict() == {
        "colour": []
    }
    assert model.asked == 0


def test_of_several_models_the_one_that_sees_is_asked() -> None:
    blind = TextOnly()
    with serving(colours) as server:
        opened = bf.connect([blind, f"openai:tiny@{server.url}"], progress="off")
        opened.from_arrow(pa.table({"id": [0, 1], "photo": [RED, BLUE]}), name="t")
        assert opened.sql(ASK).to_pydict() == {"colour": ["red", "blue"]}
        assert opened.sql(ASK).to_pydict() == {"colour": ["red", "blue"]}
        assert (blind.asked, len(server.bodies)) == (0, 2)


def looked(call: bf.Request) -> Value:
    image = call.values[0] or ""
    return image if image.startswith("http") else image_bytes(image).decode("latin-1")[-4:]


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_a_python_function_gets_at_the_bytes(planner: bool) -> None:
    db = Counted(looked, planner=planner)
    db.add("t", pa.table({"id": [0, 1, 2], "a": [RED, BLUE, RED], "u": [WEB, None, WEB]}))
    assert db.rows("SELECT id, llm_vqa('What?', a) FROM t WHERE id > 0 ORDER BY id") == [
        (1, "blue"),
        (2, "red\x00"),
    ]
    assert db.rows("SELECT llm_vqa('What?', u) FROM t WHERE id = 2") == [(WEB,)]
    name = db.model.calls[0].values[0]
    assert name is not None
    assert name.startswith("image/")
    with pytest.raises(bf.QueryError, match="has no bytes here"):
        image_bytes(name)


def test_a_union_and_a_join_bring_images_to_the_model() -> None:
    db = Counted(looked)
    db.add("a", pa.table({"id": [0, 1], "x": [RED, BLUE]}))
    db.add("b", pa.table({"id": [1, 2], "x": pa.array([BLUE, RED], pa.large_binary())}))
    union = "SELECT llm_vqa('What?', x) AS w FROM (SELECT x FROM a UNION ALL SELECT x FROM b) u"
    assert sorted(db.rows(union)) == [("blue",), ("blue",), ("red\x00",), ("red\x00",)]
    split = "SELECT llm_vqa('What?', x) AS w FROM a UNION ALL SELECT llm_vqa('What?', x) FROM b"
    assert sorted(db.rows(split)) == sorted(db.rows(union))
    joined = "SELECT a.id FROM a JOIN b ON a.id = b.id WHERE llm_vqa('What?', b.x) = 'blue'"
    assert db.rows(joined) == [(1,)]
    assert db.asked(joined) == 1
    assert len(db.model.calls) == 1


def test_as_an_expression_and_in_a_plain_context() -> None:
    db = Counted(looked).add("t", pa.table({"x": [RED], "u": [WEB]}))
    table = db.session.table("t")
    asked = table.select(bf.llm_vqa("What?", "x"), bf.llm_vqa("What?", "u"))
    assert list(asked.to_pydict().values()) == [["red\x00"], [WEB]]
    context = SessionContext()
    bf.register(context, model=bf.ScriptedModel(looked))
    context.from_arrow(pa.table({"x": [RED]}), "t")
    assert context.sql("SELECT llm_vqa('What?', x) AS w FROM t").to_pydict() == {"w": ["red\x00"]}


def test_an_estimate_counts_images_as_what_they_cost() -> None:
    db = Counted(looked).add("t", pa.table({"x": [RED, BLUE, RED, None]}))
    estimate = db.session.sql("SELECT llm_vqa('What?', x) FROM t").estimate()
    assert (estimate.total.values, estimate.exact) == (2, True)
    assert estimate.total.prompt_tokens == 2 * (765 + 2)
    assert db.model.calls == []


def test_names_and_types_of_images() -> None:
    assert [type_of(i) for i in (RED, BLUE, b"GIF87a", b"RIFF1234WEBPVP8", b"RIFF1234WAVE")] == [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        None,
    ]
    name = name_of(RED)
    assert name is not None
    with lend_within({name: RED}), lend_within({name: RED}):
        pass
    with lend_within({name: RED}):
        with lend_within({name: memoryview(RED)}):
            assert image_bytes(name) == RED
        assert image_bytes(name) == RED


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("llm_vqa(photo)", "the question must be a literal"),
        ("llm_vqa('What?')", "there is no value to ask about"),
        ("llm_vqa('What?', photo, examples => [['a', 'b']])", "no option 'examples'"),
    ],
)
def test_what_is_wrong_is_said(call: str, problem: str) -> None:
    db = Counted(looked).add("t", pa.table({"photo": [RED]}))
    with pytest.raises(bf.ArgumentError, match=problem):
        db.rows(f"SELECT {call} FROM t")
