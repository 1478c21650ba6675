"""The names of what BlendFusion tells logs and OpenTelemetry: fields, loggers, metrics.

Both know a fact by the same name: a field of a log record is the attribute of a span. Names that begin
with ``gen_ai``, ``server`` and ``error`` are those of OpenTelemetry's semantic conventions.
"""

from __future__ import annotations

from collections.abc import Mapping

QUERY_ID = "blendfusion.query.id"
QUERY_CALLS = "blendfusion.query.calls"
QUERY_PLAN = "blendfusion.query.plan"
OUTCOME = "blendfusion.outcome"
STAGE = "blendfusion.stage"
ROWS_IN = "blendfusion.rows_in"
ROWS_OUT = "blendfusion.rows_out"
CHUNKS = "blendfusion.chunks"
INGREDIENT = "blendfusion.ingredient"
TASK = "blendfusion.task"
QUESTION = "blendfusion.question"
SIZE = "blendfusion.batch.size"
VALUES = "blendfusion.values"
CACHED = "blendfusion.cached"
FAILED = "blendfusion.failed"
WITHHELD = "blendfusion.withheld"
DECIDED = "blendfusion.decided"
CALLS = "blendfusion.calls"
EVALUATED_TOKENS = "blendfusion.evaluated_tokens"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
SECONDS = "blendfusion.seconds"
MODEL_SECONDS = "blendfusion.model_seconds"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
TOKEN_TYPE = "gen_ai.token.type"
SERVER = "server.address"
PORT = "server.port"
ERROR = "error.type"
ATTEMPT = "blendfusion.attempt"
WAIT_SECONDS = "blendfusion.wait_seconds"
GIVEN_TOKENS = "blendfusion.given_tokens"
AGAIN = "blendfusion.again"
AGAIN_TOKENS = "blendfusion.again_tokens"
FILE = "blendfusion.file"
WEIGHTS = "blendfusion.weights"
BYTES = "blendfusion.bytes"
REASON = "blendfusion.reason"

FIELDS: Mapping[str, str] = {
    QUERY_ID: "one run of one query; 12 hexadecimal digits",
    QUERY_CALLS: "calls of ingredients in the query",
    QUERY_PLAN: "`staged`, or `plain` where DataFusion evaluates the calls",
    OUTCOME: "`done`; `closed`, if the caller wanted no more; `failed`",
    STAGE: "a stage of the plan, from 1 as EXPLAIN counts",
    ROWS_IN: "rows that the stage read",
    ROWS_OUT: "rows that it gave",
    CHUNKS: "chunks that it worked in",
    INGREDIENT: "the function that asks, e.g. `llm_filter`",
    TASK: "digest of a question with its constraint; 12 hexadecimal digits, the same in every process",
    QUESTION: "the question; only with the option `log_questions`",
    SIZE: "requests that went to the model in one batch",
    VALUES: "requests that a model answered, or failed to",
    CACHED: "requests that the cache answered",
    FAILED: "those of the values that got no valid answer",
    WITHHELD: "answers that are NULL as they are less probable than their calls want; none if it is missing",
    DECIDED: "values that a small model, or similarity, decided for a large one; none if it is missing",
    CALLS: "batches, or HTTP requests with retries",
    EVALUATED_TOKENS: "prompt tokens that the model computed; a beginning that prompts share counts once",
    INPUT_TOKENS: "prompt tokens",
    OUTPUT_TOKENS: "tokens of answers",
    SECONDS: "wall time, in seconds",
    MODEL_SECONDS: "time inside the model, in seconds",
    OPERATION: "`chat` or `embeddings`",
    PROVIDER: "`openai` for servers with that API, `llama.cpp`",
    REQUEST_MODEL: "the model, as the session names it; of a call, as the server knows it",
    TOKEN_TYPE: "`input` or `output`",
    SERVER: "host of the server",
    PORT: "its port",
    ERROR: "class of an exception, status of an HTTP reply, or `timeout`, `connection`, `reply` (one that is none)",
    ATTEMPT: "number of the try that failed, from 1",
    WAIT_SECONDS: "until the next try, in seconds",
    GIVEN_TOKENS: "tokens of values, and of their answers: what would be computed if nothing were shared",
    AGAIN: "how often a value was asked again exactly, where others might have changed its answer",
    AGAIN_TOKENS: "tokens that were computed for that",
    FILE: "name of a file of weights",
    WEIGHTS: "type of the weights that answer, and what they were made of",
    BYTES: "size of a file, in bytes",
    REASON: "why something was not done, in words",
}
"""Every field of a record and attribute of a span, and what it says."""

LOGGERS: Mapping[str, str] = {
    "query": "INFO: a query starts, a query ends. WARNING: values that got no valid answer",
    "stage": "DEBUG: a stage ends",
    "batch": "DEBUG: a batch was answered, by a model or by the cache",
    "model": "INFO: a model is loaded; a faster copy of its weights was made. WARNING: none can be had. "
    "DEBUG: what a local model computed",
    "retry": "INFO: a request to a server failed and will be tried again",
    "cache": "WARNING: the file of stored answers is of no use, as `bf.CacheWarning` says",
}
"""The loggers below ``blendfusion``, and what each is told."""

METRICS: Mapping[str, str] = {
    "blendfusion.queries": "counter of queries that ended",
    "blendfusion.values": "counter of requests that a model answered, or failed to",
    "blendfusion.cached": "counter of requests that the cache answered",
    "blendfusion.failed": "counter of requests without a valid answer",
    "blendfusion.tokens": "counter of tokens: of prompts (`input`), of answers (`output`)",
    "blendfusion.retries": "counter of HTTP requests that were tried once more",
    "blendfusion.batch.duration": "histogram of batches inside the model, in seconds",
    "gen_ai.client.operation.duration": "histogram of single calls of a model, in seconds",
}
"""Every metric, and what it counts."""
