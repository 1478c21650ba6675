"""Vectors of texts by meaning, and by spelling (TF-IDF), computed in this process."""
