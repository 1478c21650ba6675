"""A chat server as a process of its own, to be killed: ``python chat_server.py PORT [ANSWERS]``.

It answers with the number in the text, a few milliseconds later, and writes a byte for every
answer; after so many answers it keeps whoever asks waiting."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable

from faults import asked_number
from loopback import Body, Reply, serving

READY = b"!"


def answering(most: int) -> Callable[[Body], Reply]:
    numbers = itertools.count(1)

    def script(body: Body) -> Reply:
        if next(numbers) > most:
            threading.Event().wait()
        time.sleep(0.005)
        sys.stdout.buffer.write(b".")
        sys.stdout.buffer.flush()
        return Reply(json.dumps({"answer": asked_number(body)}))

    return script


if __name__ == "__main__":
    port, answers = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else sys.maxsize
    with serving(answering(answers), port=port):
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        threading.Event().wait()
