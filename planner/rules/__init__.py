"""planner/rules."""
