"""Several servers of one model, over real sockets: who gets what, and what a bad one costs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from loopback import Body, Loopback, Reply, closed_port, said, serving

import blendfusion as bf
from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.registry.load import load
from blendfusion.models.services.http.load_balancer import BalancedModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.server import Server
from blendfusion.models.services.http.server_choice import Balance
from blendfusion.models.services.http.structured_output import FORMS, Form
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

BOOLEAN = Task("llm_filter", "Is it good?", Constraint("boolean"), ("text",))
PAIR = Task("llm_filter", "Is {a} in {b}?", Constraint("boolean"), ("a", "b"))


def yes(body: Body) -> Reply:
    return Reply(json.dumps({"answer": "Yes"}))


def after(seconds: float) -> Callable[[Body], Reply]:
    def script(body: Body) -> Reply:
        time.sleep(seconds)
        return yes(body)

    return script


@contextmanager
def servers(*scripts: Callable[[Body], Reply]) -> Iterator[list[Loopback]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving(script)) for script in scripts]


def model_at(*urls: str, **options: object) -> BalancedModel:
    return BalancedModel("tiny", urls, None, Options().with_(**options), patience_seconds=0.5)


def rows(count: int) -> list[tuple[str | None, ...]]:
    return [(f"text {n}",) for n in range(count)]


def texts(server: Loopback) -> list[str]:
    return [said(body).rpartition("Text: ")[2] for body in server.bodies]


def test_a_name_with_several_urls_is_one_model() -> None:
    with servers(yes, yes) as (one, other):
        model = load(f"openai:tiny@{one.url},{other.url}", Options())
        assert isinstance(model, BalancedModel)
        assert model.info.name == f"openai:tiny@{one.url},{other.url}"
        alone = load(f"openai:tiny@{one.url}", Options())
        assert model.info.fingerprint == alone.info.fingerprint, "stored answers stay"
        assert model.batch_size == 2 * alone.batch_size
        assert [answer.text for answer in model.answer(BOOLEAN, rows(40))] == ["true"] * 40
    with pytest.raises(ModelNotFound, match="no port"):
        load("openai:tiny@http://a/v1,http://b:99999/v1", Options())
    with pytest.raises(ModelNotFound, match="an embedder has one"):
        bf.connect(None, embedder="openai:e@http://a/v1,http://b/v1", cache=None).sql(
            "SELECT llm_embed('x')"
        ).to_pylist()


def test_values_are_divided_by_what_is_outstanding() -> None:
    with servers(after(0.02), after(0.02)) as (one, other):
        answers = model_at(one.url, other.url, concurrency=8).answer(BOOLEAN, rows(160))
        assert all(answer.text == "true" for answer in answers)
        assert sorted(texts(one) + texts(other)) == sorted(text for (text,) in rows(160))
        assert min(len(one.bodies), len(other.bodies)) >= 50
        assert max(one.most_in_flight, other.most_in_flight) <= 8


def test_a_slow_server_gets_less_and_does_not_hold_the_end_up() -> None:
    slow = threading.Event()

    def hangs(body: Body) -> Reply:
        return Reply(json.dumps({"answer": "Yes"}), wait=slow)

    try:
        with servers(hangs, after(0.01)) as (one, other):
            begun = time.monotonic()
            model = model_at(one.url, other.url, concurrency=4)
            answers = model.answer(BOOLEAN, rows(60))
            assert time.monotonic() - begun < 8, "the requests of the first never end"
            assert all(answer.text == "true" for answer in answers)
            assert len(one.bodies) <= 4
            assert sum(answer.usage.calls for answer in answers) >= 60
            slow.set()
    finally:
        slow.set()


def test_a_dead_server_costs_no_value() -> None:
    dead = f"http://127.0.0.1:{closed_port()}/v1"
    with serving(yes) as server:
        model = model_at(dead, server.url)
        model.check()
        answers = model.answer(BOOLEAN, rows(50))
        assert all(answer.text == "true" for answer in answers)
        assert len(model.outages) == 1
        assert dead in model.outages[0]
        session = bf.connect(model, cache=None)
        session.from_pydict({"x": ["a", "b"]}, name="t")
        frame = session.sql("SELECT x FROM t WHERE llm_filter('q', x)")
        with pytest.warns(bf.ModelWarning, match="Left out"):
            assert len(frame.to_pylist()) == 2


def test_a_server_that_stops_in_the_middle_is_left() -> None:
    count = 0

    def fails(body: Body) -> Reply:
        nonlocal count
        count += 1
        return yes(body) if count <= 10 else Reply(status=503, error="overloaded")

    with servers(fails, after(0.01)) as (one, other):
        answers = model_at(one.url, other.url, concurrency=4).answer(BOOLEAN, rows(200))
        assert all(answer.text == "true" for answer in answers)
        assert len(one.bodies) < 60
        assert len(other.bodies) >= 150


def test_a_server_comes_back() -> None:
    back_at = time.monotonic() + 0.3

    def fails(body: Body) -> Reply:
        away = time.monotonic() < back_at
        return Reply(status=503, error="overloaded") if away else yes(body)

    with servers(fails, after(0.1)) as (one, other):
        answers = model_at(one.url, other.url, concurrency=2).answer(BOOLEAN, rows(50))
        assert all(answer.text == "true" for answer in answers)
        assert len(one.bodies) > 10


def test_no_server_left_is_an_error_that_names_all() -> None:
    urls = [f"http://127.0.0.1:{closed_port()}/v1" for _ in range(2)]
    model = model_at(*urls)
    with pytest.raises(ModelFailed, match="none of the 2 servers of tiny is left") as raised:
        model.check()
    assert all(url in str(raised.value) for url in urls)
    with pytest.raises(ModelFailed, match="none of the 2"):
        model.answer(BOOLEAN, rows(3))


def test_a_server_without_the_model_is_left() -> None:
    def missing(body: Body) -> Reply:
        return Reply(status=404, error="no such model")

    with servers(missing, yes) as (one, other):
        model = model_at(one.url, other.url, concurrency=2)
        assert all(answer.text == "true" for answer in model.answer(BOOLEAN, rows(20)))
        assert "has no model tiny" in model.outages[0]


def test_each_server_has_a_concurrency_of_its_own() -> None:
    """One refuses its first dozen as too many, the other takes them all."""
    limits = []

    def narrow(body: Body) -> Reply:
        limits.append(model._servers[0].endpoint.in_flight.limit)
        if len(limits) <= 12:
            return Reply(status=429, error="too many")
        return after(0.01)(body)

    with servers(narrow, after(0.02)) as (one, other):
        model = model_at(one.url, other.url, concurrency=16)
        assert all(answer.text == "true" for answer in model.answer(BOOLEAN, rows(200)))
        assert min(limits) < 16
        assert model._servers[1].endpoint.in_flight.limit == 16
        assert model.outages == ()


def listed(file: Path, *urls: str) -> None:
    new = file.with_suffix(".new")
    new.write_text("# servers\n\n" + "".join(f"{url}  # one\n" for url in urls))
    new.replace(file)


@pytest.mark.long
def test_servers_come_and_go_with_the_lines_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my servers.txt"
    with servers(after(0.02), after(0.02), after(0.02)) as (one, other, third):
        listed(file, one.url, one.url)
        model = load(f"openai:tiny@{file.as_uri()}", Options(concurrency=2))
        assert model.info.name == f"openai:tiny@{file.as_uri()}"
        identity, alone = model.info.fingerprint, model.at_once
        assert model.batch_size == 8 * alone

        def changed() -> None:
            time.sleep(0.2)
            listed(file, one.url, other.url)
            while len(other.bodies) < 20:
                time.sleep(0.01)
            file.write_text("half a line")  # as a file that is being written
            time.sleep(1.2)
            listed(file, other.url, third.url)

        thread = threading.Thread(target=changed)
        thread.start()
        count = 0
        while not third.bodies or count < 800:
            answers = model.answer(BOOLEAN, rows(100))
            assert [answer.text for answer in answers] == ["true"] * 100
            count += 100
        thread.join()
        assert all(len(server.bodies) >= 20 for server in (one, other))
        before = len(one.bodies)
        model.answer(BOOLEAN, rows(50))
        assert len(one.bodies) == before
        assert model.at_once == 2 * alone
        assert model.batch_size >= 8 * model.at_once
        assert model.info.fingerprint == identity, "stored answers stay"
        assert getattr(model, "outages", ()) == ()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "cannot be read: No such file"),
        ("# none\n\n", "names no server"),
        ("http://a/v1\nroot:secret\n", "line 2 of .* is not the URL of a server\nHint: It has"),
    ],
)
def test_a_file_without_servers_is_an_error(
    tmp_path: Path, lines: str | None, message: str
) -> None:
    """Which quotes none of its lines: a query may name any file."""
    if lines is not None:
        (tmp_path / "servers").write_text(lines)
    with pytest.raises(ModelNotFound, match=message) as raised:
        load(f"openai:tiny@{(tmp_path / 'servers').as_uri()}", Options())
    assert "secret" not in str(raised.value)
    for url in ("file:///", "file://host/servers"):
        with pytest.raises(ModelNotFound, match="is not the path of a file that lists servers"):
            load(f"openai:tiny@{url}", Options())


def balance(count: int) -> Balance:
    retry = Retry()
    made = [
        (url, Server.at(url, "m", None, Options(), retry))
        for url in (f"http://h{n}/v1" for n in range(count))
    ]
    for _, server in made:
        server.chat.forms.note_obeyed(Constraint("choice", options=("Yes", "No")), _form())
    return Balance(made, clock=lambda: 0.0)


def _form() -> Form:
    return FORMS[0]


def test_equal_beginnings_go_to_the_server_that_has_them() -> None:
    several = balance(3)
    few = [several.take(BOOLEAN, (str(n),)) for n in range(4)]
    assert {place.number for place in few if place} == {0}, "few values share one beginning"
    many = [several.take(BOOLEAN, (str(n),)) for n in range(40)]
    counts = [sum(place is one for place in [*few, *many]) for one in several.places]
    assert all(13 <= count <= 16 for count in counts), counts


def test_equal_first_values_go_together() -> None:
    several = balance(2)
    first = several.take(PAIR, ("a long text", "0"))
    others = [several.take(PAIR, (f"another {n}", "0")) for n in range(8)]
    assert {place.number for place in others if place} == {0, 1}
    assert several.take(PAIR, ("a long text", "1")) is first
