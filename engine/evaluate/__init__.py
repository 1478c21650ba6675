"""Measures answers against labels: figures with intervals, several wordings and models side by side."""
