"""Functions of whole columns: entities and groups of all distinct values together."""

FUNCTIONS = ("llm_same", "llm_group", "llm_prefers")
