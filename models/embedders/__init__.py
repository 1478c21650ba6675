"""Embedders: models that compute vectors of texts."""
