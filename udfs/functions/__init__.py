"""The built-in functions, one file each, and those of services."""

from __future__ import annotations

from blendfusion.udfs.services import functions_of_services

OF_SERVICES = functions_of_services()
"""The modules of the functions of services, by name."""
FUNCTIONS = (
    *("llm_filter", "llm_map", "llm_bool", "llm_int", "llm_float", "llm_date", "llm_text"),
    *("llm_list", "llm_classify", "llm_extract", "llm_score", "llm_probability"),
    "llm_join",
    *("llm_vqa", "llm_answer", "llm_summary", "llm_members", "llm_similarity", "llm_embed"),
    *("llm_transcribe", *OF_SERVICES),
    *("llm_qa", "llm_validate", "llm_summarize"),
)
"""The functions, in the order of docs/functions.md. The module of each has its declaration, under
its name in capitals."""
