"""Answers as texts: their canonical form, and how replies are read."""
