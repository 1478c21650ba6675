"""The comparison of two values, however they are written: quantities and dates without a model."""

FUNCTIONS = ("llm_compare",)
