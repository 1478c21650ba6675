"""A typed wrapper around llama.cpp's multimodal library, which encodes images for a model's window.

Like ``llama_context``: calls that could abort the process, or start another (the library gives
other files than images to ffmpeg, where it was built with video), are bounded here first. No text
of ours or of the data's goes through it, so nothing in a value can name a control token or a place
for an image."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.protocol.images import type_of
from blendfusion.models.services.llama.context import LlamaContext, Weights
from blendfusion.models.services.llama.cpu_cores import cores
from blendfusion.models.services.llama.library import capture_log, reason
from blendfusion.models.services.llama.sizes import MICRO_BATCH

READABLE = ("image/png", "image/jpeg", "image/gif")
"""Media types that stb_image, llama.cpp's reader, supports; of a GIF the first frame."""
MOST_BYTES = 1 << 28
MOST_PIXELS = 1 << 26
"""200 MB as red, green and blue; a file of a few bytes can say that it holds a billion."""
LONGEST_SHAPE = 100
"""Times that one side may be as long as the other: cutting a longer strip into tiles may fail hard.
"""

_TEXT, _IMAGE = 0, 1
_RGB = 3
_NAMES_DATA = "PNG chunk not known"
"""Before these words the reader names the chunk, by bytes of the image."""


class ImageRefused(Exception):
    """An image that cannot be shown to the model; says why."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prepared image: tokens around it, or a place for its vectors."""

    tokens: tuple[int, ...]
    """() for a place."""
    pointer: Any
    cells: int
    """Cells of the window."""


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """An image as the model will see it, valid inside ``Projector.prepare``."""

    chunks: tuple[Chunk, ...]

    @property
    def cells(self) -> int:
        """Tokens that it takes."""
        return sum(chunk.cells for chunk in self.chunks)


class Projector:
    """A GGUF file that makes vectors of images, for the weights of one model. Not safe for threads:
    the caller locks.

    Raises ModelNotFound if llama-cpp-python was built without its multimodal library, or the file
    is no projector of images for these weights.
    """

    def __init__(self, path: Path, weights: Weights, *, gpu: bool, threads: int) -> None:
        self.path = path
        self._lib = _library()
        self._handle: Any = None
        with capture_log(self._lib.mtmd_helper_log_set):
            params = self._lib.mtmd_context_params_default()
            params.use_gpu = gpu
            params.print_timings = False
            params.n_threads = threads or cores()
            self._handle = self._lib.mtmd_init_from_file(os.fsencode(path), weights.model, params)
        if not self._handle:
            raise ModelNotFound(
                f"llama.cpp cannot use '{path}' as the projector of this model: "
                f"{reason() or 'it is no projector, or of another model'}",
                hint="Name the file that belongs to these weights: connect(…, projector='mmproj….gguf').",
            )
        if not self._lib.mtmd_support_vision(self._handle):
            self.close()
            raise ModelNotFound(f"the projector '{path}' is for sound, not for images")

    def close(self) -> None:
        """Free the encoder. Call it before the weights are freed."""
        if self._handle is not None:
            self._lib.mtmd_free(self._handle)
            self._handle = None

    @contextmanager
    def prepare(self, data: bytes) -> Iterator[PreparedImage]:
        """Provide the decoded image in ``data`` within this context. Raises ImageRefused."""
        bitmap = self._bitmap(data)
        chunks = self._lib.mtmd_input_chunks_init()
        try:
            part = self._lib.mtmd_input_part()
            part.bitmap = bitmap
            parts = (ctypes.POINTER(self._lib.mtmd_input_part) * 1)(ctypes.pointer(part))
            code = self._lib.mtmd_tokenize_from_parts(self._handle, chunks, parts, 1, False)
            if code != 0:
                raise ImageRefused(f"llama.cpp cannot prepare the image: {reason() or code}")
            count = self._lib.mtmd_input_chunks_size(chunks)
            got = (self._lib.mtmd_input_chunks_get(chunks, i) for i in range(count))
            yield PreparedImage(tuple(map(self._chunk, got)))
        finally:
            self._lib.mtmd_input_chunks_free(chunks)
            self._lib.mtmd_bitmap_free(bitmap)

    def show(self, image: PreparedImage, context: LlamaContext, position: int) -> int:
        """Compute the image in sequence 0 from ``position`` on; returns the position behind it.

        Raises ImageRefused, and ModelFailed if the context cannot hold it.
        """
        for chunk in image.chunks:
            if chunk.tokens:
                context.decode_prefix(chunk.tokens, position)
                position += len(chunk.tokens)
                continue
            context.check()
            if self._lib.mtmd_encode_chunk(self._handle, chunk.pointer) != 0:
                raise ImageRefused(f"llama.cpp cannot compute the image: {reason() or 'unknown'}")
            position = self._decode(chunk, context, position)
        return position

    def _decode(self, chunk: Chunk, context: LlamaContext, position: int) -> int:
        behind = ctypes.c_int32(position)
        code = self._lib.mtmd_helper_decode_image_chunk(
            self._handle,
            context.handle,
            chunk.pointer,
            self._lib.mtmd_get_output_embd(self._handle),
            position,
            0,
            context.n_batch,
            ctypes.byref(behind),
            self._lib.mtmd_helper_post_decode_callback(0),
            None,
        )
        context.settle()
        if code != 0:
            context.check()
            raise ModelFailed(f"llama.cpp could not compute an image (code {code}: {reason()})")
        return int(behind.value)

    def _chunk(self, pointer: Any) -> Chunk:
        kind = self._lib.mtmd_input_chunk_get_type(pointer)
        cells = int(self._lib.mtmd_input_chunk_get_n_tokens(pointer))
        if kind == _TEXT:
            count = ctypes.c_size_t()
            found = self._lib.mtmd_input_chunk_get_tokens_text(pointer, ctypes.byref(count))
            tokens = tuple(found[i] for i in range(count.value))
            if any(token < 0 for token in tokens):
                raise ImageRefused(
                    "the model has not the tokens that its projector puts around images"
                )
            return Chunk(tokens, pointer, cells)
        if kind != _IMAGE:
            raise ImageRefused("the projector makes no image of it")
        if cells > MICRO_BATCH and self._lib.mtmd_decode_use_non_causal(self._handle, pointer):
            raise ImageRefused(f"an image of {cells} tokens that must be computed at once")
        return Chunk((), pointer, cells)

    def _bitmap(self, data: bytes) -> Any:
        """The picture that bytes hold."""
        kind = type_of(data)
        if kind not in READABLE:
            raise ImageRefused(f"llama.cpp reads PNG, JPEG and GIF, not {kind or 'this'}")
        if len(data) > MOST_BYTES:
            raise ImageRefused(f"an image of {len(data):,} bytes")
        reader = self._lib._libmtmd
        width, height, channels = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        sizes = (ctypes.byref(width), ctypes.byref(height), ctypes.byref(channels))
        known = reader.stbi_info_from_memory(data, len(data), *sizes)
        short, long = sorted((width.value, height.value))
        if not known or short < 1:
            raise ImageRefused("the image is broken, or too large: its size cannot be read")
        shape = f"{width.value:,} x {height.value:,} pixels"
        if short * long > MOST_PIXELS or long > LONGEST_SHAPE * short:
            raise ImageRefused(
                f"an image of {shape}; possible are {MOST_PIXELS:,} pixels, and one side "
                f"{LONGEST_SHAPE} times as long as the other"
            )
        pixels = reader.stbi_load_from_memory(data, len(data), *sizes, _RGB)
        if not pixels:
            raise ImageRefused(f"the image is broken: {_why(reader)}")
        try:
            rgb = ctypes.cast(pixels, ctypes.POINTER(ctypes.c_uint8))
            bitmap = self._lib.mtmd_bitmap_init(width.value, height.value, rgb)
        finally:
            reader.stbi_image_free(pixels)
        if not bitmap:
            raise ImageRefused(f"no memory for an image of {shape}")
        return bitmap


def _why(reader: Any) -> str:
    """The error message of the image reader, without bytes of the image."""
    reason: str = (reader.stbi_failure_reason() or b"unknown").decode("utf-8", "replace")
    return _NAMES_DATA if reason.endswith(_NAMES_DATA) else reason


def _library() -> Any:
    hint = (
        "Build llama-cpp-python with its library mtmd: see docs/install.md, or ask a server that sees "
        "images."
    )
    try:
        from llama_cpp import mtmd_cpp
    except Exception as error:  # what is missing is a FileNotFoundError or a RuntimeError
        raise ModelNotFound(
            f"this llama-cpp-python was built without llama.cpp's multimodal library: {error}",
            hint=hint,
        ) from error
    reader = mtmd_cpp._libmtmd
    numbers = [ctypes.POINTER(ctypes.c_int)] * 3
    try:
        reader.stbi_info_from_memory.argtypes = [ctypes.c_char_p, ctypes.c_int, *numbers]
        load = reader.stbi_load_from_memory
        load.argtypes = [ctypes.c_char_p, ctypes.c_int, *numbers, ctypes.c_int]
        load.restype = ctypes.c_void_p
        reader.stbi_image_free.argtypes = [ctypes.c_void_p]
        reader.stbi_image_free.restype = None
        reader.stbi_failure_reason.restype = ctypes.c_char_p
    except AttributeError as error:
        raise ModelNotFound(
            "this build of llama.cpp's multimodal library does not offer its reader of images",
            hint=hint,
        ) from error
    return mtmd_cpp
