"""The systems whose functions are translated, by the dialects that are written in their SQL."""

from __future__ import annotations

from collections.abc import Mapping

from blendfusion.services.dialects.functions.bigquery import BIGQUERY
from blendfusion.services.dialects.functions.call import System
from blendfusion.services.dialects.functions.databricks import DATABRICKS
from blendfusion.services.dialects.functions.mysql import MYSQL
from blendfusion.services.dialects.functions.postgres import POSTGRES
from blendfusion.services.dialects.functions.snowflake import SNOWFLAKE
from blendfusion.services.dialects.functions.sqlite import SQLITE

SYSTEMS: Mapping[str, System] = {
    "snowflake": SNOWFLAKE,
    "bigquery": BIGQUERY,
    "databricks": DATABRICKS,
    "mysql": MYSQL,
    "suql": POSTGRES,
    "blendsql": SQLITE,
}
