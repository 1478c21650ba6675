"""The common parts of the translations."""
