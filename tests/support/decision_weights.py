"""Turns the packaged weights into a decision model of llama.cpp: two texts more in the metadata."""

from __future__ import annotations

import struct
from pathlib import Path

TEMPLATE = (
    "{{ '<|im_start|>user\n' + state + '\n\nQuestion: ' + instructions + '\n' }}"
    "{% for option in options %}{{ ['A', 'B', 'C', 'D'][loop.index0] + '. ' + option.key }}"
    "{% if option.description %}{{ ' (' + option.description + ')' }}{% endif %}{{ '\n' }}"
    "{% endfor %}{{ 'Answer with one letter.<|im_end|>\n<|im_start|>assistant\n' }}"
)
"""Jinja: at most four options as letters, up to the beginning of the assistant's turn."""
KEYS = {"llama.decision.type": "openjev", "tokenizer.chat_template.systemone": TEMPLATE}
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY, _ALIGNMENT = 8, 9, 32


def write_decision_weights(weights: Path, target: Path) -> None:
    """Copy a GGUF file with ``KEYS`` behind its own metadata."""
    data = weights.read_bytes()
    version, tensors, count = struct.unpack_from("<IQQ", data, 4)
    behind_keys = 24
    for _ in range(count):
        behind_keys = _behind_text(data, behind_keys)
        (kind,) = struct.unpack_from("<I", data, behind_keys)
        behind_keys = _behind_value(data, behind_keys + 4, kind)
    head_end = behind_keys
    for _ in range(tensors):
        head_end = _behind_text(data, head_end)
        (dimensions,) = struct.unpack_from("<I", data, head_end)
        head_end += 4 + 8 * dimensions + 4 + 8
    added = b"".join(_text(key) + struct.pack("<I", _STRING) + _text(KEYS[key]) for key in KEYS)
    counts = struct.pack("<IQQ", version, tensors, count + len(KEYS))
    head = data[:4] + counts + data[24:behind_keys] + added + data[behind_keys:head_end]
    head += b"\0" * (-len(head) % _ALIGNMENT)
    target.write_bytes(head + data[head_end + -head_end % _ALIGNMENT :])


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _behind_text(data: bytes, at: int) -> int:
    (length,) = struct.unpack_from("<Q", data, at)
    return int(at + 8 + length)


def _behind_value(data: bytes, at: int, kind: int) -> int:
    if kind == _STRING:
        return _behind_text(data, at)
    if kind != _ARRAY:
        return at + _SIZES[kind]
    item, length = struct.unpack_from("<IQ", data, at)
    at += 12
    for _ in range(length):
        at = _behind_value(data, at, item)
    return at
