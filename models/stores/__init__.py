"""Stores of answers."""
