"""What happens to sessions over Ray: ``python ray_scenarios.py NAME…`` runs scenarios one after the
other in one process, and writes a line for each: its name, and ``right`` or the error of ours.

What follows a scenario shows that the process, and what it shares, has survived it."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf

ROWS = 24
_HEAD_SECONDS = 75.0
"""Ray ends a process a minute after the head of its cluster."""


def yes(request: bf.Request) -> bool:
    if "slow" in request.question:
        time.sleep(0.1)
    if "bug" in request.question:
        raise ValueError("a bug of the model")
    if "shut" in request.question:
        os._exit(3)
    return True


def connected(cluster: str = "ray") -> bf.Session:
    from ray_scenarios import yes  # workers import it by this name; none of ``__main__`` can travel

    made = bf.connect(
        bf.ScriptedModel(yes, fingerprint="yes"), cache=None, cluster=cluster, progress="off"
    )
    made.register_parquet("r", folder())
    return made


@cache
def folder() -> str:
    """Files with the rows: those of tables in memory stay in this process."""
    made = tempfile.mkdtemp(prefix="blendfusion-ray-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for part in range(4):
        numbers = [*range(part, ROWS, 4)]
        table = pa.table({"id": numbers, "x": [f"v{n}" for n in numbers]})
        pq.write_table(table, f"{made}/{part}.parquet")
    return made


def rows(session: bf.Session, question: str) -> None:
    found = session.sql(f"SELECT id FROM r WHERE llm_filter('{question}', x) ORDER BY id")
    assert [row["id"] for row in found.to_pylist()] == [*range(ROWS)]


def processes(word: str) -> list[int]:
    """The processes of this one's instance whose command has a word."""
    tree, found = [os.getpid()], list[int]()
    while tree:
        said = subprocess.run(["pgrep", "-P", str(tree.pop())], capture_output=True, text=True)
        tree += map(int, said.stdout.split())
        found += map(int, said.stdout.split())
    return [process for process in found if word in command_of(process)]


def command_of(process: int) -> str:
    with suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
        return file.read().decode("utf-8", "replace").replace("\0", " ")
    return ""


def end(word: str, most: int | None = None) -> None:
    found = processes(word)
    assert found, f"there is no {word}"
    for process in found[:most]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@contextmanager
def later(seconds: float, work: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(seconds, work)
    timer.start()
    try:
        yield
    finally:
        timer.join()


# --- what one instance lives through --------------------------------------------------------------


def one_session() -> None:
    with connected() as session:
        rows(session, "one")


def closed_first() -> None:
    first, second = connected(), connected()
    rows(first, "a")
    rows(second, "b")
    first.close()
    rows(second, "c")
    second.close()
    second.close()


def left_to_the_garbage_collector() -> None:
    session = connected()
    rows(session, "a")
    session = connected()  # as a cell of a notebook does that runs again
    gc.collect()
    rows(session, "b")
    session.close()


def failed_and_left() -> None:
    session = connected()
    with suppress(ValueError):
        rows(session, "bug")
    del session
    gc.collect()
    one_session()


def right_after_a_failure() -> None:
    with connected() as session:
        with suppress(ValueError):
            rows(session, "bug")
        rows(session, "right")


def actor_killed_in_a_query() -> None:
    with connected() as session:
        rows(session, "warm")
        with later(0.5, lambda: end("_Actor", 1)):
            rows(session, "slow kill")


def actors_killed_between_queries() -> None:
    with connected() as session:
        rows(session, "a")
        end("_Actor")
        rows(session, "b")


def model_ends_its_process() -> None:
    with connected() as session:
        rows(session, "shut")


def groups() -> None:
    with connected() as session:
        found = session.sql("SELECT id % 2 AS k, llm_qa('q', x) AS a FROM r GROUP BY id % 2")
        assert len(found.to_pylist()) == 2


def two_threads() -> None:
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            with connected() as session:
                rows(session, name)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        raise problem


def stopped_in_the_middle() -> None:
    with connected() as session:
        stream = session.sql("SELECT id FROM r WHERE llm_filter('slow half', x)").execute_stream()
        next(iter(stream))
        del stream
        rows(session, "after")


def limit() -> None:
    with connected() as session:
        found = session.sql("SELECT id FROM r WHERE llm_filter('few', x) LIMIT 3")
        assert len(found.to_pylist()) == 3


def program_shuts_ray_down() -> None:
    import ray

    with connected() as session:
        rows(session, "a")
        ray.shutdown()
        rows(session, "b")


def programs_own_instance_stays() -> None:
    import ray

    ray.shutdown()
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    one_session()
    assert ray.is_initialized()
    assert ray.get(ray.remote(lambda: 1).remote()) == 1
    ray.shutdown()


# --- heads that end -------------------------------------------------------------------------------


def head_killed_between_queries() -> None:
    with connected() as session:
        rows(session, "a")
        end("gcs_server")
        time.sleep(_HEAD_SECONDS)
        rows(session, "b")


def head_killed_in_a_query() -> None:
    with connected() as session:
        rows(session, "warm")
        with later(0.5, lambda: end("gcs_server")):
            rows(session, "slow head")
        time.sleep(_HEAD_SECONDS)


def machine_killed() -> None:
    with connected() as session:
        rows(session, "a")
        end("raylet/raylet")
        rows(session, "b")


def new_instance_after_a_dead_head() -> None:
    import ray

    with suppress(bf.BlendFusionError), connected() as session:
        rows(session, "a")
        end("gcs_server")
        rows(session, "b")
    ray.shutdown()
    one_session()


# --- clusters of others ---------------------------------------------------------------------------


def no_client_server() -> None:
    with connected("ray://127.0.0.1:1") as session:
        rows(session, "a")


def no_cluster() -> None:
    os.environ["RAY_ADDRESS"] = "127.0.0.1:1"
    with connected() as session:
        rows(session, "a")


def client() -> None:
    with connected(os.environ["SCENARIO_CLIENT"]) as session:
        rows(session, "a")


def client_whose_head_ends() -> None:
    with connected(os.environ["SCENARIO_CLIENT"]) as session:
        rows(session, "a")
        os.kill(int(os.environ["SCENARIO_HEAD"]), signal.SIGKILL)
        time.sleep(2)
        rows(session, "b")


def main() -> None:
    for name in sys.argv[1:]:
        begun = time.monotonic()
        run: Any = globals()[name]
        try:
            run()
            said = "right"
        except bf.BlendFusionError as problem:
            said = f"ours: {type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
        except BaseException as problem:
            said = f"NOT OURS: {type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
        seconds = time.monotonic() - begun
        print(f"{name}: {said}", f"({seconds:.0f} s)", flush=True)
    print("lives", flush=True)


if __name__ == "__main__":
    main()
