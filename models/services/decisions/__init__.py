"""Decision models: yes or no, choices and scores as probabilities, over ``/v1/systemone`` or
``/v1/decisions``."""

from __future__ import annotations

from functools import partial

from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd
from blendfusion.options import Options

NEEDS = ("http", "prompts")


def _build(protocol: str, argument: str, options: Options) -> Model:
    from blendfusion.models.services.decisions.model import model_named

    return model_named(protocol, argument, options)


BACK_ENDS = {
    "systemone": BackEnd(
        partial(_build, "systemone"), "'systemone:MODEL@http://HOST:PORT', 'systemone:MODEL'"
    ),
    "decisions": BackEnd(
        partial(_build, "decisions"), "'decisions:MODEL@http://HOST:PORT/v1', 'decisions:MODEL'"
    ),
    "sglang-decisions": BackEnd(
        partial(_build, "sglang-decisions"), "'sglang-decisions:MODEL@http://HOST:PORT/v1'"
    ),
}
