"""Ingredients: language-model functions as DataFusion functions over Arrow arrays."""
