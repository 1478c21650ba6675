"""Finds models by name."""
