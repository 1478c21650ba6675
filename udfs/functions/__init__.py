"""The built-in functions, one file each, and those of services."""

from __future__ import annotations

from importlib import import_module

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.services import functions_of_services

_OF_SERVICES = functions_of_services()
FUNCTIONS = (
    *("llm_filter", "llm_map", "llm_bool", "llm_int", "llm_float", "llm_date", "llm_text"),
    *("llm_list", "llm_classify", "llm_extract", "llm_score", "llm_probability"),
    *("llm_join", "llm_compare"),
    *("llm_vqa", "llm_answer", "llm_summary", "llm_members", "llm_similarity", "llm_embed"),
    *("llm_transcribe", *_OF_SERVICES),
    *("llm_sentiment", "llm_translate", "llm_fix_grammar", "llm_redact"),
    *("llm_qa", "llm_validate", "llm_summarize"),
)
"""The functions, in the order of docs/functions.md. The module of each has its declaration, under
its name in capitals."""

INGREDIENTS: tuple[Ingredient, ...] = tuple(
    getattr(import_module(_OF_SERVICES.get(name, f"{__name__}.{name}")), name.upper())
    for name in FUNCTIONS
)
"""The declarations, in the same order."""
