"""Where everything starts: a session of our own, or ingredients in a context of the user's."""

from __future__ import annotations

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

from blendfusion.budget import Budget, PriceList, Prices
from blendfusion.cache import Cache, store_for
from blendfusion.errors import OptionError
from blendfusion.models.embedders.cache import LazyEmbedder
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.wrappers.failover import Models, model_for
from blendfusion.options import Options
from blendfusion.reports.run_telemetry import Told, Watch
from blendfusion.session import Session
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.functions.open_during import open_during_function
from blendfusion.udfs.register.plain_context import register_plain


def connect(
    model: Models = "auto",
    *,
    cache: Cache = "auto",
    config: SessionConfig | None = None,
    runtime: RuntimeEnvBuilder | None = None,
    budget: Budget | None = None,
    prices: PriceList = None,
    embedder: str | Embedder | None = "auto",
    **options: object,
) -> Session:
    """A session with ``model``: the place to register tables and run queries.

    ``model`` is "auto" (the environment variable BLENDFUSION_MODEL, else the packaged weights), a
    GGUF path, "hf:owner/repository/file.gguf" (downloaded once, the extra ``hub``),
    "openai:name@http://host:port/v1", or a model object; or a list of these: each is asked what those
    before it fail at; with a promise (``accuracy``, ``recall``, ``precision``), two are a cascade.
    ``cache`` is where answers are
    kept: the path of a file, "auto" (the environment variable BLENDFUSION_CACHE, else a file in the
    user's cache folder), None for the memory of this session, or an object with the methods of
    ``bf.AnswerStore``. ``options`` are the fields of ``bf.Options``; ``config`` and ``runtime`` go to
    DataFusion. ``budget`` is what the session may spend on models in its life, ``prices`` what they
    charge: a ``bf.Price``, or a dict of such by the names of models, {"gpt-x": bf.Price(…)}.
    ``embedder`` gives texts vectors, for search and similarity: "auto" (the environment variable
    BLENDFUSION_EMBEDDER, else the packaged wordllama), "openai:name@http://host:port/v1", an object
    with the methods of ``bf.Embedder``, or None for none. It is loaded when it is needed.

    Raises ModelNotFound for a model that cannot be had, OptionError for an unknown option, a budget
    or a price that is none.

    >>> session = connect(ScriptedModel(lambda call: "good" in call.values[0]))
    >>> frame = session.from_pydict({"text": ["good", "bad"]}, name="reviews")
    >>> session.sql("SELECT text FROM reviews WHERE llm_filter('Is it good?', text)").to_pylist()
    [{'text': 'good'}]
    """
    chosen = Options().with_(**options)
    store = store_for(cache, chosen.cache_size)
    return Session(model, chosen, config, runtime, store, budget, prices, embedder)


def register(
    context: SessionContext,
    model: Models = "auto",
    *,
    cache: Cache = "auto",
    budget: Budget | None = None,
    prices: PriceList = None,
    embedder: str | Embedder | None = "auto",
    **options: object,
) -> None:
    """Put the ingredients into a plain DataFusion context, as ordinary typed functions.

    Each takes its literals and one value column, all as arguments: ``llm_filter(question, value)``,
    ``llm_classify(value, labels)``, ``llm_qa(question, value)``; ``llm_extract``, whose type depends on
    its schema, there is in sessions only. The answers are those of a session;
    without the planner, though, a function sees whatever DataFusion passes to it. ``budget`` is for
    all that they ask from now on; DataFusion passes on the text of BudgetExceeded, not its type.
    """
    chosen = Options().with_(**options)
    store = store_for(cache, chosen.cache_size)
    if chosen.confirm_above:
        raise OptionError(
            "confirm_above needs a session: registered functions do not know how many values come",
            hint="Use bf.connect(confirm_above=…), or limit what is spent here: budget=bf.Budget(…).",
        )
    ledger = Ledger(budget, Prices(prices), whose="context")
    vectors = LazyEmbedder(embedder, chosen)
    asked = model_for(model, chosen, store)
    told = Told(Watch(questions=chosen.log_questions))
    register_plain(context, asked, chosen, ledger, vectors, told)
    context.register_udf(open_during_function())
