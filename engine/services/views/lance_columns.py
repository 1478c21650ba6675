"""Columns of answers in tables of Lance: a change is one version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.files.answer_columns import Compute, are_others
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.services.views.registered_tables import RegisteredTables


class LanceColumns:
    """A table of Lance that gets columns of answers."""

    def __init__(self, session: RegisteredTables, name: str, place: str) -> None:
        self._session, self._name, self.place = session, name, place

    def _open(self) -> Any:
        from blendfusion.services.scans.lance_table import opened_table

        return opened_table(self.place)

    @property
    def schema(self) -> pa.Schema:
        return self._open().schema

    @property
    def version(self) -> int:
        return int(self._open().version)

    def add(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        import lance

        schema, failed = pa.schema([field]), list[BaseException]()

        def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
            try:
                values = compute(batch)
            except BaseException as problem:  # of which Lance passes on the text
                failed.append(problem)
                raise
            return pa.record_batch([values], schema=schema)

        data = self._open()
        rows = int(data.count_rows())
        try:
            data.add_columns(lance.batch_udf(output_schema=schema)(fill), read_columns=[*read])
        except Exception:
            if failed:
                raise failed[0] from None
            raise
        return rows

    def refresh(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        import lance

        data, column = self._open(), field.name
        updated, fields, rows = [], set[int](), 0
        for fragment in data.get_fragments():
            scanned = data.scanner(fragments=[fragment], columns=[*read, column], with_row_id=True)
            current = scanned.to_table().combine_chunks()
            values = compute(current.select([*read]))
            others = sum(are_others(current[column], values))
            if others:
                new = pa.table({"_rowid": current["_rowid"], column: values})
                fragment_now, modified = fragment.update_columns(new, left_on="_rowid")
                updated.append(fragment_now)
                fields |= {*modified}
                rows += others
        if updated:
            change = lance.LanceOperation.Update(
                updated_fragments=updated, fields_modified=sorted(fields)
            )
            lance.LanceDataset.commit(self.place, change, read_version=data.version)
        return rows

    def show(self) -> None:
        from blendfusion.services.scans.lance_table import RegisteredLance

        if self._session.lance_place(self._name) == self.place:
            quoted = quoted_name(self._name)
            self._session.deregister_table(quoted)
            self._session.register_table(quoted, RegisteredLance(self.place))
