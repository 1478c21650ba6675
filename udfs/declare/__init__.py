"""Declares ingredients, and binds their calls: pure, no model and no session."""
