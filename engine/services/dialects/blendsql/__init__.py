"""Translates BlendSQL."""
