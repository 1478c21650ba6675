"""Speech to text: audio among the values of requests, and models that transcribe it."""

from __future__ import annotations

from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd
from blendfusion.options import Options


def _moonshine(argument: str, options: Options) -> Model:
    from blendfusion.models.services.speech.moonshine import MoonshineModel

    return MoonshineModel()


BACK_ENDS = {"moonshine": BackEnd(_moonshine, packaged=True)}
