"""Files that queries name as tables: ``FROM 'sales.csv'``."""

from __future__ import annotations

from blendfusion.datafusion.context import OwnContext
from blendfusion.errors import QueryError
from blendfusion.language.query_text.file_names import quoted_files
from blendfusion.places.lakes import check_place
from blendfusion.places.remote import LOCAL, scheme_of
from blendfusion.udfs.declare.arguments import quoted_name


class QueryFiles:
    """The files of a session's queries so far."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def open(self, context: OwnContext, query: str, allowed: str) -> None:
        """Register the files that ``query`` names as tables of their paths, if the session's option
        ``read_files``, which is ``allowed``, permits it. Files that changed are read again.

        A table of that name that is no such file stays. Raises QueryError for a URL where only
        local files are read, and for what cannot be read.
        """
        paths = quoted_files(query)
        if paths and context.reads_paths:  # DataFusion reads them itself
            for path in paths:
                check_place(context, path)
        if allowed == "off":
            return
        for path in paths:
            name = quoted_name(path)
            if path not in self._paths and context.table_exist(name):
                continue
            if allowed == "local" and scheme_of(path) not in (None, LOCAL):
                raise QueryError(
                    f"'{path}': a query of this session reads files of this machine only",
                    hint="Allow URLs by the option read_files='urls', or register the file first.",
                )
            if path in self._paths:
                context.deregister_table(name)
            from blendfusion.files.reading import register_file

            register_file(context, path, name)
            self._paths.add(path)
