"""Reads and compares texts without a model: quantities and evidence."""
