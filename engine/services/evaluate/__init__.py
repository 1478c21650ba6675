"""Measures answers against labels: figures with intervals, wordings and models side by side."""
