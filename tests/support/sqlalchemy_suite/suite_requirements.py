"""What SQLAlchemy's suite may require of the dialect. What is closed here, BlendFusion has not, with
the reason; what SQLAlchemy closes by default and BlendFusion has is opened."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

CLOSED = {
    "tables have no constraints, and no indexes": (
        "named_constraints",
        *("foreign_key_constraint_reflection", "primary_key_constraint_reflection"),
        *("implicitly_named_constraints", "unique_constraint_reflection", "index_reflection"),
        *("indexes_with_ascdesc", "reflect_indexes_with_ascdesc", "recursive_fk_cascade"),
        *("on_update_cascade", "temp_table_reflect_indexes"),
        "duplicate_key_raises_integrity_error",
    ),
    "a column does not count its rows": (
        *("autoincrement_insert", "autoincrement_without_sequence", "implements_get_lastrowid"),
        "empty_inserts",
    ),
    "a schema is that of an attached database": ("schemas",),
    "there are no temporary tables": ("temporary_tables", "temp_table_reflection"),
    "all connections of an engine are one session": (
        *("independent_connections", "independent_readonly_connections"),
    ),
    "a number with a point is DOUBLE": ("numeric_received_as_decimal_untyped",),
}
OPENED = (
    *("ctes", "window_functions", "window_range", "intersect", "except_", "nullsordering"),
    *(
        "views",
        "view_reflection",
        "tuple_in",
        "boolean_col_expressions",
        "unicode_ddl",
        "supports_distinct_on",
    ),
    *("order_by_label_with_expression", "datetime_literals", "timestamp_microseconds"),
    *("date_historic", "infinity_floats", "mod_operator_as_percent_sign"),
    *("percent_schema_names", "regexp_match", "standard_cursor_sql", "aggregate_order_by"),
    *("supports_bitwise_or", "supports_bitwise_and", "supports_bitwise_xor"),
    *("supports_bitwise_shift", "ctes_with_values", "table_value_constructor"),
)


class Requirements(SuiteRequirements):
    """The class that ``setup.cfg`` names."""


def _always(rule: Any) -> Any:
    return property(lambda self: rule())


for _names in CLOSED.values():
    for _name in _names:
        setattr(Requirements, _name, _always(exclusions.closed))
for _name in OPENED:
    setattr(Requirements, _name, _always(exclusions.open))
