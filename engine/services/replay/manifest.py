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
from blendfusion.models.protocol.gate import (
    MOST_TOKENS,
    Shape,
    Unfit,
    arrow_of,
    check_shape,
    json_of,
    stored_answer,
)
from blendfusion.models.stores.key import KEY_BYTES, KEY_VERSION
from blendfusion.models.stores.recording import FAILED
from blendfusion.places.whole_file import write_private
from blendfusion.services.replay.digests import file_digest, table_digest
from blendfusion.services.replay.model import check_described
from blendfusion.services.replay.registrations import paths_from
from blendfusion.types import Answer

MANIFEST_VERSION = 1
SECTIONS = ("query", "options", "versions", "models", "inputs", "answers", "result")
_AGAIN = "Record the run again: blendfusion query … --manifest FILE."
_MODEL: Shape = {"name": str, "fingerprint": str, "window": int, "batch_size": int}
_INPUT: Shape = {
    "columns": [[str]],
    "rows": int,
    "digest": str,
    "any_order": (str, None),
}
_SHAPE: Shape = {
    "query": {"text": (str, None), "digest": str, "dialect": (str, None), "enums": {"...": [str]}},
    "options": {"partitions": (int, None), "...": object},
    "versions": {"...": (str, None)},
    "models": {"own": [_MODEL], "named": {"...": _MODEL}, "embedder": ([str], None)},
    "inputs": {"...": _INPUT},
    "answers": {"stored": int, "failed": int},
    "result": {"rows": int, "digest": str},
}


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
        inputs = paths_from(place.parent, self.sections["inputs"])
        sections = {**self.sections, "inputs": inputs}
        try:
            write_private(answers, "".join(_lines(self.answers, self.tokens)).encode())
            write_private(rows, _ipc(self.result))
            files = {"answers": file_digest(answers), "result": file_digest(rows)}
            digests = {name: _digest(sections[name]) for name in SECTIONS}
            whole = {
                "blendfusion_manifest": MANIFEST_VERSION,
                **sections,
                "files": files,
                "digests": {**digests, "files": _digest(files)},
            }
            write_private(place, (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode())
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
                raise _edit_error(place, f"its part '{name}'")
            sections[name] = whole[name]
        del sections["files"]
        answers, rows = _present(place)
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
                raise _edit_error(place, f"the file of its {name}, '{file.name}',")
        stored, tokens = _parse(answers)
        try:
            check_shape(sections, _SHAPE)
            _check_pairs(sections)
            result = arrow_of(rows)
        except Unfit as problem:
            raise QueryError(
                f"{place}: a part of the manifest is not what BlendFusion records: {problem}",
                hint=_AGAIN,
            ) from None
        return Manifest(sections, stored, tokens, result)


def _check_pairs(sections: Mapping[str, Any]) -> None:
    """Raises Unfit unless each column of each table has a name and a type, the embedder a name and
    a fingerprint, the number of partitions is one, and models are described."""
    partitions = sections["options"].get("partitions")
    if partitions is not None and (type(partitions) is not int or not 0 < partitions < 1 << 16):
        raise Unfit("the number of partitions is not possible")
    embedder = sections["models"]["embedder"]
    if embedder is not None and len(embedder) != 2:
        raise Unfit("the embedder is no pair")
    for one in (*sections["models"]["own"], *sections["models"]["named"].values()):
        check_described(one)
    for name, one in sections["inputs"].items():
        if any(len(column) != 2 for column in one["columns"]):
            raise Unfit(f"the columns of '{name[:60]}' are no pairs")
        check_shape(one.get("path"), (str, None), "the path of a table")
        check_shape(one.get("files"), ({"...": str}, None), "the files of a table")


def beside(path: Path) -> tuple[Path, Path]:
    """The paths of a manifest's answers and of its result: ``run.answers.jsonl`` for
    ``run.json``, ``run.v1.answers.jsonl`` for ``run.v1``."""
    name = path.name.removesuffix(".json")
    return path.with_name(f"{name}.answers.jsonl"), path.with_name(f"{name}.result.arrow")


def _present(path: Path) -> tuple[Path, Path]:
    """The files beside a manifest, by the names that earlier versions gave them if need be."""
    named = beside(path)
    earlier = path.with_suffix(".answers.jsonl"), path.with_suffix(".result.arrow")
    return earlier if not named[0].exists() and earlier[0].exists() else named


def _edit_error(place: Path, part: str) -> QueryError:
    return QueryError(
        f"{place}: {part} is not as it was recorded",
        hint=f"It was edited or damaged. {_AGAIN}",
    )


def _read(place: Path) -> dict[str, Any]:
    try:
        whole = json_of(place.read_bytes())
    except OSError as problem:
        raise QueryError(
            f"the manifest '{place}' cannot be read: {problem.strerror or problem}"
        ) from problem
    except Unfit as problem:
        raise _edit_error(place, "the text") from problem
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


def _parse(path: Path) -> tuple[dict[bytes, Answer], dict[str, int]]:
    """The answers by key and the lengths of texts by digest. Raises QueryError."""
    answers: dict[bytes, Answer] = {}
    tokens: dict[str, int] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                _read_line(number, json_of(line), answers, tokens)
            except Unfit as problem:
                raise QueryError(
                    f"{path}: line {number} is no answer: {problem}", hint=_AGAIN
                ) from None
    return answers, tokens


def _read_line(
    number: int, line: object, answers: dict[bytes, Answer], tokens: dict[str, int]
) -> None:
    """Keep what a line holds: an answer, or the length of a text. Raises Unfit."""
    if number == 1:
        check_shape(line, {"keys": int})
        if cast("dict[str, Any]", line)["keys"] != KEY_VERSION:
            raise Unfit("keys of another version")
    elif not isinstance(line, list) or len(line) not in (2, 4):
        raise Unfit("it has neither two nor four parts")
    elif len(line) == 2:
        digest, count = line
        check_shape(digest, str, "the digest")
        if type(count) is not int or not 0 <= count <= MOST_TOKENS:
            raise Unfit("the number of tokens is not possible")
        tokens[digest] = count
    else:
        key, text, finish, logprob = line
        failed = finish == "error"
        answers[_key(key)] = FAILED if failed else stored_answer(text, finish, logprob)


def _key(text: object) -> bytes:
    try:
        key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise Unfit("its key is not possible")
    return key


def result_section(table: pa.Table) -> dict[str, Any]:
    """The facts of a result."""
    return {"rows": table.num_rows, "digest": table_digest(table)}
