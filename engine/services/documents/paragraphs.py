"""Paragraphs, titles, lists and tables of one region of a page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import median

from blendfusion.services.documents.blocks import Block, Kind, table_text, union
from blendfusion.services.documents.code_lines import code_runs, code_text
from blendfusion.services.documents.columns import Region
from blendfusion.services.documents.joined_lines import join_lines
from blendfusion.services.documents.words import Line, Word, is_item, lines_of, names_work

_TITLE_LINES = 4
_TITLE_CHARACTERS = 250


def notes_of(parts: Sequence[Region], raised: Collection[str], body: float) -> set[str]:
    """The numbers of the notes of a page: ``raised`` ones with which lines in small type begin."""
    if not raised:
        return set()
    lines = (line for part in parts if part.rows is None for line in lines_of(part.words))
    return {line.words[0].text for line in lines if _begins_note(line, raised, body)}


def _begins_note(line: Line, notes: Collection[str], body: float) -> bool:
    return len(line.words) > 1 and line.words[0].text in notes and line.height < 0.92 * body


def blocks_of(
    region: Region,
    body: float,
    known: Collection[str] = (),
    notes: Collection[str] = (),
    code: bool = False,
) -> list[Block]:
    """The blocks of a region; ``body`` is the height of running text, ``known`` has the words with
    a hyphen, and ``notes`` the numbers of the page's notes. ``code``: what is in a font of equal
    widths is code."""
    if region.rows is not None:
        box = union([word.box for word in region.words])
        return [Block("table", table_text(region.rows), box)]
    _name_notes(region.words, notes)
    lines = lines_of(region.words)
    begins = [at for at, line in enumerate(lines) if _begins_note(line, notes, body)]
    first = begins[0] if begins else len(lines)
    found: list[Block] = []
    last = 0
    for start, stop in code_runs(lines[:first]) if code else ():
        found += _text_blocks(lines[last:start], body, known)
        box = union([line.box for line in lines[start:stop]])
        found.append(Block("code", code_text(lines[start:stop]), box))
        last = stop
    found += _text_blocks(lines[last:first], body, known)
    for start, stop in pairwise([*begins, len(lines)]):
        number, _, text = join_lines([ln.text for ln in lines[start:stop]], known).partition(" ")
        box = union([line.box for line in lines[start:stop]])
        found.append(Block("footnote", f"[{number}] {text}", box))
    return found


def _name_notes(words: Sequence[Word], notes: Collection[str]) -> None:
    """Write raised digits that refer to notes as such."""
    for word in words:
        if word.raised in notes:
            end = len(word.text) - word.behind
            before = word.text[: end - len(word.raised)].removesuffix("^")
            word.text = f"{before}[{word.raised}]{word.text[end:]}"


def _text_blocks(lines: Sequence[Line], body: float, known: Collection[str]) -> list[Block]:
    found: list[Block] = []
    for group in _groups(lines):
        box = union([line.box for line in group])
        rows = group[0].rows
        if rows is not None:
            found.append(Block("table", table_text(rows), box))
            continue
        kind = _kind(group, body)
        text = join_lines([line.text for line in group], known)
        if kind == "list" and found and found[-1].kind == "list" and found[-1].box is not None:
            before = found.pop()
            assert before.box is not None
            found.append(Block("list", f"{before.text}\n{text}", union([before.box, box])))
        elif text:
            found.append(Block(kind, text, box))
    return found


def _groups(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that belong together."""
    if not lines:
        return []
    steps = [_step(above, line) for above, line in pairwise(lines)]
    leading = median(steps) if len(steps) > 2 else 0.0
    left = min(line.box[0] for line in lines)
    groups = [[lines[0]]]
    for above, line in pairwise(lines):
        if _begins_paragraph(above, line, groups[-1], left, leading):
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def _begins_paragraph(
    above: Line, line: Line, group: Sequence[Line], left: float, leading: float
) -> bool:
    if above.rows is not None or line.rows is not None:
        return True
    height = max(above.height, line.height)
    if abs(above.height - line.height) > 0.15 * height or above.bold != line.bold:
        return True
    usual = min(leading, 1.9 * height) if leading else 1.35 * height
    if _step(above, line) > max(1.25 * usual, 1.3 * height):
        return True
    if is_item(line.text):
        return True
    # The text of an item is indented; a first line behind other paragraphs is, too.
    indented = line.box[0] > left + 0.9 * height
    in_work = names_work(group[0].text)
    if in_work and names_work(line.text):
        return len(group) == 1 or line.box[0] < above.box[0] - 0.9 * height
    if in_work or is_item(group[0].text):
        return line.box[0] < group[0].box[0] + 0.5 * height and not _hangs(group, line)
    return indented and above.box[0] < left + 0.5 * height and len(group) > 1


def _hangs(group: Sequence[Line], line: Line) -> bool:
    """Whether an item goes on at the left edge, as its second line did."""
    full = group[0].box[2] - group[0].box[0]
    return len(group) > 1 or group[-1].box[2] - line.box[0] >= 0.8 * max(
        full, line.box[2] - line.box[0]
    )


def _step(above: Line, line: Line) -> float:
    return line.box[3] - above.box[3]


def _kind(lines: Sequence[Line], body: float) -> Kind:
    if is_item(lines[0].text) and not lines[0].bold:
        return "list"
    text = " ".join(line.text for line in lines)
    if len(lines) <= _TITLE_LINES and len(text) <= _TITLE_CHARACTERS:
        larger = median(line.height for line in lines) >= 1.15 * body
        bold = len(lines) <= 2 and all(line.bold for line in lines) and not text.endswith(".")
        if (larger or bold) and any(map(str.isalnum, text)):
            return "title"
    return "paragraph"
