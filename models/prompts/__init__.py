"""Builds prompts: the text of a task, worked examples, canonical answers."""
