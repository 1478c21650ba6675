"""Matches the values of two sides of a join by meaning."""
