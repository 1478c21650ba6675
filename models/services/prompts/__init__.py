"""Prompts: the words of a task, and worked examples, as the back ends here give them to a model."""
