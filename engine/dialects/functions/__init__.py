"""What functions and operators of other systems mean here, as tables."""
