"""``bf.register``: the ingredients in a context that is no session."""

from __future__ import annotations

from typing import Unpack

from datafusion import SessionContext

from blendfusion.budget import Budget, PriceList
from blendfusion.entry_points import answer_store, price_list
from blendfusion.errors import OptionError, connect_with, limit_spending
from blendfusion.models.embedders.cache import LazyEmbedder
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.registry.model_names import model_for
from blendfusion.models.stores.store_names import Cache
from blendfusion.models.wrappers.failover import Models
from blendfusion.options import OptionArguments, Options
from blendfusion.run.reports.run_telemetry import TelemetryObserver, Watch
from blendfusion.services import parts
from blendfusion.services.plain_functions.plain_context import register_plain
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.register.parse_money import parse_money_function


def register(
    context: SessionContext,
    model: Models = "auto",
    *,
    cache: Cache = "auto",
    budget: Budget | None = None,
    prices: PriceList = None,
    embedder: str | Embedder | None = "auto",
    **options: Unpack[OptionArguments],
) -> None:
    """Add the ingredients to a plain DataFusion context, as ordinary typed functions.

    Each takes its literals and one value column as arguments: ``llm_filter(question, value)``,
    ``llm_classify(value, labels)``, ``llm_qa(question, value)``. ``llm_extract``, whose type
    depends on its schema, exists in sessions only. Answers equal those of a session; without the
    planner, though, a function sees every value that DataFusion passes to it. ``budget`` limits all
    of their spending from now on; DataFusion passes on the text of BudgetExceeded, not its type.
    """
    chosen = Options().with_(**options)
    store = answer_store(cache, chosen)
    if chosen.confirm_above:
        raise OptionError(
            "confirm_above needs a session: registered functions cannot know the number of values",
            hint=f"Use {connect_with(confirm_above=1000)}, or limit the spending: {limit_spending(values=1000)}.",
        )
    ledger = Ledger(budget, price_list(prices), whose="context")
    vectors = LazyEmbedder(embedder, chosen)
    resolved = model_for(model, chosen, store)
    observer = TelemetryObserver(Watch(questions=chosen.log_questions))
    register_plain(context, resolved, chosen, ledger, vectors, observer)
    for make in (*parts("function"), parse_money_function):
        context.register_udf(make())
