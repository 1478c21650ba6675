"""Views that other programs read as tables of an attached database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.services import parts
from blendfusion.services.views.folder import ViewFolder
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.services.views.registered_tables import RegisteredTables


class DatabaseTable:
    """The table of a view: each refresh that changes rows writes it in one transaction."""

    def __init__(self, session: RegisteredTables, name: str) -> None:
        self._session, self._name = session, name
        self._path = ".".join(map(quoted_name, name.split(".")))

    def _exists(self) -> bool | None:
        """Whether the table is there; None where its database is not attached. Raises QueryError
        for one that is attached for reading only."""
        found = [module.table_exists(self._session, self._path) for module in parts("destinations")]
        return next((is_there for is_there in found if is_there is not None), None)

    def check_new(self) -> None:
        """Raise QueryError where no table of this name can be made."""
        is_there = self._exists()
        if is_there is None:
            raise QueryError(
                f"no attached database has the name in front of '{self._name}'",
                hint="session.attach(…, read_only=False) attaches one; the name of a view in the "
                "folder has one part.",
            )
        if is_there:
            raise QueryError(
                f"there is a table '{self._name}' already", hint="Choose another name."
            )

    def reasons(self, place: ViewFolder) -> list[str]:
        """Why the table may not have the rows of the served version."""
        if self._exists() is False:
            return [f"the table {self._name} is not there"]
        return ["its last refresh was not finished"] if place.unfinished_file.exists() else []

    def write(self, rows: pa.Table) -> None:
        """Give the table these rows, all or none. Raises QueryError."""
        frame: Any = self._session.new_table(rows)
        frame.write_table(self._path, mode="replace")

    def drop(self) -> None:
        """Delete the table. Raises QueryError."""
        for module in parts("destinations"):
            module.drop_table(self._session, self._path)
