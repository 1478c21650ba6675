"""Evaluates a call over Arrow arrays: one value per row, nulls kept."""
