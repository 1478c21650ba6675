"""Names what differs between a recorded run and the present: inputs, options, models, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: ``part`` of the manifest, ``name`` in it, and ``what`` changed."""

    part: str
    name: str
    what: str

    @property
    def is_warning(self) -> bool:
        """Versions differ between machines that give the same result."""
        return self.part == "version"

    def __str__(self) -> str:
        return f"{self.part} {self.name}: {self.what}" if self.name else f"{self.part}: {self.what}"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """The differences between the parts of two manifests, in a fixed order."""
    return [*_query(before["query"], now["query"]), *_rest(before, now)]


def _query(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    if before["digest"] != now["digest"]:
        yield Change("query", "", "its text is another one")
    if before["dialect"] != now["dialect"]:
        yield Change("query", "", f"its dialect was {before['dialect']}, is {now['dialect']}")
    if before["enums"] != now["enums"]:
        yield Change("query", "", "other columns are compared by meaning")


def _rest(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    for name, old in before["options"].items():
        new = now["options"].get(name)
        if new != old:
            yield Change("option", name, f"was {old!r}, is {new!r}")
    for name, old in before["versions"].items():
        new = now["versions"].get(name)
        if new != old:
            yield Change("version", name, f"was {old or 'not installed'}, is {new or 'not there'}")
    yield from _models(before["models"], now["models"])
    for name, old in before["inputs"].items():
        new = now["inputs"].get(name)
        if new is None:
            yield Change("table", name, "it is missing")
        else:
            yield from input_changes(name, old, new)
    for name in now["inputs"].keys() - before["inputs"].keys():
        yield Change("table", name, "the recorded run did not read it")


def _models(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    old, new = before["own"], now["own"]
    if len(old) != len(new):
        yield Change("model", "", f"there were {len(old)}, there are {len(new)}")
    pairs = [(str(place), *pair) for place, pair in enumerate(zip(old, new, strict=False), 1)]
    pairs += [(n, m, now["named"][n]) for n, m in before["named"].items() if n in now["named"]]
    for name in before["named"].keys() - now["named"].keys():
        yield Change("model", name, "it is missing")
    for name, one, other in pairs:
        if one["name"] != other["name"]:
            yield Change("model", name, f"was {one['name']}, is {other['name']}")
        elif one["fingerprint"] != other["fingerprint"]:
            yield Change("model", one["name"], "its weights, prompts or settings changed")
        elif one["window"] != other["window"]:
            yield Change("model", one["name"], f"its window was {one['window']} tokens")
    if before["embedder"] != now["embedder"] and before["embedder"] is not None:
        is_now = now["embedder"][0] if now["embedder"] else "none"
        yield Change("embedder", before["embedder"][0], f"is {is_now}, or computes other vectors")


def input_changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The differences between the facts of a table: its files, columns, rows, their order."""
    found = []
    files, now = old.get("files"), new.get("files")
    if files is not None and now is not None:
        for file in sorted({*files, *now}):
            if file not in now:
                found.append(Change("table", name, f"its file '{file}' is missing"))
            elif file not in files:
                found.append(Change("table", name, f"its file '{file}' is new"))
            elif files[file] != now[file]:
                found.append(Change("table", name, f"the content of its file '{file}' changed"))
    columns, kinds = dict(old["columns"]), dict(new["columns"])
    for column in columns.keys() - kinds.keys():
        found.append(Change("table", name, f"its column '{column}' is missing"))
    for column in kinds.keys() - columns.keys():
        found.append(Change("table", name, f"its column '{column}' is new"))
    for column, kind in columns.items():
        if column in kinds and kinds[column] != kind:
            what = f"the type of its column '{column}' was {kind}, is {kinds[column]}"
            found.append(Change("table", name, what))
    if columns == kinds and list(columns) != list(kinds):
        found.append(Change("table", name, "the order of its columns changed"))
    if old["rows"] != new["rows"]:
        found.append(Change("table", name, f"it had {old['rows']:,} rows, has {new['rows']:,}"))
    elif old["columns"] == new["columns"] and old["digest"] != new["digest"]:
        same = old["any_order"] is not None and old["any_order"] == new["any_order"]
        what = "the order of its rows changed" if same else "values in it changed"
        if not (same and files and files == now):  # the same files may be read in another order
            found.append(Change("table", name, what))
    return found
