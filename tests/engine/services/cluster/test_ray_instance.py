"""Ray belongs to the process: sessions share it, and its troubles are errors of ours. Ray itself is
played by a script; ``test_two_sessions`` takes the real one, where it is installed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ray_here import ray_or_skip

import blendfusion as bf
from blendfusion.services.cluster import ray_workers
from blendfusion.services.cluster.protocol import PlaceGone
from blendfusion.services.cluster.ray_workers import RayPlace, RayWorkers

PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class FakeRay(ModuleType):
    """What of Ray is used, and how often it was started and ended."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.started = self.ended = 0
        self.problem: Exception | None = None
        self.patience: str | None = None
        """What the environment said when it was started."""
        self.exceptions = SimpleNamespace(
            RayError=RayError, RayTaskError=RayTaskError, GetTimeoutError=TimeoutError
        )

    def is_initialized(self) -> bool:
        return self.started > self.ended

    def init(self, **options: object) -> None:
        self.patience = os.environ.get(PATIENCE)
        if self.problem is not None:
            raise self.problem
        self.started += 1

    def shutdown(self) -> None:
        self.ended += 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def kill(self, actor: object) -> None:
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    made = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", made)
    return made


def test_sessions_share_what_belongs_to_the_process(ray: FakeRay) -> None:
    first, second = RayWorkers(None), RayWorkers(None)
    assert (first.size, second.size, ray.started) == (2, 2, 1)
    first.close()
    assert ray.is_initialized()
    second.close()
    second.close()
    assert (ray.started, ray.ended) == (1, 0)


def test_an_instance_that_the_program_ended_is_started_anew(ray: FakeRay) -> None:
    workers = RayWorkers(None)
    assert workers.size == 2
    ray.shutdown()
    assert workers.size == 2
    assert ray.started == 2


def test_a_cluster_that_does_not_start_is_an_error_of_ours(ray: FakeRay) -> None:
    ray.problem = RuntimeError("The current node timed out during startup.")
    with pytest.raises(bf.ModelFailed, match=r"Ray cannot be started.*timed out") as raised:
        assert RayWorkers(None).size
    assert "RAY_raylet_start_wait_time_s" in str(raised.value.hint)
    assert ray.ended == 1  # what did start is no burden for the next try
    with pytest.raises(bf.ModelFailed, match=r"the Ray cluster at h:1 cannot be reached") as raised:
        assert RayWorkers("h:1").size
    assert "ray status" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("problem", "gone"),
    [
        (RayError("The actor is unavailable"), True),
        (Exception("Failed to submit task to actor … from a different cluster"), True),
        (ConnectionError("GRPC connection failed"), True),
        (RayTaskError("the model raised"), False),
        (KeyError("of ours"), False),
    ],
)
def test_an_actor_of_another_instance_is_gone(ray: FakeRay, problem: Exception, gone: bool) -> None:
    def call(message: bytes) -> Any:
        raise problem

    ray.init()
    place = RayPlace(SimpleNamespace(call=SimpleNamespace(remote=call)), "a")
    with pytest.raises(PlaceGone if gone else type(problem)):
        place.call(b"")


def test_a_place_that_is_gone_closes(ray: FakeRay) -> None:
    ray.problem = RayError("ActorHandleNotFoundError")
    RayPlace(None, "a").close()


def test_a_head_that_is_gone_is_found_before_ray_waits_for_it(ray: FakeRay) -> None:
    context = SimpleNamespace(gcs_address="127.0.0.1:1")
    ray.get_runtime_context = lambda: context  # type: ignore[attr-defined]
    with pytest.raises(
        bf.ModelFailed, match=r"the Ray cluster at 127\.0\.0\.1:1 cannot be reached"
    ):
        ray_workers._check_head(ray, None)


@pytest.fixture
def greeted(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The heads that were greeted; actors start at once."""
    found: list[str] = []
    monkeypatch.setattr(ray_workers, "_greet", found.append)
    context = SimpleNamespace(gcs_address="127.0.0.1:1")
    ray.get_runtime_context = lambda: context  # type: ignore[attr-defined]
    actor = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda _: None))
    ray.remote = lambda **_: lambda _: actor  # type: ignore[attr-defined]
    ray.method = lambda **_: lambda method: method  # type: ignore[attr-defined]
    return found


def test_a_head_is_greeted_once_for_a_query(greeted: list[str]) -> None:
    workers = RayWorkers(None)
    opened = [(number, lane) for lane in ("rows", "more rows") for number in range(100)]

    def query() -> dict[tuple[int, str], Any]:
        return {key: workers.open(*key) for key in opened}

    held = query()
    assert len(greeted) == 1
    workers.open(0, "answers")
    workers.open(0, "range")
    assert len(greeted) == 1
    held[7, "rows"].has_ended = True
    held[7, "rows"] = workers.open(7, "rows")  # a place is gone, and maybe its head
    assert len(greeted) == 2
    for key, place in held.items():
        workers.give_back(*key, place)
    query()
    assert len(greeted) == 3


def test_places_that_ask_alone_greet_a_head_once(greeted: list[str]) -> None:
    workers = RayWorkers(None)
    for number in range(100):
        workers.open(number, "answers")
    assert len(greeted) == 1


@contextmanager
def listening(*said: bytes) -> Iterator[str]:
    """The address of a server that says something to whoever connects, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    for part in said:
                        kept[-1].sendall(part)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for one in kept:
            one.close()


@pytest.mark.parametrize("scheme", ["", "ray://"])
@pytest.mark.parametrize(
    ("said", "problem"), [((), "timed out"), ((b"HTTP/1.1 400 Bad Request",), "no Ray")]
)
@pytest.mark.parametrize("of_environment", [False, True])
def test_a_place_that_is_no_ray_is_named_before_ray_tries_it(
    ray: FakeRay,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    said: tuple[bytes, ...],
    problem: str,
    of_environment: bool,
) -> None:
    monkeypatch.setattr(ray_workers, "_HEAD_SECONDS", 0.2)
    with listening(*said) as place:
        address = scheme + place
        if of_environment:
            monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(bf.ModelFailed, match=f"at {address} cannot be reached: .*{problem}"):
            assert RayWorkers(None if of_environment else address).size
    assert ray.started == 0
    with pytest.raises(
        bf.ModelFailed, match=f"at {address} cannot be reached: .*refused"
    ) as raised:
        assert RayWorkers(address).size
    assert "RAY_ADDRESS" in str(raised.value.hint)


@pytest.mark.parametrize("scheme", ["", "ray://"])
@pytest.mark.parametrize("refuses", [True, False])
def test_a_cluster_that_asks_for_a_token_says_so(ray: FakeRay, scheme: str, refuses: bool) -> None:
    grpc = pytest.importorskip("grpc", reason="comes with the extra 'ray'")
    code = grpc.StatusCode.UNAUTHENTICATED if refuses else grpc.StatusCode.UNIMPLEMENTED

    class Server(grpc.GenericRpcHandler):  # type: ignore[misc,name-defined]
        def service(self, details: object) -> object:
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: context.abort(code, "no")
            )

    server = grpc.server(ThreadPoolExecutor(1), handlers=[Server()])
    address = f"{scheme}127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    ray.problem = ConnectionError("connection timeout")
    said = "asks for a token" if refuses else "cannot be reached: connection timeout"
    try:
        with pytest.raises(bf.ModelFailed, match=f"at {address} {said}") as raised:
            assert RayWorkers(address).size
    finally:
        server.stop(None)
    assert ("RAY_AUTH_TOKEN" in str(raised.value.hint)) == refuses


@pytest.mark.parametrize("address", ["h", "ray://h", ":1", "h:port"])
def test_an_address_has_a_port(ray: FakeRay, address: str) -> None:
    with pytest.raises(bf.ModelFailed, match=f"at {address} cannot be reached: .*HOST:PORT"):
        assert RayWorkers(address).size


@pytest.mark.parametrize("address", [None, "auto", "local"])
def test_an_address_that_ray_finds_itself_is_not_tried(ray: FakeRay, address: str | None) -> None:
    assert RayWorkers(address).size == 2


def test_a_server_of_grpc_is_taken(ray: FakeRay) -> None:
    with listening(b"\0\0\0", b"\4\0\0\0\0\0") as place:
        assert RayWorkers(place).size == RayWorkers(f"ray://{place}").size == 2


def test_a_program_outlives_the_head_of_its_cluster(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RayWorkers(None).size == 2
    assert int(ray.patience or 0) * 1000 < 2**31  # Ray counts in milliseconds
    assert int(ray.patience or 0) > 7 * 86_400
    assert PATIENCE not in os.environ
    ray.shutdown()
    monkeypatch.setenv(PATIENCE, "5")
    assert RayWorkers(None).size == 2
    assert (ray.patience, os.environ[PATIENCE]) == ("5", "5")


TWO = """
import blendfusion as bf
import cluster_scripts

def session():
    made = bf.connect(bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h"), cache=None, cluster="ray")
    made.from_pydict({"x": [f"v{n}" for n in range(9)]}, name="t")
    return made

if __name__ == "__main__":
    first, second = session(), session()
    query = "SELECT x FROM t WHERE llm_filter('q', x) OR x >= 'v'"
    assert len(first.sql(query).to_pylist()) == len(second.sql(query).to_pylist()) == 9
    first.close()
    assert len(second.sql(query.replace("'q'", "'r'")).to_pylist()) == 9
    second.close()
    print("lives")
"""


@pytest.mark.long
@pytest.mark.slow
def test_two_sessions(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray_or_skip(monkeypatch)
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    from pathlib import Path

    support = str(Path(__file__).parents[3] / "support")
    monkeypatch.setenv("PYTHONPATH", support)
    found = subprocess.run(
        [sys.executable, str(tmp_path / "two.py")], capture_output=True, encoding="utf-8"
    )
    assert (found.returncode, found.stdout) == (0, "lives\n"), found.stderr
