"""The verbalizer: the words that score a small model's answers, and their calibration."""

NEEDS = ("prompts",)
