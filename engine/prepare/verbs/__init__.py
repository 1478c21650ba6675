"""The verbs of frames: how they find names, and remedies for those of other libraries."""
