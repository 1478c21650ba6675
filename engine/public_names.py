"""The public names: ``blendfusion`` imports this module when the first of them is used. Services
add theirs: ``services.names``."""

from __future__ import annotations

from datafusion import lit

from blendfusion.budget import Budget, Price
from blendfusion.entry_points import connect, register
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
from blendfusion.run.estimates.estimate import Estimate, OperatorEstimate
from blendfusion.run.reports.trace import AnswerWarning, Trace
from blendfusion.services import offers
from blendfusion.session import Session
from blendfusion.types import Answer, Constraint, ModelInfo, Request, Task, Usage
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.register import python_functions
from blendfusion.udfs.register.checked_expr import col
from blendfusion.udfs.register.open_during import open_during
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
    "open_during",
    "register",
]
__all__ += python_functions.__all__
__all__ += offers("names")


def __getattr__(name: str) -> object:
    """A public name of a service, which is imported now."""
    found = offers("names").get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = value = getattr(found(), name)
    return value
