"""The functions of BlendSQL, current and earlier: their parameters, and removed functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """The positional arguments and the names of a function of BlendSQL's."""

    positional: tuple[str, ...]
    named: frozenset[str]
    spelling: str


_COMMON = frozenset(
    {"options", "return_type", "regex", "quantifier", "confidence", "on_error", "examples"}
)
_IMAGES = frozenset({"context", "options", "return_type", "regex", "confidence", "on_error"})
SIGNATURES: Mapping[str, Signature] = {
    "llmmap": Signature(
        ("question", "values"),
        _COMMON | {"context"},
        "Write LLMMap('question', column), in our SQL llm_map('question', column).",
    ),
    "llmqa": Signature(
        ("question",),
        _COMMON | {"context"},
        "Write LLMQA('question', (SELECT …)), in our SQL (SELECT llm_qa('question', column) FROM …).",
    ),
    "llmvalidate": Signature(
        ("claim",),
        frozenset({"context", "question", "confidence", "on_error", "examples"}),
        "Write LLMValidate('claim', (SELECT …)), in our SQL (SELECT llm_validate('claim', column) FROM …).",
    ),
    "llmjoin": Signature(
        ("left_on", "right_on", "join_criteria"),
        frozenset({"many", "exact", "k", "on_error"}),
        "Write JOIN t ON {{LLMJoin(a.x, t.y)}}, in our SQL JOIN t ON llm_join(a.x, t.y).",
    ),
    "vqa": Signature(
        ("question", "values"),
        _IMAGES,
        "Write VQA('question', column), in our SQL llm_vqa('question', column).",
    ),
    "imagecaption": Signature(
        ("values",),
        _IMAGES - {"options", "return_type", "regex"},
        "Write ImageCaption(column), in our SQL llm_vqa('Describe the image in one sentence.', column).",
    ),
}
GONE: Mapping[str, tuple[str, str]] = {
    "ragqa": (
        "RAGQA searches the web, which BlendFusion does not",
        "Register documents, and ask about those that a search finds: (SELECT llm_qa('question', "
        "content) FROM llm_search('documents', 'words', k => 5)).",
    ),
    "bingwebsearch": (
        "BingWebSearch searches the web, which BlendFusion does not",
        "Register documents, and search them: FROM llm_search('documents', 'words', k => 5).",
    ),
    "llmsearchmap": (
        "LLMSearchMap is no function of BlendSQL's",
        "Join the rows with what a search finds for each: llm_search('documents', t.name, k => 5).",
    ),
    "websearch": (
        "WebSearch searches the web, which BlendFusion does not",
        "Register documents, and search them: FROM llm_search('documents', 'words', k => 5).",
    ),
    "dt": (
        "DT made predicates on dates, until 2024",
        "Write the predicate: EXTRACT(QUARTER FROM t.date) = 2.",
    ),
}

NO_ARGUMENT: Mapping[str, str] = {
    "example_outputs": "Write examples => [['a value', 'its answer']], one pair a worked example.",
    "value_limit": "Take the rows that you want in a subquery with LIMIT.",
    "long_answer": "Leave it out: an answer is as long as the model makes it.",
    "use_option_aliases": "Leave it out: a model is held to the options themselves.",
    "options_searcher": "Join what a search finds: FROM t, llm_search('labels', t.x, k => 3) AS l.",
    "context_searcher": "Join what a search finds: FROM t, llm_search('texts', t.x, k => 3) AS d.",
    "model": "A session has one model: bf.connect('…').",
}


IGNORED = ("max_tokens",)
"""Arguments without an effect: the session's ``max_tokens`` bounds an answer, and its type does."""


def signature(name: str) -> Signature | None:
    """The parameters of the function of this name; None for a function that BlendSQL lacks."""
    return SIGNATURES.get(name.lower())
