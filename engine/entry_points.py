"""The entry point ``connect`` opens a session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

from blendfusion.budget import Budget, PriceList, Prices
from blendfusion.errors import OptionError
from blendfusion.models.stores.store_names import Cache, LateStore, store_for
from blendfusion.options import OptionArguments, Options
from blendfusion.services import offers, parts
from blendfusion.session import Session

if TYPE_CHECKING:
    from blendfusion.models.embedders.embedder import Embedder
    from blendfusion.models.stores.memory import AnswerStore
    from blendfusion.models.wrappers.failover import Models
    from blendfusion.run.hooks import Workers


def connect(
    model: Models = "auto",
    *,
    ctx: SessionContext | None = None,
    cache: Cache = "auto",
    config: SessionConfig | None = None,
    runtime: RuntimeEnvBuilder | None = None,
    budget: Budget | None = None,
    prices: PriceList = None,
    embedder: str | Embedder | None = "auto",
    cluster: str | None = None,
    db: str | os.PathLike[str] | None = None,
    **options: Unpack[OptionArguments],
) -> Session:
    """Open a session with ``model``, in which tables are registered and queries run.

    ``model`` is "auto" (the environment variable BLENDFUSION_MODEL, else the packaged weights), a
    GGUF path, "hf:owner/repository/file.gguf" (downloaded once, the extra ``hub``),
    "openai:name@http://host:port/v1", a model object, or a list of these. A list is a failover
    chain; with a target (``accuracy``, ``recall``, ``precision``), the models form a cascade.

    ``cache`` is the store of answers: the path of a file, "postgresql://…" (the extra ``postgres``)
    or the URL of a folder or object store for machines that share answers, "auto" (the environment
    variable BLENDFUSION_CACHE, else a file in the user's cache folder), None for the memory of this
    session, or an object with the methods of ``bf.AnswerStore``. ``options`` are the fields of
    ``bf.Options``. ``config`` and ``runtime`` go to DataFusion.

    ``ctx`` is a DataFusion context: the session works on it, with its catalogs, tables, stores,
    settings and functions, and what either registers the other has. It has one session, the newest.

    ``budget`` limits the session's spending on models. ``prices`` are a ``bf.Price``, or a dict of
    prices by the names of models; "listed" has those of some hosted models, {"*": "listed",
    "gpt-x": bf.Price(…)} one's own besides. ``embedder`` computes vectors for search and
    similarity: "auto" (the environment variable BLENDFUSION_EMBEDDER, else the packaged wordllama),
    "openai:name@http://host:port/v1", an object with the methods of ``bf.Embedder``, or None. It is
    loaded at its first use.

    ``cluster`` is "local" (a worker for each core), "local:4", "ray" or "ray://…" (the extra
    ``ray``): workers then read the files of large tables and hold the models (docs/scale.md). They
    start with the first query. ``db`` is a database, as ``Session.attach`` takes it: its tables
    have their own names, ``orders``, beside ``shop.orders``.

    Raises ModelNotFound for an unavailable model, and OptionError for an unknown option, an
    invalid budget, price or cluster, or a ``ctx`` beside ``config`` or ``runtime``.

    >>> session = connect(ScriptedModel(lambda call: "good" in call.values[0]))
    >>> frame = session.from_pydict({"text": ["good", "bad"]}, name="reviews")
    >>> session.sql("SELECT text FROM reviews WHERE llm_filter('Is it good?', text)").to_pylist()
    [{'text': 'good'}]
    """
    chosen = Options().with_(**options)
    store, known = answer_store(cache, chosen), price_list(prices)
    if ctx is not None and (config is not None or runtime is not None):
        hint = "Pass them to SessionContext(…)."
        raise OptionError("ctx has its config and runtime already", hint=hint)
    workers = None if cluster is None else _workers(cluster)
    session = Session(model, chosen, config, runtime, store, budget, known, embedder, ctx, workers)
    if db:
        session.attach(db, is_default=True)
    return session


def answer_store(cache: Cache, options: Options) -> AnswerStore:
    """The store of answers, which writes behind if it can."""
    found = store_for(cache, options.cache_size)
    if isinstance(found, LateStore):
        found.write_behind()
    return found


def price_list(given: PriceList) -> Prices:
    """Prices in which ``"listed"``, or ``"*": "listed"`` beside others, stands for a list."""
    own = {} if isinstance(given, str) else given
    name = given if isinstance(given, str) else None
    if isinstance(own, Mapping) and isinstance(own.get("*"), str):
        name = str(own["*"])
        own = {model: price for model, price in own.items() if model != "*"}
    lists = offers("prices")
    if name is None:
        return Prices(own)
    if name not in lists:
        raise OptionError(
            f"no list of prices is called {name!r}",
            hint="A bf.Price(prompt=…, completion=…), a dict of prices by the names of models, or "
            "'listed'.",
        )
    return Prices(own, listed=lists[name]()())


def _workers(cluster: str) -> Workers:
    services = parts("workers")
    if not services:
        raise OptionError(
            f"cluster={cluster!r} needs the service blendfusion/services/cluster, which is not installed"
        )
    workers: Workers = services[0](cluster)
    return workers
