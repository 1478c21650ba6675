"""Compiled code, which is optional, with its specification in ``reference``."""
