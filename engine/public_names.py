"""The public names: ``blendfusion`` imports this module when the first of them is used."""

from __future__ import annotations

from datafusion import lit

from blendfusion.apps.notebooks.accessors import add_accessors, sql
from blendfusion.apps.notebooks.magic import load_ipython_extension
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
from blendfusion.services.evaluate.choose_model import ModelChoice
from blendfusion.services.evaluate.evaluation import Comparison, Evaluation
from blendfusion.services.evaluate.figures import Figure
from blendfusion.services.evaluate.improve import Improvement
from blendfusion.services.evaluate.question_file import StoredQuestion
from blendfusion.services.replay.manifest import Manifest
from blendfusion.services.search.build import IndexReport
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
    "Comparison",
    "ConflictWarning",
    "Constraint",
    "Embedder",
    "Estimate",
    "Evaluation",
    "ExecutionError",
    "Figure",
    "FileWarning",
    "Frame",
    "HostedModelWarning",
    "Improvement",
    "IndexReport",
    "Manifest",
    "MatchWarning",
    "MemoryStore",
    "MeteredEmbedder",
    "Model",
    "ModelChoice",
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
    "StoredQuestion",
    "Targets",
    "Task",
    "Trace",
    "Usage",
    "UserModel",
    "add_accessors",
    "col",
    "connect",
    "image_bytes",
    "ingredient",
    "lit",
    "load_ipython_extension",
    "open_during",
    "register",
    "sql",
]
__all__ += python_functions.__all__
