"""The manifest of a run, its replay without a model, and what changed since."""
