"""Asks one run's questions: distinct values, batches, budgets, cascades and what becomes of answers."""
