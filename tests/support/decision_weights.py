"""Turns the packaged weights into a decision model of llama.cpp: two texts more in the metadata."""

from __future__ import annotations

import struct
from pathlib import Path

from blendfusion.models.services.weights.gguf import _Reader

TEMPLATE = (
    "{{ '<|im_start|>user\n' + state + '\n\nQuestion: ' + instructions + '\n' }}"
    "{% for option in options %}{{ ['A', 'B', 'C', 'D'][loop.index0] + '. ' + option.key }}"
    "{% if option.description %}{{ ' (' + option.description + ')' }}{% endif %}{{ '\n' }}"
    "{% endfor %}{{ 'Answer with one letter.<|im_end|>\n<|im_start|>assistant\n' }}"
)
"""Jinja: at most four options as letters, up to the beginning of the assistant's turn."""
KEYS = {"llama.decision.type": "openjev", "tokenizer.chat_template.systemone": TEMPLATE}
_STRING, _ALIGNMENT, _HEAD = 8, 32, 24


def write_decision_weights(weights: Path, target: Path) -> None:
    """Copy a GGUF file with ``KEYS`` behind its own metadata."""
    data = weights.read_bytes()
    version, tensors, count = struct.unpack_from("<IQQ", data, 4)
    reader = _Reader(data, at=_HEAD)
    for _ in range(count):
        reader.text("a key")
        reader.value(*reader.take("<I", "a type"), "a value")
    keys_end = reader.at
    for _ in range(tensors):
        reader.tensor("a tensor")
    added = b"".join(_text(key) + struct.pack("<I", _STRING) + _text(KEYS[key]) for key in KEYS)
    counts = struct.pack("<IQQ", version, tensors, count + len(KEYS))
    head = data[:4] + counts + data[_HEAD:keys_end] + added + data[keys_end : reader.at]
    head += b"\0" * (-len(head) % _ALIGNMENT)
    target.write_bytes(head + data[reader.at + -reader.at % _ALIGNMENT :])


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
