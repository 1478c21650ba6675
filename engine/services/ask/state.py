"""The accepted queries and the semantic layer of a session."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from blendfusion.services.ask.schema.layer import Layer
    from blendfusion.services.ask.templates import Templates


class AskState(FrameSources):
    """A context with accepted queries and a semantic layer."""

    has_last = False
    """Whether the table ``last`` is the result of a conversation."""

    if TYPE_CHECKING:  # of the service dialects

        def translated(
            self,
            query: str,
            dialect: str | None = None,
            param_values: Sequence[Any] | None = None,
        ) -> str: ...

    @cached_property
    def templates(self) -> Templates:
        """The accepted queries of ``ask``."""
        from blendfusion.services.ask.templates import Templates

        return Templates()

    @cached_property
    def layer(self) -> Layer:
        """The semantic layer that ``ask`` reads: see ``register_layer``."""
        from blendfusion.services.ask.schema.layer import Layer

        return Layer()
