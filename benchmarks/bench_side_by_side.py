"""One question to the same values with the same GGUF file: BlendFusion, BlendSQL and LOTUS.

    python benchmarks/bench_side_by_side.py --data FOLDER [--rows 500] [--rounds 2]

BlendFusion runs in this process, with the weights as they are in the file and with those that it
would take by itself. BlendSQL 0.1.28 asks llama-cpp-python's server by its HTTP client, and runs in
process by a subclass of its model; LOTUS 1.2.4 asks the same server. Each of them lives in a
virtual environment of its own in --peers-folder, made at the first run (1.6 GB; the llama.cpp is
the same build as this environment's, where pip still has its wheel).

All take turns, ``--rounds`` of them, on the same values, the first of ``review_sentences`` in
--data; a table is printed after each. Answers have at most 16 tokens. LOTUS wants claims instead of
questions."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
from environments import BLENDSQL, LOTUS, SERVER

import blendfusion as bf
from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.models.services.llama.model import LlamaModel
from blendfusion.options import Options, WeightType

HERE = Path(__file__).parent
QUESTION = "Is this review positive?"
SQL = f"SELECT llm_filter('{QUESTION}', text) AS answer FROM reviews ORDER BY row"
CLAIM = "is a positive review"
"""The question as LOTUS wants it: a claim about a column."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one turn gave. ``prompt_tokens``: of whole prompts, whatever was computed of them."""

    answers: list[bool | None]
    seconds: float
    prompt_tokens: int


Ask = Callable[[Sequence[str]], Said]


@dataclass(slots=True)
class Contestant:
    name: str
    ask: Ask
    processes: list[int] = field(default_factory=list)
    turns: list[Said] = field(default_factory=list)

    @property
    def answers(self) -> list[bool | None]:
        return [answer for turn in self.turns for answer in turn.answers]

    @property
    def rate(self) -> float:
        return len(self.answers) / sum(turn.seconds for turn in self.turns)

    @property
    def prompt_tokens(self) -> float:
        return sum(turn.prompt_tokens for turn in self.turns) / len(self.answers)


def reviews(data: Path | None, rows: int) -> tuple[list[str], list[bool]]:
    """Distinct texts with whether they are positive."""
    if data is None:
        raise SystemExit("--data FOLDER with review_sentences/sentences.parquet is missing")
    table = pq.read_table(data / "review_sentences" / "sentences.parquet").to_pylist()
    labels = {row["text"]: row["label"] == "positive" for row in table}
    texts = list(labels)[:rows]
    return texts, [labels[text] for text in texts]


# -- who answers ---------------------------------------------------------------------------------------


def ours(path: Path, weights: WeightType) -> Ask:
    session = bf.connect(LlamaModel(path, Options(weights=weights)), cache=None, progress="off")
    session.from_pydict({"row": [0], "text": ["It was fine."]}, "warm_up")
    session.sql(
        SQL.replace("reviews", "warm_up")
    ).to_arrow_table()  # loads, converts at the first time

    def ask(texts: Sequence[str]) -> Said:
        table = pa.table({"row": range(len(texts)), "text": texts})
        session.register_record_batches("reviews", [table.to_batches()])
        frame = session.sql(SQL)
        start = time.perf_counter()
        answers = frame.to_arrow_table().column("answer").to_pylist()
        seconds = time.perf_counter() - start
        session.deregister_table("reviews")
        return Said(answers, seconds, frame.trace.usage.prompt_tokens)

    return ask


@contextmanager
def peer(python: Path, script: str, **said: str) -> Iterator[tuple[Ask, int]]:
    """A script in another environment that answers line by line; and its process."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [python, HERE / script, json.dumps(said)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None

        def wait_for(word: str) -> str:
            for line in process.stdout or ():
                if line.startswith(word):
                    return line.removeprefix(word).strip()
            log.seek(0)
            raise SystemExit(f"{script} ended:\n{log.read()[-3000:]}")

        def ask(texts: Sequence[str]) -> Said:
            assert process.stdin is not None
            process.stdin.write(json.dumps(texts) + "\n")
            process.stdin.flush()
            return Said(**json.loads(wait_for("answers")))

        try:
            wait_for("ready")
            yield ask, process.pid
        finally:
            process.stdin.close()
            process.terminate()
            process.wait(20)


@contextmanager
def server(python: Path, path: Path) -> Iterator[tuple[str, int]]:
    """llama-cpp-python's server with the file; its URL, and its process."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "llama_cpp.server", "--model", path, "--model_alias", "model"]
    command += ["--n_ctx", "2048", "--n_threads", str(os.cpu_count()), "--port", str(port)]
    # Else a second request ends the first.
    command += ["--interrupt_requests", "False"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/v1"
            while process.poll() is None:
                try:
                    with urlopen(f"{url}/models", timeout=5):
                        break
                except (URLError, OSError):
                    time.sleep(0.2)
            else:
                log.seek(0)
                raise SystemExit(f"the server ended:\n{log.read()[-3000:]}")
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(20)


# -- the race ------------------------------------------------------------------------------------------


def cpu_seconds(processes: Sequence[int]) -> tuple[float, float]:
    """CPU seconds of the whole machine, and of these processes (Linux)."""
    tick = os.sysconf("SC_CLK_TCK")
    whole = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    own = 0
    for process in processes:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        own += int(after_name[11]) + int(after_name[12])
    return (sum(whole) - whole[3] - whole[4]) / tick, own / tick


def race(contestants: Sequence[Contestant], texts: Sequence[str], rounds: int) -> Iterator[float]:
    """Everybody answers a part of the texts in every round; after each, tells how many cores others
    kept busy so far."""
    bounds = [len(texts) * turn // rounds for turn in range(rounds + 1)]
    foreign = whole = 0.0
    for turn in range(rounds):
        part = texts[bounds[turn] : bounds[turn + 1]]
        for contestant in contestants:
            processes = [os.getpid(), *contestant.processes]
            before, start = cpu_seconds(processes), time.perf_counter()
            contestant.turns.append(contestant.ask(part))
            after = cpu_seconds(processes)
            whole += time.perf_counter() - start
            foreign += max(0.0, (after[0] - before[0]) - (after[1] - before[1]))
        yield foreign / whole


def show(contestants: Sequence[Contestant], gold: Sequence[bool], foreign: float) -> None:
    done = len(contestants[0].answers)
    client = contestants[2].rate
    positive = sum(gold[:done]) / done
    print(
        f"{done} reviews, {positive:.3f} of them positive; {foreign:.2f} of {os.cpu_count()} cores busy with other work"
    )
    print(
        "| who | rows/s | times BlendSQL's client | prompt tokens a value | accuracy | yes | none |"
    )
    print("|---|---|---|---|---|---|---|")
    for one in contestants:
        right = sum(answer == label for answer, label in zip(one.answers, gold, strict=False))
        yes = sum(answer is True for answer in one.answers)
        none = sum(answer is None for answer in one.answers)
        print(
            f"| {one.name} | {one.rate:.2f} | {one.rate / client:.1f} | {one.prompt_tokens:.0f} | "
            f"{right / done:.3f} | {yes} | {none} |"
        )
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", type=Path, default=packaged_weights())
    parser.add_argument(
        "--peers-folder", type=Path, default=Path(tempfile.gettempdir()) / "blendfusion-peers"
    )
    arguments = parser.parse_args()
    texts, gold = reviews(arguments.data, arguments.rows)
    path, folder = arguments.model, arguments.peers_folder
    pythons = [environment.python(folder) for environment in (SERVER, BLENDSQL, LOTUS)]
    with ExitStack() as stack:
        url, served_by = stack.enter_context(server(pythons[0], path))
        blendsql, client = stack.enter_context(
            peer(pythons[1], "peer_blendsql.py", url=url, question=QUESTION)
        )
        inside, insider = stack.enter_context(
            peer(pythons[1], "peer_blendsql.py", path=str(path), question=QUESTION)
        )
        lotus, filtering = stack.enter_context(
            peer(pythons[2], "peer_lotus.py", url=url, question=CLAIM)
        )
        contestants = [
            Contestant("BlendFusion, weights as in the file", ours(path, "original")),
            Contestant("BlendFusion, its own choice of weights", ours(path, "auto")),
            Contestant("BlendSQL 0.1.28, client of the server", blendsql, [served_by, client]),
            Contestant("BlendSQL 0.1.28, in process", inside, [insider]),
            Contestant("LOTUS 1.2.4, client of the server", lotus, [served_by, filtering]),
        ]
        print(f"{path.name}, the same question to everybody: {QUESTION}")
        for foreign in race(contestants, texts, arguments.rounds):
            show(contestants, gold, foreign)  # so far


if __name__ == "__main__":
    main()
