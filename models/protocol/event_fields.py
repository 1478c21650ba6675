"""Names of the fields, loggers and metrics that logs and OpenTelemetry receive.

Both use the same names: a field of a log record is an attribute of a span. Names that begin with
``gen_ai``, ``server`` and ``error`` belong to OpenTelemetry's semantic conventions.
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
WAITED = "blendfusion.waited_for"
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
USER = "blendfusion.user"
ROWS = "blendfusion.rows"

FIELDS: Mapping[str, str] = {
    QUERY_ID: "one run of one query; 12 hexadecimal digits",
    QUERY_CALLS: "calls of ingredients in the query",
    QUERY_PLAN: "`staged`, or `plain` if DataFusion evaluates the calls",
    OUTCOME: "`done`; `closed`, if the caller stopped reading; `failed`; `busy`, if a server had no room",
    STAGE: "number of a stage of the plan, from 1 as in EXPLAIN",
    ROWS_IN: "rows that the stage read",
    ROWS_OUT: "rows that the stage returned",
    CHUNKS: "chunks of the stage",
    INGREDIENT: "the function that asks, e.g. `llm_filter`",
    TASK: "digest of a question with its constraint; 12 hexadecimal digits, the same in every process",
    QUESTION: "the question; only with the option `log_questions`",
    SIZE: "requests that went to the model in one batch",
    VALUES: "requests that a model answered, or failed to",
    CACHED: "requests that the cache answered",
    FAILED: "requests without a valid answer",
    WITHHELD: "answers that are NULL because they are below the `confidence` of their calls; 0 if missing",
    WAITED: "cached requests that another run of the process was making; 0 if missing",
    DECIDED: "values that a small model, or similarity, decided for a large one; 0 if missing",
    CALLS: "batches, or HTTP requests with retries",
    EVALUATED_TOKENS: "prompt tokens that the model computed; a shared prefix counts once",
    INPUT_TOKENS: "prompt tokens",
    OUTPUT_TOKENS: "tokens of answers",
    SECONDS: "wall time, in seconds",
    MODEL_SECONDS: "time inside the model, in seconds",
    OPERATION: "`chat` or `embeddings`",
    PROVIDER: "`openai` for servers with that API, `llama.cpp`",
    REQUEST_MODEL: "name of the model in the session; for a call, the server's name",
    TOKEN_TYPE: "`input` or `output`",
    SERVER: "host of the server",
    PORT: "its port",
    ERROR: "class of an exception, status of an HTTP reply, or `timeout`, `connection`, `reply` (malformed)",
    ATTEMPT: "number of the failed try, from 1",
    WAIT_SECONDS: "wait before the next try, in seconds",
    GIVEN_TOKENS: "tokens of values and answers: the cost without shared prefixes",
    AGAIN: "near-ties that were computed again, alone",
    AGAIN_TOKENS: "tokens of these repeated computations",
    FILE: "name of a file of weights",
    WEIGHTS: "type of the weights in use, and their origin",
    BYTES: "size of a file, in bytes",
    REASON: "reason why something was not done",
    USER: "user of a server, by the name of the grant",
    ROWS: "rows that a client was sent",
}
"""Every field of a record and attribute of a span, with its meaning."""

LOGGERS: Mapping[str, str] = {
    "query": "INFO: a query starts, a query ends. WARNING: values without a valid answer",
    "stage": "DEBUG: a stage ends",
    "batch": "DEBUG: a batch was answered, by a model or by the cache",
    "model": "INFO: a model was loaded; a child process tried its weights; a faster copy of them was made. "
    "WARNING: no copy can be made. DEBUG: the work of a local model",
    "retry": "INFO: a request to a server failed and will be tried again",
    "server": "INFO: a request of a client to `blendfusion serve` ended",
    "cache": "WARNING: the file of stored answers is unusable, with the text of `bf.CacheWarning`",
}
"""The loggers below ``blendfusion``, with their records."""

METRICS: Mapping[str, str] = {
    "blendfusion.queries": "counter of queries that ended",
    "blendfusion.values": "counter of requests that a model answered, or failed to",
    "blendfusion.cached": "counter of requests that the cache answered",
    "blendfusion.failed": "counter of requests without a valid answer",
    "blendfusion.tokens": "counter of tokens: of prompts (`input`), of answers (`output`)",
    "blendfusion.retries": "counter of repeated HTTP requests",
    "blendfusion.batch.duration": "histogram of batches inside the model, in seconds",
    "gen_ai.client.operation.duration": "histogram of single calls of a model, in seconds",
}
"""Every metric, with its type and meaning."""
