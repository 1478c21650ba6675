"""Estimates the questions of a query by a run with guessed answers."""
