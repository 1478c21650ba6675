"""The public names, each imported when it is first used. Services add theirs:
``services.names``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from blendfusion.services import offers

if TYPE_CHECKING:
    from datafusion import lit

    from blendfusion.budget import Budget, Price
    from blendfusion.entry_points import connect
    from blendfusion.errors import (
        AnswerError,
        ArgumentError,
        BlendFusionError,
        BudgetExceeded,
        CacheWarning,
        ConflictWarning,
        ExecutionError,
        FileWarning,
        HostedModelWarning,
        MatchWarning,
        ModelError,
        ModelFailed,
        ModelNotFound,
        ModelWarning,
        NotConfirmed,
        OptionError,
        PlanWarning,
        ProcessError,
        QueryError,
    )
    from blendfusion.frame import Frame
    from blendfusion.models.embedders.embedder import Embedder, MeteredEmbedder
    from blendfusion.models.embedders.scripted_embedder import ScriptedEmbedder
    from blendfusion.models.guarantees.accuracy import Targets
    from blendfusion.models.protocol.images import image_bytes
    from blendfusion.models.protocol.model import Model
    from blendfusion.models.scripted_model import ScriptedModel
    from blendfusion.models.stores.memory import AnswerStore, MemoryStore, StoreStats
    from blendfusion.models.stores.sqlite import SqliteStore
    from blendfusion.options import Options
    from blendfusion.run.reports.estimate import Estimate, OperatorEstimate
    from blendfusion.run.reports.trace import AnswerWarning, Trace
    from blendfusion.session import Session
    from blendfusion.types import Answer, Constraint, ModelInfo, Request, Task, Usage
    from blendfusion.udfs.ask.user_model import UserModel
    from blendfusion.udfs.register import python_functions
    from blendfusion.udfs.register.checked_expr import col
    from blendfusion.udfs.register.python_functions import *  # noqa: F403 - the functions that ask
    from blendfusion.udfs.register.user_functions import ingredient

    __all__ = [
        "Answer",
        "AnswerError",
        "AnswerStore",
        "AnswerWarning",
        "ArgumentError",
        "BlendFusionError",
        "Budget",
        "BudgetExceeded",
        "CacheWarning",
        "ConflictWarning",
        "Constraint",
        "Embedder",
        "Estimate",
        "ExecutionError",
        "FileWarning",
        "Frame",
        "HostedModelWarning",
        "MatchWarning",
        "MemoryStore",
        "MeteredEmbedder",
        "Model",
        "ModelError",
        "ModelFailed",
        "ModelInfo",
        "ModelNotFound",
        "ModelWarning",
        "NotConfirmed",
        "OperatorEstimate",
        "OptionError",
        "Options",
        "PlanWarning",
        "Price",
        "ProcessError",
        "QueryError",
        "Request",
        "ScriptedEmbedder",
        "ScriptedModel",
        "Session",
        "SqliteStore",
        "StoreStats",
        "Targets",
        "Task",
        "Trace",
        "Usage",
        "UserModel",
        "col",
        "connect",
        "image_bytes",
        "ingredient",
        "lit",
    ]
    __all__ += python_functions.__all__

MODULES = {
    "datafusion": "lit",
    "blendfusion.budget": "Budget Price",
    "blendfusion.entry_points": "connect",
    "blendfusion.errors": (
        "AnswerError ArgumentError BlendFusionError BudgetExceeded CacheWarning "
        "ConflictWarning ExecutionError FileWarning HostedModelWarning MatchWarning "
        "ModelError ModelFailed ModelNotFound ModelWarning NotConfirmed OptionError "
        "PlanWarning ProcessError QueryError"
    ),
    "blendfusion.frame": "Frame",
    "blendfusion.models.embedders.embedder": "Embedder MeteredEmbedder",
    "blendfusion.models.embedders.scripted_embedder": "ScriptedEmbedder",
    "blendfusion.models.guarantees.accuracy": "Targets",
    "blendfusion.models.protocol.images": "image_bytes",
    "blendfusion.models.protocol.model": "Model",
    "blendfusion.models.scripted_model": "ScriptedModel",
    "blendfusion.models.stores.memory": "AnswerStore MemoryStore StoreStats",
    "blendfusion.models.stores.sqlite": "SqliteStore",
    "blendfusion.options": "Options",
    "blendfusion.run.reports.estimate": "Estimate OperatorEstimate",
    "blendfusion.run.reports.trace": "AnswerWarning Trace",
    "blendfusion.session": "Session",
    "blendfusion.types": "Answer Constraint ModelInfo Request Task Usage",
    "blendfusion.udfs.ask.user_model": "UserModel",
    "blendfusion.udfs.register.checked_expr": "col",
    "blendfusion.udfs.register.user_functions": "ingredient",
}
"""The names of each module; those of the functions that ask are ``python_functions.__all__``."""
_HOMES = {name: module for module, names in MODULES.items() for name in names.split()}
_FUNCTIONS = "blendfusion.udfs.register.python_functions"


def all_names() -> list[str]:
    """Every public name."""
    return [*_HOMES, *import_module(_FUNCTIONS).__all__, *offers("names")]


def public(name: str) -> object:
    """The object of a public name; None for any other name."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    functions = import_module(_FUNCTIONS)
    if name in functions.__all__:
        return getattr(functions, name)
    module = offers("names").get(name)
    return None if module is None else getattr(module(), name)
