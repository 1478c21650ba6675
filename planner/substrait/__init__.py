"""Nodes from Substrait and back, with what Substrait or DataFusion gets wrong."""
