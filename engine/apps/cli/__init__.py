"""The command ``blendfusion``."""
