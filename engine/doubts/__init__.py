"""Doubts about queries that are said before they run: refused plans, conditions that no answer changes."""
