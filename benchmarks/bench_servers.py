"""How near do rows a second come to what a server can do, and what does adapting to it save?

The server is a process of its own with a fixed time for every answer: one that keeps waiting what
it has no room for, and one that refuses it (429)."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from multiprocessing.connection import Connection

from server_process import served

from blendfusion.apps.cli.bench import texts
from blendfusion.models.services.http import server_named
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.structured_output import FORMS
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

TEXT = Task("llm_map", "What is it?", Constraint(), ("text",))
_ANSWER = json.dumps(
    {"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}], "usage": {}}
).encode()


def serve(pipe: Connection, service: float, capacity: int, refuses: bool) -> None:
    """Answer for ever; tells its port through ``pipe``."""
    room = asyncio.Semaphore(capacity)

    async def reply() -> bytes:
        if refuses and room.locked():
            return b"HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n"
        async with room:
            await asyncio.sleep(service)
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
                writer.write(await reply())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=512)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def measure(
    values: int, service: float, capacity: int, *, refuses: bool, most: int = 0, adapts: bool = True
) -> str:
    with served(serve, service, capacity, refuses) as (url, _):
        model = OpenAIModel("tiny", url, None, Options(concurrency_most=most))
        if not adapts:
            model._server.endpoint.in_flight.note_refusal = lambda sent_at: None  # type: ignore[method-assign]
        begun = time.perf_counter()
        answers = model.answer(TEXT, [(f"text {number}",) for number in range(values)])
        rate = values / (time.perf_counter() - begun)
    can = capacity / service
    failed = sum(answer.error is not None for answer in answers)
    requests = sum(answer.usage.calls for answer in answers)
    return f"{rate:,.0f} | {can:,.0f} | {rate / can:.0%} | {requests} | {failed}"


def compare_forms(named: str, values: int) -> None:
    """Tokens that a real server writes for an answer, in the shortest form that it heeds and in
    JSON."""
    name, url, _ = server_named(named)
    kinds = (Constraint("choice", options=("delivery", "quality", "price")), Constraint("date"))
    print("| answers | form | tokens an answer | failed |\n|---|---|---|---|")
    for constraint in (*kinds, Constraint("integer")):
        task = Task("llm_map", "Which?", constraint, ("text",))
        for short in (True, False):
            model = OpenAIModel(name, url, None, Options(max_tokens=24, shots=False))
            model.check()
            forms = model._server.chat.forms
            if not short:
                forms.short = ()
                for form in FORMS:
                    if not form.wrapped:
                        forms.drop(constraint, form)
            first, *asked = [(text,) for text in texts(values + 1)]
            model.answer(task, [first])
            answers = model.answer(task, asked)
            tokens = sum(answer.usage.completion_tokens for answer in answers) / values
            failed = sum(answer.error is not None for answer in answers)
            print(
                f"| {constraint.kind} | {'short' if short else 'JSON'} | {tokens:.1f} | {failed} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forms", metavar="NAME@URL", help="compare a real server's forms instead")
    parser.add_argument("--values", type=int, default=2000)
    parser.add_argument("--service", type=float, default=0.5, help="seconds for each answer")
    arguments = parser.parse_args()
    if arguments.forms:
        compare_forms(arguments.forms, min(arguments.values, 20))
        return
    print(f"{arguments.values} values, {arguments.service * 1000:.0f} ms an answer; ", end="")
    print(f"foreign load before: {os.getloadavg()[0]:.1f}")
    print("| server | what is in flight | rows/s | possible | share | requests | failed |")
    print("|---|---|---|---|---|---|---|")
    for capacity in (4, 16, 40):
        values = min(arguments.values, int(10 * capacity / arguments.service))
        for most in (0, 128):
            said = f"16, up to {most}" if most else "16"
            row = measure(values, arguments.service, capacity, refuses=False, most=most)
            print(f"| {capacity} at a time, the others wait | {said} | {row} |", flush=True)
    for capacity in (4, 12):
        values = min(arguments.values, int(10 * capacity / arguments.service))
        for adapts in (False, True):
            said = "16, fewer after refusals" if adapts else "16, always"
            row = measure(values, arguments.service, capacity, refuses=True, adapts=adapts)
            print(f"| {capacity} at a time, refuses the others | {said} | {row} |", flush=True)


if __name__ == "__main__":
    main()
