"""Texts and verbs with the names that were meant: see ``Service.letter_case``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from blendfusion.language.query_text.source_map import Translation
from blendfusion.services.letter_case.names_in_text import in_any_case
from blendfusion.services.letter_case.tables import SessionTables
from blendfusion.services.letter_case.verbs import (
    respell_columns,
    respell_text,
    respell_verb,
    respells_first,
)

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources

__all__ = ["respell_columns", "respell_query", "respell_text", "respell_verb", "respells_first"]


def respell_query(
    session: FrameSources, text: str, hidden: Mapping[str, str]
) -> Translation | None:
    """``text`` with the names that tables and columns have; None if it has no others. ``hidden``
    are tables that stand for frames, by the names that the text has for them."""
    return in_any_case(text, SessionTables(session, hidden))
