"""Prepares a query: from its text to a frame."""
