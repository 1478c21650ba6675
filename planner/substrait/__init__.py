"""Converts Substrait to nodes and back, and works around what Substrait or DataFusion gets
wrong."""
