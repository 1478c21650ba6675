"""The systems whose SQL has functions of decision models."""

from __future__ import annotations

from functools import partial

from blendfusion.services.dialects.decisions import duckdb, greptime, postgres
from blendfusion.services.dialects.functions.duckdb import DUCKDB
from blendfusion.services.dialects.functions.postgres import POSTGRES
from blendfusion.services.dialects.warehouses.calls import Warehouse

_postgres = partial(
    Warehouse,
    functions=postgres.FUNCTIONS,
    refused=postgres.REFUSED,
    system=POSTGRES,
    sql="postgres",
)
_duckdb = partial(Warehouse, system=DUCKDB, sql="duckdb")
DECISIONS = (
    _postgres("pg-jev", "pg-jev"),
    _postgres("jevql", "jevql"),
    _duckdb(
        "duckdb-jev of colliber",
        "duckdb-jev",
        functions=duckdb.BY_CRITERIA,
        refused=duckdb.BY_CRITERIA_REFUSED,
    ),
    _duckdb(
        "duckdb-jev of prasanthj",
        "duckdb-jev-structs",
        functions=duckdb.STRUCTS,
        refused=duckdb.STRUCTS_REFUSED,
    ),
    _duckdb(
        "anofox_decide", "anofox", functions=duckdb.DECIDE, refused=duckdb.DECIDE_REFUSED
    ),
    Warehouse(
        "GreptimeDB", "greptimedb", greptime.FUNCTIONS, {}, greptime.SYSTEM, sql="postgres"
    ),
)  # fmt: skip
"""Each by the name of its dialect."""
