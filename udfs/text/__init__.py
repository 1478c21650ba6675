"""Reads and compares texts without a model: quantities, opening hours, evidence."""
