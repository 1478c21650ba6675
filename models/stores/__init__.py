"""Stores of answers: in memory, in a file, in PostgreSQL, in a folder or on an object store."""
