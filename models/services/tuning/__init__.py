"""Chooses how a model is asked yes/no questions, by how well it answers a bank of our own."""

from __future__ import annotations

NEEDS = ("verbalizer",)
