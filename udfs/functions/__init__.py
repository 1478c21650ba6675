"""The built-in ingredients, one file each."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.functions.llm_answer import LLM_ANSWER
from blendfusion.udfs.functions.llm_bool import LLM_BOOL
from blendfusion.udfs.functions.llm_classify import LLM_CLASSIFY
from blendfusion.udfs.functions.llm_compare import LLM_COMPARE
from blendfusion.udfs.functions.llm_date import LLM_DATE
from blendfusion.udfs.functions.llm_embed import LLM_EMBED
from blendfusion.udfs.functions.llm_extract import LLM_EXTRACT
from blendfusion.udfs.functions.llm_filter import LLM_FILTER
from blendfusion.udfs.functions.llm_float import LLM_FLOAT
from blendfusion.udfs.functions.llm_int import LLM_INT
from blendfusion.udfs.functions.llm_join import LLM_JOIN
from blendfusion.udfs.functions.llm_list import LLM_LIST
from blendfusion.udfs.functions.llm_map import LLM_MAP
from blendfusion.udfs.functions.llm_members import LLM_MEMBERS
from blendfusion.udfs.functions.llm_qa import LLM_QA
from blendfusion.udfs.functions.llm_score import LLM_SCORE
from blendfusion.udfs.functions.llm_similarity import LLM_SIMILARITY
from blendfusion.udfs.functions.llm_summarize import LLM_SUMMARIZE
from blendfusion.udfs.functions.llm_summary import LLM_SUMMARY
from blendfusion.udfs.functions.llm_text import LLM_TEXT
from blendfusion.udfs.functions.llm_validate import LLM_VALIDATE
from blendfusion.udfs.functions.llm_vqa import LLM_VQA

INGREDIENTS: tuple[Ingredient, ...] = (
    LLM_FILTER,
    LLM_MAP,
    LLM_INT,
    LLM_FLOAT,
    LLM_DATE,
    LLM_BOOL,
    LLM_TEXT,
    LLM_LIST,
    LLM_CLASSIFY,
    LLM_EXTRACT,
    LLM_SCORE,
    LLM_COMPARE,
    LLM_VQA,
    LLM_JOIN,
    LLM_QA,
    LLM_VALIDATE,
    LLM_SUMMARIZE,
    LLM_EMBED,
    LLM_SIMILARITY,
    LLM_ANSWER,
    LLM_SUMMARY,
    LLM_MEMBERS,
)
