"""The tables that a question is about: their columns, keys, names and values."""
