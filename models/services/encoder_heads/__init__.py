"""Encoders with a head for decisions, in process: weights of the kind of Laya and Julia."""

from __future__ import annotations

from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.back_end import BackEnd
from blendfusion.options import Options

NEEDS = ("decisions", "llama", "weights")


def _laya(argument: str, options: Options) -> Model:
    from blendfusion.models.services.encoder_heads.model import EncoderModel
    from blendfusion.models.services.llama import named_weights

    return EncoderModel(named_weights("laya", argument), options)


BACK_ENDS = {"laya": BackEnd(_laya, "'laya:/path/to/weights.gguf'")}
