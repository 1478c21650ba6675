"""Functions for everyday work on texts: sentiment, translation, grammar and personal data."""

FUNCTIONS = ("llm_sentiment", "llm_translate", "llm_fix_grammar", "llm_redact")
