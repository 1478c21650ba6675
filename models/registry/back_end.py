"""A kind of model that a name may select: an entry of ``load.BACK_ENDS``, or of a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from blendfusion.models.protocol.model import Model
from blendfusion.options import Options

Build = Callable[[str, Options], Model]
"""Builds a model from the text after the first colon of its name ('' without one). Checks what can
be checked cheaply and raises ``ModelNotFound``; loads weights only at the first use."""


class BackEnd(NamedTuple):
    """A kind of model that a name may select."""

    build: Build
    forms: str = ""
    """The forms of its names, for hints; '' for one that no hint suggests."""
    packaged: bool = False
    """Whether it needs nothing but its name."""
    paid: bool = False
    """Whether several values may share a prompt, as tokens are paid."""
