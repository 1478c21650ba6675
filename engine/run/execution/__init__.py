"""Runs staged plans: chunks, expressions, order of predicates, spilled tables."""
