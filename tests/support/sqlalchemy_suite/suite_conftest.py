"""What SQLAlchemy's suite tests and BlendFusion has not, test by test, with the reason."""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import registry

for name in ("blendfusion", "blendfusion.blendfusion"):
    registry.register(name, "blendfusion.services.dbapi.dialect", "BlendFusionDialect")

LEFT_OUT = {
    "a made table keeps no comments": ("::test_get_multi_columns",),
    "a text has no length": ("::test_string_length_reflection",),
    "a column does not count its rows": (
        *("::test_insert_from_select_autoinc", "::test_no_results_for_non_returning_insert"),
    ),
    "an index is none": ("::test_long_convention_name[ix",),
    "every name is quoted, and the tests compare texts": ("PostCompileParamsTest",),
    "a parameter alone has no type": (
        *("::test_concatenate_binary", "::test_concatenate_clauselist"),
    ),
    "a number with a point is DOUBLE": ("::test_truediv_divisor[numeric", "::test_truediv_numeric"),
    "rows have no order without ORDER BY": ("::test_window_range",),
    "a TIMESTAMP in a text has nanoseconds": ("DateTimeHistoricTest",),
}


def _reason(node: str) -> str | None:
    for reason, parts in LEFT_OUT.items():
        if any(part in node for part in parts):
            return reason
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = _reason(item.nodeid)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason))
