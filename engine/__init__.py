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
    ModelError,
    ModelFailed,
    ModelNotFound,
    ModelWarning,
    NotConfirmed,
    OptionError,
    ProcessError,
    QueryError,
)
from blendfusion.estimate import Estimate, OperatorEstimate
from blendfusion.frame import Frame
from blendfusion.models.certified import Targets
from blendfusion.models.embed import Embedder, MeteredEmbedder
from blendfusion.models.embed_scripted import ScriptedEmbedder
from blendfusion.models.images import image_bytes
from blendfusion.models.model import Model
from blendfusion.models.scripted import ScriptedModel
from blendfusion.models.sqlite_store import SqliteStore
from blendfusion.models.store import AnswerStore, MemoryStore, StoreStats
from blendfusion.options import Options
from blendfusion.search.build import IndexReport
from blendfusion.session import Session
from blendfusion.trace import AnswerWarning, Trace
from blendfusion.types import Answer, Constraint, ModelInfo, Request, Task, Usage
from blendfusion.udfs.define import ingredient
from blendfusion.udfs.llm_answer import llm_answer
from blendfusion.udfs.llm_bool import llm_bool
from blendfusion.udfs.llm_classify import llm_classify
from blendfusion.udfs.llm_compare import llm_compare
from blendfusion.udfs.llm_date import llm_date
from blendfusion.udfs.llm_embed import llm_embed
from blendfusion.udfs.llm_extract import llm_extract
from blendfusion.udfs.llm_filter import llm_filter
from blendfusion.udfs.llm_float import llm_float
from blendfusion.udfs.llm_int import llm_int
from blendfusion.udfs.llm_join import llm_join
from blendfusion.udfs.llm_list import llm_list
from blendfusion.udfs.llm_map import llm_map
from blendfusion.udfs.llm_members import llm_members
from blendfusion.udfs.llm_qa import llm_qa
from blendfusion.udfs.llm_score import llm_score
from blendfusion.udfs.llm_similarity import llm_similarity
from blendfusion.udfs.llm_summarize import llm_summarize
from blendfusion.udfs.llm_summary import llm_summary
from blendfusion.udfs.llm_text import llm_text
from blendfusion.udfs.llm_validate import llm_validate
from blendfusion.udfs.llm_vqa import llm_vqa
from blendfusion.udfs.open_during import open_during
from blendfusion.udfs.user import UserModel

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
