"""DataFusion's own DEBUG and TRACE records: they hold literals, plans and bounds of values."""

from __future__ import annotations

import logging

from blendfusion.options import Options

_LOGGERS = [
    "arrow",
    "datafusion",
    "datafusion_catalog",
    "datafusion_common",
    "datafusion_common_runtime",
    "datafusion_datasource",
    "datafusion_datasource_csv",
    "datafusion_datasource_json",
    "datafusion_datasource_parquet",
    "datafusion_execution",
    "datafusion_expr",
    "datafusion_functions",
    "datafusion_functions_aggregate",
    "datafusion_functions_nested",
    "datafusion_optimizer",
    "datafusion_physical_expr",
    "datafusion_physical_optimizer",
    "datafusion_physical_plan",
    "datafusion_python",
    "datafusion_sql",
    "datafusion_substrait",
    "object_store",
    "parquet",
    "sqlparser",
]
"""By the names of its crates."""


def withhold_debug_logs(options: Options) -> None:
    """Where ``options`` show no values DataFusion writes no DEBUG records from here on, unless the
    program has set a level for its loggers."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if options.show_values == "off" and logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
