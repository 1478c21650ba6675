"""``llm_vqa``: a question about images."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ImageQuestion
from blendfusion.udfs.declare.options import (
    CONFIDENCE,
    MODEL,
    ON_ERROR,
    OPTIONS,
    REGEX,
    RETURN_TYPE,
)

LLM_VQA = Ingredient(
    name="llm_vqa",
    summary="a question about images (bytes or URLs) and texts beside them, for a vision model: on a server, or a GGUF with its projector",
    example="SELECT llm_vqa('Is the box damaged?', photo) AS damaged FROM photos",
    kind=ImageQuestion(),
    values="image",
    options=(OPTIONS, REGEX, CONFIDENCE, MODEL, ON_ERROR, RETURN_TYPE),
    result="the type that the query needs, else TEXT",
    doc="""The answer to ``question`` about an image, or about several together, or about images and
texts. The model must see images.""",
)
