"""Has DataFusion forget what it remembers of files.

It takes a folder for what it was when it was listed first, and the statistics and places of a
Parquet file for those of the file that has its path, size and time of change by now. So it misses
new files, and reads others at wrong places or leaves them out.
"""

from __future__ import annotations

from datafusion import SessionContext

from blendfusion.datafusion.context import LIST_CACHE

_OF_FILES = (
    "datafusion.runtime.metadata_cache_limit",
    "datafusion.runtime.file_statistics_cache_limit",
)


def forget_files(context: SessionContext) -> None:
    """Have a context read what it knows of files again."""
    for name in (LIST_CACHE, *_OF_FILES):
        rows = SessionContext.sql(context, f"SHOW {name}").collect()
        limit = rows[0].column(1)[0].as_py()
        for each in ("0M", limit):
            SessionContext.sql(context, f"SET {name} = '{each}'")
