"""Drafts a query for a question in plain words: catalogue, linked values, checks and repair."""
