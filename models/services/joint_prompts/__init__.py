"""Several requests to a model in one prompt, where tokens are paid: of rows, or of questions."""

from __future__ import annotations

from blendfusion.models.protocol.model import Model
from blendfusion.options import Options

NEEDS = ("prompts",)


def _pack_rows(model: Model, options: Options) -> Model:
    from blendfusion.models.services.joint_prompts.row_packing import PackedModel

    return PackedModel(model, options.rows_per_prompt) if options.rows_per_prompt > 1 else model


def _join_questions(model: Model, options: Options) -> Model:
    from blendfusion.models.services.joint_prompts.several_questions import TogetherModel

    return TogetherModel(model) if options.together else model


WRAPPERS = {"rows": _pack_rows, "questions": _join_questions}
