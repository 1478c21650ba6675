"""The words of a task: prompts, examples, canonical answers."""
