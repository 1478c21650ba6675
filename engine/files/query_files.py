"""Files that queries name as tables: ``FROM 'sales.csv'``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.errors import QueryError
from blendfusion.language.query_text.file_names import quoted_files
from blendfusion.places.lakes import check_place
from blendfusion.places.remote import LOCAL, scheme_of
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.session import Session


class QueryFiles:
    """The files of a session's queries so far."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def open(self, session: Session, query: str) -> None:
        """Register the files that ``query`` names as tables of their paths, as far as the session's
        option ``read_files`` allows. Files that changed are read again.

        A table of that name that is no such file stays. Raises QueryError for a URL where only
        local files are read, and for what cannot be read.
        """
        allowed, paths = session.options.read_files, quoted_files(query)
        if paths and session.reads_paths:  # DataFusion reads them itself
            for path in paths:
                check_place(session, path)
        if allowed == "off":
            return
        for path in paths:
            name = quoted_name(path)
            if path not in self._paths and session.table_exist(name):
                continue
            if allowed == "local" and scheme_of(path) not in (None, LOCAL):
                raise QueryError(
                    f"'{path}': a query of this session reads files of this machine only",
                    hint="Allow URLs by the option read_files='urls', or register the file first.",
                )
            if path in self._paths:
                session.deregister_table(name)
            from blendfusion.files.reading import register_file

            register_file(session, path, name)
            self._paths.add(path)
