"""Many machines: workers run parts of scans, and owners of models answer distinct values."""
