"""Search over tables: full-text and vector indexes in Lance, on disk."""
