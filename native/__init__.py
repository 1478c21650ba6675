"""Kernels over Arrow columns, compiled if a compiler was present.

``fallback`` is the specification; the compiled twin gives the same answers.
"""

from __future__ import annotations

try:
    from blendfusion.native.compiled import encode_text
except ImportError:  # no compiler when it was installed
    from blendfusion.native.fallback import encode_text

__all__ = ["encode_text"]
