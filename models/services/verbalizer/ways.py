"""The way in which a model answers yes/no questions about no known idea, chosen by measurement.

``ways.txt`` lists the choices that we ship; ``blendfusion tune`` adds those of other models to a
file in the user's cache folder, which come first. Both name a model by a digest of its weights, or
of its server's URL and its name there. A model that is in neither answers by yes and no.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from blendfusion.models.protocol.python_packages import cache_folder

WAYS = Path(__file__).with_name("ways.txt")
_HEADING = (
    "# digest, prompt, weights of likelihood, answer and similarity, threshold, area, "
    "balanced accuracy, weight of labels, weight beside ideas, neutral share, of pairs: weights of "
    "answer and likeness, threshold; name\n"
)
_ENDS = 1 << 16
_NUMBERS = (12, 9, 8, 7, 6)
"""The numbers of a line; earlier files lack the last ones."""

ALONE = math.inf
"""The weight of odds beside words that do not count."""

PromptForm: TypeAlias = Literal["words", "text", "chat"]
"""``words``: yes and no are scored behind the question and the text, as running text. ``text``: the
question stands behind the text, in running text; ``chat``: the same, in the chat template."""


@dataclass(frozen=True, slots=True)
class Way:
    """The log odds of a yes are the scores of ``query_likelihood`` times their weights, less
    ``threshold``: of the ``likelihood`` of the question, of the ``answer`` behind it, of the
    ``similarity`` of both texts, for which the package wordllama is needed. ``area`` and
    ``balanced`` are what was measured (the area under the ROC curve and the balanced accuracy
    on questions that nothing was chosen on); 0: not measured. ``labels`` is the weight of the
    similarity of text and label in choices (``label_similarity``), ``ideas`` that of these odds
    beside the words of a known idea that has no opposite; 0: the words alone count, ``ALONE``:
    these odds alone. ``neutral_share`` of the mean answer behind neutral texts is subtracted
    from an answer: the rest of that mean tells how often a question has a yes. Whether two
    values name the same thing (``asks_same``) is weighed by the answer, above that about
    unrelated texts, and by the ``likeness`` of the values; both 0: as other questions about
    several values."""

    prompt: PromptForm = "words"
    likelihood: float = 0.0
    answer: float = 0.0
    similarity: float = 0.0
    threshold: float = 0.0
    area: float = 0.0
    balanced: float = 0.0
    labels: float = 0.0
    ideas: float = 0.0
    neutral_share: float = 1.0
    same_answer: float = 0.0
    same_likeness: float = 0.0
    same_threshold: float = 0.0

    @property
    def needs_vectors(self) -> bool:
        """Whether vectors of texts are needed."""
        return bool(self.similarity or self.labels)

    @property
    def reads_texts(self) -> bool:
        """Whether the model reads a text at all: similarities need no model."""
        return bool(self.likelihood or self.answer)

    def __str__(self) -> str:
        """
        >>> print(Way("text", likelihood=0.9, threshold=1.35))
        yes/no by likelihood
        >>> print(Way("chat", likelihood=0.5, answer=1.0, area=0.91, balanced=0.84))
        yes/no by likelihood, answer; chat template (area 0.91, balanced accuracy 0.84)
        """
        weights = {
            "likelihood": self.likelihood,
            "answer": self.answer,
            "similarity": self.similarity,
        }
        by = f"yes/no by {', '.join(name for name, weight in weights.items() if weight) or 'words'}"
        chat = "; chat template" if self.prompt == "chat" else ""
        measured = f" (area {self.area:.2f}, balanced accuracy {self.balanced:.2f})"
        return f"{by}{chat}{measured if self.area else ''}"


def way_of(weights: Path) -> Way | None:
    """The way of a GGUF file; None: by yes and no."""
    way = known_way(weights_digest(weights))
    return None if way is None or way.prompt == "words" else way


def known_way(digest: str) -> Way | None:
    """The way for the weights of a digest, ``words`` included; None if there is no choice."""
    ways = (*_user_ways().get(digest, ()), *_packaged_ways().get(digest, ()))
    return next((way for way in ways if not way.needs_vectors or compares_vectors()), None)


def compares_vectors() -> bool:
    """Whether vectors of texts are at hand, which a weight of a similarity needs."""
    return find_spec("wordllama") is not None


def keep_way(digest: str, way: Way, name: str) -> Path:
    """Write a choice to the user's file, in the place of an earlier one; returns the file."""
    file = user_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    kept = [line for line in lines if line[:1] not in ("", "#") and line.split()[0] != digest]
    _, *numbers = astuple(way)
    shown = " ".join(f"{number:.4g}" for number in numbers)
    kept.append(f"{digest} {way.prompt} {shown} {' '.join(name.split())}")
    handle, made = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    with os.fdopen(handle, "w", encoding="utf-8") as written:
        written.write(_HEADING + "\n".join(kept) + "\n")
    os.replace(made, file)
    return file


def user_file() -> Path:
    """The file of the choices that were made on this machine."""
    return cache_folder() / "ways.txt"


def weights_digest(weights: Path) -> str:
    """A digest of a file's size, beginning and end, as the files of ways name it."""
    state = weights.stat()
    return _digest(weights, state.st_size, state.st_mtime_ns)


def server_digest(api: str, url: str, model: str) -> str:
    """The digest of a model at a server, as the files of ways name it."""
    return hashlib.sha256(f"{api}\n{url}\n{model}".encode()).hexdigest()[:16]


@lru_cache(maxsize=64)
def _digest(weights: Path, size: int, changed: int) -> str:
    digest = hashlib.sha256(str(size).encode())
    with weights.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        digest.update(file.read())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _packaged_ways() -> dict[str, tuple[Way, ...]]:
    return _read(WAYS.read_text("utf-8"))


def _user_ways() -> dict[str, tuple[Way, ...]]:
    try:
        return _read(user_file().read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}


def _read(text: str) -> dict[str, tuple[Way, ...]]:
    """The choices in a file, of one digest in their order; lines that cannot be read are left out,
    as a cache may be broken."""
    found: dict[str, tuple[Way, ...]] = {}
    for line in text.splitlines():
        fields = line.split()
        way = None if line.startswith("#") else _way(fields[1:])
        if way is not None:
            found[fields[0]] = (*found.get(fields[0], ()), way)
    return found


def _way(fields: list[str]) -> Way | None:
    """The way in a line's fields behind the digest; None if they cannot be read."""
    prompt, *others = fields or [""]
    for count in _NUMBERS:
        with suppress(ValueError):
            numbers = list(map(float, others[:count]))
            for form in get_args(PromptForm):
                if form == prompt and len(others) > count:
                    return Way(form, *numbers)
    return None
