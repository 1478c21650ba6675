"""``python -m blendfusion`` is the command ``blendfusion``."""

from __future__ import annotations

import sys

from blendfusion.apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
