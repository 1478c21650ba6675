"""Translates queries in the dialects of other systems to BlendFusion's SQL."""

from blendfusion.services import Service

SERVICE = Service(
    session="session:Translating",
    dialects="dispatch",
    dialect_names=(
        *("blendsql", "suql", "mysql", "snowflake", "bigquery", "databricks"),
        *("pg-jev", "jevql", "duckdb-jev", "duckdb-jev-structs", "anofox", "greptimedb"),
    ),
)
