"""MySQL's queries: names in back quotes, and its rules for order and LIKE."""
