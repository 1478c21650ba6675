"""Estimates of what a query would ask: a run with guessed answers."""
