"""A task and the model that answers it, as the observers of a run see it."""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Task


@dataclass(frozen=True, slots=True)
class Job:
    """A task, and the model that answers it."""

    task: Task
    model: CachedModel
    names: tuple[str, ...] = ()
    """The models that the call names; () where it leaves that to the session."""
