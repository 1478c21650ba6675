"""Documents as tables whose name encodes what is read, so that no other state is needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

from blendfusion.planner.ir.opaque_names import CATALOG
from blendfusion.udfs.declare.arguments import sql_string

DOCUMENTS = "documents"
"""The schema of these tables."""
COLUMNS = ("file", "page", "block", "kind", "text", "bbox", "error", "left_out")
"""Their columns."""

OnProblem = Literal["null", "skip", "raise"]
ON_PROBLEM: tuple[OnProblem, ...] = get_args(OnProblem)


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents at ``path``: a file, a folder or a pattern.

    ``chunk``: the most tokens of a row (0: a row is a block). ``on_error``: a file that cannot be
    read is a row with the reason, nothing, or an error. ``seconds`` limits each step of the
    reading of a file, ``megabytes`` its memory.
    """

    path: str
    chunk: int = 0
    ocr: bool = False
    on_error: OnProblem = "null"
    seconds: float = 60.0
    megabytes: int = 2048

    def __str__(self) -> str:
        parts = [sql_string(self.path)]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value != field.default:
                shown = sql_string(value) if isinstance(value, str) else str(value).lower()
                parts.append(f"{field.name} => {shown}")
        return f"read_documents({', '.join(parts)})"


def documents_name(documents: Documents) -> str:
    """The name of the table of these documents, in its schema."""
    # A dollar would become a parameter of the query, and a backslash escapes only in JSON.
    return json.dumps(asdict(documents)).replace("$", "\\u0024")


def documents_of(names: Sequence[str]) -> Documents | None:
    """The documents that a table's name encodes, from its parts; None for any other table."""
    if len(names) != 3 or names[0] != CATALOG or names[1] != DOCUMENTS:
        return None
    return Documents(**json.loads(names[2]))
