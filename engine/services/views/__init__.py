"""Materialised views: queries whose rows and answers are kept, and that ask new values alone."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.replay", "services.scans"),
    session="session:ViewKeeping",
    versions="versions:with_versions",
    statements={
        "CREATE MATERIALIZED VIEW": "statements:create_view",
        "CREATE OR REPLACE MATERIALIZED VIEW": "statements:create_view",
        "DROP MATERIALIZED VIEW": "statements:drop_view",
        "REFRESH": "statements:refresh_view",
        "REFRESH COLUMN": "column_statements:refresh_column",
        "ALTER TABLE": "column_statements:alter_table",
        "EXPLAIN REFRESH": "statements:explain_refresh",
        "EXPLAIN CREATE MATERIALIZED VIEW": "statements:explain_create",
        "EXPLAIN CREATE OR REPLACE MATERIALIZED VIEW": "statements:explain_create",
    },
)
