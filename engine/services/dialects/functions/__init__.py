"""Tables of the functions and operators of other systems, and of what they mean here."""
