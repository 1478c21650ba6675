"""Every setting of a session: its unit, its default, its name. A leaf: it imports only leaves."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from blendfusion.errors import OptionError, close_matches
from blendfusion.redaction import Redact, Redaction, ShowValues

OnError = Literal["null", "raise", "keep"]
"""What a call makes of a value without a valid answer: NULL, an error of the query, or a struct that
keeps the error beside the value."""
Calibration = Literal["prior", "column", "none"]
Progress = Literal["auto", "on", "off"]
WeightType = Literal["auto", "original", "f16", "q8_0", "q4_0"]

QUERIES = "Planning and execution"
SAFETY = "Safety"
LOCAL = "Local models (llama.cpp)"
HTTP = "HTTP models"
CASCADES = "Cascades of two models"


@dataclass(frozen=True, slots=True)
class About:
    """What there is to say of an option."""

    group: str
    says: str
    unit: str = ""
    """'': it is no quantity."""
    least: int | None = None
    """The smallest whole number that is possible; None: it is none."""
    share: bool = False
    """It is a number from 0 to 1."""
    choices: tuple[str | bool, ...] = ()
    """All that is possible; (): more than can be listed."""
    hint: str = ""
    """What to write, where another kind of value was given."""


def _option(
    group: str,
    default: object,
    says: str,
    *,
    unit: str = "",
    least: int | None = None,
    share: bool = False,
    choices: tuple[str | bool, ...] = (),
    hint: str = "",
) -> Any:
    about = About(group, says, unit, least, share, choices, hint)
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one session; never of the process. ``connect(**options)`` takes them by name."""

    planner: bool = _option(
        QUERIES,
        True,
        "False runs every query with the plain functions: the same answers, not minimal.",
    )
    rules_off: str = _option(
        QUERIES,
        "",
        "Rules of the planner to leave out, by name, separated by commas: right results, more values "
        "asked. EXPLAIN VERBOSE shows which rules did something; four more act while a query runs: "
        "predicate_order, comparison_stop, few_values_first, limited_stages.",
        hint="Names, separated by commas.",
    )
    similar_first: bool | Literal["auto"] = _option(
        QUERIES,
        "auto",
        "Under a LIMIT without ORDER BY, rows are asked about in the order of their similarity to the "
        "question, by the session's embedder: the same rows pass, and sooner. 'auto': where an index of "
        "the session holds the vectors of the column.",
        choices=("auto", True, False),
    )
    chunk_rows: int = _option(
        QUERIES,
        1_048_576,
        "Most rows of one chunk of a pipeline; a chunk is bounded in bytes, too.",
        unit="rows",
        least=1,
    )
    first_chunk_rows: int = _option(
        QUERIES,
        16,
        "The first chunk where a LIMIT may end the work early; chunks double from there.",
        unit="rows",
        least=1,
    )
    spill_above: int = _option(
        QUERIES,
        1024,
        "Rows between the stages of a query that are kept in memory; what is more lies in temporary "
        "files meanwhile.",
        unit="MB",
        least=0,
    )
    spill_folder: str = _option(
        QUERIES,
        "",
        "The folder of these files; '' is the system's, which TMPDIR names.",
        hint="The path of a folder, as text.",
    )
    on_error: Literal["null", "raise"] = _option(
        QUERIES,
        "null",
        "What a value without a valid answer becomes: NULL, or an error of the query. 'keep' changes "
        "the type of a call, so it is an option of calls only.",
        choices=("null", "raise"),
    )
    progress: Progress = _option(
        QUERIES,
        "auto",
        "A progress bar on standard error: only on a terminal ('auto'), always, never.",
        choices=get_args(Progress),
    )
    confirm_above: int = _option(
        QUERIES,
        0,
        "A query that is expected to ask more, or an unknown number, is run only after a yes on the "
        "terminal; without a terminal it is an error. 0: nothing is confirmed.",
        unit="values",
        least=0,
    )
    trace_calls: int = _option(
        QUERIES,
        1_000_000,
        "How many requests of a run its trace keeps, some 0.35 KB each; of the others, totals and errors.",
        unit="requests",
        least=0,
    )
    log_questions: bool = _option(
        QUERIES, False, "Logs and OpenTelemetry's spans hold the words of questions, too."
    )
    cache_size: int = _option(
        QUERIES,
        1024,
        "What the file of stored answers may take; beyond it the least recently used are dropped.",
        unit="MB",
        least=1,
    )
    read_only: bool = _option(
        SAFETY,
        False,
        "Queries may read registered tables and do nothing else. SET cannot switch it off.",
    )
    show_values: ShowValues = _option(
        SAFETY,
        "auto",
        "Values of the data in warnings and errors: only where a person looks on, that is on a "
        "terminal, in an interactive Python or a notebook ('auto'); always; never.",
        choices=get_args(ShowValues),
    )
    redact: Redact | None = _option(
        SAFETY,
        None,
        "A function from a text to what may be shown of it, for every value that is shown outside of "
        "results; None shows it as it is.",
        hint="A function from text to text: connect(redact=function).",
    )
    image_urls: bool = _option(
        SAFETY,
        True,
        "http(s) URLs in the place of images are sent to the model's server, which fetches them; else "
        "such values fail.",
    )
    n_ctx: int = _option(
        LOCAL,
        0,
        "The context window; 0: what the model was trained for, at most 8192.",
        unit="tokens",
        least=0,
    )
    n_gpu_layers: int = _option(LOCAL, 0, "On the GPU; -1: all of them.", unit="layers", least=-1)
    threads: int = _option(
        LOCAL, 0, "Of the CPU; 0: as many as there are cores, never more.", unit="threads", least=0
    )
    projector: str = _option(
        LOCAL,
        "",
        "The GGUF file (mmproj) that makes vectors of images, for llm_vqa: a path, or "
        "'hf:OWNER/REPOSITORY/FILE.gguf'. '': the only mmproj*.gguf beside "
        "the weights, where these are the only ones in their folder.",
        hint="The path of a GGUF file.",
    )
    weights: WeightType = _option(
        LOCAL,
        "auto",
        "What the weights of a file are converted to, once, in the user's cache: F16 where the file is "
        "quantised, on a CPU where that is faster, if there is room ('auto'); nothing; a type.",
        choices=get_args(WeightType),
    )
    max_tokens: int = _option(
        LOCAL,
        128,
        "The longest free-text answer, of HTTP models too.",
        unit="tokens",
        least=1,
    )
    shots: bool = _option(
        LOCAL,
        True,
        "Worked examples of ours in the prompt, for models that were helped by them; HTTP models too.",
    )
    wordings: bool = _option(
        LOCAL,
        True,
        "Options are scored by several words each, in the same pass: yes also by 'correct', a label in lower case, by "
        "the names that it lists and by words that say the same; yes and no also by the idea that the question asks "
        "for ('negative' against 'positive'), and so scores of one idea.",
    )
    calibration: Calibration = _option(
        LOCAL,
        "prior",
        "What option scores are corrected by: content-free inputs and a fixed bank of texts of the kind "
        "that the question names, so that an answer never depends on its neighbours ('prior'); that and "
        "what the values asked together say, each option with the same weight ('column'; answers are "
        "then for this run alone); nothing.",
        choices=get_args(Calibration),
    )
    timeout_seconds: float = _option(HTTP, 120.0, "Of one request.", unit="seconds")
    retries: int = _option(
        HTTP,
        4,
        "How often a value is asked again after trouble that may pass. 0: never; then a server that "
        "stops answering is not waited for either.",
        unit="tries",
        least=0,
    )
    concurrency: int = _option(
        HTTP,
        16,
        "In flight at the same time; fewer after the server has refused some as too many.",
        unit="requests",
        least=1,
    )
    concurrency_most: int = _option(
        HTTP,
        0,
        "Up to so many where the server answers more of them as quickly: what is in flight grows from "
        "concurrency while it does. 0: never more than concurrency.",
        unit="requests",
        least=0,
    )
    requests_per_minute: int = _option(
        HTTP,
        0,
        "Most requests that are sent in any 60 seconds, those that are tried again among them. 0: any "
        "number.",
        unit="requests",
        least=0,
    )
    tokens_per_minute: int = _option(
        HTTP,
        0,
        "Most tokens of prompts and answers in any 60 seconds. 0: any number.",
        unit="tokens",
        least=0,
    )
    accuracy: float = _option(
        CASCADES,
        0.0,
        "Of two models, the small one decides what it may so that at least this share of the values gets "
        "the answer that the large one gives. 0: it is not promised.",
        share=True,
    )
    recall: float = _option(
        CASCADES,
        0.0,
        "The same of yes/no questions: of the values to which the large model says yes, at least this share "
        "gets a yes.",
        share=True,
    )
    precision: float = _option(
        CASCADES,
        0.0,
        "The same of yes/no questions: of the values that get a yes, the large model says yes to at least "
        "this share.",
        share=True,
    )
    delta: float = _option(
        CASCADES,
        0.05,
        "How probable it may be that a cascade does not keep what it promises.",
        share=True,
    )

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
        if isinstance(current, bool) or name in _SWITCHES:
            value = {"true": True, "on": True, "false": False, "off": False}.get(text.lower(), text)
        elif isinstance(current, int | float):
            try:
                value = type(current)(text)
            except ValueError:
                value = text
        return self.with_(**{name: value})


def about(option: Field[Any]) -> About:
    """What there is to say of a field of ``Options``."""
    said: About = option.metadata["about"]
    return said


Options.__doc__ = f"{Options.__doc__}\n\n" + "\n".join(
    f"    {option.name}: {about(option).says}" for option in fields(Options)
)


OF_MODELS = frozenset(o.name for o in fields(Options) if about(o).group in (LOCAL, HTTP, CASCADES))
"""Those that a model takes when it is loaded."""

_SWITCHES = frozenset(o.name for o in fields(Options) if True in about(o).choices)
"""Those that take a boolean among other values."""


def _check(name: str, value: object) -> None:
    known = {option.name: option for option in fields(Options)}
    if name not in known:
        raise OptionError(f"unknown option '{name}'", hint=close_matches(name, known))
    problem = _problem(name, known[name].default, about(known[name]), value)
    if problem is not None:
        raise OptionError(f"option {name}={value!r} is not possible", hint=problem)


def _problem(name: str, default: object, said: About, value: object) -> str | None:
    """What is wrong with a value, as what to write instead; None if nothing is."""
    if said.choices:
        if any(value == choice and type(value) is type(choice) for choice in said.choices):
            return None
        hint = f"Choose one of {', '.join(map(repr, said.choices))}."
        if name == "on_error" and value == "keep":
            hint += " 'keep' changes the type of a call: say it per call, on_error => 'keep'."
        return hint
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "True or False."
    if said.least is not None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and value >= said.least:  # type: ignore[operator]
            return None
        return f"{name} is a whole number, at least {said.least}."
    if said.share:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and 0 <= value <= 1 else f"{name} is a number from 0 to 1."  # type: ignore[operator]
    if isinstance(default, float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and value > 0 else "A positive number of seconds."  # type: ignore[operator]
    if isinstance(default, str):
        return None if isinstance(value, str) else said.hint
    return None if value is None or callable(value) else said.hint
