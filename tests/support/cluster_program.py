"""A query in a cluster, as a process of its own, to whose processes tests send signals; also the
program that runs there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendfusion.services.cluster.starvation import waited_seconds

QUERY = "SELECT id FROM t WHERE llm_filter('f', x) ORDER BY id"
STILL_SECONDS = 4.0
"""When a process counts as standing still, in these tests."""
_PAUSE_SECONDS = 0.02
_HUNG_SECONDS = 120


@dataclass(frozen=True)
class Moment:
    """A time, and how long the program had waited for a CPU until then."""

    time: float
    waited: float

    def seconds_until(self, said: dict[str, Any]) -> float:
        """The seconds until the program's end, without those in which other programs had the
        CPUs."""
        waited = max(0.0, said["waited"] - self.waited)  # less where a thread has ended
        return float(said["time"] - self.time - waited)


@dataclass
class Run:
    """The program at work."""

    process: subprocess.Popen[str]
    folder: Path
    temporary: Path
    """Where it makes temporary files."""

    @property
    def seen(self) -> list[dict[str, Any]]:
        """Its processes, as often as they changed: the workers by number, and their starter."""
        with suppress(FileNotFoundError):
            return [json.loads(line) for line in (self.folder / "seen").read_text().splitlines()]
        return []

    def wait_for(self, what: str) -> int:
        """The first process of this kind: ``"0"``, ``"1"``, ``"starter"``, ``"session"``."""
        if what == "session":
            return self.process.pid
        while self.process.poll() is None:
            for one in reversed(self.seen):
                if one.get(what):
                    return int(one[what])
            time.sleep(_PAUSE_SECONDS)
        raise AssertionError("it ended before")

    def wait_for_requests(self, number: int) -> None:
        """Return when so many requests were made, or the program has ended."""
        while self.process.poll() is None:
            if sum(len(f.read_text().split("\n")) - 1 for f in self.requests.iterdir()) >= number:
                return
            time.sleep(_PAUSE_SECONDS)

    @property
    def requests(self) -> Path:
        return self.folder / "noted"

    def moment(self) -> Moment:
        """Now."""
        return Moment(time.time(), waited_seconds(self.process.pid))

    def end(self) -> dict[str, Any]:
        """What the program said at its end; nothing where a signal ended it."""
        said, _ = self.process.communicate(timeout=_HUNG_SECONDS)
        lines = said.splitlines()
        return dict(json.loads(lines[-1])) if lines and lines[-1].startswith("{") else {}

    def left(self, seconds: float = 8.0) -> list[str]:
        """The files and processes that are left, after some time."""
        processes = {int(p) for one in self.seen for p in one.values() if p}
        until = time.monotonic() + seconds
        while True:
            left = [path.name for path in self.temporary.iterdir()]
            left += [str(process) for process in processes if _lives(process)]
            if not left or time.monotonic() > until:
                return left
            time.sleep(_PAUSE_SECONDS)


@contextmanager
def running(folder: Path, data: Path, *, seconds: float | None = None) -> Iterator[Run]:
    """Runs ``QUERY`` over the files of ``data``, with a budget of seconds or without."""
    (folder / "noted").mkdir()
    temporary = tempfile.mkdtemp(prefix="b-")  # short: a socket's path has at most 107 characters
    environment = os.environ | {
        "TMPDIR": temporary,
        "CLUSTER_TEST_FOLDER": str(folder / "noted"),
    }
    arguments = [sys.executable, "-W", "error", __file__, str(folder), str(data), str(seconds)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as process:
        run = Run(process, folder, Path(temporary))
        try:
            yield run
        finally:
            process.kill()
            for one in run.seen:
                for child in one.values():
                    if child and _lives(int(child)):
                        os.kill(int(child), signal.SIGKILL)
            shutil.rmtree(temporary, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def main(folder: str, data: str, seconds: str) -> None:
    import cluster_scripts

    import blendfusion as bf
    from blendfusion.services.cluster import protocol
    from blendfusion.services.cluster.local import LocalWorkers

    signal.signal(signal.SIGINT, signal.default_int_handler)
    protocol.STILL_SECONDS = STILL_SECONDS
    session = bf.connect(
        bf.ScriptedModel(cluster_scripts.slowly, fingerprint="h", batch_size=4),
        cache=None,
        cluster="local:2",
        progress="off",
        budget=None if seconds == "None" else bf.Budget(seconds=float(seconds)),
    )
    session.register_parquet("t", data)
    workers = session.cluster.back_end if session.cluster is not None else None
    assert isinstance(workers, LocalWorkers)

    def note() -> None:
        before: dict[str, int | None] = {}
        while True:
            now = {str(number): process for number, process in workers.processes.items()}
            now |= {"starter": workers.starter}
            if now != before:
                with (Path(folder) / "seen").open("a") as file:
                    file.write(json.dumps(now) + "\n")
            before = now
            time.sleep(_PAUSE_SECONDS)

    threading.Thread(target=note, daemon=True).start()
    said: dict[str, Any] = {}
    try:
        said["rows"] = session.sql(QUERY).to_arrow_table()["id"].to_pylist()
    except (KeyboardInterrupt, bf.BlendFusionError) as problem:
        said["error"] = type(problem).__name__
    said |= {"time": time.time(), "waited": waited_seconds(os.getpid())}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
