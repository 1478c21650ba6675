"""Functions of whole columns: entities of all distinct values together."""
