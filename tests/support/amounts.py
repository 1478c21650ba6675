"""How much random suites try, where a run does not say ``--cases``."""

RANDOM_CASES = 1000
