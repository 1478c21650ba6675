"""One pass from the root down: what is read of each relation's rows."""
