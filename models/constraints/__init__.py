"""What an answer may look like: a constraint, its regex, its grammar, its check."""
