"""DataFusion's own DEBUG and TRACE records: they hold literals, plans and bounds of values."""

from __future__ import annotations

import logging

_LOGGERS = (
    "arrow datafusion datafusion_catalog datafusion_common datafusion_common_runtime datafusion_datasource "
    "datafusion_datasource_csv datafusion_datasource_json datafusion_datasource_parquet datafusion_execution "
    "datafusion_expr datafusion_functions datafusion_functions_aggregate datafusion_functions_nested "
    "datafusion_optimizer datafusion_physical_expr datafusion_physical_optimizer datafusion_physical_plan "
    "datafusion_python datafusion_sql datafusion_substrait object_store parquet sqlparser"
).split()
"""By the names of its crates."""


def withhold_debug_logs() -> None:
    """From here on DataFusion writes no DEBUG records, unless the program has set a level for its loggers."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
