"""The description of a question for the observers of a run."""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Task


@dataclass(frozen=True, slots=True)
class Asked:
    """A task, and the model that it is put to."""

    task: Task
    model: CachedModel
    names: tuple[str, ...] = ()
    """The models that the call names; () where it leaves that to the session."""
