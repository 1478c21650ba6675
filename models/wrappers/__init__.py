"""Models around models: cache, failover, cascade, self-consistency."""
