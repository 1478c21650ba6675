"""Probabilities of replies, independent of the back end."""
