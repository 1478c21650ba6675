"""Notebooks: ``df.llm`` of pandas and Polars, and the cell magic ``%%blendfusion``."""
