"""The manifest of a run as a file: its content, its format, and checks against damage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.files.whole_file import replacing
from blendfusion.models.stores.key import KEY_BYTES, KEY_VERSION
from blendfusion.models.stores.recording import FAILED
from blendfusion.replay.digests import file_digest, table_digest
from blendfusion.types import Answer, FinishReason

MANIFEST_VERSION = 1
SECTIONS = ("query", "options", "versions", "models", "inputs", "answers", "result")
_FINISHES = ("complete", "decided", "length", "error")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A recorded run: ``sections`` are its facts, without values; ``answers`` and ``result`` are
    its data, in files beside it."""

    sections: Mapping[str, Any]
    answers: Mapping[bytes, Answer] = field(repr=False)
    tokens: Mapping[str, int] = field(repr=False)
    result: pa.Table = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``path`` with the answers and the result beside it (``run.json``,
        ``run.answers.jsonl``, ``run.result.arrow``), readable by their owner alone. Raises
        QueryError if a file cannot be written."""
        place = Path(path)
        answers, rows = beside(place)
        try:
            _private(answers, "".join(_lines(self.answers, self.tokens)).encode())
            _private(rows, _ipc(self.result))
            files = {"answers": file_digest(answers), "result": file_digest(rows)}
            digests = {name: _digest(self.sections[name]) for name in SECTIONS}
            whole = {
                "blendfusion_manifest": MANIFEST_VERSION,
                **self.sections,
                "files": files,
                "digests": {**digests, "files": _digest(files)},
            }
            _private(place, (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode())
        except OSError as problem:
            raise QueryError(
                f"the manifest '{place}' cannot be written: {problem.strerror or problem}"
            ) from problem

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Manifest:
        """The manifest that ``save`` wrote. Raises QueryError, which names the part, for a manifest
        that is damaged, was edited, or misses a file."""
        place = Path(path)
        whole = _read(place)
        sections, digests, files = {}, whole.get("digests"), whole.get("files")
        for name in (*SECTIONS, "files"):
            stated = digests.get(name) if isinstance(digests, dict) else None
            if name not in whole or _digest(whole[name]) != stated:
                raise _edited(place, f"its part '{name}'")
            sections[name] = whole[name]
        del sections["files"]
        answers, rows = beside(place)
        for name, file in (("answers", answers), ("result", rows)):
            try:
                found = file_digest(file)
            except OSError as problem:
                raise QueryError(
                    f"{place}: the file of its {name}, '{file.name}', cannot be read: "
                    f"{problem.strerror or problem}",
                    hint="The manifest and the two files beside it belong together: copy all three.",
                ) from problem
            if not isinstance(files, dict) or found != files.get(name):
                raise _edited(place, f"the file of its {name}, '{file.name}',")
        stored, tokens = _parsed(answers)
        with pa.ipc.open_file(rows) as reader:
            return Manifest(sections, stored, tokens, reader.read_all())


def beside(path: Path) -> tuple[Path, Path]:
    """The files of the answers and of the result of a manifest."""
    return path.with_suffix(".answers.jsonl"), path.with_suffix(".result.arrow")


def _edited(place: Path, part: str) -> QueryError:
    return QueryError(
        f"{place}: {part} is not as it was recorded",
        hint="It was edited or damaged. Record the run again: blendfusion query … --manifest FILE.",
    )


def _read(place: Path) -> dict[str, Any]:
    try:
        whole = json.loads(place.read_bytes())
    except OSError as problem:
        raise QueryError(
            f"the manifest '{place}' cannot be read: {problem.strerror or problem}"
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise _edited(place, "the text") from problem
    version = whole.get("blendfusion_manifest") if isinstance(whole, dict) else None
    if version is None:
        raise QueryError(
            f"'{place}' is no manifest", hint="'blendfusion query … --manifest FILE' writes one."
        )
    if version != MANIFEST_VERSION:
        raise QueryError(
            f"{place}: a manifest of version {version!r}, not {MANIFEST_VERSION}",
            hint="Use the version of BlendFusion that wrote it, or record the run again.",
        )
    return cast("dict[str, Any]", whole)


def _digest(part: object) -> str:
    return sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()


def _private(path: Path, content: bytes) -> None:
    with replacing(path) as part:
        owned = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(owned, "wb") as file:
            file.write(content)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return cast("bytes", sink.getvalue().to_pybytes())


def _lines(answers: Mapping[bytes, Answer], tokens: Mapping[str, int]) -> Iterator[str]:
    yield json.dumps({"blendfusion": "recorded answers", "keys": KEY_VERSION}) + "\n"
    for key in sorted(answers):
        answer = answers[key]
        line = [key.hex(), answer.text, answer.finish, answer.logprob]
        yield json.dumps(line, ensure_ascii=True) + "\n"
    for digest in sorted(tokens):
        yield json.dumps([digest, tokens[digest]]) + "\n"


def _parsed(path: Path) -> tuple[dict[bytes, Answer], dict[str, int]]:
    """The answers by key and the lengths of texts by digest. Raises QueryError."""
    answers, tokens = {}, {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found = json.loads(line)
                if number == 1:
                    if found["keys"] != KEY_VERSION:
                        raise ValueError("keys of another version")
                elif len(found) == 2:
                    tokens[str(found[0])] = int(found[1])
                else:
                    key, answer = _answer(*found)
                    answers[key] = answer
            except (ValueError, TypeError, KeyError) as problem:
                raise QueryError(f"{path}: line {number} is no answer: {problem}") from problem
    return answers, tokens


def _answer(key: str, text: str | None, finish: str, logprob: float | None) -> tuple[bytes, Answer]:
    raw = bytes.fromhex(key)
    if len(raw) != KEY_BYTES or finish not in _FINISHES:
        raise ValueError("its key or its end is not possible")
    if finish == "error":
        return raw, FAILED
    return raw, Answer(text, cast("FinishReason", finish), logprob)


def result_section(table: pa.Table) -> dict[str, Any]:
    """The facts of a result."""
    return {"rows": table.num_rows, "digest": table_digest(table)}
