"""Asks one run's questions: distinct values, batches, budgets, cascades and outcomes."""
