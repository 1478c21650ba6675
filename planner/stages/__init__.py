"""Cuts a plan into stages, and says which may end early."""
