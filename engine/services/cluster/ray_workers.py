"""Workers as actors of a Ray cluster."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import Any
from uuid import uuid4

from blendfusion.errors import OptionError
from blendfusion.services.cluster import protocol
from blendfusion.services.cluster.grace import Endings
from blendfusion.services.cluster.protocol import Place, PlaceGone

_WAIT_SECONDS = 0.2
_START_SECONDS = 120.0
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
        self._ended = False

    def call(self, message: bytes) -> bytes:
        ray = _ray()
        if self._ended:  # Ray takes its time to notice
            raise PlaceGone(_GONE)
        try:
            return bytes(self._awaited(self.actor.call.remote(message)))
        except ray.exceptions.RayActorError as problem:
            raise PlaceGone(_GONE) from problem

    def _awaited(self, reply: Any) -> Any:
        """The value of a reply, which has no limit as long as the actor says that it is alive."""
        ray, beat, silent = _ray(), None, 0.0
        while True:
            start = time.monotonic()
            with suppress(ray.exceptions.GetTimeoutError):
                value = ray.get(reply, timeout=_WAIT_SECONDS)
                self._heard = True
                return value
            beat = beat or self.actor.beat.options(concurrency_group=_PULSE).remote()
            if ray.wait([beat], timeout=0)[0]:
                beat, silent, self._heard = None, 0.0, True
            # This process may have stood still itself: more than a few waits are not counted.
            silent += min(time.monotonic() - start, 3 * _WAIT_SECONDS)
            ends = self._endings is not None and self._endings.is_over
            if ends or silent > (protocol.STILL_SECONDS if self._heard else _START_SECONDS):
                self._ended = True
                self.close()
                raise PlaceGone(_GONE)

    def close(self) -> None:
        _ray().kill(self.actor)


class RayWorkers:
    """Four actors for each CPU of the cluster: two run fragments, one asks models, one owns a range
    of values. Where Ray has GPUs, each actor that asks gets one.

    ``address`` is that of a cluster; None: the one of the environment, or a new one on this
    machine.
    """

    def __init__(self, address: str | None) -> None:
        _ray()
        self._address = address
        self._lock = threading.Lock()
        self._places: dict[tuple[int, str], RayPlace] = {}
        self._size: int | None = None
        self._own = False
        self._gpus = 0
        self._endings = Endings()

    @property
    def size(self) -> int:
        with self._lock:
            if self._size is None:
                ray = _ray()
                if not ray.is_initialized():
                    self._own = True
                    here = {"PYTHONPATH": os.pathsep.join(sys.path)}  # modules of models
                    ray.init(
                        address=self._address,
                        runtime_env=None if self._address else {"env_vars": here},
                        log_to_driver=False,
                        include_dashboard=False,
                        configure_logging=False,
                    )
                resources = ray.cluster_resources()
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
            place = self._places.pop((worker, lane), None)
            if place is not None:
                return place
            ray = _ray()
            gpus = 1 if self._gpus and lane == "answers" else 0
            actor = ray.remote(num_cpus=0, num_gpus=gpus, max_restarts=0, **_GROUPS)(_Actor)
            name = f"blendfusion-{uuid4().hex}"
            options: dict[str, Any] = {"name": name}
            if size > 1:
                options["scheduling_strategy"] = "SPREAD"
            if lane == "range":  # whoever waits for answers takes a thread
                options["max_concurrency"] = 4 * size + 4
            return RayPlace(actor.options(**options).remote(name), name, self._endings)

    def give_back(self, worker: int, lane: str, place: Place) -> None:
        assert isinstance(place, RayPlace)
        with self._lock:
            self._places[worker, lane] = place

    def ending(self) -> AbstractContextManager[None]:
        return self._endings.ending()

    def close(self) -> None:
        with self._lock:
            for place in self._places.values():
                place.close()
            self._places.clear()
            if self._own and _ray().is_initialized():
                _ray().shutdown()
            self._size, self._own = None, False


class _Actor:
    """A worker's place in a process of Ray."""

    def __init__(self, name: str) -> None:
        from blendfusion.services.cluster.worker import Worker

        self._worker = Worker(_connected, name)

    def call(self, message: bytes) -> bytes:
        return self._worker.call(message)

    def beat(self) -> None:
        """Replies at once, whatever ``call`` is at."""

    def process(self) -> int:
        return os.getpid()


def _connected(address: str) -> RayPlace:
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
