"""BlendFusion: language-model functions inside SQL and DataFrames, on Apache DataFusion."""

from __future__ import annotations

from blendfusion.budget import Budget, Price
from blendfusion.connect import connect, register
from blendfusion.errors import (
    AnswerError,
    ArgumentError,
    BlendFusionError,
    BudgetExceeded,
    CacheWarning,
    ExecutionError,
    HostedModelWarning,
    ModelError,
    ModelFailed,
    ModelNotFound,
    ModelWarning,
    NotConfirmed,
    OptionError,
    ProcessError,
    QueryError,
)
from blendfusion.estimates.estimate import Estimate, OperatorEstimate
from blendfusion.frame import Frame
from blendfusion.models.embedders.embedder import Embedder, MeteredEmbedder
from blendfusion.models.embedders.scripted import ScriptedEmbedder
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.protocol.images import image_bytes
from blendfusion.models.protocol.model import Model
from blendfusion.models.scripted import ScriptedModel
from blendfusion.models.stores.memory import AnswerStore, MemoryStore, StoreStats
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.options import Options
from blendfusion.reports.trace import AnswerWarning, Trace
from blendfusion.search.build import IndexReport
from blendfusion.session import Session
from blendfusion.types import Answer, Constraint, ModelInfo, Request, Task, Usage
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.functions.llm_answer import llm_answer
from blendfusion.udfs.functions.llm_bool import llm_bool
from blendfusion.udfs.functions.llm_classify import llm_classify
from blendfusion.udfs.functions.llm_compare import llm_compare
from blendfusion.udfs.functions.llm_date import llm_date
from blendfusion.udfs.functions.llm_embed import llm_embed
from blendfusion.udfs.functions.llm_extract import llm_extract
from blendfusion.udfs.functions.llm_filter import llm_filter
from blendfusion.udfs.functions.llm_float import llm_float
from blendfusion.udfs.functions.llm_int import llm_int
from blendfusion.udfs.functions.llm_join import llm_join
from blendfusion.udfs.functions.llm_list import llm_list
from blendfusion.udfs.functions.llm_map import llm_map
from blendfusion.udfs.functions.llm_members import llm_members
from blendfusion.udfs.functions.llm_qa import llm_qa
from blendfusion.udfs.functions.llm_score import llm_score
from blendfusion.udfs.functions.llm_similarity import llm_similarity
from blendfusion.udfs.functions.llm_summarize import llm_summarize
from blendfusion.udfs.functions.llm_summary import llm_summary
from blendfusion.udfs.functions.llm_text import llm_text
from blendfusion.udfs.functions.llm_validate import llm_validate
from blendfusion.udfs.functions.llm_vqa import llm_vqa
from blendfusion.udfs.functions.open_during import open_during
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
    "Constraint",
    "Embedder",
    "Estimate",
    "ExecutionError",
    "Frame",
    "HostedModelWarning",
    "IndexReport",
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
    "connect",
    "image_bytes",
    "ingredient",
    "llm_answer",
    "llm_bool",
    "llm_classify",
    "llm_compare",
    "llm_date",
    "llm_embed",
    "llm_extract",
    "llm_filter",
    "llm_float",
    "llm_int",
    "llm_join",
    "llm_list",
    "llm_map",
    "llm_members",
    "llm_qa",
    "llm_score",
    "llm_similarity",
    "llm_summarize",
    "llm_summary",
    "llm_text",
    "llm_validate",
    "llm_vqa",
    "open_during",
    "register",
]
