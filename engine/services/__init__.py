"""Optional parts of sessions: each folder can be taken out, and the rest works without it."""
