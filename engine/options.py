"""The settings of a session: names, units, defaults and checks. A leaf: it imports only leaves."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, TypedDict, get_args

from blendfusion.errors import OptionError, close_matches
from blendfusion.redaction import Redact, Redaction, ShowValues

OnError = Literal["null", "raise", "keep"]
"""The result of a call for a value without a valid answer: NULL, an error of the query, or a struct
that keeps the error beside the value."""
Calibration = Literal["prior", "column", "none"]
Progress = Literal["auto", "on", "off"]
ReadFiles = Literal["off", "local", "urls"]
WeightType = Literal["auto", "original", "f16", "q8_0", "q4_0"]

QUERIES = "Planning and execution"
SAFETY = "Safety"
LOCAL = "Local models (llama.cpp)"
HTTP = "HTTP models"
CASCADES = "Cascades"


@dataclass(frozen=True, slots=True)
class About:
    """The documentation and the checks of an option."""

    group: str
    doc: str
    unit: str = ""
    """'' for an option that is not a quantity."""
    least: int | None = None
    """The smallest whole number allowed; None for other types."""
    share: bool = False
    """Whether the option is a number from 0 to 1."""
    choices: tuple[str | bool, ...] = ()
    """All allowed values; () if they cannot be listed."""
    hint: str = ""
    """The hint of the error for a value of another type."""


def _option(
    group: str,
    default: object,
    doc: str,
    *,
    unit: str = "",
    least: int | None = None,
    share: bool = False,
    choices: tuple[str | bool, ...] = (),
    hint: str = "",
) -> Any:
    about = About(group, doc, unit, least, share, choices, hint)
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one session, never of the process. ``connect(**options)`` takes them by
    name."""

    planner: bool = _option(
        QUERIES,
        True,
        "False evaluates every call on every row, as plain functions: same answers, more questions.",
    )
    rules_off: str = _option(
        QUERIES,
        "",
        "Names of planner rules to switch off, separated by commas. Results stay right; the model is "
        "asked more. EXPLAIN VERBOSE shows the rules that fired. Four more rules act while a query "
        "runs: predicate_order, comparison_stop, few_values_first, limited_stages.",
        hint="Names, separated by commas.",
    )
    similar_first: bool | Literal["auto"] = _option(
        QUERIES,
        "auto",
        "Under a LIMIT without ORDER BY, asks about rows in the order of their similarity to the question, "
        "by the session's embedder, so that enough rows pass sooner. 'auto': if an index of the session "
        "holds the vectors of the column.",
        choices=("auto", True, False),
    )
    approximate: float = _option(
        QUERIES,
        0.0,
        "Above 0: counts, sums and averages over answers come from a sample of each group, with bounds; "
        "half of their width as a share of what they could be, as of bf.Within. 0: from all answers.",
        share=True,
    )
    planning_ms: int = _option(
        QUERIES,
        200,
        "CPU time of the planner's rules for one query. What they have not finished then is left as it is: "
        "results stay right, the model may be asked more, and EXPLAIN says so. 0: no limit.",
        unit="ms",
        least=0,
    )
    chunk_rows: int = _option(
        QUERIES,
        1_048_576,
        "Maximum rows of one chunk of a pipeline; a chunk is bounded in bytes, too.",
        unit="rows",
        least=1,
    )
    first_chunk_rows: int = _option(
        QUERIES,
        16,
        "Size of the first chunk if a LIMIT may end the work early; later chunks double.",
        unit="rows",
        least=1,
    )
    spill_above: int = _option(
        QUERIES,
        1024,
        "Memory for rows between the stages of a query, and as much for its answers; the rest goes to "
        "temporary files.",
        unit="MB",
        least=0,
    )
    spill_folder: str = _option(
        QUERIES,
        "",
        "Folder of the temporary files; '' is the system's, which TMPDIR names.",
        hint="The path of a folder, as text.",
    )
    views_folder: str = _option(
        QUERIES,
        "blendfusion_views",
        "Folder of materialised views: CREATE MATERIALIZED VIEW makes it where it is missing.",
        hint="The path of a folder, as text.",
    )
    drift_checks: int = _option(
        QUERIES,
        0,
        "Kept answers that each refresh of a materialised view asks again, to see whether the model "
        "answers as it did (docs/views.md), and those of each 50 answers of a decision model, in any "
        "query. 0: none.",
        unit="values",
        least=0,
    )
    names_in_any_case: bool = _option(
        QUERIES,
        True,
        "A name that DataFusion does not find is the only table or column that is equal but for letter "
        "case. False leaves names to DataFusion.",
    )
    on_error: Literal["null", "raise"] = _option(
        QUERIES,
        "null",
        "Result for a value without a valid answer: NULL, or an error of the query. 'keep' changes the "
        "type of a call, so only calls take it.",
        choices=("null", "raise"),
    )
    progress: Progress = _option(
        QUERIES,
        "auto",
        "Progress bar on standard error: only on a terminal ('auto'), always, never.",
        choices=get_args(Progress),
    )
    confirm_above: int = _option(
        QUERIES,
        0,
        "A query that is expected to ask more values, or an unknown number, runs only after a yes on the "
        "terminal; without a terminal it is an error. 0: no confirmation.",
        unit="values",
        least=0,
    )
    trace_calls: int = _option(
        QUERIES,
        1_000_000,
        "Maximum requests that the trace of a run keeps, an even sample of more, some 0.35 KB each; totals "
        "and errors cover all.",
        unit="requests",
        least=0,
    )
    log_questions: bool = _option(
        QUERIES, False, "Logs and OpenTelemetry's spans contain the text of questions, too."
    )
    cache_size: int = _option(
        QUERIES,
        1024,
        "Maximum size of the file of stored answers; above it, the least recently used are dropped.",
        unit="MB",
        least=1,
    )
    read_only: bool = _option(
        SAFETY,
        False,
        "Queries may only read registered tables. SET cannot switch it off.",
    )
    read_files: ReadFiles = _option(
        SAFETY,
        "off",
        "Queries may read files by their paths, FROM 'sales.csv': on this machine ('local'), also at URLs "
        "('urls'). A read-only query may not.",
        choices=get_args(ReadFiles),
    )
    read_variables: bool = _option(
        SAFETY,
        True,
        "A table that is not registered is the frame (pandas, Polars, Arrow, DataFusion) in the variable of "
        "that name where session.sql is called. A read-only query reads none, and no query that a program "
        "did not write: of the command line, the local page, session.ask.",
    )
    show_values: ShowValues = _option(
        SAFETY,
        "auto",
        "Shows values of the data in warnings and errors: only on a terminal, in an interactive Python "
        "or a notebook ('auto'); always; never.",
        choices=get_args(ShowValues),
    )
    redact: Redact | None = _option(
        SAFETY,
        None,
        "Function from a value's text to the text to show, applied to every value outside of results; "
        "None shows values unchanged.",
        hint="A function from text to text: connect(redact=function).",
    )
    image_urls: bool = _option(
        SAFETY,
        True,
        "Sends http(s) URLs of images to the model's server, which fetches them; if False, such values "
        "fail.",
    )
    n_ctx: int = _option(
        LOCAL,
        0,
        "Context window; 0: the window of the model's training, at most 8192.",
        unit="tokens",
        least=0,
    )
    n_gpu_layers: int = _option(
        LOCAL, 0, "Layers on the GPU; -1: all layers.", unit="layers", least=-1
    )
    threads: int = _option(
        LOCAL, 0, "CPU threads; 0: the number of cores.", unit="threads", least=0
    )
    projector: str = _option(
        LOCAL,
        "",
        "GGUF file (mmproj) that encodes images for llm_vqa: a path, or 'hf:OWNER/REPOSITORY/FILE.gguf'. "
        "'': the mmproj*.gguf in the folder of the weights, if it and they are the only ones there.",
        hint="The path of a GGUF file.",
    )
    weights: WeightType = _option(
        LOCAL,
        "auto",
        "Conversion of the weights, once, in the user's cache: to F16 if the file is quantised, that is "
        "faster, and the disk has room ('auto'); none ('original'); to a type.",
        choices=get_args(WeightType),
    )
    max_tokens: int = _option(
        LOCAL,
        128,
        "Maximum length of a free-text answer, for HTTP models too.",
        unit="tokens",
        least=1,
    )
    shots: bool | Literal["auto"] = _option(
        LOCAL,
        "auto",
        "Built-in worked examples in the prompt; for HTTP models too. 'auto': for local models, and for "
        "those of a server whose name says that they have fewer than a billion parameters.",
        choices=("auto", True, False),
    )
    wordings: bool = _option(
        LOCAL,
        True,
        "Scores each option by several words in one pass: yes also by 'correct'; a label in lower case, by "
        "the names that it lists and by related words; yes, no and scores also by the idea of the question "
        "('negative' against 'positive').",
    )
    calibration: Calibration = _option(
        LOCAL,
        "prior",
        "Correction of option scores: by content-free inputs and fixed texts of the kind that the question "
        "names, so that an answer never depends on other values ('prior'); also by the values asked "
        "together, each option with the same weight ('column'; answers then hold for this run alone); "
        "none.",
        choices=get_args(Calibration),
    )
    timeout_seconds: float = _option(HTTP, 120.0, "Maximum time of one request.", unit="seconds")
    retries: int = _option(
        HTTP,
        4,
        "Retries of a value after a temporary failure. 0: none, and no wait for a server that stops "
        "answering.",
        unit="tries",
        least=0,
    )
    concurrency: int = _option(
        HTTP,
        16,
        "Requests in flight at the same time; fewer after the server refuses some as too many.",
        unit="requests",
        least=1,
    )
    concurrency_most: int = _option(
        HTTP,
        0,
        "Upper limit of the requests in flight, which grow from concurrency while the server answers more "
        "of them as quickly. 0: concurrency is the limit.",
        unit="requests",
        least=0,
    )
    requests_per_minute: int = _option(
        HTTP,
        0,
        "Maximum requests sent in any 60 seconds, retries included. 0: no limit.",
        unit="requests",
        least=0,
    )
    tokens_per_minute: int = _option(
        HTTP,
        0,
        "Maximum tokens of prompts and answers in any 60 seconds. 0: no limit.",
        unit="tokens",
        least=0,
    )
    rows_per_prompt: int = _option(
        HTTP,
        1,
        "Maximum values in one prompt, for short answers, where tokens are paid: the question and its examples "
        "are sent once. The values of a prompt may influence each other's answers.",
        unit="values",
        least=1,
    )
    together: bool = _option(
        HTTP,
        False,
        "Whether all questions about a text go in one prompt, for short answers, where tokens are paid: the "
        "text is sent once. The questions of a prompt may influence each other's answers.",
    )
    batch_folder: str = _option(
        HTTP,
        "",
        "Folder of the files of batch jobs (models 'openai-batch:…' and 'batch-file:…'); '' is one in the "
        "user's cache.",
        hint="The path of a folder, as text.",
    )
    accuracy: float = _option(
        CASCADES,
        0.0,
        "Cascade target: at least this share of the values gets the answer of the large model. 0: no "
        "target.",
        share=True,
    )
    recall: float = _option(
        CASCADES,
        0.0,
        "Cascade target for yes/no questions: at least this share of the values to which the large model "
        "says yes gets a yes. 0: no target.",
        share=True,
    )
    precision: float = _option(
        CASCADES,
        0.0,
        "Cascade target for yes/no questions: the large model says yes to at least this share of the "
        "values that get a yes. 0: no target.",
        share=True,
    )
    delta: float = _option(
        CASCADES,
        0.05,
        "Maximum probability that a cascade misses its target.",
        share=True,
    )

    @property
    def redaction(self) -> Redaction:
        """The rule for values that are shown outside of results."""
        return Redaction(self.show_values, self.redact)

    def with_(self, **changes: object) -> Options:
        """A copy with some options changed. Raises OptionError for unknown names and wrong
        values."""
        for name, value in changes.items():
            _check(name, value)
        return replace(self, **changes)  # type: ignore[arg-type]

    def with_text(self, name: str, text: str) -> Options:
        """A copy with one option changed to the value of ``text``, as in a SET statement."""
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


class OptionArguments(TypedDict, total=False):
    """The options as ``connect`` takes them: the fields of ``Options``, for type checkers."""

    planner: bool
    rules_off: str
    similar_first: bool | Literal["auto"]
    approximate: float
    planning_ms: int
    chunk_rows: int
    first_chunk_rows: int
    spill_above: int
    spill_folder: str
    views_folder: str
    drift_checks: int
    names_in_any_case: bool
    on_error: Literal["null", "raise"]
    progress: Progress
    confirm_above: int
    trace_calls: int
    log_questions: bool
    cache_size: int
    read_only: bool
    read_files: ReadFiles
    read_variables: bool
    show_values: ShowValues
    redact: Redact | None
    image_urls: bool
    n_ctx: int
    n_gpu_layers: int
    threads: int
    projector: str
    weights: WeightType
    max_tokens: int
    shots: bool | Literal["auto"]
    wordings: bool
    calibration: Calibration
    timeout_seconds: float
    retries: int
    concurrency: int
    concurrency_most: int
    requests_per_minute: int
    tokens_per_minute: int
    rows_per_prompt: int
    together: bool
    batch_folder: str
    accuracy: float
    recall: float
    precision: float
    delta: float


def about(option: Field[Any]) -> About:
    """The documentation and the checks of a field of ``Options``."""
    found: About = option.metadata["about"]
    return found


Options.__doc__ = f"{Options.__doc__}\n\n" + "\n".join(
    f"    {option.name}: {about(option).doc}" for option in fields(Options)
)


OF_MODELS = frozenset(o.name for o in fields(Options) if about(o).group in (LOCAL, HTTP, CASCADES))
"""The options that a model takes when it is loaded."""

_SWITCHES = frozenset(o.name for o in fields(Options) if True in about(o).choices)
"""The options that take a boolean among other values."""


def declaration(name: str) -> Field[Any]:
    """The field of ``Options`` with this name. Raises OptionError, naming a close match."""
    known = {option.name: option for option in fields(Options)}
    if name not in known:
        others = ("cache", "budget", "prices", "embedder", "cluster")  # arguments of bf.connect
        if name in others:
            hint = f"It is given at the start: bf.connect({name}=…), --{name.replace('prices', 'price')}."
            raise OptionError(f"'{name}' is none of the options that can be set", hint=hint)
        raise OptionError(f"unknown option '{name}'", hint=close_matches(name, [*known, *others]))
    return known[name]


def _check(name: str, value: object) -> None:
    option = declaration(name)
    problem = _problem(name, option.default, about(option), value)
    if problem is not None:
        raise OptionError(f"option {name}={value!r} is not possible", hint=problem)


def _problem(name: str, default: object, spec: About, value: object) -> str | None:
    """The hint for a wrong value; None for a valid one."""
    if spec.choices:
        if any(value == choice and type(value) is type(choice) for choice in spec.choices):
            return None
        hint = f"Choose one of {', '.join(map(repr, spec.choices))}."
        if name == "on_error" and value == "keep":
            hint += " 'keep' changes the type of a call: pass it to the call, on_error => 'keep'."
        return hint
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "True or False."
    if spec.least is not None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and value >= spec.least:  # type: ignore[operator]
            return None
        return f"{name} is a whole number, at least {spec.least}."
    if spec.share:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and 0 <= value <= 1 else f"{name} is a number from 0 to 1."  # type: ignore[operator]
    if isinstance(default, float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and value > 0 else "A positive number of seconds."  # type: ignore[operator]
    if isinstance(default, str):
        return None if isinstance(value, str) else spec.hint
    return None if value is None or callable(value) else spec.hint
