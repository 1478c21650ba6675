"""Converts Substrait to nodes and back, and hides from DataFusion what either gets wrong."""
