"""DataFusion's own methods that read CSV files, with the care that ``register_file`` takes: whole
records, columns by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from datafusion import CsvReadOptions

from blendfusion.errors import QueryError
from blendfusion.files.csv_files import CsvOptions, open_csv
from blendfusion.files.csv_tables import csv_table, stay_whole
from blendfusion.files.formats import Format
from blendfusion.files.parts import SniffedOptions, Table
from blendfusion.places.folders import File, Listing, list_files
from blendfusion.places.remote import LOCAL, local_path, scheme_of

_PASSED_ON = ("terminator", "escape", "comment", "null_regex", "truncated_rows", "file_sort_order")


def prepare_csv(
    path: Any, options: CsvReadOptions, new_folder: Callable[[], Path]
) -> CsvReadOptions | Table:
    """How DataFusion reads the CSV files at ``path``, which may be a list: as a table whose columns
    were found, or with ``options`` where these name the columns already. Raises QueryError for what
    is no table."""
    if isinstance(options, SniffedOptions):
        return options
    listing = local_listing(path, options.file_extension)
    known = options.schema is not None or options.table_partition_cols
    if listing is None or known or (not options.has_header and options.comment):
        return _whole(listing, options)
    return csv_table(listing, _own_options(options), new_folder)


def _own_options(options: CsvReadOptions) -> CsvOptions:
    compression = options.file_compression_type
    return CsvOptions(
        options.delimiter,
        has_header=options.has_header,
        quote=options.quote,
        comment=options.comment,
        format=Format("csv", options.file_extension, compression or None),
        others={name: getattr(options, name) for name in _PASSED_ON},
    )


def local_listing(path: Any, extension: str) -> Listing | None:
    """The files at ``path`` that DataFusion reads; None where not all are on this machine."""
    paths: list[str] = [os.fspath(one) for one in (path if isinstance(path, list) else [path])]
    if not paths or any(scheme_of(one) not in (None, LOCAL) for one in paths):
        return None
    listings = [list_files(local_path(one)) for one in paths]
    files = [file for listing in listings for file in _with_extension(listing.files, extension)]
    if not files:
        raise QueryError(
            f"no file at '{paths[0]}' has the ending {extension}",
            hint="file_extension='.tsv' names another one; session.register_file(path) reads a file by its ending.",
        )
    base, passed = (listings[0].base, listings[0].passed) if len(paths) == 1 else ("", ())
    return Listing(paths[0], base, tuple(files), passed)


def _with_extension(files: Iterable[File], extension: str) -> Sequence[File]:
    return [File(file.url, file.size) for file in files if file.name.endswith(extension)]


def _whole(listing: Listing | None, options: CsvReadOptions) -> CsvReadOptions:
    """``options`` that cut no quoted value in two. Raises QueryError for texts that stand for NULL:
    DataFusion infers types by them, and reads them as texts."""
    if options.null_regex:
        raise QueryError(
            "null_regex is heeded only for files of this machine with a header, whose columns are found",
            hint="Leave it out, and write nullif(column, 'NA') in the query.",
        )
    own = SniffedOptions(**vars(options))
    if listing is not None and options.has_header:
        _check_order(listing, options)
    compressed = bool(options.file_compression_type)
    own.newlines_in_values = (
        options.newlines_in_values
        or listing is None
        or stay_whole(listing.files, options.quote, is_compressed=compressed, escape=options.escape)
    )
    return own


def _check_order(listing: Listing, options: CsvReadOptions) -> None:
    """Raises QueryError for files whose columns stand in another order, or are others: DataFusion
    takes them by their places."""
    sniffed = _own_options(options)
    heads = [(f.url, open_csv(f, sniffed, Path).head.names) for f in listing.files]
    other = next((url for url, names in heads if names != heads[0][1]), None)
    if other is not None:
        raise QueryError(
            f"'{other}' has other columns than '{heads[0][0]}', or in another order",
            hint="session.register_file(path) puts the columns of files together by name.",
        )
