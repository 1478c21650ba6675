"""The local page of ``blendfusion ui``: queries, plans, results and answers in a browser."""
