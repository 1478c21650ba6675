"""A server of a benchmark as a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection


@contextmanager
def served(
    serve: Callable[..., None], *args: object, scheme: str = "http"
) -> Iterator[tuple[str, Connection]]:
    """(the URL of ``serve(pipe, *args)``, which sends its port first; our end of its pipe)"""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *args), daemon=True)
    process.start()
    try:
        yield f"{scheme}://127.0.0.1:{ours.recv()}/v1", ours
    finally:
        process.kill()
        process.join()
