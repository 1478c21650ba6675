"""Counts functions, classes and modules that are named by a bare participle: ``written``, ``known``.

A function is named by a verb and a class by a noun: ``check_reply``, ``reply_errors``. As a program,
prints the names with their places, and how many there are:

    python tests/support/participles.py [FOLDER …]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "planner", "udfs", "models", "native")

IRREGULAR = frozenset(
    "awoken beaten begun bent bitten blown borne bought bound broken brought built burnt caught chosen "
    "dealt done drawn driven dug eaten fallen fed felt flown forbidden foregone forgotten fought found "
    "frozen given gone gotten grown heard held hidden hung kept known laid learnt led left lent lit lost "
    "made meant met mistaken outgrown overridden overwritten paid proven rebuilt redone rewritten ridden "
    "risen rung said sat seen sent sewn shaken shown shrunk slain slid sold sought spelt spent spilt "
    "spoken spun stolen stood stricken struck strung stuck sung sunk swept swollen sworn taken taught "
    "thrown told torn trodden unbound undone understood unfound unknown unread unseen unsent unwritten "
    "withdrawn withheld won worn wound woven written".split()
)
NO_PARTICIPLES = frozenset(
    "bed breed embed exceed feed greed hundred indeed need proceed red seed shed speed succeed weed".split()
)
PUBLIC = frozenset(
    {
        "engine/budget.py:Budget.parsed",
        "engine/budget.py:Price.parsed",
        "engine/run/reports/trace.py:Trace.cached",
        "engine/run/reports/trace.py:Trace.failed",
        "engine/services/ask/draft.py:Draft.searched",
        "engine/services/ask/state.py:AskState.translated",
        "engine/services/dialects/session.py:Translating.translated",
        "engine/services/evaluate/choose_model.py:ModelChoice.chosen",
        "engine/services/evaluate/evaluation.py:Evaluation.unanswered",
        "engine/services/evaluate/evaluation.py:Evaluation.unlabelled",
        "engine/services/evaluate/improve.py:Improvement.changed",
        "engine/services/independence/check.py:Independence.asked",
        "engine/services/independence/check.py:Independence.moved",
        "engine/types.py:Answer.failed",
        "models/embedders/embedder.py:MeteredEmbedder.metered",
        "models/services/http/embedder.py:OpenAIEmbedder.metered",
        "models/guarantees/accuracy.py:Targets.shared",
    }
)
"""Names that programs of users may have."""


def is_participle(name: str) -> bool:
    """Whether a name is one word, apart from underscores around it, and that a participle."""
    word = name.strip("_")
    if not re.fullmatch(r"[A-Z]?[a-z]+", word):
        return False
    word = word.lower()
    return word in IRREGULAR or (word.endswith("ed") and word not in NO_PARTICIPLES)


def definitions(tree: ast.AST, within: str = "") -> Iterator[tuple[int, str]]:
    """The lines and the qualified names of all functions and classes, nested ones too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, f"{within}{node.name}"
            yield from definitions(node, f"{within}{node.name}.")
        else:
            yield from definitions(node, within)


def participles(folders: Sequence[str] = PACKAGES) -> Iterator[str]:
    """The modules, functions and classes in some folders that are named so, with their places."""
    for file in sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        place = file.relative_to(ROOT).as_posix()
        if is_participle(file.parent.name if file.stem == "__init__" else file.stem):
            yield place
        for line, name in definitions(ast.parse(file.read_text(encoding="utf-8"))):
            if is_participle(name.rpartition(".")[2]) and f"{place}:{name}" not in PUBLIC:
                yield f"{place}:{line} {name}"


if __name__ == "__main__":
    found = list(participles(sys.argv[1:] or PACKAGES))
    print(*found, sep="\n")
    print(len(found), "names are bare participles")
