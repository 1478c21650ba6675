"""What the translations of both dialects need."""
