"""Probabilities of replies, whatever gives them."""
