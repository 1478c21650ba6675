"""Vectors of texts, computed in this process."""
