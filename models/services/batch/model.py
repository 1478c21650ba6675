"""Models that answer large jobs later: OpenAI's batch API, and files for ``vllm run-batch``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar
from urllib.parse import quote

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.allowance import spend_request
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.protocol.run_aside import run_confined
from blendfusion.models.services.batch.jobs import NAME, Job, Reply, jobs_of
from blendfusion.models.services.http.api import OPENAI
from blendfusion.models.services.http.chat import Chat
from blendfusion.models.services.http.client import Endpoint, object_in
from blendfusion.models.services.http.exchange import Exchange
from blendfusion.models.services.http.model import DEFAULT_WINDOW, OpenAIModel, fingerprint
from blendfusion.models.services.http.response import Response
from blendfusion.models.services.http.retry import Passing, Retry
from blendfusion.models.services.http.sampling import Sampling
from blendfusion.models.services.http.server_errors import clean_error, status_of
from blendfusion.models.services.http.server_features import FormsTaken
from blendfusion.models.services.http.task_requests import TaskRequests
from blendfusion.models.services.http.transport import (
    BrokenConnection,
    Client,
    File,
    Form,
    NoConnection,
    Request,
    TooLarge,
    json_bytes,
)
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

T = TypeVar("T")

_VALUES = 500_000
"""So many values are divided into jobs that run at the same time."""
_MOST_POLL_SECONDS = 60.0
_ENDED = ("completed", "failed", "expired", "cancelled", "canceled")
_GOING = (
    *("created", "submitted", "queued", "pending", "validating", "in_progress", "processing"),
    *("running", "finalizing", "cancelling"),
)
_READINGS = 3
"""So often the files of a job are read that hold fewer replies than the server counts."""

MOST_ABSENT_SECONDS = 48 * 3600.0
"""A job that the server does not know so long after it was sent (its window is 24 hours) will not
come back."""


class JobUnknown(ModelFailed):
    """The server does not know a job, or the file of its replies."""


class Worker(Protocol):
    """Something that carries out jobs."""

    @property
    def name(self) -> str:
        """The scheme of the model's name."""
        ...

    @property
    def url(self) -> str:
        """The URL of the server without its secrets; '' without a server."""
        ...

    @property
    def key(self) -> str | None:
        """The key of the server, for messages to leave it out."""
        ...

    async def replies(self, jobs: Sequence[Job]) -> list[Mapping[int, Reply]]:
        """The replies of each job. Raises ModelFailed."""
        ...


class BatchModel(StreamingAnswers):
    """A model whose requests go into jobs: cheap and slow, for questions about many values.

    A run waits for its jobs. One that was cut off finds them again, as equal requests are the same
    job. There is one try a value: no correction, no search for the form of a constraint.
    """

    def __init__(self, model: str, worker: Worker, options: Options | None = None) -> None:
        self._options = options or Options()
        self._model, self._worker = model, worker

    @property
    def info(self) -> ModelInfo:
        worker = self._worker
        return ModelInfo(
            name=f"{worker.name}:{self._model}" + (f"@{worker.url}" if worker.url else ""),
            fingerprint=fingerprint(worker.name, worker.url, self._model, self._options),
            window=DEFAULT_WINDOW,
            settings={"max_tokens": str(self._options.max_tokens)},
        )

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            at_once=_VALUES,
            call_per_value=False,
            sees_images=True,
            hears_audio=True,
            fingerprint_lasts=True,
            shots=shows_examples(self._options.shots, self._model),
        )

    @property
    def batch_size(self) -> int:
        return _VALUES

    count_tokens = OpenAIModel.count_tokens

    def close(self) -> None:
        """Nothing to free."""

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; answers are reported when a job has ended. Raises ``ModelFailed``."""
        if not values:
            return []
        chat = self._chat()
        requests = TaskRequests(chat, task)
        exchanges = [Exchange(chat, None, requests, row) for row in values]
        jobs = list(jobs_of(self._options.batch_folder, [one.body() for one in exchanges]))
        answered = run_confined(lambda: self._worker.replies(jobs))
        answers: dict[int, Answer] = {}
        for job, replies in zip(jobs, answered, strict=True):
            for place in job.places:
                body, reason = replies.get(place, (None, "the job has no reply to this value"))
                reason = clean_error(reason, self._worker.key, exchanges[place].request_texts)
                answer = (
                    Answer.failed(reason).with_usage(Usage(values=1, failed=1))
                    if body is None
                    else exchanges[place].answer_in(body)
                )
                calls = Usage(calls=int(place == job.places[0]))
                answers[place] = answer.with_usage(answer.usage + calls)
                on_answer(place, answers[place])
            job.remove()
        return [answers[place] for place in range(len(values))]

    def _chat(self) -> Chat:
        options, shots = self._options, shows_examples(self._options.shots, self._model)
        sampling = Sampling(options.max_tokens, odds=False)
        most = sampling.fields.pop("max_tokens")
        sampling.fields["max_completion_tokens"] = most  # OpenAI and vLLM call it this now
        endpoint = Endpoint(OPENAI.url, None, options.timeout_seconds, Retry(attempts=1))
        forms = FormsTaken(("response_format", "instruction"))
        return Chat(self._model, endpoint, forms, sampling, options.max_tokens, shots)


class BatchFiles:
    """Jobs as files, for a program that the user runs: ``vllm run-batch``."""

    name = "batch-file"
    url = ""
    key = None

    def __init__(self, model: str) -> None:
        self._model = model

    async def replies(self, jobs: Sequence[Job]) -> list[Mapping[int, Reply]]:
        """The replies in the files of the jobs. Raises ModelFailed, and leaves the requests, while
        a job has none."""
        left = [job for job in jobs if not job.replies.is_file()]
        for job in left:
            job.write()
        if left:
            first = left[0]
            count = sum(len(job.places) for job in left)
            more = f", and {len(left) - 1} more files beside it" if len(left) > 1 else ""
            raise ModelFailed(
                f"{count:,} requests wait in {first.requests}{more}",
                hint=f"vllm run-batch -i {first.requests} -o {first.replies} --model {self._model}; then run the "
                "query again.",
                retryable=True,
            )
        return [_read_file(job) for job in jobs]


def _read_file(job: Job) -> dict[int, Reply]:
    """The replies in a file. Raises ModelFailed if it cannot be read, or is not yet whole."""
    replies: dict[int, Reply] = {}
    try:
        with job.replies.open("rb") as lines:
            whole = True
            for line in lines:
                whole = job.add_reply(line, replies) or line.endswith(b"\n")
    except OSError as problem:
        raise ModelFailed(f"'{job.replies}' cannot be read: {problem.strerror}") from None
    if not whole:
        raise ModelFailed(
            f"'{job.replies}' ends within a line: {len(replies):,} of {len(job.places):,} replies are there",
            hint="Run the query again when the program that writes it has ended. If it was stopped, delete the "
            "file, and run the program again.",
            retryable=True,
        )
    return replies


class BatchApi:
    """OpenAI's batch API, and servers that have the same.

    ``poll_seconds``: the first wait for a job, which grows to a minute."""

    name = "openai-batch"

    def __init__(
        self, url: str, key: str | None, options: Options, *, poll_seconds: float = 2.0
    ) -> None:
        self._endpoint = Endpoint(
            url, key, options.timeout_seconds, Retry(attempts=1 + options.retries)
        )
        self._poll_seconds = poll_seconds

    @property
    def url(self) -> str:
        """The URL of the server without secrets."""
        return self._endpoint.safe_url

    @property
    def key(self) -> str | None:
        """The API key, which no message may show."""
        return self._endpoint.key

    async def replies(self, jobs: Sequence[Job]) -> list[Mapping[int, Reply]]:
        """The replies of the jobs, once all have ended. Raises ModelFailed. A running job
        continues, and a later run finds it."""
        async with self._endpoint.client() as client:
            names = [job.name or await self._submit(client, job) for job in jobs]
            return [
                await self._result_or_again(client, job, name)
                for job, name in zip(jobs, names, strict=True)
            ]

    async def _result_or_again(self, client: Client, job: Job, name: str) -> Mapping[int, Reply]:
        """The replies of a job. One that the server does not know ``MOST_ABSENT_SECONDS`` after it
        was sent is given up, and its values are sent once more."""
        try:
            return await self._result(client, job, name)
        except JobUnknown:
            if job.age < MOST_ABSENT_SECONDS:
                raise
        job.remove()
        return await self._result(client, job, await self._submit(client, job))

    async def _submit(self, client: Client, job: Job) -> str:
        """The name of a new job at the server, which a later run finds, too."""
        spend_request()
        content = File(job.requests.name, job.text.encode(), "application/jsonl")
        file = await self._post(client, "/files", Form({"purpose": "batch"}, content))
        wanted = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        job.name = name = await self._post(client, "/batches", json_bytes({**wanted}))
        return name

    async def _result(self, client: Client, job: Job, name: str) -> Mapping[int, Reply]:
        """The replies of a job that has ended. All of its files are read, or ModelFailed leaves the
        job where a later run finds it. ``name``: that at the server, where another process may have
        removed the files of the job by now."""
        wait = self._poll_seconds
        state, status = await self._state(client, name)
        while status in _GOING:
            await asyncio.sleep(wait)
            wait = min(_MOST_POLL_SECONDS, 1.5 * wait)
            state, status = await self._state(client, name)
        if status not in _ENDED:
            raise self._error_that_keeps_job(
                f"the job {name} has the status {status[:40]!r}, which is not known"
            )
        named = [state.get(kind) for kind in ("output_file_id", "error_file_id")]
        files = [file for file in named if isinstance(file, str) and NAME.fullmatch(file)]
        if not files and status == "completed":
            raise self._failure(f"the job {name} is completed, and names no file of its replies")
        if not files:
            job.remove()
            why = clean_error(_reasons(state), self.key)
            raise self._failure(f"the job {name} ended as {status}: {why}")
        for _ in range(_READINGS):
            replies: dict[int, Reply] = {}
            for file in files:
                await self._patiently(partial(self._add_lines, client, file, job, replies))
            if len(replies) >= min(_count_of_replies(state), len(job.places)):
                break
        return replies

    async def _state(self, client: Client, name: str) -> tuple[dict[str, Json], str]:
        """The state of a job, and its status in small letters."""

        async def look() -> tuple[dict[str, Json], str]:
            response = await self._endpoint.get(client, f"/batches/{name}")
            if response.status != 200:
                reason = status_of(response, self.key)
                problem = f"the job {name} is not to be seen ({reason})"
                raise Passing(problem, str(response.status))
            state = object_in(response)
            status = state.get("status")
            if not isinstance(status, str):
                raise Passing(f"the job {name} is not to be seen: its state has no status")
            return state, status.lower()

        return await self._patiently(look)

    async def _add_lines(
        self, client: Client, file: str, job: Job, replies: dict[int, Reply]
    ) -> None:
        """Add the replies in an output file of any size, line by line. Raises Passing."""
        async for line in self._endpoint.lines(client, f"/files/{quote(file)}/content"):
            job.add_reply(line, replies)

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of ``attempt``, tried again as long as it raises Passing. Raises
        ModelFailed."""
        try:
            return await self._endpoint.retry.call(attempt, self._endpoint.host)
        except Passing as trouble:
            kind = JobUnknown if trouble.kind == "404" else ModelFailed
            raise self._error_that_keeps_job(str(trouble), kind) from None

    def _error_that_keeps_job(
        self, problem: str, kind: type[ModelFailed] = ModelFailed
    ) -> ModelFailed:
        return kind(
            f"{self.url}: {problem}",
            hint="The job is kept: a later run reads it.",
            retryable=True,
            foreign=True,
        )

    async def _post(self, client: Client, path: str, content: bytes | Form) -> str:
        """The name of what a POST makes. Raises ModelFailed."""
        endpoint = self._endpoint
        request = Request(endpoint.request(path).url, content)
        try:
            response = await client.send(
                request, endpoint.most_bytes, silence_seconds=endpoint.timeout_seconds
            )
        except (NoConnection, BrokenConnection, TooLarge, TimeoutError) as error:
            raise ModelFailed(
                f"no server answers at {self.url} ({error or 'no reply in time'})",
                retryable=True,
                foreign=True,
            ) from None
        if response.status != 200:
            raise self._failure(f"{self.url} took no job", response)
        try:
            name = object_in(response).get("id")
        except Passing:
            name = None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise self._failure(f"{self.url} took no job: its reply has no id", response)
        return name

    def _failure(self, what: str, response: Response | None = None) -> ModelFailed:
        status = 200 if response is None else response.status
        reason = f" ({status_of(response, self.key)})" if response and status != 200 else ""
        return ModelFailed(
            f"{what}{reason}",
            hint="A server without /v1/batches takes 'openai:…' instead."
            if response is not None
            else "",
            foreign=True,
        )


def _count_of_replies(state: dict[str, Json]) -> int:
    """The number of requests that a server counts as completed; 0 if it counts none."""
    counts = state.get("request_counts")
    completed = counts.get("completed") if isinstance(counts, dict) else None
    return completed if isinstance(completed, int) else 0


def _reasons(state: dict[str, Json]) -> str:
    errors = state.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    entries = data if isinstance(data, list) else []
    words = [entry.get("message") for entry in entries[:3] if isinstance(entry, dict)]
    return "; ".join(word for word in words if isinstance(word, str)) or "no reason was given"
