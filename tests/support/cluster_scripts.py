"""Functions of scripted models that workers of a cluster can import."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path

import scripts

from blendfusion.types import Request

FOLDER = "CLUSTER_TEST_FOLDER"
"""The environment variable of a folder that gets a file for each request."""


def hashed(request: Request) -> object:
    """A function of the question and the values, each request of which is noted."""
    text = f"{request.task.question} {request.values}"
    number = zlib.crc32(text.encode())
    folder = os.environ.get(FOLDER)
    if folder:
        with (Path(folder) / str(os.getpid())).open("a") as log:
            log.write(f"{request.task.ingredient} {request.values[0]}\n")
    if request.constraint.kind == "boolean":
        return number % 3 > 0
    if request.constraint.kind in ("integer", "number"):
        return number % 100
    return f"{request.values[0]}!"


def chosen(request: Request) -> object:
    """The same, but on a scale, and one or some of the options where there are any."""
    constraint = request.constraint.item or request.constraint
    options = constraint.options
    number = zlib.crc32(f"{request.task.question} {request.values}".encode())
    if constraint.scale is not None:
        low, high = constraint.scale
        return low + number % (high - low + 1)
    if not options:
        return hashed(request)
    if request.constraint.item is None:
        return options[number % len(options)]
    return [option for place, option in enumerate(options) if number >> place & 1]


def fitting(request: Request) -> object:
    """An answer within any constraint, with its probability where it is yes or no."""
    answer = scripts.hashed(request)
    if isinstance(answer, bool):
        return {answer: 0.75, not answer: 0.25}
    free = not request.constraint.options and not request.constraint.literals
    return answer * 2 if isinstance(answer, str) and free else answer


def doubting(request: Request) -> object:
    """Yes or no, with a probability that depends on the value."""
    yes = (zlib.crc32(str(request.values[0]).encode()) % 99 + 1) / 100
    return {True: yes, False: 1 - yes}


def on_gpu(request: Request) -> object:
    """The same; a file named ``gpu N`` tells which GPU the process has."""
    (Path(os.environ[FOLDER]) / f"gpu {os.environ.get('CUDA_VISIBLE_DEVICES')}").touch()
    return slowly(request)


def slowly(request: Request) -> object:
    """The same, after 40 ms."""
    time.sleep(0.04)
    return hashed(request)


def failing(request: Request) -> object:
    """No answer to some."""
    return None if str(request.values[0]).endswith("3") else hashed(request)


def one_is_slow(request: Request) -> object:
    """Takes 50 ms in all processes but the first that creates a file, and 500 ms there."""
    folder = Path(os.environ[FOLDER])
    mark = folder / "slow"
    try:
        mark.touch(exist_ok=False)
        mark.write_text(str(os.getpid()))
    except FileExistsError:
        pass
    slow = mark.read_text() == str(os.getpid())
    time.sleep(0.5 if slow else 0.05)
    return hashed(request)


def requests_in(folder: Path) -> list[str]:
    """All requests that were noted in ``folder``."""
    return [line for file in folder.iterdir() for line in file.read_text().splitlines()]
