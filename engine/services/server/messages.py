"""The messages of Arrow Flight SQL that the server reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "arrow.flight.protocol.sql"
_TEXT, _BYTES, _BOOL, _INT64, _UINT32 = 9, 12, 8, 3, 13
"""The numbers of types in descriptors."""
_TABLE = {"catalog": (1, _TEXT), "db_schema": (2, _TEXT), "table": (3, _TEXT)}
_HANDLE = {"prepared_statement_handle": (1, _BYTES)}
_QUERY = {"query": (1, _TEXT), "transaction_id": (2, _BYTES)}
_MESSAGES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "CommandGetSqlInfo": {"info*": (1, _UINT32)},
    "CommandGetCatalogs": {},
    "CommandGetDbSchemas": {"catalog": (1, _TEXT), "db_schema_filter_pattern": (2, _TEXT)},
    "CommandGetTables": {
        "catalog": (1, _TEXT),
        "db_schema_filter_pattern": (2, _TEXT),
        "table_name_filter_pattern": (3, _TEXT),
        "table_types*": (4, _TEXT),
        "include_schema": (5, _BOOL),
    },
    "CommandGetTableTypes": {},
    "CommandGetPrimaryKeys": _TABLE,
    "CommandGetExportedKeys": _TABLE,
    "CommandGetImportedKeys": _TABLE,
    "CommandStatementQuery": _QUERY,
    "CommandStatementUpdate": _QUERY,
    "CommandPreparedStatementQuery": _HANDLE,
    "CommandPreparedStatementUpdate": _HANDLE,
    "TicketStatementQuery": {"statement_handle": (1, _BYTES)},
    "ActionCreatePreparedStatementRequest": _QUERY,
    "ActionCreatePreparedStatementResult": _HANDLE
    | {"dataset_schema": (2, _BYTES), "parameter_schema": (3, _BYTES)},
    "ActionClosePreparedStatementRequest": _HANDLE,
    "DoPutPreparedStatementResult": _HANDLE,
    "DoPutUpdateResult": {"record_count": (1, _INT64)},
}
"""The fields of each message, with their numbers and types; ``*``: any number of values."""


def _make() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="blendfusion/flight_sql.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = 3 if field.endswith("*") else 1
            added = message.field.add(
                name=field.rstrip("*"),
                number=number,
                type=kind,  # type: ignore[arg-type,unused-ignore]
                label=label,  # type: ignore[arg-type,unused-ignore]
            )
            if label == 1:
                message.oneof_decl.add(name=f"_{field}")
                added.oneof_index = len(message.oneof_decl) - 1
                added.proto3_optional = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call,unused-ignore]
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_KINDS = _make()


def pack(name: str, **fields: Any) -> bytes:
    """A message in the envelope that Flight SQL has around each."""
    whole = any_pb2.Any(
        type_url=f"type.googleapis.com/{_PACKAGE}.{name}",
        value=_KINDS[name](**fields).SerializeToString(),
    )
    return bytes(whole.SerializeToString())


def bare(name: str, **fields: Any) -> bytes:
    """A message without an envelope."""
    return bytes(_KINDS[name](**fields).SerializeToString())


def unpack(data: bytes) -> tuple[str, Any]:
    """(name, message) of an envelope. Raises ValueError for what is none, or not known here."""
    whole = any_pb2.Any()
    try:
        whole.ParseFromString(data)
    except Exception as problem:  # protobuf's DecodeError, whose module differs
        raise ValueError("no message of Flight SQL") from problem
    package, _, name = whole.type_url.rpartition("/")[2].rpartition(".")
    if package != _PACKAGE or name not in _KINDS:
        raise ValueError(f"the message '{name}' is not supported")
    message = _KINDS[name]()
    message.ParseFromString(whole.value)
    return name, message
