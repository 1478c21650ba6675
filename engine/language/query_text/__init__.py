"""Reads and rewrites the text of a query."""
