"""Plans and expressions as text."""
