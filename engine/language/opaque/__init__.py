"""Handles plans that Substrait cannot carry: divides them into opaque tables and nested stages."""
