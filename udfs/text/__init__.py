"""Reads texts without a model: quantities, opening hours, similar words."""
