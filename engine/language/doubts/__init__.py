"""Doubts about queries before they run: refused plans, conditions that no answer changes."""
