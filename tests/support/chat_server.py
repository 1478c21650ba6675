"""A chat server as a process of its own, to be killed: ``python chat_server.py PORT``.

It answers with the number in the text, a few milliseconds later, and writes a byte for every answer.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from faults import asked_number
from loopback import Body, Reply, serving

READY = b"!"


def script(body: Body) -> Reply:
    time.sleep(0.005)
    sys.stdout.buffer.write(b".")
    sys.stdout.buffer.flush()
    return Reply(json.dumps({"answer": asked_number(body)}))


if __name__ == "__main__":
    with serving(script, port=int(sys.argv[1])):
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        threading.Event().wait()
