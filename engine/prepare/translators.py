"""Finds the service that translates the queries of other systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from blendfusion.errors import OptionError
from blendfusion.services import parts, services

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.language.query_text.source_map import Translation
    from blendfusion.prepare.frame_sources import FrameSources

OURS = "sql"
"""BlendFusion's own dialect."""


class Translators(Protocol):
    """The service that translates queries: see ``dialects.dispatch``."""

    DIALECTS: Mapping[str, object]
    """The functions that translate a text, by the names of dialects."""

    def dialect_of(self, text: str, dialect: str | None = None) -> str:
        """The dialect of a text. Raises OptionError for an unknown name."""
        ...

    def plan(
        self,
        session: FrameSources,
        text: str,
        dialect: str,
        run: Callable[[Translation, str], Frame],
        positional: Sequence[Any] | None,
    ) -> Frame:
        """A frame of a text in a dialect."""
        ...


def translators() -> Translators:
    """The service. Raises OptionError where its folder is missing."""
    found = parts("dialects")
    if not found:
        raise OptionError(
            "queries of other systems belong to the service blendfusion/services/dialects, "
            "which is not installed"
        )
    return cast("Translators", found[0])


def dialect_names() -> tuple[str, ...]:
    """The names that ``dialect`` may have."""
    return (OURS, *(name for one in services().values() for name in one.dialect_names))


def dialect_of(text: str, dialect: str | None) -> str:
    """The dialect of a text: BlendFusion's own unless one is named or ``{{`` occurs."""
    if dialect == OURS or (dialect is None and "{{" not in text):
        return OURS
    return translators().dialect_of(text, dialect)


def by_number(values: Sequence[Any]) -> dict[str, Any]:
    """Values in order as those of ``$1``, ``$2``, …."""
    return {str(i): value for i, value in enumerate(values, 1)}
