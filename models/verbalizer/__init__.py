"""The words by which a small model's answers are scored."""
