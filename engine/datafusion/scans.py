"""The tables that a plan reads, by the lines of its text."""

from __future__ import annotations

from collections.abc import Iterable

from datafusion.plan import LogicalPlan

_SCAN = "TableScan: "


def scans(plan: LogicalPlan) -> set[str]:
    """The scans of a plan that differ: see ``scans_in``."""
    return set(scans_in(plan))


def scans_in(plan: LogicalPlan) -> list[str]:
    """Every scan of a plan, also in subqueries (which ``plan.inputs()`` leaves out): the table with
    what follows its name. A text in the plan that looks like a scan counts as one."""
    lines = (line.lstrip() for line in plan.display_indent().splitlines())
    return [line.removeprefix(_SCAN) for line in lines if line.startswith(_SCAN)]


def table_of(scan: str, tables: Iterable[str]) -> str | None:
    """The table of a scan, by its name in plans; None if it is not in ``tables``.

    >>> table_of("my table projection=[a]", ["my", "my table"])
    'my table'
    """
    fitting = (name for name in tables if scan == name or scan.startswith(f"{name} "))
    return max(fitting, key=len, default=None)
