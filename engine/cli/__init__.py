"""The command `blendfusion`."""
