"""Cuts a plan into stages, and determines which of them a limit may end early."""
