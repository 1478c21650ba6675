"""The words of images and recordings, where values are compared by spelling or by vectors."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from blendfusion.udfs.ask.media import has_media
from blendfusion.udfs.ask.user_model import UserModel

_QUESTION = "What does it show or say? Answer in one sentence."


def words_of_media(model: UserModel, values: Iterable[str]) -> dict[str, str]:
    """The model's words about the images and recordings among these values, one question each; ''
    without an answer. Texts are left out."""
    media = sorted({value for value in values if has_media((value,))})
    if not media:
        return {}
    words = model.ask(_QUESTION, pa.array(media, pa.string())).to_pylist()
    return {value: text or "" for value, text in zip(media, words, strict=True)}
