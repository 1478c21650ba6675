"""Reports on a run: EXPLAIN, traces, HTML pages, representations, telemetry."""
