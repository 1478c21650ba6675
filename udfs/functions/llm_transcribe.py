"""``llm_transcribe``: the words of speech."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import AudioQuestion
from blendfusion.udfs.declare.options import MODEL, ON_ERROR

LLM_TRANSCRIBE = Ingredient(
    name="llm_transcribe",
    summary="the words of speech (bytes of WAV, FLAC or Ogg), by the packaged Moonshine",
    example="SELECT llm_transcribe(recording) AS words FROM calls",
    kind=AudioQuestion(),
    leading=(),
    values=("audio",),
    options=(MODEL, ON_ERROR),
    question="What is said?",
    result="TEXT",
    doc="""The words of the speech in ``audio``, as TEXT. The default model is Moonshine, for
English, of the extra 'speech'.""",
)
