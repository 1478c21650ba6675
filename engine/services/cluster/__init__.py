"""Many machines: workers run parts of scans, own ranges of distinct values and hold models."""
