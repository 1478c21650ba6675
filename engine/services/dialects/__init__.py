"""Translates queries in the dialects of other systems to BlendFusion's SQL."""

from blendfusion.services import Service

SERVICE = Service(
    session="session:Translating",
    names={"open_during": "suql.open_during"},
    function="suql.open_during:open_during_function",
    dialects="dispatch",
    remedies="other_systems",
    dialect_names=(
        *("blendsql", "suql", "mysql", "snowflake", "bigquery", "databricks"),
        *("pg-jev", "jevql", "duckdb-jev", "duckdb-jev-structs", "anofox", "greptimedb"),
    ),
)
