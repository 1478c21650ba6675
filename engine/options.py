"""Every setting of a session: its unit, its default, its name. A leaf: it imports only leaves."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from blendfusion.errors import OptionError, close_matches
from blendfusion.redaction import Redact, Redaction, ShowValues

OnError = Literal["null", "raise", "keep"]
"""What a call makes of a value without a valid answer: NULL, an error of the query, or a struct that
keeps the error beside the value."""
Calibration = Literal["prior", "column", "none"]
Progress = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one session; never of the process. ``connect(**options)`` takes them by name.

    Planning and execution
        planner: False runs every query with the plain functions (same answers, not minimal).
        rules_off: rules of the planner to leave out, by name, separated by commas: right results,
            more values asked. EXPLAIN VERBOSE shows which rules did something.
        chunk_rows: most rows of one chunk of a pipeline (a chunk is bounded in bytes, too).
        first_chunk_rows: rows of the first chunk where a LIMIT may end the work early;
            chunks double from there.
        spill_above: megabytes of rows between the stages of a query that are kept in memory; what is
            more lies in temporary files meanwhile.
        spill_folder: the folder of these files ("": the system's, which TMPDIR names).
        on_error: what a value without a valid answer becomes: NULL, or an error of the query. 'keep'
            changes the type of a call, so it is an option of calls only.
        progress: a progress bar on standard error: only on a terminal ("auto"), always, never.
        confirm_above: values: a query that is expected to ask more, or an unknown number, is run only
            after a yes on the terminal; without a terminal it is an error. 0: nothing is confirmed.
        log_questions: logs and OpenTelemetry's spans hold the words of questions, too.
        cache_size: megabytes that the file of stored answers may take; beyond them the least
            recently used answers are dropped.

    Safety (docs/security.md)
        read_only: queries may read registered tables and do nothing else. SET cannot switch it off.
        show_values: values of the data in warnings and errors: only where a person looks on, that is
            on a terminal, in an interactive Python or a notebook ("auto"); always; never ("off").
        redact: a function from a text to what may be shown of it, for every value that is shown
            outside of results; None shows it as it is.

    Local models (llama.cpp)
        n_ctx: context window in tokens (0: what the model was trained for, at most 8192).
        n_gpu_layers: layers on the GPU (-1: all, 0: none).
        threads: CPU threads (0: the number of cores, never more).
        max_tokens: most tokens of one free-text answer.
        shots: worked examples of ours in the prompt, for models that were helped by them.
        calibration: what option scores are corrected by: "prior" (content-free inputs and a fixed
            bank of neutral texts; an answer never depends on its neighbours), "column" (the mean
            over the values asked together; then part of the cache key), "none".

    HTTP models
        timeout_seconds: of one request.
        retries: how often a value is asked again after trouble that may pass (0: never; then a server
            that stops answering is not waited for either).
        concurrency: requests in flight.
        requests_per_minute: most requests that are sent in any 60 seconds, those that are tried again
            among them (0: any number).
        tokens_per_minute: most tokens of prompts and answers in any 60 seconds (0: any number).
    """

    planner: bool = True
    rules_off: str = ""
    chunk_rows: int = 1_048_576
    first_chunk_rows: int = 16
    spill_above: int = 1024
    spill_folder: str = ""
    on_error: Literal["null", "raise"] = "null"
    progress: Progress = "auto"
    confirm_above: int = 0
    log_questions: bool = False
    cache_size: int = 1024
    read_only: bool = False
    show_values: ShowValues = "auto"
    redact: Redact | None = None
    n_ctx: int = 0
    n_gpu_layers: int = 0
    threads: int = 0
    max_tokens: int = 128
    shots: bool = True
    calibration: Calibration = "prior"
    timeout_seconds: float = 120.0
    retries: int = 4
    concurrency: int = 16
    requests_per_minute: int = 0
    tokens_per_minute: int = 0

    @property
    def redaction(self) -> Redaction:
        """What people get to see of the data outside of results."""
        return Redaction(self.show_values, self.redact)

    def with_(self, **changes: object) -> Options:
        """These options with some changed; unknown names and wrong values raise OptionError."""
        for name, value in changes.items():
            _check(name, value)
        return replace(self, **changes)  # type: ignore[arg-type]

    def with_text(self, name: str, text: str) -> Options:
        """These options with one changed to the value that ``text`` (of a SET statement) spells."""
        current = getattr(self, name, None)
        value: object = text
        if isinstance(current, bool):
            value = {"true": True, "on": True, "false": False, "off": False}.get(text.lower(), text)
        elif isinstance(current, int | float):
            try:
                value = type(current)(text)
            except ValueError:
                value = text
        return self.with_(**{name: value})


_CHOICES: dict[str, tuple[str, ...]] = {
    "on_error": ("null", "raise"),
    "calibration": get_args(Calibration),
    "progress": get_args(Progress),
    "show_values": get_args(ShowValues),
}
_AT_LEAST = {
    "chunk_rows": 1,
    "first_chunk_rows": 1,
    "spill_above": 0,
    "confirm_above": 0,
    "cache_size": 1,
    "n_ctx": 0,
    "n_gpu_layers": -1,
    "threads": 0,
    "max_tokens": 1,
    "retries": 0,
    "concurrency": 1,
    "requests_per_minute": 0,
    "tokens_per_minute": 0,
}


def _check(name: str, value: object) -> None:
    known = {f.name: f for f in fields(Options)}
    if name not in known:
        raise OptionError(f"unknown option '{name}'", hint=close_matches(name, known))
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            hint = f"Choose one of {', '.join(map(repr, _CHOICES[name]))}."
            if name == "on_error" and value == "keep":
                hint += " 'keep' changes the type of a call: say it per call, on_error => 'keep'."
            raise OptionError(f"option {name}={value!r} is not possible", hint=hint)
    elif name in _AT_LEAST:
        if not isinstance(value, int) or isinstance(value, bool) or value < _AT_LEAST[name]:
            raise OptionError(
                f"option {name}={value!r} is not possible",
                hint=f"{name} is a whole number, at least {_AT_LEAST[name]}.",
            )
    elif name == "timeout_seconds":
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise OptionError(
                f"option {name}={value!r} is not possible", hint="A positive number of seconds."
            )
    elif name == "spill_folder":
        if not isinstance(value, str):
            raise OptionError(
                f"option {name}={value!r} is not possible", hint="The path of a folder, as text."
            )
    elif name == "rules_off":
        if not isinstance(value, str):
            raise OptionError(
                f"option {name}={value!r} is not possible", hint="Names, separated by commas."
            )
    elif name == "redact":
        if value is not None and not callable(value):
            raise OptionError(
                f"option {name}={value!r} is not possible",
                hint="A function from text to text: connect(redact=function).",
            )
    elif not isinstance(value, bool):
        raise OptionError(f"option {name}={value!r} is not possible", hint="True or False.")
