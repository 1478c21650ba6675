"""Files of batch jobs: a request a line, as OpenAI's batch API and ``vllm run-batch`` take them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.http.client import CHAT
from blendfusion.models.weights.python_packages import cache_folder

Reply = tuple[dict[str, Json] | None, str]
"""The body of a good reply, or None and the reason."""

MOST_REQUESTS, MOST_BYTES = 50_000, 150_000_000
"""Limits of one job: OpenAI allows 50,000 requests and 200 MB."""


class Job:
    """The requests of one job, with its files. Equal requests are the same job, so that a run that
    was cut off finds it again."""

    def __init__(self, folder: Path, lines: Mapping[int, str]) -> None:
        self.places = tuple(lines)
        self.text = "".join(lines.values())
        digest = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        self.requests = folder / f"{digest}.jsonl"
        self.replies = folder / f"{digest}.replies.jsonl"
        self.remote = folder / f"{digest}.job"

    def write(self) -> None:
        """Write the requests, for the eyes of this user only."""
        self.requests.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = self.requests.with_suffix(".part")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.text)
        part.replace(self.requests)

    def remove(self) -> None:
        """Remove the files of the job."""
        for file in (self.requests, self.replies, self.remote):
            file.unlink(missing_ok=True)

    def read(self, text: str) -> dict[int, Reply]:
        """The replies in the text of an output file, by the place of their value."""
        found: dict[int, Reply] = {}
        for line in filter(str.strip, text.splitlines()):
            try:
                stated = json.loads(line)
                place = int(str(stated["custom_id"]).removeprefix("value-"))
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # no reply to a request of ours
            found[place] = _reply_in(stated)
        return {place: found[place] for place in self.places if place in found}


def _reply_in(line: dict[str, Json]) -> Reply:
    response = line.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    status = response.get("status_code") if isinstance(response, dict) else None
    if isinstance(body, dict) and status in (200, None) and not line.get("error"):
        return body, ""
    problem = line.get("error") or (body.get("error") if isinstance(body, dict) else None)
    message = problem.get("message") if isinstance(problem, dict) else problem
    return None, str(message or f"HTTP {status}")[:300]


def jobs_of(folder: str, bodies: Sequence[dict[str, Json]]) -> Iterator[Job]:
    """The jobs of these requests, each within the limits."""
    place_of_files = Path(folder).expanduser() if folder else cache_folder() / "batches"
    lines: dict[int, str] = {}
    size = 0
    for place, body in enumerate(bodies):
        request = {
            "custom_id": f"value-{place}",
            "method": "POST",
            "url": f"/v1{CHAT}",
            "body": body,
        }
        line = json.dumps(request, ensure_ascii=False) + "\n"
        if lines and (len(lines) >= MOST_REQUESTS or size + len(line.encode()) > MOST_BYTES):
            yield Job(place_of_files, lines)
            lines, size = {}, 0
        lines[place] = line
        size += len(line.encode())
    if lines:
        yield Job(place_of_files, lines)
