"""Queries in the dialects of other systems, translated into ours."""
