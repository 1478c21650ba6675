"""The language of queries: their text, doubts about them, and plans that Substrait cannot carry."""
