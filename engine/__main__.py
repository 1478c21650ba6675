"""``python -m blendfusion`` is the command ``blendfusion``."""

from __future__ import annotations

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.exit(import_module("blendfusion.apps.cli.main").main())
