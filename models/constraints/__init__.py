"""Constraints of answers: regular expression, grammar, closed set, schema and check."""
