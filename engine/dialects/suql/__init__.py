"""Translates SUQL."""
