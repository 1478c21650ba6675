"""A model of a server, with the features of both that were found so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from blendfusion.models.services.http.client import Endpoint
from blendfusion.models.services.http.sampling import MANY_ODDS, Sampling
from blendfusion.models.services.http.server_features import FormsTaken


@dataclass(slots=True)
class Sight:
    """Whether a model accepts images."""

    proven: bool = False
    """Whether the server enforced a form once."""


@dataclass(slots=True)
class OddsSupport:
    """The odds of tokens that a server was found to tell."""

    count: int = MANY_ODDS
    """Tokens per place, in completions of running text."""
    by_request: dict[str, bool] = field(default_factory=dict)
    """Whether it tells them, by the kind of request."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A model of a server, with the features found so far."""

    model: str
    endpoint: Endpoint
    forms: FormsTaken
    sampling: Sampling
    max_tokens: int
    shots: bool
    sight: Sight = field(default_factory=Sight)
    odds_support: OddsSupport = field(default_factory=OddsSupport)
