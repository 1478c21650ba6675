"""Wrappers around models: cache, failover, cascade, self-consistency, checks."""
