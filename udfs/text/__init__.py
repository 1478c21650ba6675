"""Reads texts without a model: numbers and evidence."""
