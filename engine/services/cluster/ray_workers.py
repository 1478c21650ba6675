"""Workers as actors of a Ray cluster."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from functools import partial
from importlib import import_module
from math import inf
from typing import Any
from uuid import uuid4

from blendfusion.errors import ModelFailed, OptionError
from blendfusion.services.cluster import protocol
from blendfusion.services.cluster.grace import Endings
from blendfusion.services.cluster.protocol import ROWS, Place, PlaceGone

_WAIT_SECONDS = 0.2
_START_SECONDS = 120.0
_HEAD_SECONDS = 5.0
_SOON_SECONDS = 1.0
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first words of a client of gRPC; the server's first frame has the type 4, too."""
_SETTINGS = 4
_HEAD_PATIENCE = {"RAY_gcs_rpc_server_reconnect_timeout_s": str(10**6)}
"""By itself, Ray ends every process of a cluster a minute after the cluster's head has ended, the
user's program too. With this setting they wait eleven days, the longest time that Ray counts."""
_STARTING = threading.Lock()
"""Held by the session that starts Ray for all of this process."""
_OTHER_CLUSTER = re.compile(r"different cluster|Failed to submit|actor|Ray Client", re.IGNORECASE)
_GONE = "a worker of the Ray cluster is gone"
_PULSE = "pulse"
_GROUPS = {"concurrency_groups": {_PULSE: 1}}


class RayPlace:
    """An actor of Ray, by its name. One that stands still is ended, and so is gone."""

    def __init__(self, actor: Any, address: str, endings: Endings | None = None) -> None:
        self.actor, self.address = actor, address
        self._endings = endings
        self._heard = False
        """Whether it has started."""
        self.has_ended = False

    def call(self, message: bytes) -> bytes:
        if self.has_ended:  # Ray takes its time to notice
            raise PlaceGone(_GONE)
        try:
            return bytes(self._await(self.actor.call.remote(message)))
        except Exception as problem:
            if not _is_of_ray(problem):
                raise
            self.has_ended = True
            raise PlaceGone(_GONE) from problem

    def _await(self, reply: Any) -> Any:
        """The value of a reply, which has no limit as long as the actor says that it is alive."""
        ray, beat, silent = _ray(), None, 0.0
        while True:
            start = time.monotonic()
            with suppress(ray.exceptions.GetTimeoutError):
                value = ray.get(reply, timeout=_WAIT_SECONDS)
                self._heard = True
                return value
            beat = beat or self.actor.beat.remote()
            if ray.wait([beat], timeout=0)[0]:
                beat, silent, self._heard = None, 0.0, True
            # This process may have stood still itself: more than a few waits are not counted.
            silent += min(time.monotonic() - start, 3 * _WAIT_SECONDS)
            ends = self._endings is not None and self._endings.is_over
            if ends or silent > (protocol.STILL_SECONDS if self._heard else _START_SECONDS):
                self.has_ended = True
                self.close()
                raise PlaceGone(_GONE)

    def close(self) -> None:
        try:
            _ray().kill(self.actor)
        except Exception as problem:  # it has ended, or its cluster has
            if not _is_of_ray(problem):
                raise


class RayWorkers:
    """Four actors for each CPU of the cluster: two run fragments, one asks models, one owns a range
    of values. Where Ray has GPUs, each actor that asks gets one.

    ``address`` is that of a cluster; None: the one of the environment, or a new one on this
    machine. An instance of Ray belongs to the process: sessions share it, and it lives as long as
    the process, or until the program ends it. One that has ended is started, or connected to, anew.
    """

    def __init__(self, address: str | None) -> None:
        _ray()
        self._address = address
        self._lock = threading.Lock()
        self._places: dict[tuple[int, str], RayPlace] = {}
        self._lent: dict[tuple[int, str], RayPlace] = {}
        """The places that were opened, and not given back."""
        self._greeted = -inf
        self._size: int | None = None
        self._gpus = 0
        self._endings = Endings()

    @property
    def size(self) -> int:
        with self._lock:
            return self._reach()

    def _reach(self) -> int:
        """The number of workers of the instance, which is started where there is none. Raises
        ModelFailed where it cannot be reached."""
        ray = _ray()
        with _STARTING:
            if not ray.is_initialized():
                self._places.clear()
                self._lent.clear()
                self._size = None
                _start(ray, self._address)
        if self._size is None:
            try:
                resources = ray.cluster_resources()
            except Exception as problem:
                raise _unreachable(self._address, problem) from problem
            self._gpus = int(resources.get("GPU", 0))
            self._size = self._gpus or max(1, int(resources.get("CPU", 1)))
        return self._size

    @property
    def one_machine(self) -> bool:
        alive = [node for node in _ray().nodes() if node["Alive"]] if self.size else []
        return len(alive) == 1 and not (self._address or "").startswith("ray://")

    def open(self, worker: int, lane: str) -> Place:
        size = self.size
        with self._lock:
            ray = _ray()
            self._greet_once(worker, lane)
            place = self._places.pop((worker, lane), None)
            if place is not None:
                self._lent[worker, lane] = place
                return place
            gpus = 1 if self._gpus and lane == "answers" else 0
            ray.method(concurrency_group=_PULSE)(_Actor.beat)  # clients of ray:// cannot state it
            actor = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=0, **_GROUPS)(_Actor)
            name = f"blendfusion-{uuid4().hex}"
            options: dict[str, Any] = {"name": name}
            if size > 1:
                options["scheduling_strategy"] = "SPREAD"
            if lane == "range":  # whoever waits for answers takes a thread
                options["max_concurrency"] = 4 * size + 4
            try:
                place = RayPlace(actor.options(**options).remote(name), name, self._endings)
            except Exception as problem:
                raise _unreachable(self._address, problem) from problem
            self._lent[worker, lane] = place
            return place

    def _greet_once(self, worker: int, lane: str) -> None:
        """Greet the head of the cluster once for a query: before its first place is opened, be it
        one that was kept, since actors look others up there; and again where a place is gone."""
        if (worker, lane) not in self._lent:
            out = (place for (_, own), place in self._lent.items() if own in ROWS)
            if not all(place.has_ended for place in out):
                return
            if lane not in ROWS and time.monotonic() - self._greeted < _SOON_SECONDS:
                return
        _check_head(_ray(), self._address)
        self._greeted = time.monotonic()

    def give_back(self, worker: int, lane: str, place: Place) -> None:
        assert isinstance(place, RayPlace)
        with self._lock:
            self._places[worker, lane] = place
            self._lent.pop((worker, lane), None)

    def ending(self) -> AbstractContextManager[None]:
        return self._endings.ending()

    def close(self) -> None:
        """End the actors of this session; Ray itself stays."""
        with self._lock:
            if _ray().is_initialized():
                for place in self._places.values():
                    place.close()
            self._places.clear()
            self._lent.clear()
            self._size = None


def _start(ray: Any, address: str | None) -> None:
    here = {"PYTHONPATH": os.pathsep.join(sys.path)}  # modules of models
    where = address or os.environ.get("RAY_ADDRESS") or None
    _check_reach(where)
    added = [name for name in _HEAD_PATIENCE if name not in os.environ]
    os.environ.update({name: _HEAD_PATIENCE[name] for name in added})
    try:
        ray.init(
            address=address,
            runtime_env=None if address else {"env_vars": here},
            log_to_driver=False,
            include_dashboard=False,
            configure_logging=False,
        )
        _keep_output_clean()
    except Exception as problem:
        if where:
            raise _unreachable(where, problem) from problem
        with suppress(Exception):  # the processes that did start
            ray.shutdown()
        raise ModelFailed(
            f"Ray cannot be started on this machine: {_words(problem)}",
            hint="Look at its log in /tmp/ray/session_latest/logs; where other programs keep the "
            "machine busy, RAY_raylet_start_wait_time_s=120 in the environment gives it more time.",
            foreign=True,
        ) from problem
    finally:
        for name in added:
            del os.environ[name]


def _keep_output_clean() -> None:
    """Let Ray tell of workers that ended on the standard error, for which it has no setting: the
    standard output may be a file of rows."""
    with suppress(ImportError, AttributeError):
        worker = import_module("ray._private.worker")
        write: Any = worker.print_worker_logs
        if not isinstance(write, partial):
            worker.print_worker_logs = partial(_write_to_error, write)  # type: ignore[attr-defined]


def _write_to_error(write: Any, data: object, _: object, *rest: Any, **named: Any) -> None:
    write(data, sys.stderr, *rest, **named)


def _check_head(ray: Any, address: str | None) -> None:
    """Raises ModelFailed where the head of the cluster is gone: Ray itself waits for it, and then
    ends the process."""
    if (address or "").startswith("ray://"):
        return
    head = str(ray.get_runtime_context().gcs_address)
    try:
        _greet(head)
    except OSError as problem:
        raise _unreachable(address or head, problem) from problem


def _check_reach(address: str | None) -> None:
    """Raises ModelFailed where nobody answers at an address: Ray itself would try for minutes, and
    might then end the process."""
    scheme, _, place = (address or "").rpartition("://")
    if scheme not in ("", "ray") or place in ("", "auto", "local"):
        return
    try:
        _greet(place.partition("/")[0].partition("?")[0])
    except (OSError, ValueError) as problem:
        raise ModelFailed(
            f"the Ray cluster at {address} cannot be reached: {_words(problem)}",
            hint="Look at the address, which RAY_ADDRESS gives where cluster= has none, and whether "
            "the cluster runs (ray status).",
            foreign=True,
        ) from problem


def _greet(place: str) -> None:
    """Connect to a server of gRPC. Raises OSError where none answers, and ValueError for a place
    that has no port."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("an address is HOST:PORT")
    with socket.create_connection((host.strip("[]"), int(port)), _HEAD_SECONDS) as found:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return
        found.settimeout(_HEAD_SECONDS)
        found.sendall(_HELLO)
        with found.makefile("rb") as reply:
            if reply.read(4)[3:] != bytes((_SETTINGS,)):
                raise ConnectionError("what answers there is no Ray")


_HARMLESS_METHODS = {
    True: "/ray.rpc.RayletDriver/ClusterInfo",
    False: "/ray.rpc.NodeInfoGcsService/CheckAlive",
}
"""Methods of a server of Ray that change nothing: for clients by ``ray://``, and for others."""


def _asks_for_token(address: str) -> bool:
    """Whether a cluster refuses who has no token: Ray itself says that its time is over."""
    with suppress(ImportError):
        grpc: Any = import_module("grpc")
        scheme, _, place = address.rpartition("://")
        with grpc.insecure_channel(place.partition("?")[0]) as channel:
            try:
                channel.unary_unary(_HARMLESS_METHODS[scheme == "ray"])(b"", timeout=_HEAD_SECONDS)
            except grpc.RpcError as refused:
                return bool(refused.code() == grpc.StatusCode.UNAUTHENTICATED)
    return False


def _unreachable(address: str | None, problem: Exception) -> ModelFailed:
    where = f" at {address}" if address else ""
    if address and _asks_for_token(address):
        return ModelFailed(
            f"the Ray cluster{where} asks for a token, and got none, or another one",
            hint="Set RAY_AUTH_MODE=token, and the cluster's token as RAY_AUTH_TOKEN or in the file "
            "~/.ray/auth_token, before the program starts.",
            foreign=True,
        )
    return ModelFailed(
        f"the Ray cluster{where} cannot be reached: {_words(problem)}",
        hint="Look whether it runs (ray status). Then end what is left of the connection, "
        "ray.shutdown(), and run the query again.",
        foreign=True,
    )


def _words(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200] or type(problem).__name__


def _is_of_ray(problem: Exception) -> bool:
    """Whether an exception says that an actor, or Ray, is gone; Ray raises plain ones, too."""
    ray = _ray()
    if isinstance(problem, ray.exceptions.RayTaskError):
        return False
    if isinstance(problem, (ray.exceptions.RayError, ConnectionError)):
        return True
    return type(problem) in (Exception, RuntimeError, ValueError) and bool(
        not ray.is_initialized() or _OTHER_CLUSTER.search(str(problem))
    )


class _Actor:
    """A worker's place in a process of Ray."""

    def __init__(self, name: str) -> None:
        from blendfusion.services.cluster.worker import Worker

        self._worker = Worker(_connect, name)

    def call(self, message: bytes) -> bytes:
        return self._worker.call(message)

    def beat(self) -> None:
        """Replies at once, whatever ``call`` is at."""

    def process(self) -> int:
        return os.getpid()


def _connect(address: str) -> RayPlace:
    """The actor of this name."""
    try:
        return RayPlace(_ray().get_actor(address), address)
    except ValueError as problem:
        raise PlaceGone(_GONE) from problem


def _ray() -> Any:
    try:
        import ray
    except ImportError as problem:
        raise OptionError(
            "a cluster of Ray needs ray", hint="pip install 'blendfusion[ray]'"
        ) from problem
    return ray
