"""SQL functions of decision models: of PostgreSQL, DuckDB and GreptimeDB."""
