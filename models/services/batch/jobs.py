"""Files of batch jobs: a request a line, as OpenAI's batch API and ``vllm run-batch`` take them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.gate import Unfit, object_of
from blendfusion.models.protocol.python_packages import cache_folder
from blendfusion.models.services.http.client import CHAT

Reply = tuple[dict[str, Json] | None, str]
"""The body of a good reply, or None and the reason."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
"""A server's name of a job or a file."""
_LONGEST_NAME = 1_000
MOST_REQUESTS, MOST_BYTES = 50_000, 150_000_000
"""Limits of one job: OpenAI allows 50,000 requests and 200 MB."""


class Job:
    """The requests of one job, with its files. Equal requests are the same job, so that a run that
    was cut off finds it again. A request is named by its content, so that the replies of another
    job answer none of this one."""

    def __init__(self, folder: Path, requests: Mapping[int, tuple[str, str]]) -> None:
        """``requests``: by the places of the values, the name and the line of each."""
        self.places = tuple(requests)
        self._place_of = {name: place for place, (name, _) in requests.items()}
        self.text = "".join(line for _, line in requests.values())
        digest = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        self.requests = folder / f"{digest}.jsonl"
        self.replies = folder / f"{digest}.replies.jsonl"
        self.remote = folder / f"{digest}.job"

    def write(self) -> None:
        """Write the requests, for the eyes of this user only."""
        _write_private(self.requests, self.text)

    @property
    def name(self) -> str | None:
        """The server's name of the job; None if it was not sent. Raises ModelFailed for a file
        that holds none."""
        try:
            name = self.remote.read_bytes()[:_LONGEST_NAME].strip()
        except FileNotFoundError:
            return None
        if not NAME.fullmatch(name.decode("ascii", "replace")):
            raise ModelFailed(
                f"'{self.remote}' names no job of a server",
                hint="Delete it: the job is then sent again.",
            )
        return name.decode("ascii")

    @name.setter
    def name(self, name: str) -> None:
        _write_private(self.remote, name)

    @property
    def age(self) -> float:
        """The seconds since it was sent; 0 if it was not."""
        try:
            return time.time() - self.remote.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def remove(self) -> None:
        """Remove the files of the job."""
        for file in (self.requests, self.replies, self.remote):
            file.unlink(missing_ok=True)

    def reply_in(self, line: bytes) -> tuple[int, Reply] | None:
        """The place of a value of this job, and the reply to it, in a line of an output file; None
        for a line that has none."""
        try:
            stated = object_of(line, {"custom_id": str})
        except Unfit:
            return None
        place = self._place_of.get(stated["custom_id"])
        return None if place is None else (place, _reply_in(stated))

    def add_reply(self, line: bytes, replies: dict[int, Reply]) -> bool:
        """Add the reply in a line of an output file, and return whether it has one. Of several to
        one value the first good one counts: servers repeat lines, and state errors of earlier
        tries."""
        found = self.reply_in(line)
        if found is None:
            return False
        place, reply = found
        if replies.get(place, (None, ""))[0] is None:
            replies[place] = reply
        return True


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}.part")
    with open(
        os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as out:
        out.write(text)
    part.replace(file)


def _reply_in(line: dict[str, Json]) -> Reply:
    response = line.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    status = response.get("status_code") if isinstance(response, dict) else None
    if isinstance(body, dict) and status in (200, None) and not line.get("error"):
        return body, ""
    problem = line.get("error") or (body.get("error") if isinstance(body, dict) else None)
    message = problem.get("message") if isinstance(problem, dict) else problem
    return None, message if isinstance(message, str) and message else f"HTTP {status}"[:20]


def jobs_of(folder: str, bodies: Sequence[dict[str, Json]]) -> Iterator[Job]:
    """The jobs of these requests, each within the limits."""
    place_of_files = Path(folder).expanduser() if folder else cache_folder() / "batches"
    requests: dict[int, tuple[str, str]] = {}
    size = 0
    for place, body in enumerate(bodies):
        content = json.dumps(body, ensure_ascii=False)
        name = f"value-{place}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        head = {"custom_id": name, "method": "POST", "url": f"/v1{CHAT}"}
        line = f'{json.dumps(head)[:-1]}, "body": {content}}}\n'
        if requests and (len(requests) >= MOST_REQUESTS or size + len(line.encode()) > MOST_BYTES):
            yield Job(place_of_files, requests)
            requests, size = {}, 0
        requests[place] = name, line
        size += len(line.encode())
    if requests:
        yield Job(place_of_files, requests)
