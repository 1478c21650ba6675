"""``llm_vqa``: a question about images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_VQA = Ingredient(
    name="llm_vqa",
    summary="a question about images",
    named=("options", "returns", "regex", "confidence", "model", "on_error"),
    images=True,
)


def llm_vqa(
    question: str,
    *images: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    returns: str | None = None,
    regex: str | None = None,
    confidence: Confidence | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` about an image, or about several together.

    ``images`` are columns (or names of columns): BINARY, the bytes of a PNG, JPEG, GIF or WebP, or
    TEXT, an http(s) URL, which the model's server fetches, or a data: URL. What is none of these
    has failed, see ``on_error``. Rows whose images are all NULL or empty give NULL without a call;
    equal images are one question. ``options``, ``returns`` and ``regex`` say what answers look
    like, as in ``llm_map``; in SQL the place of the call says it, too. The model must see images.
    ``confidence``: the minimum probability of an answer from a closed set; an answer below it is
    NULL. "keep" gives a struct of ``value`` and ``confidence``.
    """
    return expression(
        LLM_VQA,
        (question, *images),
        options=options,
        returns=returns,
        regex=regex,
        confidence=confidence,
        model=model,
        on_error=on_error,
    )
