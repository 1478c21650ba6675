"""Optional functions: each folder can be taken out."""
