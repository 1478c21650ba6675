"""Has DataFusion forget what it remembers of files.

It takes the places in a Parquet file for those of the file that has its path, size and time of
change by now, and so reads others at wrong places. Contexts switch two more caches off.
"""

from __future__ import annotations

from datafusion import SessionContext

from blendfusion.datafusion.context import OFF_CACHES
from blendfusion.datafusion.settings import setting

_CACHES = (*OFF_CACHES, "datafusion.runtime.metadata_cache_limit")


def forget_files(context: SessionContext) -> None:
    """Have a context read what it knows of files again."""
    for name in _CACHES:
        with setting(context, name, "0M"):
            pass
