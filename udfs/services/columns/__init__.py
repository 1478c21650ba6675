"""Functions of whole columns: entities and groups of all distinct values together."""
