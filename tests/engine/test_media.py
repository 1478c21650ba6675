"""Images and recordings wherever texts go: groups, lists, pairs, joins, preferences, groups by
meaning."""

from __future__ import annotations

import base64
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import functions
from loopback import Body, Reply, serving

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.errors import MatchWarning
from blendfusion.models.protocol.images import _LENT, name_of_unreadable, split
from blendfusion.udfs.services.columns.llm_prefers import SIDES

RED = b"\x89PNG\r\n\x1a\n" + b"\xffred\x00"
BLUE = b"\xff\xd8\xff\xe0" + b"blue"
SONG = b"RIFF\x10\x00\x00\x00WAVE" + b"song\x00\xff"
TALK = b"fLaC" + b"talk\x00\xff"
NOTHING = b"\xff\xfe\x00nothing"
HEX = f"arrow_cast(x'{NOTHING.hex()}', 'Binary')"
NAMES = {RED: "RED", BLUE: "BLUE", SONG: "SONG", TALK: "TALK"}
IMAGES = pa.table({"id": [0, 1, 2, 3], "m": pa.array([RED, BLUE, RED, None], pa.binary())})
SOUNDS = pa.table({"id": [0, 1, 2, 3], "m": pa.array([SONG, TALK, SONG, None], pa.binary())})


def parts_of(value: str | None) -> str:
    """A value with what the model sees or hears in the places of the names."""
    pieces = split(value or "")
    return "".join(NAMES.get(_bytes(piece), piece) for piece in pieces)


def _bytes(name: str) -> bytes:
    return bf.image_bytes(name) if name in _LENT else b""


class Eyes:
    """A model that writes down what it saw: values, with contents for names."""

    def __init__(self, answer: Any = None) -> None:
        self.seen: list[tuple[str, ...]] = []
        self._answer = answer

    def __call__(self, request: bf.Request) -> Any:
        self.seen.append(tuple(map(parts_of, request.values)))
        assert request.task.images == any(n in "".join(self.seen[-1]) for n in NAMES.values())
        if self._answer is not None:
            return self._answer(request)
        constraint = request.constraint
        if constraint.kind == "boolean":
            return True
        return constraint.options[0] if constraint.options else "seen"


def connected(model: Any, table: pa.Table = IMAGES, **options: Any) -> bf.Session:
    session = bf.connect(model, cache=None, progress="off", **options)
    session.from_arrow(table, "t")
    session.from_pydict({"id": [0, 1], "x": ["a red bag", "a blue bag"]}, name="d")
    return session


CASES = {
    "llm_qa": ("SELECT llm_qa('What?', m) AS a FROM t", [("BLUE", "RED", "RED")]),
    "llm_qa in groups": (
        "SELECT llm_qa('What?', m) AS a FROM t GROUP BY id % 2 ORDER BY id % 2",
        [("BLUE",), ("RED", "RED")],
    ),
    "llm_qa in order": (
        "SELECT llm_qa('What?', m ORDER BY id) AS a FROM t",
        [("RED", "BLUE", "RED")],
    ),
    "llm_summarize": ("SELECT llm_summarize(m) AS a FROM t", [("BLUE", "RED", "RED")]),
    "llm_answer": ("SELECT llm_answer('What?', m) AS a FROM t", [("BLUE",), ("RED",)]),
    "llm_compare": (
        "SELECT llm_compare(m, '=', 'a red bag') AS a FROM t",
        [("BLUE", "a red bag"), ("RED", "a red bag")],
    ),
    "llm_prefers": ("SELECT llm_prefers('Nicer?', m) AS a FROM t ORDER BY a", None),
    "llm_join": (
        "SELECT d.id, t.id FROM d JOIN t ON llm_join(d.x, t.m, how => 'shows it')",
        None,
    ),
}


@pytest.mark.parametrize("table", [IMAGES, SOUNDS], ids=["images", "recordings"])
@pytest.mark.parametrize("case", CASES)
def test_bytes_are_seen_and_heard_wherever_texts_go(case: str, table: pa.Table) -> None:
    query, expected = CASES[case]
    eyes = Eyes()
    frame = connected(bf.ScriptedModel(eyes), table).sql(query)
    assert frame.to_arrow_table().num_rows
    sounds = {"RED": "SONG", "BLUE": "TALK"}
    if table is SOUNDS and expected is not None:
        expected = [tuple(sorted(sounds.get(v, v) for v in row)) for row in expected]
    if expected is not None:
        found = {tuple(sorted(row)) for row in eyes.seen}
        assert found == {tuple(sorted(row)) for row in expected}
    names = "SONG TALK" if table is SOUNDS else "RED BLUE"
    assert all(name in " ".join(" ".join(row) for row in eyes.seen) for name in names.split())
    assert not _LENT


VERBS: dict[str, Any] = {
    "llm_qa": lambda t, d: t.aggregate([], [bf.llm_qa("q", "m")]),
    "llm_qa of a group": lambda t, d: t.aggregate([bf.col("id")], [bf.llm_qa("q", bf.col("m"))]),
    "llm_qa in an expression": lambda t, d: t.aggregate(
        [], [functions.upper(bf.llm_qa("q", "m", returns="text")).alias("a")]
    ),
    "llm_qa in order": lambda t, d: t.aggregate([], [bf.llm_qa("q", "m", order_by="id")]),
    "llm_validate": lambda t, d: t.aggregate([], [bf.llm_validate("q", "m")]),
    "llm_summarize": lambda t, d: t.aggregate([], [bf.llm_summarize("m")]),
    "llm_answer": lambda t, d: t.select("id", bf.llm_answer("q", "m")),
    "llm_compare": lambda t, d: t.select("id", bf.llm_compare("m", "=", "m2")),
    "llm_prefers": lambda t, d: t.select("id", bf.llm_prefers("q", "m").alias("a")),
    "llm_prefers in sort": lambda t, d: t.sort(bf.llm_prefers("q", "m")).limit(1),
    "llm_same": lambda t, d: t.select(bf.llm_same("m")),
    "llm_join": lambda t, d: d.llm_join(t, "x", "m", how="shows it"),
    "llm_map": lambda t, d: t.select("id", bf.llm_map("q", "m")),
    "llm_filter": lambda t, d: t.filter(bf.llm_filter("q", "m")),
    "a field of a struct": lambda t, d: t.aggregate([], [bf.llm_qa("q", bf.col("s")["bytes"])]),
    "a column in another case": lambda t, d: t.aggregate([], [bf.llm_qa("q", "M")]),
}


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_the_verbs_of_frames_see_bytes_as_queries_do(verb: str, kind: pa.DataType) -> None:
    struct = pa.array([{"bytes": one} for one in (RED, BLUE, RED, None)])
    columns = {
        "id": pa.array([0, 1, 2, 3]),
        "m": pa.array([RED, BLUE, RED, None], kind),
        "m2": ["a", "b", "c", "d"],
        "s": struct,
    }
    eyes = Eyes()
    session = connected(bf.ScriptedModel(eyes), pa.table(columns))
    frame = VERBS[verb](session.table("t"), session.table("d"))
    assert frame.to_arrow_table().num_rows
    assert {"RED", "BLUE"} <= {
        name for row in eyes.seen for value in row for name in NAMES.values() if name in value
    }
    assert not _LENT


def test_verbs_without_bytes_are_as_they_were() -> None:
    session = connected(bf.ScriptedModel(Eyes()))
    frame = session.table("d").aggregate([], [bf.llm_qa("q", "x")])
    assert "name_of_media" not in frame.explain_text()
    assert "name_of_media" in session.table("t").aggregate([], [bf.llm_qa("q", "m")]).explain_text()


def test_values_are_grouped_by_what_the_model_says_of_them() -> None:
    def answer(request: bf.Request) -> Any:
        shown = " ".join(map(parts_of, request.values))
        if "show or say" in request.question:
            return "a red bag" if "RED" in shown else "a blue shoe"
        if request.constraint.options:
            return "bags" if "bag" in shown else request.constraint.options[-1]
        return "bags" if "bag" in shown else "shoes"

    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
    session.from_arrow(IMAGES, "t")
    rows = session.sql("SELECT id, llm_group(m, into => 2) AS g FROM t ORDER BY id").to_pylist()
    assert rows[0]["g"] == rows[2]["g"] != rows[1]["g"]
    assert rows[3]["g"] is None


def test_equal_images_match_without_a_question() -> None:
    model = bf.ScriptedModel(lambda request: "none")
    found = connected(model).sql(
        "SELECT a.id AS i, b.id AS j FROM t a JOIN t b ON llm_join(a.m, b.m)"
    )
    pairs = {(row["i"], row["j"]) for row in found.to_pylist()}
    assert pairs == {(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)}


THINGS = [f"{colour} {thing}" for colour in ("red", "blue") for thing in "ABCDEFGHIJKLM"]


def picture(thing: str, number: int = 0) -> bytes:
    return RED + f"{thing}/{number}".encode()


def thing_in(value: str | None) -> str:
    """What the picture shows, or the text."""
    data = _bytes(value or "")
    return data[len(RED) :].decode().partition("/")[0] if data else value or ""


def viewer(request: bf.Request) -> Any:
    """Says what pictures show, and matches things that are the same."""
    if "show or say" in request.question:
        return f"It shows {thing_in(request.values[0])}, I think."
    if request.constraint.kind == "boolean":
        return len(set(map(thing_in, request.values))) == 1
    own, candidates = (value or "" for value in request.values)
    lines = [line.partition(". ") for line in candidates.splitlines()]
    return next((n for n, _, one in lines if thing_in(one) == thing_in(own)), "none")


@pytest.mark.parametrize("sides", ["x, m", "m, x", "m, m"])
@pytest.mark.parametrize("how", ["", ", how => 'the same thing'"])
def test_pictures_are_joined_by_what_they_show(sides: str, how: str) -> None:
    """There are more of them than candidates, and their names say nothing."""
    own, other = sides.split(", ")
    model = bf.ScriptedModel(viewer)
    session = bf.connect(model, cache=None, progress="off", embedder="wordllama")
    for name, number in (("a", 0), ("b", 1)):
        pictures = pa.array([picture(thing, number) for thing in THINGS], pa.binary())
        table = pa.table({"id": range(len(THINGS)), "m": pictures, "x": THINGS})
        session.from_arrow(table, name)
    query = (
        f"SELECT a.id AS i, b.id AS j FROM a JOIN b ON llm_join(a.{own}, b.{other}, k => 4{how})"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchWarning)  # all descriptions are much alike
        found = {(row["i"], row["j"]) for row in session.sql(query).to_pylist()}
    assert found == {(n, n) for n in range(len(THINGS))}
    told = sum("show or say" in request.question for request in model.calls)
    assert told == len(THINGS) * sides.count("m")
    assert not _LENT


@pytest.mark.parametrize("things", [4, 20])
def test_pictures_of_one_thing_are_the_same(things: int) -> None:
    """Up to twelve are compared with one another; of more, those whose descriptions are alike."""
    model = bf.ScriptedModel(viewer)
    session = bf.connect(model, cache=None, progress="off")
    shown = [(thing, number) for thing in THINGS[:things] for number in range(2)]
    pictures = pa.array([picture(*one) for one in shown] + [None], pa.binary())
    session.from_arrow(pa.table({"m": pictures, "x": [thing for thing, _ in shown] + [None]}), "t")
    query = "SELECT llm_same(m) AS one, count(*) AS n, min(x) AS x, max(x) AS y FROM t GROUP BY one"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchWarning)
        rows = session.sql(query).to_pylist()
    named = [row for row in rows if row["one"] is not None]
    assert [row["n"] for row in named] == [2] * things
    assert all(row["x"] == row["y"] and row["one"].startswith("image/png") for row in named)
    assert [row["n"] for row in rows if row["one"] is None] == [1]
    told = sum("show or say" in request.question for request in model.calls)
    assert told == (0 if 2 * things <= 12 else 2 * things)


def test_entities_of_pictures_have_no_name_to_be_kept_under() -> None:
    session = connected(bf.ScriptedModel(viewer))
    with pytest.raises(bf.QueryError, match="are kept for texts only"):
        session.sql("SELECT llm_same(m, name => 'n') AS one FROM t").collect()


@pytest.mark.parametrize(
    "call",
    [
        "llm_filter('q', m)",
        "llm_map('q', m)",
        "llm_qa('q', m)",
        "llm_prefers('q', m)",
        "llm_answer('q', m)",
    ],
)
@pytest.mark.local
def test_a_model_that_hears_nothing_is_an_error_that_names_llm_transcribe(call: str) -> None:
    session = connected("smollm2", SOUNDS)
    with pytest.raises(bf.QueryError, match="hears no recordings") as caught:
        session.sql(f"SELECT {call} AS a FROM t").collect()
    assert "llm_transcribe" in str(caught.value)


@pytest.mark.parametrize("call", ["llm_filter('q', m)", "llm_qa('q', m)"])
def test_bytes_that_nobody_reads_are_failures_that_are_told(call: str) -> None:
    table = pa.table({"id": [1], "m": pa.array([NOTHING], pa.binary())})
    session = connected(bf.ScriptedModel(lambda request: True), table)
    with pytest.warns(bf.AnswerWarning, match="1 value got no valid answer"):
        rows = session.sql(f"SELECT {call} AS a FROM t").to_pylist()
    assert rows == [{"a": None}]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.binary()),
        pa.list_(pa.binary_view()),
        pa.large_list(pa.large_binary()),
        pa.list_(pa.binary(), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "call", ["llm_map('q', m)", "llm_filter('q', m)", "llm_qa('q', t.m)", "llm_answer('q', m)"]
)
def test_a_list_of_bytes_is_no_text_of_their_digits(call: str, kind: pa.DataType) -> None:
    table = pa.table({"id": [1], "m": pa.array([[RED]], kind)})
    session = connected(bf.ScriptedModel(eyes := Eyes()), table)
    with pytest.raises(bf.QueryError, match="LIST of BINARY is no text") as caught:
        session.sql(f"SELECT {call} AS a FROM t").collect()
    assert "SELECT unnest(images) AS image" in str(caught.value.hint)
    if "map" in call and kind != pa.list_(pa.binary(), 1):
        with pytest.raises(bf.QueryError, match="LIST of BINARY is no text"):
            session.table("t").select(bf.llm_map("q", "m")).collect()
    assert not eyes.seen
    rows = session.sql("SELECT llm_qa('q', i) AS a FROM (SELECT unnest(m) AS i FROM t)").to_pylist()
    assert (rows, eyes.seen) == ([{"a": "seen"}], [("RED",)])


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize(
    "value",
    [
        *("make_array(m, m)", "[m]", "array_agg(m)", "array_append(lists[1], m)", "lists"),
        *("make_array(lists)", "lists[1]"),
    ],
)
def test_lists_that_are_made_of_bytes_are_none_either(value: str, planner: bool) -> None:
    """Nor are lists of such lists."""
    table = pa.table({"m": pa.array([RED]), "lists": pa.array([[[RED]]])})
    session = connected(bf.ScriptedModel(eyes := Eyes()), table, planner=planner)
    with pytest.raises(bf.QueryError, match=r"of type LIST.* is no text"):
        session.sql(f"SELECT llm_map('q', {value}) AS a FROM t").collect()
    assert not eyes.seen


def test_texts_in_bytes_are_texts_and_a_text_that_looks_like_a_name_is_one() -> None:
    fake = "image/png, 13 bytes, " + "0" * 32
    table = pa.table({"m": pa.array([b"a bag", fake.encode(), RED], pa.binary())})
    eyes = Eyes()
    connected(bf.ScriptedModel(eyes), table).sql("SELECT llm_qa('q', m) AS a FROM t").collect()
    assert [sorted(row) for row in eyes.seen] == [["RED", "a bag", fake]]


@pytest.mark.parametrize(
    "text",
    ["unreadable bytes, they say", "unreadable/bytes, 10 bytes", name_of_unreadable(b"other\0")],
)
@pytest.mark.parametrize("call", ["llm_qa('q', m)", "llm_qa('q', s)", "llm_prefers('q', m)"])
def test_a_text_that_looks_like_unreadable_bytes_is_one(text: str, call: str) -> None:
    """Also beside unreadable bytes and an image, whose names are lent."""
    rows = [text.encode(), RED, b"a bag"]
    table = pa.table({"m": pa.array(rows, pa.binary()), "s": [text, "a shoe", "a bag"]})
    session = connected(bf.ScriptedModel(eyes := Eyes()), table)
    session.from_arrow(pa.table({"m": pa.array([NOTHING, RED], pa.binary())}), "n")
    both = f"SELECT {call} AS a, (SELECT llm_answer('q', m) FROM n WHERE m <> {HEX}) AS b FROM t"
    session.sql(both).collect()
    assert text in [value for row in eyes.seen for value in row]


def test_random_groups_of_images_texts_and_recordings_are_seen_whole() -> None:
    rng = random.Random(11)
    values = [RED, BLUE, SONG, TALK, b"a bag", b"- a list", None]
    for _ in range(60):
        rows = rng.choices(values, k=rng.randrange(1, 7))
        keys = [rng.randrange(2) for _ in rows]
        table = pa.table({"k": keys, "m": pa.array(rows, pa.binary())})
        eyes = Eyes()
        connected(bf.ScriptedModel(eyes), table).sql(
            "SELECT k, llm_qa('q', m) AS a FROM t GROUP BY k"
        ).collect()
        expected = {
            tuple(
                sorted(
                    NAMES.get(v, v.decode("utf-8", "replace"))
                    for v, of in zip(rows, keys, strict=True)
                    if of == key and v is not None
                )
            )
            for key in set(keys)
        } - {()}
        assert {tuple(sorted(row)) for row in eyes.seen} == expected
        assert not _LENT


# --- servers --------------------------------------------------------------------------------------


def shown(body: Body) -> list[str]:
    """The parts of the last message, with contents by their names."""
    found = []
    for part in body["messages"][-1]["content"]:
        if part["type"] == "text":
            found.append(part["text"])
        elif part["type"] == "image_url":
            data = part["image_url"]["url"].partition(",")[2]
            found.append(NAMES[base64.b64decode(data)])
        else:
            assert part["type"] == "input_audio"
            assert part["input_audio"]["format"] in ("wav", "flac")
            found.append(NAMES[base64.b64decode(part["input_audio"]["data"])])
    return found


@pytest.mark.parametrize("table", [IMAGES, SOUNDS], ids=["images", "recordings"])
def test_a_server_gets_the_parts_of_a_message_in_their_places(table: pa.Table) -> None:
    first, second = ("RED", "BLUE") if table is IMAGES else ("SONG", "TALK")
    bodies: list[list[str]] = []

    def script(body: Body) -> Reply:
        bodies.append(shown(body))
        return Reply(SIDES[0] if "Nicer" in str(body["messages"]) else "seen")

    with serving(script) as server:
        session = connected(f"openai:m@{server.url}", table)
        query = "SELECT llm_qa('What?', m ORDER BY id) AS a FROM t WHERE id < 2"
        assert session.sql(query).to_pylist() == [{"a": "seen"}]
        assert [part for part in bodies[-1] if part in NAMES.values()] == [first, second]
        session.sql("SELECT llm_map('What?', m) AS a FROM t WHERE id = 1").collect()
        assert bodies[-1][-1] == second
        session.sql("SELECT llm_prefers('Nicer?', m) AS a FROM t").collect()
        ranked = [part for part in bodies[-1] if part in NAMES.values()]
        assert sorted(ranked) == sorted([first, second])


@pytest.mark.parametrize("table", [IMAGES, SOUNDS], ids=["images", "recordings"])
def test_a_recorded_run_over_bytes_is_repeated_without_a_model(
    table: pa.Table, tmp_path: Path
) -> None:
    pq.write_table(table, tmp_path / "t.parquet")
    query = "SELECT id, llm_map('What?', m) AS a FROM t ORDER BY id"
    groups = "SELECT llm_qa('What?', m ORDER BY id) AS a FROM t"
    for place, sql in enumerate((query, groups)):
        model = bf.ScriptedModel(lambda request: "seen", fingerprint="f")
        session = bf.connect(model, progress="off")
        session.from_arrow(table, "t")
        frame = session.sql(sql)
        frame.collect()
        frame.manifest().save(tmp_path / f"{place}.json")
        rows = f"t={tmp_path / 't.parquet'}"
        assert main(["replay", str(tmp_path / f"{place}.json"), "--table", rows]) == 0
